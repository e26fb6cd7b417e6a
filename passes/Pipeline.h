//===- Pipeline.h - the passes of each stage, in order --------------------===//

#ifndef PLANC_PASSES_PIPELINE_H
#define PLANC_PASSES_PIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace planc {

/// plan.graph with symbolic dims -> plan.group ops. Dims are bound first, since what nodes demand
/// of each other's shapes is checked where they are known; steps are checked before groups, since a
/// group is only as legal as the reads across its border.
void buildGroupPipeline(mlir::OpPassManager &pm);

/// plan.group -> plan.kernel and plan.launch.
void buildKernelPipeline(mlir::OpPassManager &pm);

/// Places stored edges in the workspace, and proves the places.
void buildMemoryPipeline(mlir::OpPassManager &pm);

/// The stages as `--plan-to-groups`, `--plan-to-kernels`, `--plan-to-launches`, each from a
/// plan.graph on.
void registerPlanPipelines();

} // namespace planc

#endif // PLANC_PASSES_PIPELINE_H
