//===- Plan.cpp - faults in a plan.kernel ------------------------------------===//
//
// A copy of the kernel is compiled with other attributes, formats or operands, and held against the
// kernel as it was. A copy that no schedule takes is no fault that could happen.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Mutations.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace planc::verify {

PlanCopy::PlanCopy(plan::KernelOp original, int64_t kvBlock) : kvBlock(kvBlock) {
  OpBuilder builder(original.getContext());
  module = ModuleOp::create(original.getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  kernel = cast<plan::KernelOp>(builder.clone(*original));
}

namespace {
/// Collects the places of one kind.
class PlanFinder {
public:
  explicit PlanFinder(PlanCopy &copy) : copy(copy) {}

#define PLANC_PLAN_MUTATION(Name, text, likely, description) void find##Name();
#include "lib/Verify/Mutations.def"

  Sites sites;

private:
  /// Operations of the kernel, with their names: "plan.linear #2" is the second.
  void forEachNode(llvm::function_ref<void(plan::PlanNode, const std::string &)> body);
  void setFormats(plan::PlanNode node, std::optional<plan::Format> act,
                  std::optional<std::pair<unsigned, plan::Format>> out);
  void flipRead(bool readsHeld);
  bool isInside(Value value) const { return !isa<BlockArgument>(value); }

  PlanCopy &copy;
};
} // namespace

void PlanFinder::forEachNode(llvm::function_ref<void(plan::PlanNode, const std::string &)> body) {
  std::map<StringRef, unsigned> counts;
  for (Operation &op : copy.kernel.getBody().front().without_terminator()) {
    StringRef name = op.getName().getStringRef();
    body(cast<plan::PlanNode>(op), fmt::format("{} #{}", name.str(), ++counts[name]));
  }
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void PlanFinder::findMissingEps() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    auto eps = node->getAttrOfType<FloatAttr>("eps");
    if (!eps || eps.getValue().isZero())
      return;
    sites.push_back({name, [=] { node->setAttr("eps", FloatAttr::get(eps.getType(), 0.0)); }});
  });
}

void PlanFinder::findWrongNormOffset() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    if (auto offset = node->getAttrOfType<FloatAttr>("offset"))
      sites.push_back({name, [=] {
                         double other = offset.getValue().isZero() ? 1 : 0;
                         node->setAttr("offset", FloatAttr::get(offset.getType(), other));
                       }});
  });
}

void PlanFinder::findWrongRopeBase() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    if (auto theta = node->getAttrOfType<FloatAttr>("theta"))
      sites.push_back({name, [=] {
                         double tenth = theta.getValueAsDouble() / 10;
                         node->setAttr("theta", FloatAttr::get(theta.getType(), tenth));
                       }});
  });
}

void PlanFinder::findWrongRopeStream() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    auto rope = dyn_cast<plan::RopeOp>(node.getOperation());
    if (rope && !rope.getSections().empty())
      sites.push_back({name, [=]() mutable { rope.setSections({}); }});
  });
}

void PlanFinder::findWrongRopeWidth() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    auto rope = dyn_cast<plan::RopeOp>(node.getOperation());
    if (rope && rope.getRotaryDim() % 4 == 0)
      sites.push_back({name, [=]() mutable { rope.setRotaryDim(rope.getRotaryDim() / 2); }});
  });
}

void PlanFinder::findWrongHeads() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    // Half as long, or one less to be normed.
    for (StringRef attribute : {"head_dim", "heads"}) {
      auto dim = node->getAttrOfType<plan::DimAttr>(attribute);
      std::optional<int64_t> size = dim ? dim.getConstant() : std::nullopt;
      int64_t other = !size ? 0 : attribute == "heads" ? *size - 1 : *size / 2;
      if (other > 0)
        sites.push_back({name + " " + attribute.str(), [=] {
                           node->setAttr(attribute, plan::DimAttr::get(node->getContext(), other));
                         }});
    }
  });
}

void PlanFinder::findWrongBlockSize() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    if (isa<plan::PagedAttentionOp>(node.getOperation()))
      sites.push_back({name, [this] { copy.kvBlock *= 2; }});
  });
}

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

void PlanFinder::setFormats(plan::PlanNode node, std::optional<plan::Format> act,
                            std::optional<std::pair<unsigned, plan::Format>> out) {
  plan::PrecisionAttr old = node.getPrecisionAttr();
  SmallVector<plan::Format> outs(old.getOut());
  if (out)
    outs[out->first] = out->second;
  node->setAttr("precision", plan::PrecisionAttr::get(node->getContext(), old.getWeight(),
                                                      act.value_or(old.getAct()), outs));
}

void PlanFinder::findRoundedEdge() {
  Operation *yield = copy.kernel.getBody().front().getTerminator();
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    for (OpResult result : node->getResults()) {
      bool isStored = llvm::is_contained(result.getUsers(), yield);
      if (isStored || result.use_empty() || plan::storedFormat(result) != plan::Format::F32)
        continue;
      std::string where = fmt::format("{} result {}", name, result.getResultNumber());
      sites.push_back({where, [this, node, result]() mutable {
                         Builder builder(node->getContext());
                         auto type = cast<RankedTensorType>(result.getType());
                         result.setType(type.clone(builder.getBF16Type()));
                         setFormats(node, std::nullopt,
                                    std::pair(result.getResultNumber(), plan::Format::BF16));
                         for (OpOperand &use : result.getUses())
                           if (use.getOperandNumber() == 0)
                             setFormats(cast<plan::PlanNode>(use.getOwner()), plan::Format::BF16,
                                        std::nullopt);
                       }});
    }
  });
}

static bool onlyMoves(plan::PlanNode node) {
  ArrayRef<plan::StepAttr> steps = node.getStepsAttr().getSteps();
  return !steps.empty() && llvm::all_of(steps, [](plan::StepAttr step) {
    return step.getKind() == plan::StepKind::Move;
  });
}

/// True if an edge holds what it stores: it only moves what its node reads so.
static bool holdsStored(Value edge) {
  auto node = edge.getDefiningOp<plan::PlanNode>();
  if (!node)
    return true; // an input
  Value read = node->getOperand(0);
  return onlyMoves(node) && plan::storedFormat(read) == plan::storedFormat(edge) &&
         (holdsStored(read) || !plan::readsHeld(node, 0));
}

/// True if a node rounds what it reads by storing it, and nobody reads it before that.
static bool storesWhatItReads(plan::PlanNode node) {
  return onlyMoves(node) && llvm::all_of(node->getResults(), [](Value result) {
           return plan::storedFormat(result) == plan::Format::BF16 &&
                  llvm::none_of(result.getUses(), [](OpOperand &use) {
                    auto reader = dyn_cast<plan::PlanNode>(use.getOwner());
                    return reader && plan::readsHeld(reader, use.getOperandNumber());
                  });
         });
}

void PlanFinder::flipRead(bool readsHeld) {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    if (node.getNumEdges() == 0 || node.isOrderOnly(0))
      return;
    Value read = node->getOperand(0);
    // Where the edge is an input, f32, or only moved, there is one value to be read.
    if (!isInside(read) || plan::storedFormat(read) != plan::Format::BF16 ||
        plan::readsHeld(node, 0) != readsHeld || holdsStored(read) || storesWhatItReads(node))
      return;
    sites.push_back({name, [=, this] {
                       setFormats(node, readsHeld ? plan::Format::BF16 : plan::Format::F32,
                                  std::nullopt);
                     }});
  });
}

void PlanFinder::findUnroundedRead() { flipRead(false); }
void PlanFinder::findRoundedRead() { flipRead(true); }

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

void PlanFinder::findSwappedOperands() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    if (isa<plan::ResidualAddOp>(node.getOperation()))
      return; // a sum has no order of operands
    for (unsigned i = 0; i < node->getNumOperands(); ++i)
      for (unsigned j = i + 1; j < node->getNumOperands(); ++j) {
        Value a = node->getOperand(i), c = node->getOperand(j);
        if (a == c || a.getType() != c.getType() || node.isOrderOnly(i) || node.isOrderOnly(j))
          continue;
        sites.push_back({fmt::format("{} operands {} and {}", name, i, j), [=] {
                           node->setOperand(i, c);
                           node->setOperand(j, a);
                         }});
      }
  });
}

void PlanFinder::findSwappedResults() {
  forEachNode([&](plan::PlanNode node, const std::string &name) {
    for (unsigned i = 0; i < node->getNumResults(); ++i)
      for (unsigned j = i + 1; j < node->getNumResults(); ++j) {
        Value a = node->getResult(i), c = node->getResult(j);
        if (a.getType() != c.getType())
          continue;
        sites.push_back({fmt::format("{} results {} and {}", name, i, j), [=]() mutable {
                           SmallVector<OpOperand *> uses;
                           for (OpOperand &use : a.getUses())
                             uses.push_back(&use);
                           c.replaceAllUsesWith(a);
                           for (OpOperand *use : uses)
                             use->set(c);
                         }});
      }
  });
}

Sites planSites(MutationKind kind, PlanCopy &copy) {
  PlanFinder finder(copy);
  switch (kind) {
#define PLANC_PLAN_MUTATION(Name, text, likely, description)                                       \
  case MutationKind::Name:                                                                         \
    finder.find##Name();                                                                           \
    break;
#include "lib/Verify/Mutations.def"
  default:
    break;
  }
  return std::move(finder.sites);
}

} // namespace planc::verify
