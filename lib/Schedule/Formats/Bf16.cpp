//===- Bf16.cpp - weights stored as bf16 -----------------------------------===//

#include "lib/Schedule/Formats/WeightFormat.h"

using namespace planc;

namespace {
struct Bf16Weights : WeightFormat {
  plan::Format format() const override { return plan::Format::BF16; }
  unsigned codes() const override { return 8; }
  bool fitsBf16() const override { return true; }

  Values toF32(KernelBuilder &b, mlir::ValueRange words) const override {
    Values values;
    for (Value word : words) {
      values.push_back(b.lowBf16(word));
      values.push_back(b.highBf16(word));
    }
    return values;
  }

  Values toBf16Pairs(KernelBuilder &, mlir::ValueRange words) const override {
    return Values(words);
  }
};
} // namespace

namespace planc {
const WeightFormat &bf16Weights() {
  static const Bf16Weights format;
  return format;
}
} // namespace planc
