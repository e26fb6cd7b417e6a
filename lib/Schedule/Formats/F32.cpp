//===- F32.cpp - weights stored as f32 -------------------------------------===//

#include "lib/Schedule/Formats/WeightFormat.h"

#include "llvm/Support/ErrorHandling.h"

using namespace planc;

namespace {
struct F32Weights : WeightFormat {
  plan::Format format() const override { return plan::Format::F32; }
  unsigned codes() const override { return 4; }
  bool fitsBf16() const override { return false; }

  Values toF32(KernelBuilder &b, mlir::ValueRange words) const override {
    Values values;
    for (Value word : words)
      values.push_back(b.asF32(word));
    return values;
  }

  Values toBf16Pairs(KernelBuilder &, mlir::ValueRange) const override {
    llvm_unreachable("f32 values do not fit bf16");
  }
};
} // namespace

namespace planc {
const WeightFormat &f32Weights() {
  static const F32Weights format;
  return format;
}
} // namespace planc
