//===- PlanDialect.h - the plan dialect, its attributes and types ---------===//

#ifndef PLAN_DIALECT_H
#define PLAN_DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Plan/PlanDialect.h.inc"
#include "dialects/Plan/PlanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

namespace plan {

/// The plan's own spelling of a format, e.g. `fp8/block128x128`.
llvm::StringRef planSpelling(Format format);
std::optional<Format> formatFromPlan(llvm::StringRef spelling);

/// The builtin element type of a value in this format; null for formats that are only weights.
mlir::Type elementType(mlir::MLIRContext *context, Format format);
std::optional<Format> formatOf(mlir::Type elementType);

/// Stored format of an edge, symbolic or bound.
Format storedFormat(mlir::Value edge);

/// Dim `index` of an edge, a weight or a state, where it is known.
std::optional<int64_t> knownDim(mlir::Type type, unsigned index);
/// How many dims an edge, a weight or a state has.
unsigned numDims(mlir::Type type);

/// Name of the module attribute that maps dim names to integers.
inline constexpr llvm::StringLiteral kDimsAttrName = "plan.dims";

/// Name of the unit attribute of a module whose kernels are run to prove their contracts.
inline constexpr llvm::StringLiteral kContractsRunAttrName = "plan.contracts_run";

} // namespace plan

#endif // PLAN_DIALECT_H
