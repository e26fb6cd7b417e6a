//===- AssignMemory.cpp - give every stored edge its place ----------------===//
//
// In     plan.graph of launches and host groups.
// Out    the same, with `plan.buffers`, `plan.workspace` and `plan.workspace_unshared` on the
// graph. After  each result of a launch or group has a buffer, in the order of the ops; buffers
// that live at
//        the same time share no byte.
//
// A buffer lives from the op that stores it through the last that reads it, both included: what a
// launch reads and what it writes never overlap. A value that nobody in the graph reads leaves the
// program and lives to the end. Placement is greedy in two orders, by size and by first use; the
// smaller result wins. Ties are broken by position, so the layout is a function of the graph alone.
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"
#include "passes/Passes.h"

#include "dialects/Plan/PlanOps.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace planc {
#define GEN_PASS_DEF_ASSIGNMEMORY
#include "passes/Passes.h.inc"
} // namespace planc

namespace {
struct Buffer {
  StringRef edge;
  int64_t bytes, first, last;
  plan::Where written, read = plan::Where::Device;

  int64_t aligned() const { return llvm::alignTo(bytes, planc::kBufferAlignment); }
  bool meets(const Buffer &other) const { return first <= other.last && other.first <= last; }
};

struct Layout {
  std::vector<int64_t> offsets;
  int64_t size = 0;
};
} // namespace

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

/// Ids of the edges that `op` stores, as its results are ordered.
static SmallVector<StringRef> storedEdges(Operation *op) {
  SmallVector<plan::NodeAttr> nodes;
  if (auto launch = dyn_cast<plan::LaunchOp>(op))
    llvm::append_range(nodes, launch.getNodes().getAsRange<plan::NodeAttr>());
  else
    for (auto node : cast<plan::GroupOp>(op).getBody().getOps<plan::PlanNode>())
      nodes.push_back(node.getNodeAttr());
  SmallVector<StringRef> edges;
  for (plan::NodeAttr node : nodes)
    for (unsigned i = 0; node && node.getEdges() && i < node.getEdges().size(); ++i)
      if (!node.isFused(i))
        edges.push_back(node.getEdge(i));
  edges.resize(op->getNumResults()); // hand-written IR may lack names
  return edges;
}

/// Every stored edge has a size, and only launches and groups read it.
static LogicalResult checkGraph(plan::GraphOp graph) {
  for (Operation &op : graph.getBody().front()) {
    if (isa<plan::StepInputOp, plan::WeightRefOp, plan::StateRefOp>(op))
      continue;
    if (!isa<plan::LaunchOp, plan::GroupOp>(op))
      return mlir::emitError(op.getLoc()) << plan::describe(&op) << ": is in no group yet";
    for (Type type : op.getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
        return op.emitOpError() << "stores an edge whose dims are not bound";
  }
  return success();
}

static std::vector<Buffer> collect(plan::GraphOp graph) {
  llvm::DenseMap<Operation *, int64_t> positions;
  SmallVector<Operation *> steps;
  for (Operation &op : graph.getBody().front())
    if (isa<plan::LaunchOp, plan::GroupOp>(op)) {
      positions[&op] = steps.size();
      steps.push_back(&op);
    }
  auto whereOf = [](Operation *op) {
    return isa<plan::GroupOp>(op) ? cast<plan::GroupOp>(op).getInfo().getWhere()
                                  : plan::Where::Device;
  };
  std::vector<Buffer> buffers;
  for (Operation *op : steps)
    for (auto [result, edge] : llvm::zip(op->getResults(), storedEdges(op))) {
      Buffer buffer{edge, bytesOf(result), positions[op], positions[op], whereOf(op)};
      if (result.use_empty())
        buffer.last = int64_t(steps.size()) - 1;
      for (Operation *user : result.getUsers()) {
        buffer.last = std::max(buffer.last, positions[user]);
        if (whereOf(user) == plan::Where::Host)
          buffer.read = plan::Where::Host;
      }
      buffers.push_back(buffer);
    }
  return buffers;
}

/// Places the buffers in `order`, each in the smallest gap that the ones it meets leave.
static Layout place(ArrayRef<Buffer> buffers, ArrayRef<size_t> order) {
  Layout layout;
  layout.offsets.assign(buffers.size(), -1);
  SmallVector<std::pair<int64_t, int64_t>> taken; // begin, end
  for (size_t index : order) {
    taken.clear();
    for (auto [other, offset] : llvm::enumerate(layout.offsets))
      if (offset >= 0 && buffers[other].meets(buffers[index]))
        taken.emplace_back(offset, offset + buffers[other].aligned());
    llvm::sort(taken);
    int64_t size = buffers[index].aligned(), end = 0, best = -1, gap = INT64_MAX;
    for (auto [begin, stop] : taken) {
      if (begin - end >= size && begin - end < gap) {
        best = end;
        gap = begin - end;
      }
      end = std::max(end, stop);
    }
    layout.offsets[index] = best >= 0 ? best : end;
    layout.size = std::max(layout.size, layout.offsets[index] + size);
  }
  return layout;
}

static Layout assign(ArrayRef<Buffer> buffers) {
  std::vector<size_t> byUse(buffers.size());
  std::iota(byUse.begin(), byUse.end(), 0);
  std::vector<size_t> bySize = byUse;
  llvm::sort(bySize, [&](size_t a, size_t b) {
    return std::pair(-buffers[a].bytes, a) < std::pair(-buffers[b].bytes, b);
  });
  Layout first = place(buffers, bySize), second = place(buffers, byUse);
  return second.size < first.size ? second : first;
}

namespace {
class AssignMemory : public planc::impl::AssignMemoryBase<AssignMemory> {
  void runOnOperation() override {
    Builder builder(&getContext());
    for (auto graph : getOperation().getOps<plan::GraphOp>()) {
      if (failed(checkGraph(graph)))
        return signalPassFailure();
      std::vector<Buffer> buffers = collect(graph);
      Layout layout = assign(buffers);
      SmallVector<Attribute> table;
      int64_t unshared = 0;
      for (auto [buffer, offset] : llvm::zip(buffers, layout.offsets)) {
        table.push_back(plan::BufferAttr::get(&getContext(), buffer.edge, buffer.bytes, offset,
                                              unshared, buffer.first, buffer.last, buffer.written,
                                              buffer.read));
        unshared += buffer.aligned();
      }
      graph->setAttr(planc::kBuffersAttrName, builder.getArrayAttr(table));
      graph->setAttr(planc::kWorkspaceAttrName, builder.getI64IntegerAttr(layout.size));
      graph->setAttr(planc::kUnsharedAttrName, builder.getI64IntegerAttr(unshared));
    }
  }
};
} // namespace
