//===- Evaluate.cpp - groups, kernels and graphs ---------------------------===//
//
// A region is evaluated in the order of its ops. A graph is a graph region: the first op in textual
// order whose operands are there comes next, so that nodes which share a state keep the plan's
// order.
//
//===----------------------------------------------------------------------===//

#include "lib/Reference/Frame.h"

using namespace mlir;

namespace planc::reference {

static Status dispatch(Operation *op, Frame &frame) {
#define PLAN_REFERENCE_OP(Op)                                                                      \
  if (auto node = dyn_cast<plan::Op>(op))                                                          \
    return evaluateNode(node, frame);
#include "lib/Reference/Ops.def"
  return nodeError(op, "the reference does not know this op");
}

Status evaluateAndStore(Operation *op, Frame &frame,
                        llvm::function_ref<const Argument *(Value)> observed) {
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
      return nodeError(op, "its dims are not bound");
  if (Status status = dispatch(op, frame); !status.ok())
    return status;
  return frame.store(op, observed);
}

/// Evaluates the members; the arguments are bound.
static Status evaluateBody(Block &body, Frame &frame,
                           llvm::function_ref<const Argument *(Value)> observed) {
  for (Operation &op : body.without_terminator())
    if (Status status = evaluateAndStore(&op, frame, observed); !status.ok())
      return status;
  return {};
}

Result<Evaluation> evaluate(Operation *region, std::span<const Argument> arguments,
                            const Options &options, std::span<const Argument> observed,
                            std::span<const numerics::Node> arithmetic) {
  if (!isa<plan::KernelOp, plan::GroupOp>(region))
    return inputError("'{}' is neither a kernel nor a group",
                      region->getName().getStringRef().str());
  Block &body = region->getRegion(0).front();
  Operation *yield = body.getTerminator();
  if (arguments.size() != body.getNumArguments())
    return inputError("{} arguments given, the region has {}", arguments.size(),
                      body.getNumArguments());
  if (!observed.empty() && observed.size() != yield->getNumOperands())
    return inputError("{} observed outputs given, the region has {}", observed.size(),
                      yield->getNumOperands());

  Frame frame(options);
  if (!arithmetic.empty())
    if (Status status = frame.judge(body, arithmetic); !status.ok())
      return status.takeError();
  for (auto [value, argument] : llvm::zip(body.getArguments(), arguments))
    if (Status status = frame.bind(value, argument, value.getArgNumber()); !status.ok())
      return status.takeError();
  auto lookup = [&](Value value) -> const Argument * {
    for (auto [stored, own] : llvm::zip(yield->getOperands(), observed))
      if (stored == value && own.data)
        return &own;
    return nullptr;
  };
  if (Status status = evaluateBody(body, frame, lookup); !status.ok())
    return status.takeError();

  Evaluation evaluation;
  llvm::DenseMap<const NodeResult *, size_t> positions;
  for (const NodeResult &result : frame.results)
    positions[&result] = positions.size();
  for (Value value : yield->getOperands()) {
    const NodeResult *result = frame.resultOf(value);
    if (!result)
      return inputError("the region yields an argument");
    evaluation.outputs.push_back(positions[result]);
  }
  std::move(frame.results.begin(), frame.results.end(), std::back_inserter(evaluation.results));
  std::move(frame.states.begin(), frame.states.end(), std::back_inserter(evaluation.states));
  return evaluation;
}

namespace {
/// One step of a graph.
class GraphRun {
public:
  GraphRun(const Binder &bind, const Observer &observe, const Options &options)
      : bind(bind), observe(observe), frame(options) {}

  Status run(Block &body) {
    llvm::DenseSet<Value> known;
    llvm::SmallVector<Operation *> waiting;
    for (Operation &op : body)
      waiting.push_back(&op);
    while (!waiting.empty()) {
      auto next = llvm::find_if(waiting, [&](Operation *op) {
        return llvm::all_of(op->getOperands(), [&](Value v) { return known.contains(v); });
      });
      if (next == waiting.end())
        return nodeError(waiting.front(), "waits for a value that waits for it");
      Operation *op = *next;
      if (Status status = evaluateOp(op); !status.ok())
        return status;
      known.insert(op->result_begin(), op->result_end());
      waiting.erase(next);
    }
    return {};
  }

private:
  Status evaluateOp(Operation *op) {
    if (auto input = dyn_cast<plan::StepInputOp>(op))
      return bindOutside(op, Binding::StepInput, input.getName());
    if (auto weight = dyn_cast<plan::WeightRefOp>(op))
      return bindOutside(op, Binding::Weight, weight.getWeight());
    if (auto state = dyn_cast<plan::StateRefOp>(op))
      return bindOutside(op, Binding::State, state.getState());
    if (auto group = dyn_cast<plan::GroupOp>(op))
      return enter(op, group.getBody().front(), {});
    if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
      if (!launch.getKernelAttr())
        return {};
      auto kernel =
          SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(op, launch.getKernelAttr());
      return enter(op, kernel.getBody().front(), launch.getNodes());
    }
    Status status = evaluateAndStore(op, frame, nullptr);
    return status.ok() ? report() : std::move(status);
  }

  Status bindOutside(Operation *op, Binding kind, StringRef name) {
    Result<Argument> argument = bind(kind, std::string_view(name));
    if (!argument.ok())
      return argument.takeError();
    return frame.bind(op->getResult(0), *argument, 0);
  }

  /// A kernel is entered once per launch; its values are then overwritten. `nodes` are the members
  /// that it stands for.
  Status enter(Operation *op, Block &body, ArrayAttr nodes) {
    for (auto [inner, outer] : llvm::zip(body.getArguments(), op->getOperands()))
      frame.alias(inner, outer);
    if (Status status = evaluateBody(body, frame, nullptr); !status.ok())
      return status;
    for (auto [outer, inner] : llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
      frame.alias(outer, inner);
    if (nodes) {
      auto result = frame.results.begin() + reported;
      for (auto [member, attr] : llvm::zip(body.without_terminator(), nodes)) {
        auto id = cast<plan::NodeAttr>(attr);
        for (unsigned i = 0; i < member.getNumResults(); ++i, ++result) {
          result->node = id.getId().str();
          result->edge = id.getEdges() ? id.getEdge(i).str() : std::string();
        }
      }
    }
    return report();
  }

  Status report() {
    for (; reported < frame.results.size(); ++reported)
      if (observe)
        observe(frame.results[reported]);
    frame.states.clear();
    return {};
  }

  const Binder &bind;
  const Observer &observe;
  Frame frame;
  size_t reported = 0;
};
} // namespace

Status evaluateGraph(Operation *graph, const Binder &bind, const Observer &observe,
                     const Options &options) {
  auto op = dyn_cast<plan::GraphOp>(graph);
  if (!op)
    return inputError("'{}' is no graph", graph->getName().getStringRef().str());
  return GraphRun(bind, observe, options).run(op.getBody().front());
}

} // namespace planc::reference
