//===- FP8Block128x128.cpp - e4m3 codes with a scale per 128 x 128 block ---===//
//
// `value = e4m3(code) * scale_inv[row / 128][column / 128]`. Rows per expert are a multiple of 128,
// so the block rows of stacked experts follow each other as well.
//
//===----------------------------------------------------------------------===//

#include "lib/Reference/Formats/Scalar.h"
#include "lib/Reference/Formats/Weights.h"

#include <algorithm>

namespace planc::reference {

void decodeRowFP8Block128x128(const Weight &weight, int64_t row, double *out) {
  constexpr int64_t kBlock = 128;
  const float *table = e4m3Table();
  auto *codes = reinterpret_cast<const uint8_t *>(weight.data) + row * weight.columns;
  const float *scales = weight.scales + row / kBlock * (weight.columns / kBlock);
  for (int64_t begin = 0; begin < weight.columns; begin += kBlock) {
    double scale = scales[begin / kBlock];
    for (int64_t k = begin; k < begin + kBlock; ++k)
      out[k] = scale * table[codes[k]];
  }
}

} // namespace planc::reference
