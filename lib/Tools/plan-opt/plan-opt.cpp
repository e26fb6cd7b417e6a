//===- plan-opt.cpp - mlir-opt with the plan dialect and passes -----------===//

#include "dialects/Plan/PlanOps.h"
#include "lib/Schedule/Schedule.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<plan::PlanDialect>();
  mlir::registerAllPasses();
  planc::registerPlanPasses();
  planc::registerPlanPipelines();
  planc::registerEmitKernelsPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "plan-opt\n", registry));
}
