//===- Step.cpp - one program, run on sequences of a session ----------------===//
//
// Opening resolves everything to addresses, so that a step is: fill the block, go through the runs,
// commit. What a step does from the third one on allocates nothing: messages are made when
// something fails.
//
//===----------------------------------------------------------------------===//
#include "runtime/Step.h"

#include "runtime/HostOps.h"
#include "runtime/Programs.h"
#include "runtime/Ranges.h"

#include <algorithm>

using namespace planc;
using namespace planrt;
using namespace cudaabi;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Step::Step(std::shared_ptr<Session> session, const bundle::Program &program,
           const StepOptions &options)
    : owner(std::move(session)), plan(program), options(options),
      device(owner->weights()->device()), rowStore(program.rows), argmax(program.rows) {}

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
  if (!runsTokens(*found))
    return fileError(bundle->path(),
                     "program \"{}\" has mode \"{:.40}\", planrt runs decode and "
                     "multi_seq",
                     found->name, found->mode);
  std::unique_ptr<Step> step(new Step(std::move(session), *found, options));
  if (Status status = step->prepareDevice(); !status.ok())
    return status.takeError();
  return step;
}

Status Step::prepareDevice() {
  if (Status status = device->alive(); !status.ok())
    return status;
  Device::Scope scope(*device);
  Result<std::unique_ptr<Kernels>> loaded = Kernels::load(owner->weights()->bundle(), device, plan);
  if (!loaded.ok())
    return loaded.takeError();
  kernels = std::move(*loaded);
  using Layout = StepMemory::Layout;
  const EmulatorSettings &asked = device->settings();
  // Counters are kept by the names of ranges, which edges have only if they do not share theirs.
  Layout layout = asked.checks                         ? Layout::Apart
                  : options.unshared || asked.counters ? Layout::Unshared
                                                       : Layout::Shared;
  outlives = layout != Layout::Shared;
  Result<std::unique_ptr<StepMemory>> placed = StepMemory::create(device, plan, *kernels, layout);
  if (!placed.ok())
    return placed.takeError();
  memory = std::move(*placed);
  const bundle::Model &model = owner->weights()->bundle()->manifest().model;
  inputs = std::make_unique<StepInputs>(*memory, plan.rows, model);
  launches = std::make_unique<LaunchList>(plan, *owner, *kernels, *memory);
  cutRuns();
  if (options.timeline) {
    Result<std::unique_ptr<Timeline>> made = Timeline::create(device, plan.launch_list.size());
    if (!made.ok())
      return made.takeError();
    timeline = std::move(*made);
  }
  return device->check(device->driver()->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                       "cannot make a stream");
}

Step::~Step() {
  Device::Scope scope(*device);
  if (inFlight)
    (void)end(makeError(ErrorKind::Cancelled, "the step is freed"), nullptr);
  const Driver &api = device->driver();
  for (Run &run : runs)
    if (run.graph)
      api->cuGraphExecDestroy(run.graph);
  timeline.reset();
  if (stream)
    api->cuStreamDestroy_v2(stream);
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
      runs.push_back({onDevice, i, i, {}, {}, nullptr});
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
  for (Run &run : runs)
    run.failure = fmt::format("groups {} to {} failed", plan.launch_list[run.begin].group,
                              plan.launch_list[run.end - 1].group);
}

//===----------------------------------------------------------------------===//
// Beginning and ending
//===----------------------------------------------------------------------===//

Status Step::begin(std::span<const uint32_t> sequences, const int32_t *tokens,
                   const Visitor *newVisitor) {
  if (inFlight)
    return makeError(ErrorKind::Usage, "the step is running; wait for it first");
  if (sequences.empty() || sequences.size() > plan.rows)
    return makeError(ErrorKind::Usage, "a step of {} sequences, program \"{}\" has {} rows",
                     sequences.size(), plan.name, plan.rows);
  if (Status status = device->alive(); !status.ok())
    return status;
  cancelled = false;
  // A refusal leaves the last step's logits; the rows of this one go where theirs were.
  if (Status status = owner->prepare(sequences, tokens, {rowStore.data(), sequences.size()});
      !status.ok())
    return status;
  rowCount = sequences.size();
  inFlight = true;
  deviceStarted = false;
  wantsArgmax = false;
  nextRun = 0;
  visitor = newVisitor;
  Device::Scope scope(*device);
  Range range(plan.name.c_str());
  Status status = guarded([&] {
    if (timeline)
      timeline->beginStep();
    inputs->fill(rows(), *owner);
    Status copied = copySharedBlocks();
    return copied.ok() ? executeUpToDevice() : copied;
  });
  return status.ok() ? Status() : end(std::move(status), nullptr);
}

Status Step::checkNext(const int32_t *next) const {
  if (!next || logitsBuffer)
    return {};
  return makeError(ErrorKind::Usage, "program \"{}\" has no logits to choose a token from",
                   plan.name);
}

Status Step::wait(int32_t *next) {
  if (!inFlight)
    return makeError(ErrorKind::Usage, "no step is running");
  if (visiting)
    return makeError(ErrorKind::Usage, "a visitor cannot wait for the step that it visits");
  if (Status status = checkNext(next); !status.ok())
    return status;
  wantsArgmax = next;
  Device::Scope scope(*device);
  Status status = guarded([&] { return executeRest(); });
  if (Status ended = end(std::move(status), next ? argmax.data() : nullptr); !ended.ok())
    return ended;
  if (next)
    std::copy_n(argmax.begin(), rowCount, next);
  return {};
}

/// No memory is left, or a visitor written in C++ has thrown: the caller hears of it from `guard`.
template <class Body> Status Step::guarded(Body body) {
  try {
    return body();
  } catch (...) {
    giveUp();
    throw;
  }
}

Status Step::end(Status status, const int32_t *next) {
  if (!status.ok()) {
    giveUp();
    return status;
  }
  inFlight = false;
  visitor = nullptr;
  owner->commit(rows(), next);
  ++steps;
  return {};
}

void Step::giveUp() {
  inFlight = false;
  visitor = nullptr;
  visiting.reset();
  // Copies from the block must not run on while the next step fills it.
  device->driver()->cuStreamSynchronize(stream);
  memory->clearCounters();
  owner->abandon(rows(), deviceStarted);
  rowCount = 0;
}

Status Step::checkCancelled() const {
  if (!cancelled.load(std::memory_order_relaxed))
    return {};
  return makeError(ErrorKind::Cancelled, "the step was cancelled");
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

Status Step::executeUpToDevice() {
  for (; nextRun < runs.size(); ++nextRun) {
    Run &run = runs[nextRun];
    if (Status status = checkCancelled(); !status.ok())
      return status;
    if (run.device)
      return launch(run);
    if (Status status = executeHost(run); !status.ok())
      return status;
  }
  return {};
}

Status Step::executeRest() {
  while (nextRun < runs.size()) {
    if (Status status = finishRun(runs[nextRun]); !status.ok())
      return status;
    ++nextRun;
    if (Status status = executeUpToDevice(); !status.ok())
      return status;
  }
  return checkCancelled();
}

/// Waits for a device run.
Status Step::finishRun(Run &run) {
  if (Status status = synchronize(run.failure); !status.ok())
    return status;
  return timeline ? timeline->endRun() : Status();
}

Status Step::launch(Run &run) {
  deviceStarted = true;
  if (visited())
    return executeVisited(run);
  if (timeline || options.noGraph || steps == 0) {
    Status status = enqueue(run);
    // A kernel's fault is the result of a later call, which is not to blame.
    if (!status.ok() && status.error().kind == ErrorKind::DeviceLost) {
      Error error = status.takeError();
      error.message = fmt::format("{}: {}", run.failure, error.message);
      return error;
    }
    return status;
  }
  if (!run.graph)
    if (Status status = capture(run); !status.ok())
      return status;
  return replay(run);
}

/// A GPU's graph runs to its end once it is started; the emulator works inside the call, and ends it
/// before the next kernel of a step that is cancelled.
Status Step::replay(const Run &run) {
  const Driver &api = device->driver();
  api.setInterrupt(
      [](void *step) -> int {
        return static_cast<const Step *>(step)->cancelled.load(std::memory_order_relaxed);
      },
      this);
  CUresult result = api->cuGraphLaunch(run.graph, stream);
  api.setInterrupt(nullptr, nullptr);
  if (result == CUDA_ERROR_NOT_READY)
    if (Status status = checkCancelled(); !status.ok())
      return status;
  return device->check(result, "cannot start the step");
}

Status Step::enqueue(const Run &run) {
  if (Status status = copyBlock(false); !status.ok())
    return status;
  if (timeline)
    if (Status status = timeline->beginRun(stream); !status.ok())
      return status;
  for (size_t i = run.begin; i < run.end; ++i) {
    if (Status status = checkCancelled(); !status.ok())
      return status;
    if (Status status = startEntry(i); !status.ok())
      return status;
  }
  for (const bundle::Buffer *buffer : run.readBack)
    if (Status status = copyBack(*buffer); !status.ok())
      return status;
  return {};
}

Status Step::startEntry(size_t entry) {
  if (!timeline || !launches->hasKernel(entry))
    return launches->start(entry, stream);
  if (Status status = timeline->beginDevice(entry, stream); !status.ok())
    return status;
  if (Status status = launches->start(entry, stream); !status.ok())
    return status;
  return timeline->endDevice(entry, stream);
}

Status Step::capture(Run &run) {
  const Driver &api = device->driver();
  // Thread-local: other threads may allocate or load meanwhile.
  CUresult result = api->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (Status status = device->check(result, "cannot capture the step"); !status.ok())
    return status;
  CUgraph graph = nullptr;
  Status status;
  try {
    status = enqueue(run);
    result = api->cuStreamEndCapture(stream, &graph);
  } catch (...) {
    if (api->cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS)
      api->cuGraphDestroy(graph);
    throw;
  }
  if (status.ok())
    status = device->check(result, "cannot capture the step");
  if (status.ok())
    status = device->check(api->cuGraphInstantiateWithFlags(&run.graph, graph, 0),
                           "cannot make a graph of the step");
  if (graph)
    api->cuGraphDestroy(graph);
  return status;
}

//===----------------------------------------------------------------------===//
// Entry by entry
//===----------------------------------------------------------------------===//

Status Step::visit(size_t entry, bool done) {
  if (!visitor)
    return {};
  const bundle::Launch &launch = plan.launch_list[entry];
  visiting = {launch.group, done};
  Status status = (*visitor)(entry, launch, done);
  visiting.reset();
  return status;
}

/// Waits for every kernel.
Status Step::executeVisited(const Run &run) {
  if (Status status = copyBlock(true); !status.ok())
    return status;
  if (timeline)
    if (Status status = timeline->beginRun(stream); !status.ok())
      return status;
  for (size_t i = run.begin; i < run.end; ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    if (Status status = checkCancelled(); !status.ok())
      return status;
    if (Status status = visit(i, false); !status.ok())
      return status;
    if (launch.kernel) {
      if (Status status = startEntry(i); !status.ok())
        return status;
      if (Status status = device->check(device->driver()->cuStreamSynchronize(stream), "");
          !status.ok()) {
        Error error = status.takeError();
        error.message = fmt::format("{}, kernel \"{}\" failed{}", launches->label(i),
                                    *launch.kernel, error.message);
        return error;
      }
    }
    if (Status status = visit(i, true); !status.ok())
      return status;
  }
  for (const bundle::Buffer *buffer : run.readBack)
    if (Status status = copyBack(*buffer); !status.ok())
      return status;
  return {};
}

Status Step::executeHost(const Run &run) {
  // A visitor may read step inputs and what the host has written, so they go over at once.
  if (visited())
    if (Status status = copyBlock(true); !status.ok())
      return status;
  for (size_t i = run.begin; i < run.end; ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    if (Status status = visit(i, false); !status.ok())
      return status;
    if (timeline)
      timeline->beginHost(i);
    for (const bundle::HostOp &op : launch.host)
      if (Status status = executeHostOp(op); !status.ok())
        return status;
    if (timeline)
      timeline->endHost(i);
    if (visited() && !launch.host.empty())
      if (Status status = copyBlock(true); !status.ok())
        return status;
    if (Status status = visit(i, true); !status.ok())
      return status;
  }
  return {};
}

Status Step::executeHostOp(const bundle::HostOp &op) {
  if (op.op == "embed") {
    std::span<std::byte> ids = memory->input(op.inputs[0])->block;
    return embed(*owner->weights(), *op.weight,
                 {reinterpret_cast<const int32_t *>(ids.data()), ids.size() / sizeof(int32_t)},
                 memory->edge(op.outputs[0])->block);
  }
  if (wantsArgmax)
    planrt::argmax(*logitsBuffer, memory->edge(op.inputs[0])->readBack,
                   std::span(argmax).first(rowCount));
  return {};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// A row that would write a block of which a fork holds a share writes a copy of it.
Status Step::copySharedBlocks() {
  for (const Row &row : rows()) {
    if (row.copyFrom < 0)
      continue;
    for (const Session::Cache &cache : owner->caches()) {
      CUresult result = device->driver()->cuMemcpyDtoDAsync_v2(
          cache.address + uint64_t(row.block) * cache.blockBytes,
          cache.address + uint64_t(row.copyFrom) * cache.blockBytes, cache.blockBytes, stream);
      if (Status status = device->check(result, "cannot copy a KV block"); !status.ok())
        return status;
    }
  }
  return {};
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

Status Step::synchronize(std::string_view what) {
  return device->check(device->driver()->cuStreamSynchronize(stream), what);
}

//===----------------------------------------------------------------------===//
// Reading results
//===----------------------------------------------------------------------===//

Status Step::logits(uint32_t row, std::span<float> out) const {
  if (!logitsBuffer)
    return makeError(ErrorKind::Usage, "program \"{}\" has no logits", plan.name);
  if (inFlight)
    return makeError(ErrorKind::Usage, "the step is running; wait for it first");
  if (row >= rowCount)
    return makeError(ErrorKind::Usage, "there is no row {}, the last step had {}", row, rowCount);
  if (out.size() != size_t(logitsBuffer->dim))
    return makeError(ErrorKind::Usage, "a row of logits has {} values, not {}", logitsBuffer->dim,
                     out.size());
  uint64_t rowBytes = logitsBuffer->bytes / uint64_t(logitsBuffer->rows);
  widenRow(*logitsBuffer,
           memory->edge(logitsBuffer->edge)->readBack.subspan(row * rowBytes, rowBytes), out);
  return {};
}

Result<Timeline::Slice> Step::slice(size_t entry) const {
  if (!timeline)
    return makeError(ErrorKind::Usage, "the step was not opened with `timeline`");
  if (inFlight || rowCount == 0)
    return makeError(ErrorKind::Usage, "no step has run");
  if (entry >= plan.launch_list.size())
    return makeError(ErrorKind::Usage, "there is no entry {}, the launch list has {}", entry,
                     plan.launch_list.size());
  const Timeline::Slice &slice = timeline->slice(entry);
  if (!slice.ran)
    return makeError(ErrorKind::Usage, "{} had nothing to do", launches->label(entry));
  return slice;
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
