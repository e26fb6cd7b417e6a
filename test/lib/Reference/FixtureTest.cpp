//===- FixtureTest.cpp - the reference against an independent oracle -------===//
//
// usage: planc-reference-fixture PLAN.mlir FOLDER
//
// Feeds each group of a bound plan the fixture's own input edges, step by step, with states carried
// from what the fixture's edges make of them, and compares every result, fused ones too: bf16
// within one unit in the last place, f32 within 2^-18 of the row's largest magnitude, integers
// equal. Prints a table, a line per kind of edge.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"
#include "lib/Reference/Compare.h"
#include "lib/Reference/Formats/Scalar.h"
#include "lib/Support/Npy.h"

#include <map>

using namespace mlir;
using namespace planc;
using namespace planc::reference;

namespace {
/// How far the values of one kind of edge were off.
struct Line {
  uint64_t values = 0, differing = 0, outside = 0;
  int64_t maxUlps = 0;
  double maxRelative = 0;
  std::string first;
};

class Fixture {
public:
  Fixture(BoundPlan plan, plan::GraphOp graph, SafetensorsFile weights, SafetensorsFile edges,
          NpyArray tokens, NpyArray argmax)
      : plan(std::move(plan)), graph(graph), weights(std::move(weights)), edges(std::move(edges)),
        tokens(std::move(tokens)), argmax(std::move(argmax)) {}

  Status run();
  int report() const;

private:
  static constexpr int64_t kSlots = 2, kBlocks = 4;

  Status prepare();
  Status runGroup(Operation *op, int64_t step);
  Result<Argument> stepInput(StringRef name, Type type, int64_t step);
  Result<std::vector<double>> expected(StringRef edge, int64_t step) const;
  void check(const std::string &edge, const Tensor &value, const std::vector<double> &want,
             int64_t step);

  BoundPlan plan;
  plan::GraphOp graph;
  SafetensorsFile weights, edges;
  NpyArray tokens, argmax;
  std::map<std::string, LoadedWeight> operands;
  std::map<std::string, Bytes> pools;
  llvm::DenseMap<Value, std::string> edgeOf;
  std::vector<Bytes> kept; // memory of a group's arguments
  std::map<std::string, Line> table;
};
} // namespace

/// The region that stands for a group, and the edge ids of all its results, in order.
static std::pair<Operation *, std::vector<std::string>> contents(Operation *op) {
  Operation *region = op;
  ArrayAttr nodes;
  if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
    if (!launch.getKernelAttr())
      return {};
    region = SymbolTable::lookupNearestSymbolFrom(op, launch.getKernelAttr());
    nodes = launch.getNodes();
  }
  std::vector<std::string> ids;
  for (auto [i, member] : llvm::enumerate(region->getRegion(0).front().without_terminator())) {
    auto id = nodes ? cast<plan::NodeAttr>(nodes[i]) : cast<plan::PlanNode>(member).getNodeAttr();
    for (unsigned r = 0; r < member.getNumResults(); ++r)
      ids.push_back(id.getEdge(r).str());
  }
  return {region, ids};
}

Status Fixture::prepare() {
  auto module = graph->getParentOfType<ModuleOp>();
  for (auto weight : module.getOps<plan::WeightOp>()) {
    Result<LoadedWeight> loaded = loadWeight(weight, weights);
    if (!loaded.ok())
      return loaded.takeError();
    operands[weight.getSymName().str()] = std::move(*loaded);
  }
  for (auto state : module.getOps<plan::StateOp>()) {
    auto type = cast<plan::StateType>(state.getType());
    int64_t entries = type.getKind() == plan::StateKind::Slots ? kSlots : kBlocks * 16;
    int64_t bytes = type.getFormat() == plan::Format::F32 ? 4 : 2;
    for (int64_t dim : type.getShape())
      bytes *= dim;
    pools[state.getSymName().str()].resize(entries * bytes);
  }
  for (Operation &op : graph.getBody().front())
    if (isa<plan::GroupOp, plan::LaunchOp>(op)) {
      auto [region, ids] = contents(&op);
      if (!region)
        continue;
      llvm::DenseMap<Value, std::string> inside;
      size_t next = 0;
      for (Operation &member : region->getRegion(0).front().without_terminator())
        for (Value result : member.getResults())
          inside[result] = ids[next++];
      Operation *yield = region->getRegion(0).front().getTerminator();
      for (auto [outer, inner] : llvm::zip(op.getResults(), yield->getOperands()))
        edgeOf[outer] = inside[inner];
    }
  return {};
}

Status Fixture::run() {
  if (Status status = prepare(); !status.ok())
    return status;
  for (int64_t step = 0; step < tokens.shape[0]; ++step)
    for (Operation &op : graph.getBody().front())
      if (isa<plan::GroupOp, plan::LaunchOp>(op))
        if (Status status = runGroup(&op, step); !status.ok())
          return status;
  return {};
}

Result<std::vector<double>> Fixture::expected(StringRef edge, int64_t step) const {
  std::vector<double> values;
  std::string name = "step" + std::to_string(step) + ".row0." + edge.str();
  const TensorInfo *info = edges.find(name);
  if (!info)
    return inputError("{}: no edge \"{}\"", edges.path(), name);
  Result<Bytes> bytes = edges.read(*info);
  if (!bytes.ok())
    return bytes.takeError();
  for (size_t i = 0; i < bytes->size(); i += 4) {
    if (info->dtype == "I32")
      values.push_back(*reinterpret_cast<const int32_t *>(bytes->data() + i));
    else
      values.push_back(*reinterpret_cast<const float *>(bytes->data() + i));
  }
  return values;
}

template <class T> static Bytes bytesOf(const std::vector<T> &values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// One sequence from an empty cache. Blocks are taken from the pool's end, slots alternate.
Result<Argument> Fixture::stepInput(StringRef name, Type type, int64_t step) {
  Bytes bytes;
  if (name == "token_ids")
    bytes = bytesOf(std::vector<int32_t>{tokens.as<int32_t>()[step]});
  else if (name == "positions")
    bytes = bytesOf(std::vector<int32_t>(3, step));
  else if (name == "slot_mapping")
    bytes = bytesOf(std::vector<int64_t>{(kBlocks - 1 - step / 16) * 16 + step % 16});
  else if (name == "block_tables") {
    std::vector<int32_t> table(cast<RankedTensorType>(type).getNumElements());
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = std::max<int32_t>(kBlocks - 1 - i, 0);
    bytes = bytesOf(table);
  } else if (name == "seq_lens")
    bytes = bytesOf(std::vector<int32_t>{int32_t(step + 1)});
  else if (name == "slots_in")
    bytes = bytesOf(std::vector<int32_t>{step == 0 ? -1 : int32_t((step + 1) % 2)});
  else
    bytes = bytesOf(std::vector<int32_t>{int32_t(step % 2)});
  kept.push_back(std::move(bytes));
  return Argument{kept.back().data(), kept.back().size()};
}

Status Fixture::runGroup(Operation *op, int64_t step) {
  auto [region, ids] = contents(op);
  if (!region)
    return {};
  kept.clear();
  kept.reserve(op->getNumOperands());
  std::vector<Argument> arguments;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (auto weight = dyn_cast<plan::WeightRefOp>(source)) {
      arguments.push_back(operands[weight.getWeight().str()].argument());
    } else if (auto state = dyn_cast<plan::StateRefOp>(source)) {
      Bytes &pool = pools[state.getState().str()];
      arguments.push_back({pool.data(), pool.size()});
    } else if (auto input = dyn_cast<plan::StepInputOp>(source)) {
      Result<Argument> argument = stepInput(input.getName(), operand.getType(), step);
      if (!argument.ok())
        return argument.takeError();
      arguments.push_back(*argument);
    } else {
      Result<std::vector<double>> values = expected(edgeOf[operand], step);
      if (!values.ok())
        return values.takeError();
      std::optional<plan::Format> format =
          plan::formatOf(cast<RankedTensorType>(operand.getType()).getElementType());
      Bytes bytes;
      if (format == plan::Format::BF16) {
        std::vector<uint16_t> codes;
        for (double value : *values)
          codes.push_back(bf16FromDouble(value));
        bytes = bytesOf(codes);
      } else if (format == plan::Format::F32) {
        bytes = bytesOf(std::vector<float>(values->begin(), values->end()));
      } else {
        bytes = bytesOf(std::vector<int32_t>(values->begin(), values->end()));
      }
      kept.push_back(std::move(bytes));
      arguments.push_back({kept.back().data(), kept.back().size()});
    }
  }
  Result<Evaluation> evaluation = evaluate(region, arguments);
  if (!evaluation.ok())
    return evaluation.takeError();
  for (auto [result, id] : llvm::zip(evaluation->results, ids)) {
    if (StringRef(id).ends_with(".token")) { // the step's result, no edge of the plan
      check(id, result.value, {double(argmax.as<int32_t>()[step])}, step);
      continue;
    }
    Result<std::vector<double>> want = expected(id, step);
    if (!want.ok())
      return want.takeError();
    check(id, result.value, *want, step);
  }
  return {};
}

/// bf16 numbers in their order, as integers.
static int64_t ordinal(double value) {
  uint16_t bits = bf16FromDouble(value);
  return bits & 0x8000 ? -int64_t(bits & 0x7FFF) : bits;
}

void Fixture::check(const std::string &edge, const Tensor &value, const std::vector<double> &want,
                    int64_t step) {
  Line &line = table[edge.substr(edge.rfind('.') + 1)];
  int64_t columns = value.columns();
  for (size_t i = 0; i < want.size(); ++i) {
    ++line.values;
    double found = value.stored[i];
    bool good;
    if (value.element == Element::BF16) {
      int64_t ulps = std::abs(ordinal(found) - ordinal(want[i]));
      line.maxUlps = std::max(line.maxUlps, ulps);
      good = ulps <= 1;
    } else if (value.element == Element::F32) {
      double largest = 0;
      for (int64_t c = 0; c < columns; ++c)
        largest = std::max(largest, std::fabs(want[i / columns * columns + c]));
      double relative = found == want[i] ? 0 : std::fabs(found - want[i]) / largest;
      line.maxRelative = std::max(line.maxRelative, relative);
      good = relative <= 0x1p-18;
    } else {
      good = found == want[i];
    }
    line.differing += found != want[i];
    if (!good && !line.outside++)
      line.first = fmt::format("step {} {}[{}]: {} instead of {}", step, edge, i, found, want[i]);
  }
  if (int64_t(want.size()) != value.rows() * columns) {
    ++line.outside;
    line.first = fmt::format("step {} {}: {} values instead of {}", step, edge,
                             value.rows() * columns, want.size());
  }
}

int Fixture::report() const {
  int status = 0;
  fmt::print("{:<14} {:>8} {:>9} {:>8} {:>12} {:>8}\n", "edge", "values", "differing", "max ulps",
             "max relative", "outside");
  for (const auto &[name, line] : table) {
    fmt::print("{:<14} {:>8} {:>9} {:>8} {:>12.3g} {:>8}\n", name, line.values, line.differing,
               line.maxUlps, line.maxRelative, line.outside);
    if (line.outside) {
      fmt::print("  first: {}\n", line.first);
      status = 1;
    }
  }
  return status;
}

template <class T> static T valueOrExit(Result<T> result) {
  if (result.ok())
    return std::move(*result);
  fmt::print(stderr, "error: {}\n", result.error().message);
  std::exit(1);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: {} PLAN.mlir FOLDER\n", argv[0]);
    return 2;
  }
  std::string folder = argv[2];
  Bytes text = valueOrExit(readFile(argv[1]));
  BoundPlan plan = valueOrExit(BoundPlan::parse(asText(text)));
  auto graph = cast_or_null<plan::GraphOp>(plan.graph("decode_n1"));
  if (!graph) {
    fmt::print(stderr, "error: {}: no plan.graph \"decode_n1\"\n", argv[1]);
    return 1;
  }
  Fixture fixture(
      std::move(plan), graph, valueOrExit(SafetensorsFile::open(folder + "/model.safetensors")),
      valueOrExit(SafetensorsFile::open(folder + "/edges_plan_edges.safetensors")),
      valueOrExit(readNpy(folder + "/tokens.npy")), valueOrExit(readNpy(folder + "/argmax.npy")));
  if (Status status = fixture.run(); !status.ok()) {
    fmt::print(stderr, "error: {}\n", status.error().message);
    return 1;
  }
  return fixture.report();
}
