//===- Formats.h - 16-bit and smaller floats to and from f32 --------------===//
//
// Narrowing rounds to nearest even. The NaN conventions are those of the CUDA headers
// (cuda_fp16.hpp, cuda_bf16.hpp, cuda_fp8.hpp, cuda_fp6.hpp, cuda_fp4.hpp), which state what the
// cvt instructions do: a narrowed NaN is 0x7fff (bf16, f16), 0x7f (fp8) or, where there is none, the
// largest number; a widened f16 or fp8 one is 0x7fffffff.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_FORMATS_H
#define PLANEMU_OPS_FORMATS_H

#include "runtime/emulator/ops/Float.h"

namespace planemu::PLANEMU_ISA {

/// ConvertPacked.cpp: cvt between packed formats, and those that only it knows.
bool isPackedFormat(Type type);
void selectPackedCvt(Decoder &d, Type toType, Type fromType);
void selectPack(Decoder &d);

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

/// A float format of eight bits or fewer, as PTX's packed conversions have them.
template <int Exponent, int Fraction, u32 Largest, u32 Nan> struct SmallFormat {
  static constexpr int Bias = (1 << (Exponent - 1)) - 1;
  static constexpr u32 Sign = 1u << (Exponent + Fraction);

  /// satfinite: what overflows, infinities included, becomes the largest value; NaN has no sign.
  static Vu32 narrow(Vf32 value) {
    constexpr int Cut = 23 - Fraction;
    constexpr u32 Rebias = static_cast<u32>(127 - Bias) << 23;
    // Subnormals are multiples of 2^(1 - Bias - Fraction): adding a float with that ulp rounds to
    // them.
    constexpr u32 Magic = static_cast<u32>(127 + 23 + 1 - Bias - Fraction) << 23;
    constexpr u32 LeastNormal = static_cast<u32>(127 + 1 - Bias) << 23;
    constexpr u32 LargestAsF32 = (Largest << Cut) + Rebias;
    Vu32 raw = bits<Vu32>(value);
    Vu32 sign = raw >> (31 - Exponent - Fraction) & Sign, magnitude = raw & 0x7fffffff;
    Vu32 normal = (magnitude + ((1u << (Cut - 1)) - 1) + (magnitude >> Cut & 1) - Rebias) >> Cut;
    Vu32 subnormal = bits<Vu32>(bits<Vf32>(magnitude) + bits<f32>(Magic)) - Magic;
    // Magnitudes are positive as signed integers, which hosts compare faster.
    Vs32 ordered = bits<Vs32>(magnitude);
    Vu32 result = choose(ordered < static_cast<s32>(LeastNormal), subnormal, normal);
    result = choose(ordered >= static_cast<s32>(LargestAsF32), splat<u32>(Largest), result);
    return choose(value == value, result | sign, splat<u32>(Nan));
  }

  /// Of formats that are numbers throughout.
  static Vu16 widen(Vu16 code) {
    Vf32 value = bits<Vf32>(to<u32>(code & u16(Sign - 1)) << (23 - Fraction));
    Vu16 sign = (code & u16(Sign)) << (15 - Exponent - Fraction);
    return toF16(value * bits<f32>(static_cast<u32>(127 + 127 - Bias) << 23)) | sign;
  }
};
using E4m3 = SmallFormat<4, 3, 0x7e, 0x7f>;
using E5m2 = SmallFormat<5, 2, 0x7b, 0x7f>;
using E3m2 = SmallFormat<3, 2, 0x1f, 0x1f>;
using E2m3 = SmallFormat<2, 3, 0x1f, 0x1f>;
using E2m1 = SmallFormat<2, 1, 0x07, 0x07>;

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_FORMATS_H
