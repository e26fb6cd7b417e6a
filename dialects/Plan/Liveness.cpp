//===- Liveness.cpp - which values of a kernel anybody reads ---------------===//

#include "dialects/Plan/Liveness.h"

#include "dialects/Plan/PlanOps.h"

using namespace mlir;

/// Changes a state, so that its edges count even if its results do not.
static bool writesState(plan::PlanNode node) {
  return llvm::any_of(node.getAccesses(), [](auto access) {
    return access.second == plan::Access::Write || access.second == plan::Access::Update;
  });
}

bool plan::isRead(OpOperand &operand) {
  auto node = dyn_cast<plan::PlanNode>(operand.getOwner());
  if (!node)
    return true; // it is stored
  unsigned number = operand.getOperandNumber();
  // A snapshot copies a state; its edge only says after whom.
  if (node.isOrderOnly(number) || isa<plan::StateSnapshotOp>(*node))
    return false;
  // The weights of who keeps a state are for the result: a window holds what came in.
  if (writesState(node) && !isa<plan::WeightType>(operand.get().getType()))
    return true;
  return llvm::any_of(node->getResults(), [](Value result) { return isRead(result); });
}

bool plan::isRead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) { return isRead(use); });
}
