//===- PlanOps.h - the ops of the plan dialect ----------------------------===//

#ifndef PLAN_OPS_H
#define PLAN_OPS_H

#include "dialects/Plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Plan/PlanInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

namespace plan {

/// `node "l0.gdn.add" (group 8, layer 0)`, or the op's name inside a kernel.
std::string describe(mlir::Operation *op);

/// An error that begins with who the node is.
mlir::InFlightDiagnostic emitNodeError(mlir::Operation *op);

/// True if `reader` takes operand `operand` in its held precision, wider than it is stored.
bool readsHeld(PlanNode reader, unsigned operand);

} // namespace plan

#endif // PLAN_OPS_H
