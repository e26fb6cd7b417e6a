//===- DeviceRun.cpp - a run on a GPU or the emulator -----------------------===//
//
// Everything goes through planrt's C ABI, as it would in any other program.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/CommandLine.h"
#include "lib/Tools/plan-run/Compare.h"
#include "lib/Tools/plan-run/Results.h"
#include "lib/Tools/plan-run/Trace.h"

#include "include/planrt/planrt.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <unistd.h>
#include <utility>

using namespace planc;
using namespace planc::tools;
using namespace planrun;

//===----------------------------------------------------------------------===//
// planrt's errors and handles
//===----------------------------------------------------------------------===//

static Status statusOf(planrt_status status, planrt_error *error) {
  if (status == PLANRT_OK)
    return {};
  static constexpr ErrorKind kinds[] = {
      ErrorKind::Input,       ErrorKind::Input,     ErrorKind::Usage,    ErrorKind::Weights,
      ErrorKind::Environment, ErrorKind::Memory,    ErrorKind::Device,   ErrorKind::DeviceLost,
      ErrorKind::Device,      ErrorKind::Cancelled, ErrorKind::Exhausted};
  Error result{planrt_error_message(error), kinds[status], planrt_error_file(error)};
  planrt_error_free(error);
  return result;
}

static void printLog(void *, const char *line) { print(stderr, fmt::format("planrt: {}\n", line)); }

/// A line that is written again and again, for whoever watches a large checkpoint go up.
static int printProgress(void *shown, uint64_t done, uint64_t total) {
  *static_cast<bool *>(shown) = true;
  print(stderr, fmt::format("\rweights: {} of {} MB", done >> 20, total >> 20));
  return 0;
}

namespace {

struct Handles {
  planrt_bundle *bundle = nullptr;
  planrt_device *device = nullptr;
  planrt_weights *weights = nullptr;
  planrt_session *session = nullptr;
  planrt_step *step = nullptr;

  Handles() = default;
  Handles(const Handles &) = delete;
  ~Handles() {
    planrt_step_free(step);
    planrt_session_free(session);
    planrt_weights_free(weights);
    planrt_device_free(device);
    planrt_bundle_free(bundle);
  }
};

class DeviceRun {
public:
  DeviceRun(const bundle::Bundle &bundle, const bundle::Program &program, const Options &options,
            Results &results)
      : bundle(bundle), program(program), options(options), results(results) {}

  Status run();

private:
  Status openDevice();
  Status openWeights();
  Status open();
  Status runSteps();
  Status checkDumps() const;
  Status runStep(size_t index);
  Status runTurn(const std::vector<uint32_t> &sequences, const std::vector<int32_t> &tokens,
                 std::vector<int32_t> &argmax);
  Status traceTurn(size_t step, const std::vector<uint32_t> &sequences,
                   Trace::Clock::time_point begin);
  Status visit(const planrt_launch &launch, bool done, size_t lists);
  Status dumpEdge(const bundle::Buffer &buffer, size_t lists);

  const bundle::Bundle &bundle;
  const bundle::Program &program;
  const Options &options;
  Results &results;
  Handles handles;
  std::unique_ptr<Comparison> comparison;
  std::optional<Trace> trace;
};

} // namespace

/// The emulator reports the GPU that the bundle was made for first.
Status DeviceRun::openDevice() {
  planrt_device_options deviceOptions;
  planrt_device_options_init(&deviceOptions);
  deviceOptions.threads = options.threads;
  deviceOptions.checks = options.checks;
  deviceOptions.schedule_seed = options.scheduleSeed;
  deviceOptions.counters = !options.counters.empty();
  deviceOptions.log = options.verbose ? printLog : nullptr;
  planrt_error *error = nullptr;
  auto tryTarget = [&](const char *target) {
    deviceOptions.target = target;
    planrt_error_free(std::exchange(error, nullptr));
    return planrt_device_open(options.device.c_str(), &deviceOptions, &handles.device, &error);
  };
  planrt_status status;
  if (options.device == "emulator" && !bundle.manifest().targets.empty()) {
    const bundle::Target &first = bundle.manifest().targets[0];
    status = tryTarget(first.product.c_str());
    // It knows every architecture, but not every product.
    if (status == PLANRT_ERR_ARGUMENT)
      status = tryTarget(fmt::format("sm_{}", first.sm).c_str());
  } else {
    status = tryTarget(nullptr);
  }
  return statusOf(status, error);
}

Status DeviceRun::openWeights() {
  bool shown = false;
  planrt_weights_options weightsOptions;
  planrt_weights_options_init(&weightsOptions);
  weightsOptions.progress = ::isatty(STDERR_FILENO) ? printProgress : nullptr;
  weightsOptions.progress_user = &shown;
  planrt_error *error = nullptr;
  planrt_status status =
      options.seed ? planrt_weights_random(handles.bundle, handles.device, *options.seed,
                                           &weightsOptions, &handles.weights, &error)
                   : planrt_weights_open(handles.bundle, handles.device, options.weights.c_str(),
                                         &weightsOptions, &handles.weights, &error);
  if (shown)
    print(stderr, "\r\033[K"); // a terminal's "erase this line"
  return statusOf(status, error);
}

Status DeviceRun::open() {
  planrt_error *error = nullptr;
  planrt_status status = planrt_bundle_open(bundle.path().c_str(), &handles.bundle, &error);
  if (status != PLANRT_OK)
    return statusOf(status, error);
  if (Status opened = openDevice(); !opened.ok())
    return opened;
  if (Status bound = openWeights(); !bound.ok())
    return bound;
  planrt_session_options sessionOptions;
  planrt_session_options_init(&sessionOptions);
  sessionOptions.sequences = uint32_t(options.tokens.size());
  int64_t block = bundle.manifest().model.kv_block;
  int64_t blocks = (int64_t(options.steps()) + block - 1) / block;
  sessionOptions.kv_tokens = blocks * block * int64_t(options.tokens.size());
  status = planrt_session_open(handles.weights, &sessionOptions, &handles.session, &error);
  if (status != PLANRT_OK)
    return statusOf(status, error);
  for (uint32_t i = 0, made = 0; i < sessionOptions.sequences && status == PLANRT_OK; ++i)
    status = planrt_sequence_create(handles.session, &made, &error);
  if (status != PLANRT_OK)
    return statusOf(status, error);
  planrt_step_options stepOptions;
  planrt_step_options_init(&stepOptions);
  stepOptions.timeline = !options.trace.empty();
  status =
      planrt_step_open(handles.session, program.name.c_str(), &stepOptions, &handles.step, &error);
  if (status != PLANRT_OK)
    return statusOf(status, error);

  results.device = {{"name", options.device},
                    {"product", planrt_device_product(handles.device)},
                    {"sm", planrt_device_sm(handles.device)},
                    {"image", planrt_step_image(handles.step)}};
  planrt_memory memory = {};
  memory.size = sizeof memory;
  status = planrt_step_memory(handles.step, &memory, &error);
  if (status != PLANRT_OK)
    return statusOf(status, error);
  results.memory = {{"weights", memory.weights},     {"host_weights", memory.host_weights},
                    {"states", memory.states},       {"kv", memory.kv},
                    {"workspace", memory.workspace}, {"scratch", memory.scratch}};
  if (!options.seed)
    results.device["unread_tensors"] = planrt_weights_unread(handles.weights);
  return {};
}

/// Only what is stored can be dumped.
Status DeviceRun::checkDumps() const {
  for (const std::string &edge : options.dump)
    if (std::none_of(program.buffers.begin(), program.buffers.end(),
                     [&](const bundle::Buffer &buffer) { return buffer.edge == edge; }))
      return inputError("program \"{}\" stores no edge \"{:.200}\"; a fused edge exists only with "
                        "--device reference",
                        program.name, edge);
  return {};
}

Status DeviceRun::dumpEdge(const bundle::Buffer &buffer, size_t lists) {
  Bytes bytes(buffer.bytes);
  planrt_error *error = nullptr;
  planrt_status status = planrt_step_buffer_read(handles.step, buffer.edge.c_str(), bytes.data(),
                                                 bytes.size(), &error);
  if (status != PLANRT_OK)
    return statusOf(status, error);
  Dump &dump = results.dumps[buffer.edge];
  dump.rows = buffer.rows / program.rows;
  dump.dim = buffer.dim;
  // Rows beyond the lists idle.
  appendDump(dump, buffer.dtype, ByteView(bytes).first(bytes.size() / program.rows * lists));
  return {};
}

Status DeviceRun::visit(const planrt_launch &launch, bool done, size_t lists) {
  if (comparison) {
    Status status = done ? comparison->after(launch.index) : comparison->before(launch.index);
    if (!status.ok())
      return status;
  }
  if (!done)
    return {};
  for (const bundle::Buffer &buffer : program.buffers)
    if (buffer.def == launch.group &&
        std::find(options.dump.begin(), options.dump.end(), buffer.edge) != options.dump.end())
      if (Status status = dumpEdge(buffer, lists); !status.ok())
        return status;
  return {};
}

/// One launch list for up to as many sequences as the program has rows.
Status DeviceRun::runTurn(const std::vector<uint32_t> &sequences,
                          const std::vector<int32_t> &tokens, std::vector<int32_t> &argmax) {
  planrt_error *error = nullptr;
  std::vector<int32_t> next(sequences.size());
  planrt_status status;
  if (comparison || !options.dump.empty()) {
    struct Visit {
      DeviceRun *run;
      size_t lists;
      Status status;
    } visitor{this, sequences.size(), {}};
    auto call = [](void *user, const planrt_launch *launch, int done) {
      auto *visitor = static_cast<Visit *>(user);
      visitor->status = visitor->run->visit(*launch, done != 0, visitor->lists);
      return int(!visitor->status.ok());
    };
    status = planrt_step_run_visited(handles.step, uint32_t(sequences.size()), sequences.data(),
                                     tokens.data(), next.data(), call, &visitor, &error);
    if (!visitor.status.ok()) {
      planrt_error_free(error);
      return visitor.status;
    }
  } else {
    status = planrt_step_run(handles.step, uint32_t(sequences.size()), sequences.data(),
                             tokens.data(), next.data(), &error);
  }
  if (status != PLANRT_OK)
    return statusOf(status, error);
  argmax.insert(argmax.end(), next.begin(), next.end());
  if (options.logits.empty())
    return {};
  size_t vocab = size_t(bundle.manifest().model.vocab);
  for (uint32_t row = 0; row < sequences.size(); ++row) {
    results.logits.resize(results.logits.size() + vocab);
    status = planrt_step_logits(handles.step, row, &results.logits[results.logits.size() - vocab],
                                vocab, &error);
    if (status != PLANRT_OK)
      return statusOf(status, error);
  }
  return {};
}

/// Every entry of the launch list that does something has a slice.
Status DeviceRun::traceTurn(size_t step, const std::vector<uint32_t> &sequences,
                            Trace::Clock::time_point begin) {
  Trace::Clock::time_point end = Trace::Clock::now();
  std::vector<planrt_slice> slices;
  for (uint32_t i = 0; i < program.launch_list.size(); ++i) {
    const bundle::Launch &launch = program.launch_list[i];
    if (launch.where == "device" && !launch.kernel)
      continue;
    planrt_slice slice = {};
    slice.size = sizeof slice;
    planrt_error *error = nullptr;
    planrt_status status = planrt_step_slice(handles.step, i, &slice, &error);
    if (status != PLANRT_OK)
      return statusOf(status, error);
    slices.push_back(slice);
  }
  trace->addStep(step, sequences.front(), sequences.size(), begin, end, slices);
  return {};
}

Status DeviceRun::runStep(size_t index) {
  StepResult step;
  step.tokens = tokensOfStep(options, results, index);
  if (comparison)
    comparison->beginStep(index);
  auto start = std::chrono::steady_clock::now();
  for (size_t first = 0; first < step.tokens.size(); first += program.rows) {
    size_t count = std::min<size_t>(program.rows, step.tokens.size() - first);
    std::vector<uint32_t> sequences;
    for (size_t i = 0; i < count; ++i)
      sequences.push_back(uint32_t(first + i));
    auto from = step.tokens.begin() + long(first);
    Trace::Clock::time_point begin = Trace::Clock::now();
    if (Status status = runTurn(sequences, {from, from + long(count)}, step.argmax); !status.ok())
      return status;
    if (trace)
      if (Status status = traceTurn(index, sequences, begin); !status.ok())
        return status;
  }
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  step.ms = elapsed.count();
  results.steps.push_back(std::move(step));
  return {};
}

Status DeviceRun::runSteps() {
  if (options.compare) {
    Result<std::unique_ptr<Comparison>> opened = Comparison::open(
        bundle, program, options.threads, handles.weights, handles.session, handles.step);
    if (!opened.ok())
      return opened.takeError();
    comparison = std::move(*opened);
  }
  if (!options.trace.empty())
    trace.emplace(program, results.device);
  for (size_t step = 0; step < options.steps(); ++step)
    if (Status status = runStep(step); !status.ok())
      return status;
  results.memory["pss"] = proportionalBytes();
  if (trace)
    results.trace = trace->text();
  if (comparison) {
    results.compare = comparison->summary();
    results.passed = comparison->passed();
  }
  return {};
}

Status DeviceRun::run() {
  if (Status status = checkDumps(); !status.ok())
    return status;
  if (Status status = open(); !status.ok())
    return status;
  Status status = runSteps();
  // A step that failed has findings too: they say why.
  for (size_t i = 0; i < planrt_device_finding_count(handles.device); ++i)
    results.findings.emplace_back(planrt_device_finding(handles.device, i));
  if (const char *counters = planrt_device_counters(handles.device))
    results.counters = counters;
  return status;
}

Status planrun::runOnDevice(const bundle::Bundle &bundle, const bundle::Program &program,
                            const Options &options, Results &results) {
  return DeviceRun(bundle, program, options, results).run();
}
