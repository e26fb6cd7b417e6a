//===- plan-lsp-server.cpp - MLIR's language server with the plan dialect ---===//
//
// Editors start it for .mlir files: errors of the parser and of the verifier, definitions, uses.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<plan::PlanDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
