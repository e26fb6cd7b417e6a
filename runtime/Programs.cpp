//===- Programs.cpp - a bundle's programs, before anything is loaded --------===//
//
// See Programs.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/Programs.h"

#include "runtime/Images.h"

#include <algorithm>

using namespace planc;
using namespace planrt;

bool planrt::runsTokens(const bundle::Program &program) {
  return program.mode == "decode" || program.mode == "multi_seq";
}

Result<uint32_t> planrt::findProgram(const bundle::Bundle &bundle, const std::string *mode,
                                     uint32_t rows) {
  const std::vector<bundle::Program> &programs = bundle.manifest().programs;
  const bundle::Program *best = nullptr;
  for (const bundle::Program &program : programs) {
    bool serves = mode ? program.mode == *mode : runsTokens(program);
    if (serves && program.rows >= rows && (!best || program.rows < best->rows))
      best = &program;
  }
  if (best)
    return uint32_t(best - programs.data());
  std::string have;
  for (const bundle::Program &program : programs)
    have += fmt::format("{}\"{}\" ({}, rows {})", have.empty() ? "" : ", ", program.name,
                        program.mode, program.rows);
  return fileError(bundle.path(), "there is no program {}with {} rows or more; there is {}",
                   mode ? fmt::format("of mode \"{:.40}\" ", *mode) : "", rows,
                   have.empty() ? "none" : have);
}

Result<ProgramMemory> planrt::memoryOf(const bundle::Manifest &manifest,
                                       const bundle::Program &program,
                                       const SessionOptions &session) {
  Result<SessionSize> size = SessionSize::of(manifest, session);
  if (!size.ok())
    return size.takeError();
  ProgramMemory memory;
  for (const bundle::Weight &weight : manifest.weights)
    (weight.host ? memory.hostWeights : memory.weights) += weight.bytes + weight.scale_bytes;
  memory.states = size->stateBytes();
  memory.kv = size->kvBytes();
  memory.workspace = program.workspace.bytes;
  memory.scratch = program.workspace.scratch_bytes + 4 * program.workspace.counters;
  return memory;
}

Status planrt::checkMemory(const Device &device, uint64_t bytes, std::string_view what) {
  if (Status status = device.alive(); !status.ok())
    return status;
  Device::Scope scope(device);
  size_t free = 0, total = 0;
  CUresult result = device.driver()->cuMemGetInfo_v2(&free, &total);
  if (Status status = device.check(result, "cannot ask for the free memory"); !status.ok())
    return status;
  if (bytes <= free)
    return {};
  return makeError(
      ErrorKind::Memory,
      "{} {} bytes, device {} ({}) has {} of {} free; fewer sequences or kv_tokens, or "
      "a larger device, would help",
      what, bytes, device.name(), device.product(), free, total);
}

Status planrt::checkImages(const bundle::Bundle &bundle, const Device &device,
                           const bundle::Program &program) {
  const std::string *last = nullptr;
  for (const bundle::Launch &launch : program.launch_list) {
    if (!launch.kernel || (last && *last == *launch.kernel))
      continue;
    last = &*launch.kernel;
    if (Status status = checkImage(bundle, device, *bundle.manifest().findKernel(*launch.kernel));
        !status.ok())
      return status;
  }
  return {};
}
