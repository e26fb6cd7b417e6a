//===- OutlineKernels.cpp - let equal groups share one kernel -------------===//
//
// In     plan.graph of plan.group ops.
// Out    device groups are plan.launch ops; each distinct content is one plan.kernel. Groups of the
// host
//        stay as they are.
// After  no node in a kernel has an identity; equal kernels have one name in every plan and run.
//
// Two groups are equal if their regions, row count, unit and numerics contract are. A node's `node`
// attribute and a projection's role name it and compute nothing, so neither counts.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Plan/PlanOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using plan::PlanNode;

namespace planc {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/Passes.h.inc"
} // namespace planc

/// True if the node has no effect: what it keeps is all rows of a sequence but the last.
static bool isIdle(PlanNode node, int64_t rows) {
  return (rows == 1 || node->hasAttr("apart")) && node->getNumResults() == 0 &&
         llvm::all_of(node.getAccesses(),
                      [](auto access) { return access.second == plan::Access::Snapshot; });
}

/// `residual_add_rms_norm_h2048_n1`: ops, a run of one op counted; columns in and out; rows.
static std::string describeContent(Block &body, int64_t rows) {
  SmallVector<std::pair<StringRef, unsigned>> runs;
  for (auto node : body.getOps<PlanNode>()) {
    StringRef op = node->getName().stripDialect();
    if (!runs.empty() && runs.back().first == op)
      ++runs.back().second;
    else
      runs.emplace_back(op, 1);
  }
  std::string name;
  for (auto [op, count] : ArrayRef(runs).take_front(4))
    name += op.str() + (count > 1 ? std::to_string(count) : "") + "_";
  if (runs.size() > 4)
    name += "and" + std::to_string(runs.size() - 4) + "_";
  auto columns = [](Value value) -> int64_t {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && tensor.getRank() ? tensor.getShape().back() : 0;
  };
  int64_t in = body.getNumArguments() ? columns(body.getArgument(0)) : 0;
  ValueRange stored = body.getTerminator()->getOperands();
  int64_t out = stored.empty() ? in : columns(stored.back());
  name +=
      in == out ? "h" + std::to_string(in) : "i" + std::to_string(in) + "_o" + std::to_string(out);
  return name + "_n" + std::to_string(rows);
}

namespace {
class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), builder(module.getContext()) {}

  void run(plan::GraphOp graph) {
    insertBefore = graph;
    for (auto group : llvm::make_early_inc_range(graph.getBody().getOps<plan::GroupOp>()))
      if (group.getInfo().getWhere() == plan::Where::Device)
        launch(graph, group);
  }

  unsigned numKernels = 0, numLaunches = 0;
  bool ok = true;

private:
  void launch(plan::GraphOp graph, plan::GroupOp group) {
    SmallVector<Attribute> nodes;
    bool idle = true;
    for (auto node : group.getBody().getOps<PlanNode>()) {
      if (!node.getNodeAttr()) {
        mlir::emitError(node->getLoc()) << plan::describe(node) << ": has no place in a plan";
        ok = false;
        return;
      }
      nodes.push_back(node.getNodeAttr());
      idle &= isIdle(node, graph.getRows());
    }
    FlatSymbolRefAttr kernel;
    StringAttr note;
    if (idle) {
      note = builder.getStringAttr("nothing to do at " + Twine(graph.getRows()) + " row");
    } else {
      kernel = FlatSymbolRefAttr::get(kernelOf(graph, group));
      ++numLaunches;
    }
    builder.setInsertionPoint(group);
    auto op = plan::LaunchOp::create(builder, group.getLoc(), group.getResultTypes(), kernel,
                                     group.getInfo(), builder.getArrayAttr(nodes), note,
                                     idle ? ValueRange() : ValueRange(group.getInputs()));
    group.replaceAllUsesWith(op.getResults());
    group.erase();
  }

  /// The kernel of this content; made when it is seen for the first time.
  plan::KernelOp kernelOf(plan::GraphOp graph, plan::GroupOp group) {
    builder.setInsertionPoint(insertBefore);
    auto text = [&](StringAttr attr) { return attr ? attr : builder.getStringAttr("reference"); };
    auto kernel = plan::KernelOp::create(
        builder, group.getLoc(), builder.getStringAttr("kernel"), graph.getRowsAttr(),
        group.getInfo().getCompute() ? group.getInfo().getCompute() : builder.getStringAttr(""),
        text(group.getInfo().getNumerics()));
    IRMapping mapping;
    group.getBody().cloneInto(&kernel.getBody(), mapping);
    Block &body = kernel.getBody().front();
    for (auto node : body.getOps<PlanNode>()) {
      node->removeAttr("node");
      if (auto linear = dyn_cast<plan::LinearOp>(node.getOperation()))
        linear.setRole("");
    }
    std::string content;
    llvm::raw_string_ostream stream(content);
    kernel->print(stream, OpPrintingFlags().useLocalScope());
    plan::KernelOp &known = kernels[content];
    if (known) {
      kernel.erase();
      return known;
    }
    ++numKernels;
    std::string digest = llvm::utohexstr(llvm::xxh3_64bits(content), /*LowerCase=*/true, 16);
    std::string stem = describeContent(body, graph.getRows()) + "__";
    // Six digits read well; more only where two kernels would have one name.
    unsigned digits = 6;
    while (digits < digest.size() && names.contains(stem + digest.substr(0, digits)))
      ++digits;
    kernel.setSymName(stem + digest.substr(0, digits));
    names[kernel.getSymName()] = true;
    return known = kernel;
  }

  ModuleOp module;
  OpBuilder builder;
  Operation *insertBefore = nullptr;
  llvm::StringMap<plan::KernelOp> kernels; // by their text
  llvm::StringMap<bool> names;
};

class OutlineKernels : public planc::impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    Outliner outliner(getOperation());
    for (auto graph : llvm::make_early_inc_range(getOperation().getOps<plan::GraphOp>()))
      outliner.run(graph);
    numKernels += outliner.numKernels;
    numLaunches += outliner.numLaunches;
    if (!outliner.ok)
      signalPassFailure();
  }
};
} // namespace
