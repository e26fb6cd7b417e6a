//===- Fp8Block128x128.cpp - e4m3 codes, an f32 scale per 128 x 128 --------===//
//
// The scale stays outside of the values: it multiplies a sum over 128 k, or over the part of it
// that a thread has, so a value costs its conversion and one multiply-add.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Formats/WeightFormat.h"

using namespace planc;

namespace {
struct Fp8Block128x128Weights : WeightFormat {
  plan::Format format() const override { return plan::Format::FP8Block128x128; }
  unsigned codes() const override { return 16; }
  int64_t scaleRows() const override { return 128; }
  int64_t scaleDepth() const override { return 128; }
  bool fitsBf16() const override { return true; }

  Values toF32(KernelBuilder &b, mlir::ValueRange words) const override {
    Values values;
    for (Value word : words)
      values.append(b.e4m3ToF32(word));
    return values;
  }

  Values toBf16Pairs(KernelBuilder &b, mlir::ValueRange words) const override {
    Values pairs;
    for (Value word : words)
      for (Value pair : b.e4m3ToBf16x2(word))
        pairs.push_back(pair);
    return pairs;
  }
};
} // namespace

namespace planc {
const WeightFormat &fp8Block128x128Weights() {
  static const Fp8Block128x128Weights format;
  return format;
}
} // namespace planc
