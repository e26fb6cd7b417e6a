//===- Liveness.h - which values of a kernel anybody reads -----------------===//
//
// A plan may ask for a value that nothing comes of: a convolution for the sake of its window, whose
// result orders a snapshot alone. Schedules emit values where they are read, so such a one has no
// code, no rounding and no fault that could show.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_DIALECTS_PLAN_LIVENESS_H
#define PLANC_DIALECTS_PLAN_LIVENESS_H

namespace mlir {
class OpOperand;
class Value;
} // namespace mlir

namespace plan {

/// True if what the kernel stores, in an edge or in a state, depends on what this operand holds.
bool isRead(mlir::OpOperand &operand);
/// The same of any of a value's uses.
bool isRead(mlir::Value value);

} // namespace plan

#endif // PLANC_DIALECTS_PLAN_LIVENESS_H
