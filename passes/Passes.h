//===- Passes.h - the passes over the plan dialect ------------------------===//

#ifndef PLANC_PASSES_PASSES_H
#define PLANC_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace planc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace planc

#endif // PLANC_PASSES_PASSES_H
