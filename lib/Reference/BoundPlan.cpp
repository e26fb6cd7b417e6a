//===- BoundPlan.cpp - the plan that a bundle carries ----------------------===//

#include "dialects/Plan/PlanOps.h"
#include "lib/Reference/Compare.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace planc::reference {

struct BoundPlan::Impl {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;

  template <class Op> Op lookup(std::string_view symbol) const {
    ModuleOp op = module.get();
    return op.lookupSymbol<Op>(StringRef(symbol));
  }

  /// The op that stands for a group in a graph: a `plan.group` or a `plan.launch`.
  Operation *find(std::string_view graph, int64_t id) const {
    auto op = lookup<plan::GraphOp>(graph);
    if (!op)
      return nullptr;
    for (Operation &member : op.getBody().front()) {
      if (auto group = dyn_cast<plan::GroupOp>(member); group && group.getInfo().getId() == id)
        return &member;
      if (auto launch = dyn_cast<plan::LaunchOp>(member); launch && launch.getInfo().getId() == id)
        return &member;
    }
    return nullptr;
  }
};

BoundPlan::BoundPlan(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
BoundPlan::BoundPlan(BoundPlan &&) noexcept = default;
BoundPlan::~BoundPlan() = default;

Result<BoundPlan> BoundPlan::parse(std::string_view ir) {
  auto impl = std::make_unique<Impl>();
  impl->context.loadDialect<plan::PlanDialect>();
  std::string problem;
  ScopedDiagnosticHandler handler(&impl->context, [&](Diagnostic &diagnostic) {
    if (problem.empty())
      problem = diagnostic.str();
    return success();
  });
  impl->module = parseSourceString<ModuleOp>(StringRef(ir), &impl->context);
  if (!impl->module)
    return inputError("the plan's IR: {}", problem.empty() ? "cannot be read" : problem);
  return BoundPlan(std::move(impl));
}

Operation *BoundPlan::kernel(std::string_view symbol) const {
  return impl->lookup<plan::KernelOp>(symbol);
}

Operation *BoundPlan::graph(std::string_view symbol) const {
  return impl->lookup<plan::GraphOp>(symbol);
}

Operation *BoundPlan::group(std::string_view graph, int64_t id) const {
  Operation *op = impl->find(graph, id);
  auto launch = dyn_cast_or_null<plan::LaunchOp>(op);
  if (!launch)
    return op;
  return launch.getKernelAttr() ? impl->lookup<plan::KernelOp>(*launch.getKernel())
                                : plan::KernelOp();
}

std::vector<std::string> BoundPlan::groupOutputs(std::string_view graph, int64_t id) const {
  Operation *op = impl->find(graph, id), *region = group(graph, id);
  std::vector<std::string> edges;
  if (!region)
    return edges;
  auto launch = dyn_cast<plan::LaunchOp>(op);
  Block &body = region->getRegion(0).front();
  llvm::DenseMap<Operation *, plan::NodeAttr> nodes;
  for (auto [i, member] : llvm::enumerate(body.without_terminator()))
    nodes[&member] = launch ? cast<plan::NodeAttr>(launch.getNodes()[i])
                            : cast<plan::PlanNode>(member).getNodeAttr();
  for (Value value : body.getTerminator()->getOperands()) {
    plan::NodeAttr node = nodes.lookup(value.getDefiningOp());
    edges.push_back(node && node.getEdges()
                        ? node.getEdge(cast<OpResult>(value).getResultNumber()).str()
                        : std::string());
  }
  return edges;
}

} // namespace planc::reference
