//===- Scalar.h - numbers as they are stored -------------------------------===//
//
// Private to lib/Reference. bfloat16 and e4m3 to and from float64, written from their definitions.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_FORMATS_SCALAR_H
#define PLANC_LIB_REFERENCE_FORMATS_SCALAR_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace planc::reference {

inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// Nearest, ties to even, rounded once from float64.
uint16_t bf16FromDouble(double value);

/// bf(x) of the semantics.
inline double bf(double value) { return bf16ToFloat(bf16FromDouble(value)); }

/// f32(x) of the semantics.
inline double f32(double value) { return float(value); }

/// Sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinities, 0x7F and 0xFF are NaN.
float e4m3ToFloat(uint8_t bits);

/// All 256 values, by code.
const float *e4m3Table();

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_FORMATS_SCALAR_H
