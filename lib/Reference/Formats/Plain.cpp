//===- Plain.cpp - weights of unscaled bf16 and f32 numbers ----------------===//

#include "lib/Reference/Formats/Scalar.h"
#include "lib/Reference/Formats/Weights.h"

namespace planc::reference {

void decodeRowBF16(const Weight &weight, int64_t row, double *out) {
  auto *values = reinterpret_cast<const uint16_t *>(weight.data) + row * weight.columns;
  for (int64_t k = 0; k < weight.columns; ++k)
    out[k] = bf16ToFloat(values[k]);
}

void decodeRowF32(const Weight &weight, int64_t row, double *out) {
  auto *values = reinterpret_cast<const float *>(weight.data) + row * weight.columns;
  for (int64_t k = 0; k < weight.columns; ++k)
    out[k] = values[k];
}

} // namespace planc::reference
