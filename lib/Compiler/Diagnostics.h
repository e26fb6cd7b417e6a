//===- Diagnostics.h - MLIR's diagnostics as the compiler's -----------------===//
//
// Private to lib/Compiler.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_COMPILER_DIAGNOSTICS_H
#define PLANC_LIB_COMPILER_DIAGNOSTICS_H

#include "planc/Compiler.h"

#include "mlir/IR/Diagnostics.h"

namespace planc {

/// "plan.json#/nodes/12" for the location of a node, whatever is wrapped around it; empty if there
/// is none.
std::string locationText(mlir::Location location);

Diagnostic convert(const mlir::Diagnostic &diagnostic);

} // namespace planc

#endif // PLANC_LIB_COMPILER_DIAGNOSTICS_H
