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

static constexpr uint64_t alignment = 256;

static uint64_t alignUp(uint64_t value) { return (value + alignment - 1) / alignment * alignment; }

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
  for (auto stage : {&Step::allocate, &Step::bindArguments})
    if (Status status = (step.get()->*stage)(); !status.ok())
      return status.takeError();
  step->cutRuns();
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

Status Step::allocate() {
  uint64_t blockBytes = 0, backBytes = 0;
  for (const bundle::Input &input : plan.inputs) {
    uint64_t bytes = bundle::byteSize(input.dtype);
    for (int64_t extent : input.shape)
      bytes *= uint64_t(extent);
    blockOffsets[input.name] = blockBytes;
    blockBytes = alignUp(blockBytes + bytes);
  }
  for (const bundle::Buffer &buffer : plan.buffers) {
    buffers[buffer.edge] = &buffer;
    if (buffer.host_writes) {
      blockOffsets[buffer.edge] = blockBytes;
      blockBytes = alignUp(blockBytes + buffer.bytes);
    }
    if (buffer.host_reads) {
      readBackOffsets[buffer.edge] = backBytes;
      backBytes = alignUp(backBytes + buffer.bytes);
    }
  }
  const bundle::Workspace &sizes = plan.workspace;
  auto onDevice = [&](DeviceMemory &memory, uint64_t bytes, const char *what) -> Status {
    Result<DeviceMemory> created = DeviceMemory::create(device, bytes, what);
    if (!created.ok())
      return created.takeError();
    memory = std::move(*created);
    return {};
  };
  auto onHost = [&](PinnedMemory &memory, uint64_t bytes, const char *what) -> Status {
    Result<PinnedMemory> created = PinnedMemory::create(device, bytes, what);
    if (!created.ok())
      return created.takeError();
    memory = std::move(*created);
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte(0));
    return {};
  };
  for (Status status :
       {onDevice(workspace, options.unshared ? sizes.unshared_bytes : sizes.bytes, "the workspace"),
        onDevice(scratch, sizes.scratch_bytes, "scratch"),
        onDevice(counters, sizes.counters * 4, "counters"),
        onDevice(blockOnDevice, blockBytes, "the step's inputs"),
        onHost(block, blockBytes, "the step's inputs"),
        onHost(readBack, backBytes, "the step's results")})
    if (!status.ok())
      return status;

  Device::Scope scope(*device);
  const Driver &api = device->driver();
  for (const bundle::Buffer &buffer : plan.buffers)
    if (options.unshared && buffer.unshared_offset)
      api.nameRange(workspace.address() + *buffer.unshared_offset, buffer.bytes,
                    fmt::format("edge \"{}\"", buffer.edge));
  clearCounters();
  return device->check(api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                       "cannot make a stream");
}

void Step::clearCounters() {
  if (counters.size() && device->alive().ok())
    device->driver()->cuMemsetD8_v2(counters.address(), 0, counters.size());
}

Result<CUdeviceptr> Step::address(const bundle::Arg &arg) const {
  switch (arg.kind) {
  case ArgKind::buffer: {
    const bundle::Buffer &buffer = *buffers.at(*arg.name);
    if (buffer.host_writes)
      return blockOnDevice.address() + blockOffsets.at(buffer.edge);
    return workspace.address() + *(options.unshared ? buffer.unshared_offset : buffer.offset);
  }
  case ArgKind::weight:
    return owner->weights()->address(*arg.name, arg.part == "scales");
  case ArgKind::state:
    return owner->pool(*arg.name);
  case ArgKind::input:
    return blockOnDevice.address() + blockOffsets.at(*arg.name);
  case ArgKind::scratch:
    return scratch.address();
  case ArgKind::counters:
    return counters.address();
  }
  return inputError("an argument of no kind");
}

Status Step::bindArguments() {
  starts.resize(plan.launch_list.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    if (!launch.kernel)
      continue;
    Start &start = starts[i];
    start.kernel = &kernels->find(*launch.kernel);
    for (const bundle::Arg &arg : launch.args) {
      Result<CUdeviceptr> value = address(arg);
      if (!value.ok())
        return value.takeError();
      start.values.push_back(*value);
    }
    for (CUdeviceptr &value : start.values)
      start.pointers.push_back(&value);
  }
  return {};
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
        logitsBuffer = buffers.at(op.inputs[0]);
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
      clearCounters();
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
  for (const bundle::Input &input : plan.inputs)
    if (input.name == name) {
      size_t count = 1;
      for (int64_t extent : input.shape)
        count *= size_t(extent);
      return {reinterpret_cast<T *>(block.bytes().data() + blockOffsets.at(name)), count};
    }
  return {};
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
  deviceStarted = true;
  if (run.graph) {
    if (Status status = device->check(device->driver()->cuGraphLaunch(run.graph, stream),
                                      "cannot start the step");
        !status.ok())
      return status;
  } else if (Status status = enqueue(run); !status.ok()) {
    return status;
  }
  return synchronize(fmt::format("groups {} to {} failed", plan.launch_list[run.begin].group,
                                 plan.launch_list[run.end - 1].group));
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
    device->driver().labelLaunch(fmt::format("group {} ({})", launch.group, launch.rule));
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
  if (block.bytes().empty())
    return {};
  CUresult result = device->driver()->cuMemcpyHtoDAsync_v2(
      blockOnDevice.address(), block.bytes().data(), block.bytes().size(), stream);
  if (Status status = device->check(result, "cannot copy the step's inputs"); !status.ok() || !wait)
    return status;
  return synchronize("cannot copy the step's inputs");
}

Status Step::copyBack(const bundle::Buffer &buffer) {
  CUdeviceptr from =
      workspace.address() + *(options.unshared ? buffer.unshared_offset : buffer.offset);
  void *to = readBack.bytes().data() + readBackOffsets.at(buffer.edge);
  return device->check(device->driver()->cuMemcpyDtoHAsync_v2(to, from, buffer.bytes, stream),
                       "cannot read results back");
}

Status Step::synchronize(const std::string &what) {
  return device->check(device->driver()->cuStreamSynchronize(stream), what);
}

Status Step::executeHost(const bundle::HostOp &op) {
  if (op.op == "embed") {
    const bundle::Buffer &buffer = *buffers.at(op.outputs[0]);
    std::span<std::byte> out = block.bytes().subspan(blockOffsets.at(buffer.edge), buffer.bytes);
    return embed(*owner->weights(), *op.weight, input<int32_t>(op.inputs[0]), out);
  }
  const bundle::Buffer &buffer = *buffers.at(op.inputs[0]);
  argmax(buffer, readBack.bytes().subspan(readBackOffsets.at(buffer.edge), buffer.bytes), tokens);
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
  widenRow(
      *logitsBuffer,
      readBack.bytes().subspan(readBackOffsets.at(logitsBuffer->edge) + row * rowBytes, rowBytes),
      out);
  return {};
}

Status Step::readBuffer(const std::string &edge, std::span<std::byte> out) const {
  CUdeviceptr from = 0;
  uint64_t bytes = 0;
  if (auto at = buffers.find(edge); at != buffers.end()) {
    const bundle::Buffer &buffer = *at->second;
    bytes = buffer.bytes;
    bool there = options.unshared && !visiting;
    if (visiting)
      there = (visiting->second ? buffer.def <= visiting->first : buffer.def < visiting->first) &&
              (options.unshared || visiting->first <= buffer.last_use);
    if (!there)
      return makeError(ErrorKind::Usage,
                       "edge \"{}\" is not stored at this point: it lives from "
                       "group {} to {}",
                       edge, buffer.def, buffer.last_use);
    from = buffer.host_writes
               ? blockOnDevice.address() + blockOffsets.at(edge)
               : workspace.address() + *(options.unshared ? buffer.unshared_offset : buffer.offset);
  } else if (auto found = std::find_if(plan.inputs.begin(), plan.inputs.end(),
                                       [&](const bundle::Input &i) { return i.name == edge; });
             found != plan.inputs.end()) {
    bytes = bundle::byteSize(found->dtype);
    for (int64_t extent : found->shape)
      bytes *= uint64_t(extent);
    from = blockOnDevice.address() + blockOffsets.at(edge);
  } else {
    return makeError(ErrorKind::Usage, "program \"{}\" stores no edge \"{:.200}\"", plan.name,
                     edge);
  }
  if (out.size() != bytes)
    return makeError(ErrorKind::Usage, "\"{}\" has {} bytes, not {}", edge, bytes, out.size());
  if (Status status = device->alive(); !status.ok())
    return status;
  Device::Scope scope(*device);
  return device->check(device->driver()->cuMemcpyDtoH_v2(out.data(), from, bytes),
                       fmt::format("cannot read \"{}\"", edge));
}
