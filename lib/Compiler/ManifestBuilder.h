//===- ManifestBuilder.h - the plan in kernel form as a manifest ------------===//
//
// Private to lib/Compiler. Each function turns one kind of operation into the struct of lib/Bundle
// that says the same to the runtime; nothing is decided here.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_COMPILER_MANIFESTBUILDER_H
#define PLANC_LIB_COMPILER_MANIFESTBUILDER_H

#include "dialects/Plan/PlanOps.h"
#include "lib/Bundle/Manifest.h"

#include "llvm/ADT/StringMap.h"

namespace planc {

/// An operand and where its bytes are in a checkpoint. `node`: who reads it first.
bundle::Weight describeWeight(plan::WeightOp weight, llvm::StringRef node);

/// `kvBlock`: positions in one block of a paged cache. `layer`: of the node that touches it first.
bundle::State describeState(plan::StateOp state, int64_t layer, int64_t kvBlock);

/// What the pointers that a launch passes point at, in the order of its kernel's parameters.
/// Scratch and counters are left out: these are up to the kernel's schedule.
std::vector<bundle::Param> describeParams(plan::LaunchOp launch, int64_t kvBlock);

/// Launch list, buffers and inputs of a graph. Offsets in the workspace are those that
/// --plan-assign-memory found.
bundle::Program describeProgram(plan::GraphOp graph);

/// The node that touches each weight and state first, by their symbols.
llvm::StringMap<plan::NodeAttr> firstUses(mlir::ModuleOp module);

/// The element type of a bound edge, and of a stored format (of its data, where it has scales too).
bundle::Dtype dtypeOf(mlir::Type elementType);
bundle::Dtype dtypeOf(plan::Format format);

/// Does a weight of this format bring block scales along, as a second pointer?
bool hasScales(plan::Format format);

} // namespace planc

#endif // PLANC_LIB_COMPILER_MANIFESTBUILDER_H
