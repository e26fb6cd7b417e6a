//===- Arrival.cpp - the last CTA of a number that is data ----------------===//

#include "lib/Schedule/Arrival.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace planc;

Value planc::lastCtaArrives(KernelBuilder &b, Value counterIndex, Value expected) {
  Value isLast = b.staticShared(4);
  // Each thread's own stores are ordered before the barrier, the arrival after it. It is the last
  // thread's, whose warp has often stored nothing: a barrier that is missing shows in every shape.
  auto function = b.raw().getInsertionBlock()->getParentOp();
  if (!isa<gpu::GPUFuncOp>(function))
    function = function->getParentOfType<gpu::GPUFuncOp>();
  int32_t threads = cast<gpu::GPUFuncOp>(function).getKnownBlockSize()->front();
  b.fence();
  b.barrier();
  b.ifThen(b.eq(b.threadId(), threads - 1), [&] {
    Value counter = b.at(b.counters(), counterIndex, 4);
    Value before =
        LLVM::AtomicRMWOp::create(b.raw(), b.raw().getUnknownLoc(), LLVM::AtomicBinOp::add, counter,
                                  b.i32(1), LLVM::AtomicOrdering::monotonic, "device");
    Value last = b.eq(before, b.sub(expected, 1));
    // Nobody else touches it any more: all have arrived.
    b.ifThen(last, [&] { b.storeI32(counter, b.i32(0)); });
    b.storeI32(isLast, b.select(last, b.i32(1), b.i32(0)));
    b.fence();
  });
  b.barrier();
  return b.ne(b.loadI32(isLast), 0);
}
