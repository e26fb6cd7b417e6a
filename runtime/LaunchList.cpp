//===- LaunchList.cpp - a program's kernels, ready to be started ------------===//
//
// See LaunchList.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/LaunchList.h"

#include "runtime/Ranges.h"

using namespace planc;
using namespace planrt;
using namespace cudaabi;
using bundle::ArgKind;

static CUdeviceptr address(const bundle::Arg &arg, size_t entry, const Session &session,
                           const StepMemory &memory) {
  switch (arg.kind) {
  case ArgKind::buffer:
    return memory.edge(*arg.name)->address;
  case ArgKind::weight:
    return session.weights()->address(*arg.name, arg.part == "scales");
  case ArgKind::state:
    return session.pool(*arg.name);
  case ArgKind::input:
    return memory.input(*arg.name)->address;
  case ArgKind::scratch:
    return memory.scratch(entry);
  case ArgKind::counters:
    return memory.counters(entry);
  }
  return 0;
}

LaunchList::LaunchList(const bundle::Program &program, const Session &session,
                       const Kernels &kernels, const StepMemory &memory)
    : plan(program), device(*session.weights()->device()), starts(program.launch_list.size()) {
  for (size_t i = 0; i < starts.size(); ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    Start &start = starts[i];
    start.label = fmt::format("group {} \"{}\" (nodes {})", launch.group, launch.rule,
                              fmt::join(launch.nodes, ", "));
    if (!launch.kernel)
      continue;
    start.kernel = &kernels.find(*launch.kernel);
    for (const bundle::Arg &arg : launch.args)
      start.values.push_back(address(arg, i, session, memory));
    for (CUdeviceptr &value : start.values)
      start.pointers.push_back(&value);
  }
}

Status LaunchList::start(size_t entry, CUstream stream) const {
  const Start &start = starts[entry];
  if (!start.kernel)
    return {};
  Range range(start.label.c_str());
  const bundle::KernelTarget &target = *start.kernel->target;
  if (device.driver().labelsLaunches())
    device.driver().labelLaunch(start.label);
  CUresult result = device.driver()->cuLaunchKernel(
      start.kernel->function, target.grid[0], target.grid[1], target.grid[2], target.block[0],
      target.block[1], target.block[2], target.shared_bytes, stream,
      const_cast<void **>(start.pointers.data()), nullptr);
  if (result == CUDA_SUCCESS)
    return {};
  return device.check(result, fmt::format("{}, cannot start kernel \"{}\"", start.label,
                                          *plan.launch_list[entry].kernel));
}
