//===- Formats.h - bf16, f16, e4m3 and e5m2 to and from f32 ---------------===//
//
// Narrowing rounds to nearest even. The NaN conventions are those of the CUDA headers
// (cuda_fp16.hpp, cuda_bf16.hpp, cuda_fp8.hpp), which state what the cvt instructions do: a
// narrowed NaN is 0x7fff (bf16, f16) or 0x7f (fp8), a widened f16 or fp8 one 0x7fffffff.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_FORMATS_H
#define PLANEMU_OPS_FORMATS_H

#include "runtime/emulator/ops/Float.h"

namespace planemu::PLANEMU_ISA {

inline Vf32 fromBf16(Vu16 value) { return bits<Vf32>(to<u32>(value) << 16); }

/// Exact; subnormals become normal through a subtraction, as in an unscaled bias change.
inline Vf32 fromF16(Vu16 value) {
#if defined(__F16C__)
  return canonical(bits<Vf32>(_mm256_cvtph_ps(bits<__m128i>(value))));
#else
  Vu32 raw = to<u32>(value);
  Vu32 sign = (raw & 0x8000) << 16, magnitude = raw & 0x7fff;
  // 2^112 times a subnormal or normal f32 with the f16's exponent and fraction is the value.
  Vf32 wide = bits<Vf32>(magnitude << 13) * 0x1p112f;
  wide = choose(magnitude >= 0x7c00, bits<Vf32>(splat<u32>(0x7f800000)), wide);
  wide = bits<Vf32>(bits<Vu32>(wide) | sign);
  return choose(magnitude > 0x7c00, bits<Vf32>(splat<u32>(0x7fffffff)), wide);
#endif
}

inline Vu16 toBf16(Vf32 value) {
  Vu32 raw = bits<Vu32>(value);
  Vu32 rounded = (raw + 0x7fff + (raw >> 16 & 1)) >> 16;
  return to<u16>(choose(value == value, rounded, splat<u32>(0x7fff)));
}

inline Vu16 toF16(Vf32 value) {
#if defined(__F16C__)
  Vu16 narrow = bits<Vu16>(_mm256_cvtps_ph(bits<__m256>(value), _MM_FROUND_TO_NEAREST_INT));
#else
  Vu32 raw = bits<Vu32>(value);
  Vu32 sign = raw >> 16 & 0x8000, magnitude = raw & 0x7fffffff;
  // Normal results: round the fraction and change the bias. Subnormal: let an addition align and
  // round the value.
  Vu32 normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  Vf32 aligned = bits<Vf32>(magnitude) + 0.5f; // ulp 2^-24, that of an f16 subnormal
  Vu32 subnormal = bits<Vu32>(aligned) - 0x3f000000;
  Vu32 result = choose(magnitude < 0x38800000, subnormal, normal);
  result = choose(magnitude >= 0x477ff000, splat<u32>(0x7c00), result);
  Vu16 narrow = to<u16>(result | sign);
#endif
  Vs16 isNumber = to<s16>(bits<Vs32>(value == value));
  return choose(isNumber, narrow, splat<u16>(0x7fff));
}

/// e4m3: bias 7, largest 448, NaN 0x7f and 0xff, no infinities. Eight codes, one per 16-bit lane.
inline Vu16 e4m3ToF16(Vu16 code) {
  Vu16 sign = (code & 0x80) << 8, magnitude = code & 0x7f;
  // As an f16 the code's exponent is 8 too small; f16 has no exponent to spare for subnormals, so
  // go through f32.
  Vf32 value = bits<Vf32>(to<u32>(magnitude) << 20) * 0x1p120f;
  Vu16 narrow = toF16(value);
  narrow = choose((magnitude == 0x7f), splat<u16>(0x7fff), narrow | sign);
  return narrow;
}
/// Without its NaNs: sign and code moved to their places by one arithmetic shift.
inline Vf32 e4m3NumberToF32(Vu32 code) {
  Vs32 placed = bits<Vs32>(code << 24) >> 4;
  return bits<Vf32>(bits<Vu32>(placed) & 0x87f00000) * 0x1p120f;
}
inline Vf32 e4m3ToF32(Vu32 code) {
  return choose((code & 0x7f) == 0x7f, bits<Vf32>(splat<u32>(0x7fffffff)), e4m3NumberToF32(code));
}
/// e5m2 is the upper half of an f16.
inline Vu16 e5m2ToF16(Vu16 code) {
  Vu16 raw = code << 8;
  return choose(((raw & 0x7fff) > 0x7c00), splat<u16>(0x7fff), raw);
}

/// satfinite: what overflows, infinities included, becomes the largest value.
inline Vu16 toE4m3(Vf32 value) {
  Vu32 raw = bits<Vu32>(value);
  Vu32 sign = raw >> 24 & 0x80, magnitude = raw & 0x7fffffff;
  Vu32 normal = (magnitude + 0x7ffff + (magnitude >> 20 & 1) - (120u << 23)) >> 20;
  // Subnormals are multiples of 2^-9: an addition of 2^14 leaves just that ulp.
  Vu32 subnormal = bits<Vu32>(bits<Vf32>(magnitude) + 0x1p14f) - 0x46800000;
  Vu32 result = choose(magnitude < 0x3c800000, subnormal, normal);
  result = choose(magnitude >= 0x43e00000, splat<u32>(0x7e), result); // 448
  result = choose(value == value, result | sign, splat<u32>(0x7f));
  return to<u16>(result);
}
inline Vu16 toE5m2(Vf32 value) {
  Vu32 raw = bits<Vu32>(value);
  Vu32 sign = raw >> 24 & 0x80, magnitude = raw & 0x7fffffff;
  Vu32 normal = (magnitude + 0xfffff + (magnitude >> 21 & 1) - (112u << 23)) >> 21;
  Vu32 subnormal = bits<Vu32>(bits<Vf32>(magnitude) + 0x1p7f) - 0x43000000; // multiples of 2^-16
  Vu32 result = choose(magnitude < 0x38800000, subnormal, normal);
  result = choose(magnitude >= 0x47600000, splat<u32>(0x7b), result); // 57344
  result = choose(value == value, result | sign, splat<u32>(0x7f));
  return to<u16>(result);
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_FORMATS_H
