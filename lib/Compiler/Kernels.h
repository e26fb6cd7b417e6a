//===- Kernels.h - compile every kernel for every target --------------------===//
//
// Private to lib/Compiler: where lib/Schedule and lib/Codegen meet.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_COMPILER_KERNELS_H
#define PLANC_LIB_COMPILER_KERNELS_H

#include "dialects/Plan/PlanOps.h"
#include "lib/Codegen/Codegen.h"
#include "lib/Schedule/Schedule.h"

namespace planc {

/// A kernel, compiled for one target.
struct CompiledKernel {
  plan::KernelOp kernel;
  const Target *target; ///< borrowed from the table
  std::string schedule;
  LaunchShape shape;
  std::vector<numerics::Node> arithmetic;
  KernelImage image;
};

/// Compiles `kernels` for all targets: one result per pair, kernel by kernel, targets in their
/// order. Nothing if any of them fails, after all were tried and every failure was reported at its
/// kernel.
std::optional<std::vector<CompiledKernel>> compileKernels(llvm::ArrayRef<plan::KernelOp> kernels,
                                                          llvm::ArrayRef<const Target *> targets,
                                                          int64_t kvBlock, Codegen &codegen);

} // namespace planc

#endif // PLANC_LIB_COMPILER_KERNELS_H
