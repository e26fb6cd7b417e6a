//===- EmitPass.cpp - --plan-emit-kernels, for tests ------------------------===//
//
// In     a module with plan.kernels.
// Out    a module with one gpu.module per kernel, in the same order; everything else is gone.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Schedule.h"
#include "lib/Target/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace planc;

namespace {
struct EmitKernels : PassWrapper<EmitKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitKernels)
  EmitKernels() = default;
  EmitKernels(const EmitKernels &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "plan-emit-kernels"; }
  StringRef getDescription() const override {
    return "Replace plan.kernels by the gpu.modules that their schedules emit";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registerScheduleDialects(registry);
  }

  void runOnOperation() override {
    const planc::Target *gpu = lookupTarget(target.getValue());
    if (!gpu) {
      getOperation().emitError() << "unknown target '" << target << "'; known are "
                                 << targetNames();
      return signalPassFailure();
    }
    SmallVector<OwningOpRef<ModuleOp>> modules;
    for (auto kernel : getOperation().getOps<plan::KernelOp>()) {
      FailureOr<EmittedKernel> emitted = emitKernel(kernel, {*gpu, kvBlock});
      if (failed(emitted))
        return signalPassFailure();
      const LaunchShape &shape = emitted->shape;
      Operation *gpuModule = &emitted->module->getBody()->front();
      auto text = [](const std::array<uint32_t, 3> &sizes) {
        return llvm::formatv("{0} {1} {2}", sizes[0], sizes[1], sizes[2]).str();
      };
      gpuModule->setAttr(
          "plan.launch",
          StringAttr::get(&getContext(),
                          llvm::formatv("{0}: grid {1} block {2} dynamic shared {3} scratch {4} "
                                        "counters {5}",
                                        emitted->schedule, text(shape.grid), text(shape.block),
                                        shape.dynamicSharedBytes, shape.scratchBytes,
                                        shape.counters)
                              .str()));
      modules.push_back(std::move(emitted->module));
    }
    Block &body = *getOperation().getBody();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
      op.dropAllUses();
      op.erase();
    }
    for (auto [index, module] : llvm::enumerate(modules)) {
      auto gpuModule = cast<gpu::GPUModuleOp>(module->getBody()->front());
      if (index)
        gpuModule.setName(("kernels_" + Twine(index)).str());
      gpuModule->moveBefore(&body, body.end());
    }
  }

  Option<std::string> target{*this, "target", llvm::cl::init("gb10"),
                             llvm::cl::desc("GPU to emit for")};
  Option<int64_t> kvBlock{*this, "kv-block", llvm::cl::init(16),
                          llvm::cl::desc("token positions in a block of the paged caches")};
};
} // namespace

void planc::registerEmitKernelsPass() { PassRegistration<EmitKernels>(); }
