//===- ConvertPacked.cpp - cvt to and from packed formats, tf32, cvt.pack -===//
//
// PTX ISA, "Data Movement: cvt" and "cvt.pack". The formats of a pair are those of Formats.h and
// ue8m0, an exponent alone. The first source of f32 goes to the upper half of the destination.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Formats.h"

namespace planemu::PLANEMU_ISA {

/// Negative numbers to +0; NaN stays.
template <bool Relu> static Vf32 rectified(Vf32 a) {
  return Relu ? choose((a > 0.0f) | (a != a), a, Vf32{}) : a;
}

/// f32 to a 16-bit float towards zero: cut, an overflow is the largest value.
static Vu16 cutBf16(Vf32 a) {
  return to<u16>(choose(a == a, bits<Vu32>(a) >> 16, splat<u32>(0x7fff)));
}
static Vu16 cutF16(Vf32 a) {
  Vu16 nearest = toF16(a);
  Vf32 back = fromF16(nearest);
  Vu32 magnitude = bits<Vu32>(a) & 0x7fffffff;
  Vu32 away = bits<Vu32>((bits<Vu32>(back) & 0x7fffffff) > magnitude) & bits<Vu32>(a == a);
  return nearest + to<u16>(away); // -1 where true
}

/// Infinities of a 16-bit format to its largest number, which is the code before.
template <auto Narrow, u16 Infinity> static Vu16 finite(Vf32 a) {
  Vu16 code = Narrow(a);
  return code + bits<Vu16>((code & u16(0x7fff)) == Infinity);
}

template <auto Narrow, bool Relu> static Vu32 packHalves(Vf32 a, Vf32 b) {
  return to<u32>(Narrow(rectified<Relu>(a))) << 16 | to<u32>(Narrow(rectified<Relu>(b)));
}
template <class Format, bool Relu> static Vu16 packSmall(Vf32 a, Vf32 b) {
  constexpr int Half = Format::Sign > 0x08 ? 8 : 4; // e2m1: two codes in a byte
  return to<u16>(Format::narrow(rectified<Relu>(a)) << Half | Format::narrow(rectified<Relu>(b)));
}
template <class Format, bool Relu> static Vu16 narrowHalves(Vu32 pair) {
  return packSmall<Format, Relu>(fromF16(to<u16>(pair >> 16)), fromF16(to<u16>(pair)));
}

/// f16 of one code each.
template <class Format> static Vu16 widenOne(Vu16 code) {
  if constexpr (std::is_same_v<Format, E4m3>)
    return e4m3ToF16(code);
  else if constexpr (std::is_same_v<Format, E5m2>)
    return e5m2ToF16(code);
  else
    return Format::widen(code);
}
template <class Format, bool Relu> static Vu32 widenSmall(Vu16 pair) {
  constexpr int Half = Format::Sign > 0x08 ? 8 : 4;
  constexpr u16 Mask = (1 << Half) - 1;
  auto widen = [](Vu16 code) {
    Vu16 value = widenOne<Format>(code);
    if constexpr (Relu)
      value = choose((value & u16(0x8000)) != 0, Vu16{}, value);
    return to<u32>(value);
  };
  return widen(pair >> Half & Mask) << 16 | widen(pair & Mask);
}

#if defined(__AVX2__)
/// e4m3 pairs without leaving integers: an f16's exponent is 8 more, and the eight subnormal codes
/// are looked up; only the upper byte of their values is not zero.
static Vu32 widenE4m3(Vu16 pair) {
  __m256i spread = _mm256_set1_epi32(static_cast<int>(0x80018000)); // bytes 0 and 1 to 16 bits each
  __m256i base = _mm256_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c, 0, 0x00040004, 0x00080008,
                                   0x000c000c);
  __m256i code = _mm256_shuffle_epi8(_mm256_cvtepu16_epi32(bits<__m128i>(pair)),
                                     _mm256_add_epi8(spread, base));
  __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7f));
  __m256i sign = _mm256_and_si256(_mm256_slli_epi16(code, 8), _mm256_set1_epi16(-0x8000));
  __m256i normal = _mm256_add_epi16(_mm256_slli_epi16(magnitude, 7), _mm256_set1_epi16(8 << 10));
  const __m256i subnormals =
      _mm256_setr_epi8(0, 0x18, 0x1c, 0x1e, 0x20, 0x21, 0x22, 0x23, 0, 0, 0, 0, 0, 0, 0, 0, //
                       0, 0x18, 0x1c, 0x1e, 0x20, 0x21, 0x22, 0x23, 0, 0, 0, 0, 0, 0, 0, 0);
  __m256i index = _mm256_or_si256(_mm256_slli_epi16(magnitude, 8), _mm256_set1_epi16(0x80));
  __m256i small = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
  __m256i value = _mm256_blendv_epi8(normal, _mm256_shuffle_epi8(subnormals, index), small);
  __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
  value = _mm256_blendv_epi8(_mm256_or_si256(value, sign), _mm256_set1_epi16(0x7fff), nan);
  return bits<Vu32>(value);
}
#else
static Vu32 widenE4m3(Vu16 pair) { return widenSmall<E4m3, false>(pair); }
#endif

/// ue8m0: the code of 2^(code - 127) by the magnitude, 0xff for NaN. What is above 2^127 is NaN,
/// with satfinite the largest code; what is below 2^-127 is that.
template <bool Up, bool Satfinite> static Vu32 exponentOf(Vf32 a) {
  Vu32 magnitude = bits<Vu32>(a) & 0x7fffffff;
  Vs32 ordered = bits<Vs32>(magnitude);
  Vu32 code = magnitude >> 23;
  if constexpr (Up) {
    Vs32 between = ((magnitude & 0x7fffff) != 0) & (ordered > 0x00400000) & (ordered < 0x7f800000);
    code -= bits<Vu32>(between); // -1 where true
  }
  if constexpr (Satfinite)
    code += bits<Vu32>((code == 0xff) & (ordered <= 0x7f800000));
  return code;
}
template <bool Up, bool Satfinite> static Vu16 packExponents(Vf32 a, Vf32 b) {
  return to<u16>(exponentOf<Up, Satfinite>(a) << 8 | exponentOf<Up, Satfinite>(b));
}
template <bool Up, bool Satfinite> static Vu16 exponentsOfHalves(Vu32 pair) {
  return packExponents<Up, Satfinite>(fromBf16(to<u16>(pair >> 16)), fromBf16(to<u16>(pair)));
}
static Vu32 powerBf16(Vu32 code) {
  Vu32 value = choose(code == 0, splat<u32>(0x0040), code << 7); // 2^-127 is subnormal
  return choose(code == 0xff, splat<u32>(0x7fff), value);
}
static Vu32 powersBf16(Vu16 pair) {
  Vu32 wide = to<u32>(pair);
  return powerBf16(wide >> 8) << 16 | powerBf16(wide & 0xff);
}

/// tf32 keeps 10 bits of f32's fraction; the others are zero.
enum class Tf32 { Nearest, Away, Zero };
template <Tf32 Mode, bool Relu, bool Satfinite> static Vu32 toTf32(Vf32 a) {
  a = rectified<Relu>(a);
  Vu32 raw = bits<Vu32>(a), magnitude = raw & 0x7fffffff;
  if constexpr (Mode == Tf32::Nearest)
    magnitude += 0xfff + (magnitude >> 13 & 1);
  else if constexpr (Mode == Tf32::Away)
    magnitude += 0x1000;
  magnitude &= 0x7fffe000;
  if constexpr (Satfinite)
    magnitude = choose(magnitude == 0x7f800000, splat<u32>(0x7f7fe000), magnitude);
  return choose(a == a, magnitude | (raw & 0x80000000), splat<u32>(0x7fffffff));
}

// --- Selection --------------------------------------------------------------

bool isPackedFormat(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2 || type == Type::TF32 ||
         (type >= Type::E4M3x2 && type <= Type::UE8M0x2);
}

namespace {
struct PackedModifiers {
  enum Rounding { None, Nearest, Away, Zero, Up } rounding = None;
  bool relu = false, satfinite = false;
};
} // namespace

/// Calls f with a bool that is known at compile time.
template <class F> static Exec withBool(bool value, F f) {
  return value ? f(std::true_type()) : f(std::false_type());
}
/// Calls f with the format of a type of two codes; null for other types.
template <class F> static Exec withFormat(Type type, F f) {
  switch (type) {
  case Type::E4M3x2:
    return f(E4m3());
  case Type::E5M2x2:
    return f(E5m2());
  case Type::E3M2x2:
    return f(E3m2());
  case Type::E2M3x2:
    return f(E2m3());
  case Type::E2M1x2:
    return f(E2m1());
  default:
    return nullptr;
  }
}

template <auto Nearest, auto Cut, u16 Infinity>
static Exec halvesFromFloats(const PackedModifiers &m) {
  return withBool(m.relu, [&](auto relu) {
    constexpr bool Relu = decltype(relu)::value;
    if (m.satfinite)
      return m.rounding == PackedModifiers::Zero
                 ? lanes<packHalves<finite<Cut, Infinity>, Relu>, u32, f32, f32>
                 : lanes<packHalves<finite<Nearest, Infinity>, Relu>, u32, f32, f32>;
    return m.rounding == PackedModifiers::Zero ? lanes<packHalves<Cut, Relu>, u32, f32, f32>
                                               : lanes<packHalves<Nearest, Relu>, u32, f32, f32>;
  });
}

template <Tf32 Mode> static Exec tf32FromFloat(const PackedModifiers &m) {
  return withBool(m.relu, [&](auto relu) {
    return withBool(m.satfinite, [](auto satfinite) {
      return lanes<toTf32<Mode, decltype(relu)::value, decltype(satfinite)::value>, u32, f32>;
    });
  });
}

static Exec exponents(bool fromFloats, const PackedModifiers &m) {
  return withBool(m.rounding == PackedModifiers::Up, [&](auto up) {
    return withBool(m.satfinite, [&](auto satfinite) {
      constexpr bool Up = decltype(up)::value, Satfinite = decltype(satfinite)::value;
      return fromFloats ? lanes<packExponents<Up, Satfinite>, u16, f32, f32>
                        : lanes<exponentsOfHalves<Up, Satfinite>, u16, u32>;
    });
  });
}

/// The function of a conversion, null where PTX has none.
static Exec packedForm(Type toType, Type fromType, const PackedModifiers &m) {
  using M = PackedModifiers;
  bool nearest = m.rounding == M::Nearest, zero = m.rounding == M::Zero;
  if (fromType == Type::F32 && (toType == Type::F16x2 || toType == Type::BF16x2)) {
    if (!nearest && !zero)
      return nullptr;
    return toType == Type::F16x2 ? halvesFromFloats<toF16, cutF16, 0x7c00>(m)
                                 : halvesFromFloats<toBf16, cutBf16, 0x7f80>(m);
  }
  if (fromType == Type::F32 && toType == Type::TF32) {
    if (m.rounding == M::Away && !m.relu)
      return tf32FromFloat<Tf32::Away>(m);
    return nearest ? tf32FromFloat<Tf32::Nearest>(m)
           : zero  ? tf32FromFloat<Tf32::Zero>(m)
                   : nullptr;
  }
  if (toType == Type::UE8M0x2 && (fromType == Type::F32 || fromType == Type::BF16x2))
    return (zero || m.rounding == M::Up) && !m.relu ? exponents(fromType == Type::F32, m) : nullptr;
  if (!nearest)
    return nullptr;
  if (toType == Type::BF16x2 && fromType == Type::UE8M0x2)
    return !m.relu && !m.satfinite ? lanes<powersBf16, u32, u16> : nullptr;
  if (fromType == Type::F32 && m.satfinite)
    return withFormat(toType, [&]<class Format>(Format) {
      return m.relu ? lanes<packSmall<Format, true>, u16, f32, f32>
                    : lanes<packSmall<Format, false>, u16, f32, f32>;
    });
  if (fromType == Type::F16x2 && m.satfinite && (toType == Type::E4M3x2 || toType == Type::E5M2x2))
    return withFormat(toType, [&]<class Format>(Format) {
      return m.relu ? lanes<narrowHalves<Format, true>, u16, u32>
                    : lanes<narrowHalves<Format, false>, u16, u32>;
    });
  if (toType == Type::F16x2 && !m.satfinite)
    return fromType == Type::E4M3x2 && !m.relu
               ? lanes<widenE4m3, u32, u16>.with(Effect::WidenE4m3)
               : withFormat(fromType, [&]<class Format>(Format) {
                   return m.relu ? lanes<widenSmall<Format, true>, u32, u16>
                                 : lanes<widenSmall<Format, false>, u32, u16>;
                 });
  return nullptr;
}

void selectPackedCvt(Decoder &d, Type toType, Type fromType) {
  using M = PackedModifiers;
  M m;
  m.rounding = d.take(".rn")    ? M::Nearest
               : d.take(".rna") ? M::Away
               : d.take(".rz")  ? M::Zero
               : d.take(".rp")  ? M::Up
                                : M::None;
  m.relu = d.take(".relu");
  m.satfinite = d.take(".satfinite");
  Exec run = packedForm(toType, fromType, m);
  if (!run)
    d.fail(std::string("no conversion from ") + nameOf(fromType) + " to " + nameOf(toType) +
           " with these modifiers");
  // Registers of 8 bits are kept in 16.
  d.def(0, std::max(16u, bitsOf(toType)));
  d.use(1, fromType == Type::E2M1x2 ? Type::B16 : fromType);
  if (fromType == Type::F32 && toType != Type::TF32)
    d.use(2, fromType);
  d.emit(run);
}

// --- cvt.pack ---------------------------------------------------------------

/// Two s32, clamped to Bits bits, a above b; c, if there is one, moves to the bits above them.
template <int Bits, bool Signed, bool Third> static Vu32 packIntegers(Vs32 a, Vs32 b, Vu32 c) {
  constexpr s32 Most = (1 << (Signed ? Bits - 1 : Bits)) - 1, Least = Signed ? -Most - 1 : 0;
  auto clamp = [](Vs32 value) {
    value = choose(value < Least, splat<s32>(Least), value);
    value = choose(value > Most, splat<s32>(Most), value);
    return bits<Vu32>(value) & ((1u << Bits) - 1);
  };
  Vu32 pair = clamp(a) << Bits | clamp(b);
  if constexpr (Third)
    return pair | c << (2 * Bits);
  else
    return pair;
}

void selectPack(Decoder &d) {
  Exec run = nullptr;
  bool third = true;
  if (!d.take(".sat"))
    d.fail("no .sat");
  if (d.take(".u16"))
    run = lanes<packIntegers<16, false, false>, u32, s32, s32, u32>, third = false;
  else if (d.take(".s16"))
    run = lanes<packIntegers<16, true, false>, u32, s32, s32, u32>, third = false;
  else if (d.take(".u8"))
    run = lanes<packIntegers<8, false, true>, u32, s32, s32, u32>;
  else if (d.take(".s8"))
    run = lanes<packIntegers<8, true, true>, u32, s32, s32, u32>;
  else if (d.take(".u4"))
    run = lanes<packIntegers<4, false, true>, u32, s32, s32, u32>;
  else if (d.take(".s4"))
    run = lanes<packIntegers<4, true, true>, u32, s32, s32, u32>;
  else if (d.take(".u2"))
    run = lanes<packIntegers<2, false, true>, u32, s32, s32, u32>;
  else if (d.take(".s2"))
    run = lanes<packIntegers<2, true, true>, u32, s32, s32, u32>;
  else
    d.fail("no supported type");
  if (!d.take(".s32"))
    d.fail("the sources are not .s32");
  if (third && !d.take(".b32"))
    d.fail("no .b32, the type of the third source");
  d.def(0, 32);
  d.use(1, Type::S32);
  d.use(2, Type::S32);
  if (third)
    d.use(3, Type::B32);
  else
    d.useConstant(0, 32);
  d.emit(run);
}

} // namespace planemu::PLANEMU_ISA
