//===- Reads.h - in which precision a node takes an edge ------------------===//

#ifndef PLANC_PASSES_READS_H
#define PLANC_PASSES_READS_H

#include "dialects/Plan/PlanOps.h"

namespace planc {

/// True if the two nodes are members of one group: by their identity in a graph, by their region
/// elsewhere.
bool sameGroup(plan::PlanNode first, plan::PlanNode second);

/// Rule S1 of VerifySteps.cpp for one operand; emits the error.
mlir::LogicalResult checkRead(plan::PlanNode reader, mlir::OpOperand &read);

} // namespace planc

#endif // PLANC_PASSES_READS_H
