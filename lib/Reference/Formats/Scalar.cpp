//===- Scalar.cpp - numbers as they are stored -----------------------------===//

#include "lib/Reference/Formats/Scalar.h"

#include <array>

namespace planc::reference {

uint16_t bf16FromDouble(double value) {
  if (std::isnan(value))
    return 0x7FFF;
  // Going through f32 would round twice. Rounding to odd keeps, in the last bit, that something was
  // cut off, so that the second rounding decides ties as a single one would.
  float narrow = float(value);
  uint32_t bits = std::bit_cast<uint32_t>(narrow);
  if (narrow != value) {
    if (std::fabs(double(narrow)) > std::fabs(value))
      --bits; // back towards zero; from infinity to the largest number
    bits |= 1;
  }
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float e4m3ToFloat(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (exponent == 15 && mantissa == 7)
    return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0)
    return sign * std::ldexp(float(mantissa), -9);
  return sign * std::ldexp(1.0f + float(mantissa) / 8, exponent - 7);
}

const float *e4m3Table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values;
    for (unsigned code = 0; code < 256; ++code)
      values[code] = e4m3ToFloat(uint8_t(code));
    return values;
  }();
  return table.data();
}

} // namespace planc::reference
