//===- Step.cpp - one program, run on sequences of a session ----------------===//
//
// Opening a step resolves every argument to an address, so that running one is: fill the block, go
// through the runs, commit.
//
//===----------------------------------------------------------------------===//
#include "runtime/Step.h"

#include "runtime/HostOps.h"

#include <algorithm>
#include <cstring>

using namespace planc;
using namespace planrt;
using namespace cudaabi;
using bundle::ArgKind;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Step>> Step::open(std::shared_ptr<Session> session,
                                         const std::string *program, const StepOptions &options) {
  const BundlePtr &bundle = session->weights()->bundle();
  const bundle::Manifest &manifest = bundle->manifest();
  if (manifest.programs.empty())
    return fileError(bundle->path(), "the bundle has no program");
  const bundle::Program *found =
      program ? manifest.findProgram(*program) : &manifest.programs.front();
  if (!found)
    return fileError(bundle->path(), "there is no program \"{:.80}\"", *program);
  // Rows of other modes are not tokens of different sequences.
  if (found->mode != "decode" && found->mode != "multi_seq")
    return fileError(bundle->path(),
                     "program \"{}\" has mode \"{:.40}\", planrt runs decode and "
                     "multi_seq",
                     found->name, found->mode);
  std::unique_ptr<Step> step(new Step(std::move(session), *found, options));
  if (Status status = step->device->alive(); !status.ok())
    return status.takeError();
  Result<std::unique_ptr<Kernels>> kernels = Kernels::load(bundle, step->device, *found);
  if (!kernels.ok())
    return kernels.takeError();
  step->kernels = std::move(*kernels);
  using Layout = StepMemory::Layout;
  const EmulatorSettings &asked = step->device->settings();
  // Counters are kept by the names of ranges, which edges have only if they do not share theirs.
  Layout layout = asked.checks                         ? Layout::Apart
                  : options.unshared || asked.counters ? Layout::Unshared
                                                       : Layout::Shared;
  step->outlives = layout != Layout::Shared;
  Result<std::unique_ptr<StepMemory>> memory =
      StepMemory::create(step->device, *found, *step->kernels, layout);
  if (!memory.ok())
    return memory.takeError();
  step->memory = std::move(*memory);
  step->bindArguments();
  step->cutRuns();
  Device::Scope scope(*step->device);
  CUresult result = step->device->driver()->cuStreamCreate(&step->stream, CU_STREAM_NON_BLOCKING);
  if (Status status = step->device->check(result, "cannot make a stream"); !status.ok())
    return status.takeError();
  return step;
}

Step::~Step() {
  Device::Scope scope(*device);
  const Driver &api = device->driver();
  for (Run &run : runs)
    if (run.graph)
      api->cuGraphExecDestroy(run.graph);
  if (stream)
    api->cuStreamDestroy_v2(stream);
}

CUdeviceptr Step::address(const bundle::Arg &arg, size_t launch) const {
  switch (arg.kind) {
  case ArgKind::buffer:
    return memory->edge(*arg.name)->address;
  case ArgKind::weight:
    return owner->weights()->address(*arg.name, arg.part == "scales");
  case ArgKind::state:
    return owner->pool(*arg.name);
  case ArgKind::input:
    return memory->input(*arg.name)->address;
  case ArgKind::scratch:
    return memory->scratch(launch);
  case ArgKind::counters:
    return memory->counters(launch);
  }
  return 0;
}

void Step::bindArguments() {
  starts.resize(plan.launch_list.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    if (!launch.kernel)
      continue;
    Start &start = starts[i];
    start.kernel = &kernels->find(*launch.kernel);
    for (const bundle::Arg &arg : launch.args)
      start.values.push_back(address(arg, i));
    for (CUdeviceptr &value : start.values)
      start.pointers.push_back(&value);
    start.label = fmt::format("group {} \"{}\" (nodes {})", launch.group, launch.rule,
                              fmt::join(launch.nodes, ", "));
  }
}

const bundle::Buffer &Step::buffer(const std::string &edge) const {
  return *std::find_if(plan.buffers.begin(), plan.buffers.end(),
                       [&](const bundle::Buffer &stored) { return stored.edge == edge; });
}

void Step::cutRuns() {
  for (size_t i = 0; i < plan.launch_list.size(); ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    bool onDevice = launch.where == "device";
    if (runs.empty() || runs.back().device != onDevice)
      runs.push_back({onDevice, i, i, {}, nullptr});
    Run &run = runs.back();
    run.end = i + 1;
    for (const bundle::HostOp &op : launch.host)
      if (op.op == "argmax")
        logitsBuffer = &buffer(op.inputs[0]);
    if (onDevice)
      for (const bundle::Buffer &buffer : plan.buffers)
        if (buffer.host_reads && buffer.def == launch.group &&
            (run.readBack.empty() || run.readBack.back() != &buffer))
          run.readBack.push_back(&buffer);
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Result<std::vector<int32_t>> Step::run(std::span<const uint32_t> sequences,
                                       std::span<const int32_t> newTokens, const Visitor &visit) {
  if (sequences.empty() || sequences.size() > plan.rows)
    return makeError(ErrorKind::Usage, "a step of {} sequences, program \"{}\" has {} rows",
                     sequences.size(), plan.name, plan.rows);
  if (Status status = device->alive(); !status.ok())
    return status.takeError();
  Result<std::vector<Row>> rows = owner->prepare(sequences, newTokens);
  if (!rows.ok())
    return rows.takeError();
  fillBlock(*rows);
  lastRows.clear();
  deviceStarted = false;
  Status status;
  {
    Device::Scope scope(*device);
    status = execute(visit);
    visiting.reset();
    if (!status.ok()) {
      // Copies from the block must not run on while the next step fills it.
      device->driver()->cuStreamSynchronize(stream);
      memory->clearCounters();
    }
  }
  if (!status.ok()) {
    owner->abandon(*rows, deviceStarted);
    return status.takeError();
  }
  owner->commit(*rows);
  lastRows = std::move(*rows);
  return std::vector<int32_t>(tokens.begin(), tokens.begin() + long(lastRows.size()));
}

template <class T> std::span<T> Step::input(const std::string &name) {
  const StepMemory::Value *value = memory->input(name);
  if (!value)
    return {};
  return {reinterpret_cast<T *>(value->block.data()), value->bytes / sizeof(T)};
}

void Step::fillBlock(std::span<const Row> rows) {
  const bundle::Model &model = owner->weights()->bundle()->manifest().model;
  size_t n = plan.rows, tableWidth = size_t(model.blocksPerSequence());
  // Rows that idle read zeros and write nothing. A program need not have every input.
  auto set = [&]<class T>(const char *name, size_t index, T value) {
    if (std::span<T> values = input<T>(name); !values.empty())
      values[index] = value;
  };
  std::span<int32_t> tables = input<int32_t>("block_tables");
  for (size_t r = 0; r < n; ++r) {
    Row row = r < rows.size() ? rows[r] : Row();
    bool idle = r >= rows.size();
    set("token_ids", r, row.token);
    for (size_t stream = 0; stream < 3; ++stream) // text: t, h and w are all the token's index
      set("positions", stream * n + r, int32_t(row.position));
    set("seq_lens", r, idle ? 0 : int32_t(row.position + 1));
    set("slots_in", r, row.slotIn);
    set("slots_out", r, row.slotOut);
    std::span<const int32_t> blocks;
    int64_t slot = -1;
    if (!idle) {
      blocks = owner->blocks(row.sequence);
      slot = blocks[size_t(row.position / model.kv_block)] * model.kv_block +
             row.position % model.kv_block;
    }
    set("slot_mapping", r, slot);
    if (!tables.empty()) {
      std::span<int32_t> table = tables.subspan(r * tableWidth, tableWidth);
      std::fill(std::copy(blocks.begin(), blocks.end(), table.begin()), table.end(), 0);
    }
  }
}

Status Step::execute(const Visitor &visit) {
  tokens.assign(plan.rows, 0);
  for (Run &run : runs) {
    if (visit || !run.device) {
      if (Status status = executeVisited(run, visit); !status.ok())
        return status;
    } else if (Status status = executeDevice(run); !status.ok()) {
      return status;
    }
  }
  ++steps;
  return {};
}

Status Step::executeDevice(Run &run) {
  if (steps > 0 && !options.noGraph && !run.graph)
    if (Status status = capture(run); !status.ok())
      return status;
  std::string failure = fmt::format("groups {} to {} failed", plan.launch_list[run.begin].group,
                                    plan.launch_list[run.end - 1].group);
  deviceStarted = true;
  if (run.graph) {
    if (Status status = device->check(device->driver()->cuGraphLaunch(run.graph, stream),
                                      "cannot start the step");
        !status.ok())
      return status;
  } else if (Status status = enqueue(run); !status.ok()) {
    // A kernel's fault is the result of a later call, which is not to blame.
    Error error = status.takeError();
    if (error.kind == ErrorKind::DeviceLost)
      error.message = fmt::format("{}: {}", failure, error.message);
    return error;
  }
  return synchronize(failure);
}

Status Step::enqueue(const Run &run) {
  if (Status status = copyBlock(false); !status.ok())
    return status;
  for (size_t i = run.begin; i < run.end; ++i)
    if (Status status = start(i); !status.ok())
      return status;
  for (const bundle::Buffer *buffer : run.readBack)
    if (Status status = copyBack(*buffer); !status.ok())
      return status;
  return {};
}

Status Step::capture(Run &run) {
  const Driver &api = device->driver();
  // Thread-local: other threads may allocate or load meanwhile.
  CUresult result = api->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (Status status = device->check(result, "cannot capture the step"); !status.ok())
    return status;
  Status status = enqueue(run);
  CUgraph graph = nullptr;
  result = api->cuStreamEndCapture(stream, &graph);
  if (status.ok())
    status = device->check(result, "cannot capture the step");
  if (status.ok())
    status = device->check(api->cuGraphInstantiateWithFlags(&run.graph, graph, 0),
                           "cannot make a graph of the step");
  if (graph)
    api->cuGraphDestroy(graph);
  return status;
}

/// Entry by entry, waiting for each; host runs without a visitor come this way too.
Status Step::executeVisited(const Run &run, const Visitor &visit) {
  auto call = [&](size_t index, bool done) -> Status {
    const bundle::Launch &launch = plan.launch_list[index];
    visiting = {launch.group, done};
    return visit ? visit(index, launch, done) : Status();
  };
  // A visitor may read step inputs and what the host has written, so they go over at once.
  if (visit)
    if (Status status = copyBlock(true); !status.ok())
      return status;
  for (size_t i = run.begin; i < run.end; ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    if (Status status = call(i, false); !status.ok())
      return status;
    for (const bundle::HostOp &op : launch.host)
      if (Status status = executeHost(op); !status.ok())
        return status;
    if (visit && !launch.host.empty())
      if (Status status = copyBlock(true); !status.ok())
        return status;
    if (launch.kernel) {
      deviceStarted = true;
      if (Status status = start(i); !status.ok())
        return status;
      if (Status status = synchronize(fmt::format("group {} ({}), kernel \"{}\" failed",
                                                  launch.group, launch.rule, *launch.kernel));
          !status.ok())
        return status;
    }
    if (Status status = call(i, true); !status.ok())
      return status;
  }
  for (const bundle::Buffer *buffer : run.readBack)
    if (Status status = copyBack(*buffer); !status.ok())
      return status;
  return run.device ? synchronize("cannot read results back") : Status();
}

Status Step::start(size_t index) {
  const bundle::Launch &launch = plan.launch_list[index];
  if (!launch.kernel)
    return {};
  Start &start = starts[index];
  const bundle::KernelTarget &target = *start.kernel->target;
  if (device->driver().labelsLaunches())
    device->driver().labelLaunch(start.label);
  CUresult result = device->driver()->cuLaunchKernel(
      start.kernel->function, target.grid[0], target.grid[1], target.grid[2], target.block[0],
      target.block[1], target.block[2], target.shared_bytes, stream, start.pointers.data(),
      nullptr);
  if (result == CUDA_SUCCESS)
    return {};
  return device->check(result, fmt::format("group {} ({}), cannot start kernel \"{}\"",
                                           launch.group, launch.rule, *launch.kernel));
}

Status Step::copyBlock(bool wait) {
  static constexpr const char *failure = "cannot copy the step's inputs";
  for (const StepMemory::Copy &copy : memory->copies()) {
    CUresult result =
        device->driver()->cuMemcpyHtoDAsync_v2(copy.to, copy.from.data(), copy.from.size(), stream);
    if (Status status = device->check(result, failure); !status.ok())
      return status;
  }
  return wait && !memory->copies().empty() ? synchronize(failure) : Status();
}

Status Step::copyBack(const bundle::Buffer &buffer) {
  const StepMemory::Value &value = *memory->edge(buffer.edge);
  return device->check(device->driver()->cuMemcpyDtoHAsync_v2(value.readBack.data(), value.address,
                                                              value.bytes, stream),
                       "cannot read results back");
}

Status Step::synchronize(const std::string &what) {
  return device->check(device->driver()->cuStreamSynchronize(stream), what);
}

Status Step::executeHost(const bundle::HostOp &op) {
  if (op.op == "embed")
    return embed(*owner->weights(), *op.weight, input<int32_t>(op.inputs[0]),
                 memory->edge(op.outputs[0])->block);
  argmax(buffer(op.inputs[0]), memory->edge(op.inputs[0])->readBack, tokens);
  return {};
}

//===----------------------------------------------------------------------===//
// Reading results
//===----------------------------------------------------------------------===//

Status Step::logits(uint32_t row, std::span<float> out) const {
  if (!logitsBuffer)
    return makeError(ErrorKind::Usage, "program \"{}\" has no logits", plan.name);
  if (row >= lastRows.size())
    return makeError(ErrorKind::Usage, "there is no row {}, the last step had {}", row,
                     lastRows.size());
  if (out.size() != size_t(logitsBuffer->dim))
    return makeError(ErrorKind::Usage, "a row of logits has {} values, not {}", logitsBuffer->dim,
                     out.size());
  uint64_t rowBytes = logitsBuffer->bytes / uint64_t(logitsBuffer->rows);
  widenRow(*logitsBuffer,
           memory->edge(logitsBuffer->edge)->readBack.subspan(row * rowBytes, rowBytes), out);
  return {};
}

Status Step::readBuffer(const std::string &edge, std::span<std::byte> out) const {
  const StepMemory::Value *value = memory->edge(edge);
  if (value) {
    const bundle::Buffer &stored = buffer(edge);
    bool there = outlives && !visiting;
    if (visiting)
      there = (visiting->second ? stored.def <= visiting->first : stored.def < visiting->first) &&
              (outlives || visiting->first <= stored.last_use);
    if (!there)
      return makeError(ErrorKind::Usage,
                       "edge \"{}\" is not stored at this point: it lives from "
                       "group {} to {}",
                       edge, stored.def, stored.last_use);
  } else if (value = memory->input(edge); !value) {
    return makeError(ErrorKind::Usage, "program \"{}\" stores no edge \"{:.200}\"", plan.name,
                     edge);
  }
  if (out.size() != value->bytes)
    return makeError(ErrorKind::Usage, "\"{}\" has {} bytes, not {}", edge, value->bytes,
                     out.size());
  if (Status status = device->alive(); !status.ok())
    return status;
  Device::Scope scope(*device);
  return device->check(device->driver()->cuMemcpyDtoH_v2(out.data(), value->address, value->bytes),
                       fmt::format("cannot read \"{}\"", edge));
}
