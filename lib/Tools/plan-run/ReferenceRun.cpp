//===- ReferenceRun.cpp - a run on the reference ----------------------------===//
//
// `--device reference`: no kernels, no driver; the plan dialect inside the bundle is evaluated on
// the CPU with wide accumulators, fused edges included. States have one slot a sequence, since
// nothing fails half way.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/Checkpoint.h"
#include "lib/Bundle/RandomWeights.h"
#include "lib/Reference/Compare.h"
#include "lib/Tools/plan-run/Results.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace planc;
using namespace planrun;
using reference::Argument;

//===----------------------------------------------------------------------===//
// Weights in host memory
//===----------------------------------------------------------------------===//

namespace {

/// Address space; mappings of random content share their pages.
class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept
      : start(std::exchange(other.start, nullptr)), bytes(std::exchange(other.bytes, 0)) {}
  ~Mapping() {
    if (start)
      ::munmap(start, bytes);
  }
  static Result<Mapping> create(uint64_t bytes) {
    Mapping mapping;
    void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return makeError(ErrorKind::Memory, "cannot map {} bytes", bytes);
    mapping.start = static_cast<std::byte *>(memory);
    mapping.bytes = bytes;
    return mapping;
  }
  /// Maps the file's first `period` bytes over the whole range, again and again.
  Status repeat(int file, uint64_t period) {
    for (uint64_t done = 0; done < bytes; done += period)
      if (::mmap(start + done, std::min(period, bytes - done), PROT_READ, MAP_SHARED | MAP_FIXED,
                 file, 0) == MAP_FAILED)
        return makeError(ErrorKind::Memory, "cannot map {} bytes", bytes);
    return {};
  }

  std::byte *start = nullptr;
  uint64_t bytes = 0;
};

class HostWeights : public bundle::OperandSink {
public:
  explicit HostWeights(const bundle::Manifest &manifest) : manifest(manifest) {}

  Status load(const Options &options) {
    return options.seed ? loadRandom(*options.seed) : loadCheckpoint(options.weights);
  }

  Argument find(std::string_view name) const {
    Argument argument;
    if (auto data = operands.find(std::string(name)); data != operands.end()) {
      argument.data = data->second.start;
      argument.bytes = data->second.bytes;
    }
    if (auto scales = operands.find(std::string(name) + " scales"); scales != operands.end())
      argument.scales = reinterpret_cast<const float *>(scales->second.start);
    return argument;
  }

  std::span<std::byte> staging() override { return buffer; }
  Status put(const bundle::Weight &weight, bool scales, uint64_t offset, uint64_t bytes) override {
    std::memcpy(operands.at(weight.name + (scales ? " scales" : "")).start + offset, buffer.data(),
                bytes);
    return {};
  }

private:
  template <class Fill> Status eachOperand(Fill fill) {
    for (const bundle::Weight &weight : manifest.weights)
      for (bool scales : {false, true}) {
        uint64_t bytes = scales ? weight.scale_bytes : weight.bytes;
        if (bytes == 0)
          continue;
        Result<Mapping> mapping = Mapping::create(bytes);
        if (!mapping.ok())
          return mapping.takeError();
        auto [at, isNew] =
            operands.emplace(weight.name + (scales ? " scales" : ""), std::move(*mapping));
        if (Status status = fill(weight, scales, at->second); !status.ok())
          return status;
      }
    return {};
  }

  Status loadCheckpoint(const std::string &path) {
    Result<bundle::Checkpoint> checkpoint = bundle::Checkpoint::open(path);
    if (!checkpoint.ok())
      return checkpoint.takeError();
    Result<size_t> unread = bundle::checkCheckpoint(manifest, *checkpoint);
    if (!unread.ok())
      return unread.takeError();
    Status status =
        eachOperand([](const bundle::Weight &, bool, Mapping &) -> Status { return {}; });
    if (!status.ok())
      return status;
    buffer.resize(uint64_t(4) << 20);
    return bundle::placeWeights(manifest, *checkpoint, *this);
  }

  Status loadRandom(uint64_t seed) {
    std::map<bundle::RandomKind, int> files;
    Status status =
        eachOperand([&](const bundle::Weight &weight, bool scales, Mapping &mapping) -> Status {
          bundle::RandomKind kind = bundle::randomKind(weight, scales);
          auto [at, isNew] = files.try_emplace(kind, -1);
          if (isNew) {
            Bytes period(bundle::randomPeriod);
            bundle::fillRandom(kind, seed, period);
            at->second = ::memfd_create("plan-run", MFD_CLOEXEC);
            if (at->second < 0 ||
                ::write(at->second, period.data(), period.size()) != ssize_t(period.size()))
              return makeError(ErrorKind::Memory, "no memory for random {}", kind.text());
          }
          return mapping.repeat(at->second, bundle::randomPeriod);
        });
    for (const auto &[kind, file] : files)
      ::close(file); // the mappings keep the pages
    return status;
  }

  const bundle::Manifest &manifest;
  std::map<std::string, Mapping> operands;
  Bytes buffer;
};

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

class ReferenceRun {
public:
  ReferenceRun(const bundle::Bundle &bundle, const bundle::Program &program, const Options &options,
               Results &results)
      : bundle(bundle), program(program), options(options), results(results),
        weights(bundle.manifest()) {}

  Status run();

private:
  Status open();
  Status runTurn(mlir::Operation *graph, size_t step, size_t first, std::span<const int32_t> tokens,
                 std::vector<int32_t> &argmax);
  void fillInputs(size_t step, size_t first, std::span<const int32_t> tokens);
  Status observe(const reference::NodeResult &result, size_t lists, std::vector<int32_t> &argmax);
  template <class T> void set(const char *input, size_t index, T value) {
    if (auto at = inputs.find(input); at != inputs.end())
      std::memcpy(at->second.data() + index * sizeof value, &value, sizeof value);
  }

  const bundle::Bundle &bundle;
  const bundle::Program &program;
  const Options &options;
  Results &results;
  HostWeights weights;
  int64_t blocksPerList = 0;
  std::map<std::string, Bytes, std::less<>> inputs, states;
  std::string argmaxNode, logitsEdge;
};

} // namespace

Status ReferenceRun::open() {
  const bundle::Model &model = bundle.manifest().model;
  if (Status status = weights.load(options); !status.ok())
    return status;
  int64_t lists = int64_t(options.tokens.size());
  blocksPerList = (int64_t(options.steps()) + model.kv_block - 1) / model.kv_block;
  uint64_t slotBytes = 0, kvBytes = 0, weightBytes = 0;
  for (const bundle::State &state : bundle.manifest().states) {
    bool paged = state.kind == "paged";
    Bytes &pool = states[state.name];
    pool.resize(state.bytes * uint64_t(paged ? blocksPerList * lists : lists));
    (paged ? kvBytes : slotBytes) += pool.size();
  }
  for (const bundle::Weight &weight : bundle.manifest().weights)
    weightBytes += weight.bytes + weight.scale_bytes;
  for (const bundle::Input &input : program.inputs) {
    uint64_t bytes = bundle::byteSize(input.dtype);
    for (int64_t extent : input.shape)
      bytes *= uint64_t(extent);
    inputs[input.name].resize(bytes);
  }
  for (const bundle::Launch &launch : program.launch_list)
    for (const bundle::HostOp &op : launch.host)
      if (op.op == "argmax") {
        argmaxNode = op.node;
        logitsEdge = op.inputs[0];
      }
  results.device = {{"name", "reference"}, {"image", nullptr}};
  results.memory = {{"weights", 0},        {"host_weights", weightBytes},
                    {"states", slotBytes}, {"kv", kvBytes},
                    {"workspace", 0},      {"scratch", 0}};
  return {};
}

/// The step inputs of the lists from `first` on; rows beyond them idle.
void ReferenceRun::fillInputs(size_t step, size_t first, std::span<const int32_t> tokens) {
  const bundle::Model &model = bundle.manifest().model;
  size_t n = program.rows, tableWidth = size_t(model.blocksPerSequence());
  for (size_t row = 0; row < n; ++row) {
    bool idle = row >= tokens.size();
    int64_t firstBlock = int64_t(first + row) * blocksPerList;
    set("token_ids", row, idle ? 0 : tokens[row]);
    for (size_t stream = 0; stream < 3; ++stream)
      set("positions", stream * n + row, idle ? 0 : int32_t(step));
    set("seq_lens", row, idle ? 0 : int32_t(step + 1));
    set("slots_in", row, idle || step == 0 ? -1 : int32_t(first + row));
    set("slots_out", row, idle ? -1 : int32_t(first + row));
    set("slot_mapping", row, idle ? int64_t(-1) : firstBlock * model.kv_block + int64_t(step));
    for (size_t block = 0; block < tableWidth; ++block)
      set("block_tables", row * tableWidth + block,
          idle || int64_t(block) >= blocksPerList ? 0 : int32_t(firstBlock + int64_t(block)));
  }
}

Status ReferenceRun::observe(const reference::NodeResult &result, size_t lists,
                             std::vector<int32_t> &argmax) {
  const reference::Tensor &value = result.value;
  size_t perList = value.stored.size() / program.rows;
  if (result.node == argmaxNode && !argmaxNode.empty())
    for (size_t row = 0; row < lists; ++row)
      argmax.push_back(int32_t(value.stored[row * perList]));
  if (result.edge == logitsEdge && !options.logits.empty())
    results.logits.insert(results.logits.end(), value.stored.begin(),
                          value.stored.begin() + long(lists * perList));
  if (std::find(options.dump.begin(), options.dump.end(), result.edge) == options.dump.end())
    return {};
  Dump &dump = results.dumps[result.edge];
  dump.rows = value.rows() / int64_t(program.rows);
  dump.dim = value.columns();
  bool isFloat =
      value.element == reference::Element::BF16 || value.element == reference::Element::F32;
  dump.descr = isFloat ? "<f4" : "<i4";
  for (size_t i = 0; i < lists * perList; ++i) {
    float number = float(value.stored[i]);
    int32_t id = isFloat ? 0 : int32_t(value.stored[i]);
    const void *bytes = isFloat ? static_cast<const void *>(&number) : &id;
    auto *from = static_cast<const std::byte *>(bytes);
    dump.data.insert(dump.data.end(), from, from + 4);
  }
  return {};
}

Status ReferenceRun::runTurn(mlir::Operation *graph, size_t step, size_t first,
                             std::span<const int32_t> tokens, std::vector<int32_t> &argmax) {
  fillInputs(step, first, tokens);
  reference::Options settings;
  settings.kvBlock = unsigned(bundle.manifest().model.kv_block);
  settings.threads = options.threads;
  auto bind = [&](reference::Binding kind, std::string_view name) -> Result<Argument> {
    Argument argument;
    if (kind == reference::Binding::Weight) {
      argument = weights.find(name);
    } else {
      auto &places = kind == reference::Binding::State ? states : inputs;
      if (auto at = places.find(name); at != places.end()) {
        argument.data = at->second.data();
        argument.bytes = at->second.size();
      }
    }
    if (!argument.data)
      return fileError(bundle.path(),
                       "the plan reads \"{:.200}\", which the manifest does not have", name);
    return argument;
  };
  Status observed;
  Status status = reference::evaluateGraph(
      graph, bind,
      [&](const reference::NodeResult &result) {
        if (observed.ok())
          observed = observe(result, tokens.size(), argmax);
      },
      settings);
  return status.ok() ? std::move(observed) : std::move(status);
}

Status ReferenceRun::run() {
  Result<reference::BoundPlan> plan =
      reference::BoundPlan::parse(asText(bundle.section(bundle::planIrSection)));
  if (!plan.ok())
    return fileError(bundle.path(), "section {}: {}", bundle::planIrSection, plan.error().message);
  mlir::Operation *graph = plan->graph(program.name);
  if (!graph)
    return fileError(bundle.path(), "section {} has no graph \"{}\"", bundle::planIrSection,
                     program.name);
  if (Status status = open(); !status.ok())
    return status;
  for (size_t index = 0; index < options.steps(); ++index) {
    StepResult step;
    step.tokens = tokensOfStep(options, results, index);
    auto start = std::chrono::steady_clock::now();
    for (size_t first = 0; first < step.tokens.size(); first += program.rows) {
      size_t count = std::min<size_t>(program.rows, step.tokens.size() - first);
      if (Status status = runTurn(graph, index, first, std::span(step.tokens).subspan(first, count),
                                  step.argmax);
          !status.ok())
        return status;
    }
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    step.ms = elapsed.count();
    step.argmax.resize(step.tokens.size());
    results.steps.push_back(std::move(step));
  }
  results.memory["pss"] = proportionalBytes();
  for (const std::string &edge : options.dump)
    if (!results.dumps.count(edge))
      return inputError("program \"{}\" has no edge \"{:.200}\"", program.name, edge);
  return {};
}

Status planrun::runOnReference(const bundle::Bundle &bundle, const bundle::Program &program,
                               const Options &options, Results &results) {
  return ReferenceRun(bundle, program, options, results).run();
}
