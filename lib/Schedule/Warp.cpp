//===- Warp.cpp - shuffles and sums over lanes ------------------------------===//

#include "lib/Schedule/KernelBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace planc;

/// shfl.sync of the whole warp, no segments.
static Value shuffle(OpBuilder &b, Location loc, NVVM::ShflKind kind, Value value, Value selector,
                     Value mask, Value clamp) {
  return NVVM::ShflOp::create(b, loc, value.getType(), mask, value, selector, clamp, kind,
                              UnitAttr());
}

Value KernelBuilder::shuffleXor(Value value, unsigned mask) {
  if (value.getType().isInteger(64)) {
    Value high = zeroExtend(shuffleXor(toI32(shr(value, 32)), mask));
    return bitOr(shl(high, 32), zeroExtend(shuffleXor(toI32(value), mask)));
  }
  return shuffle(b, loc, NVVM::ShflKind::bfly, value, i32(mask), i32(-1), i32(31));
}

Value KernelBuilder::shuffleIndex(Value value, Value lane) {
  return shuffle(b, loc, NVVM::ShflKind::idx, value, lane, i32(-1), i32(31));
}

Value KernelBuilder::warpSum(Value value, unsigned width) {
  for (unsigned offset = width / 2; offset; offset /= 2)
    value = fadd(value, shuffleXor(value, offset));
  return value;
}

Value KernelBuilder::warpMax(Value value, unsigned width) {
  for (unsigned offset = width / 2; offset; offset /= 2)
    value = fmax(value, shuffleXor(value, offset));
  return value;
}
