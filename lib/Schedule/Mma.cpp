//===- Mma.cpp - mma.sync -----------------------------------------------------===//
//
// Fragments of mma.m16n8k16 on bf16 (PTX ISA, "Matrix fragments for mma.m16n8k16"): lane = 4*g + t,
//
//   a0 = A[g][2t, 2t+1]   a1 = A[g+8][2t, 2t+1]   a2 = A[g][2t+8, 2t+9]   a3 = A[g+8][2t+8, 2t+9]
//   b0 = B[2t, 2t+1][g]   b1 = B[2t+8, 2t+9][g]
//   c0, c1 = C[g][2t, 2t+1]   c2, c3 = C[g+8][2t, 2t+1]
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/KernelBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace planc;

Values KernelBuilder::mmaBf16(ValueRange a, ValueRange bw, ValueRange c) {
  Type f32Type = b.getF32Type();
  Type result = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, f32Type));
  Value product = NVVM::MmaOp::create(
      b, loc, result, a, bw, c, ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Values sums;
  for (unsigned i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, loc, product, ArrayRef<int64_t>{i}));
  return sums;
}
