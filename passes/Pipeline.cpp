//===- Pipeline.cpp - the passes of each stage, in order ------------------===//

#include "passes/Pipeline.h"

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void planc::buildGroupPipeline(OpPassManager &pm) {
  pm.addPass(createBindDims());
  pm.addPass(createVerifySteps());
  pm.addPass(createFormGroups());
}

void planc::buildKernelPipeline(OpPassManager &pm) { pm.addPass(createOutlineKernels()); }

void planc::buildMemoryPipeline(OpPassManager &pm) {
  pm.addPass(createAssignMemory());
  pm.addPass(createVerifyMemory());
}

void planc::registerPlanPipelines() {
  PassPipelineRegistration<>("plan-to-groups", "Bind dims, check steps, form groups",
                             buildGroupPipeline);
  PassPipelineRegistration<>("plan-to-kernels", "From a plan.graph to kernels and launches",
                             [](OpPassManager &pm) {
                               buildGroupPipeline(pm);
                               buildKernelPipeline(pm);
                             });
  PassPipelineRegistration<>("plan-to-launches", "From a plan.graph to launches with their memory",
                             [](OpPassManager &pm) {
                               buildGroupPipeline(pm);
                               buildKernelPipeline(pm);
                               buildMemoryPipeline(pm);
                             });
}
