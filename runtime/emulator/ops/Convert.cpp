//===- Convert.cpp - cvt --------------------------------------------------===//
//
// PTX ISA, "Data Movement: cvt". A conversion is a reader, which widens the source to an
// intermediate type, and a writer, which rounds that to the destination:
//   integer -> integer        through 64 bits
//   float   -> integer        through double (exact), rounded, clamped; NaN gives 0, or the top bit
//   if
//                             one side has 64 bits
//   integer -> float          32 bits through double, 64 bits directly
//   float   -> float          through f32 or double
// Registers may be wider than the types; the reader truncates and the writer extends.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"

namespace planemu::PLANEMU_ISA {

namespace {
enum Flags : s64 { Sat = 1, Ftz = 2, Relu = 4 };
enum class Rint { None, Nearest, Down, Zero, Up };
} // namespace

// --- One lane at a time: all combinations, for whatever has no vector form ---

/// A value on its way: integers as 64 bits, floats as double.
union Lane {
  s64 integer;
  f64 real;
};

static u64 readBits(const char *slot, unsigned bytes, int lane) {
  u64 raw = 0;
  std::memcpy(&raw, slot + lane * bytes, bytes);
  return raw;
}

static f64 widenLane(Type type, u64 raw) {
  switch (type) {
  case Type::F64:
    return bits<f64>(raw);
  case Type::F32:
    return static_cast<f64>(bits<f32>(static_cast<u32>(raw)));
  case Type::BF16:
    return static_cast<f64>(bits<f32>(static_cast<u32>(raw) << 16));
  default:
    return static_cast<f64>(fromF16(splat<u16>(static_cast<u16>(raw)))[0]);
  }
}

static f64 roundLane(Rint mode, f64 value) {
  f64 magnitude = __builtin_fabs(value);
  if (!(magnitude < 0x1p52))
    return value;
  f64 nearest = magnitude + 0x1p52 - 0x1p52;
  f64 truncated = nearest > magnitude ? nearest - 1 : nearest;
  bool negative = __builtin_signbit(value);
  f64 result = truncated;
  if (mode == Rint::Nearest)
    result = nearest;
  else if (((mode == Rint::Down && negative) || (mode == Rint::Up && !negative)) &&
           truncated != magnitude)
    result = truncated + 1;
  return negative ? -result : result;
}

static u64 toIntegerLane(Type type, Type from, f64 value) {
  unsigned width = bitsOf(type);
  if (value != value)
    return width == 64 || from == Type::F64 ? 1ull << (width - 1) : 0;
  if (isSigned(type)) {
    f64 limit = static_cast<f64>(1ull << (width - 1));
    if (value >= limit)
      return (1ull << (width - 1)) - 1;
    if (value < -limit)
      return 0 - (1ull << (width - 1));
    return static_cast<u64>(static_cast<s64>(value));
  }
  if (value <= 0)
    return 0;
  f64 limit = width == 64 ? 0x1p64 : static_cast<f64>(1ull << width);
  if (value >= limit)
    return width == 64 ? ~0ull : (1ull << width) - 1;
  return value < 0x1p63 ? static_cast<u64>(value)
                        : static_cast<u64>(static_cast<s64>(value - 0x1p63)) ^ 1ull << 63;
}

/// A double to a 32-bit or 16-bit float; 16 bits through f32 rounded to odd, so that only the last
/// rounding counts.
static u64 narrowLane(Type type, Round mode, f64 value) {
  if (type == Type::F64)
    return value == value ? bits<u64>(value) : 0x7ff8000000000000;
  if (value != value)
    return type == Type::F32 ? 0x7fffffff : 0x7fff;
  if (type == Type::F32)
    return bits<u32>(roundTo(mode, value, 0));
  f32 odd = roundTo(Round::Zero, value, 0);
  if (static_cast<f64>(odd) != value && odd - odd == 0)
    odd = bits<f32>(bits<u32>(odd) | 1);
  Vf32 wide = splat<f32>(odd);
  u16 nearest = (type == Type::BF16 ? toBf16(wide) : toF16(wide))[0];
  if (mode == Round::Nearest)
    return nearest;
  f64 back = widenLane(type, nearest);
  bool away = (back < 0 || (back == 0 && value < 0)) ? back < value : back > value;
  if (mode == Round::Zero && away)
    return static_cast<u16>(nearest - 1);
  if (mode == Round::Down && back > value)
    return static_cast<u16>(value > 0 ? nearest - 1 : nearest + 1);
  if (mode == Round::Up && back < value)
    return static_cast<u16>(value < 0 ? nearest - 1 : nearest + 1);
  return nearest;
}

namespace {
/// What convertLanes does; packed into Inst::imm.
struct Conversion {
  Type to, from;
  u8 toBytes, fromBytes; // of the registers
  u8 flags, rint, round, unused;
};
static_assert(sizeof(Conversion) == 8);
} // namespace

static bool isFloat(Type type) { return !isInteger(type); }

static u64 convertLane(const Conversion &c, u64 raw) {
  unsigned fromWidth = bitsOf(c.from), toWidth = bitsOf(c.to);
  if (fromWidth < 64)
    raw &= (1ull << fromWidth) - 1;
  u64 result;
  if (isFloat(c.from)) {
    if ((c.flags & Ftz) && c.from == Type::F32 && !(raw & 0x7f800000))
      raw &= 0x80000000;
    f64 value = widenLane(c.from, raw);
    if (c.rint)
      value = roundLane(static_cast<Rint>(c.rint), value);
    if (isInteger(c.to)) {
      result = toIntegerLane(c.to, c.from, value);
    } else {
      if (c.flags & Sat)
        value = value > 0 ? (value < 1 ? value : 1.0) : 0.0;
      if ((c.flags & Relu) && value <= 0)
        value = 0;
      result = narrowLane(c.to, static_cast<Round>(c.round), value);
      if ((c.flags & Ftz) && c.to == Type::F32 && !(result & 0x7f800000))
        result &= 0x80000000;
    }
  } else {
    s64 value = static_cast<s64>(raw);
    if (isSigned(c.from) && fromWidth < 64)
      value = static_cast<s64>(raw << (64 - fromWidth)) >> (64 - fromWidth);
    if (isInteger(c.to)) {
      bool huge = c.from == Type::U64 && value < 0; // beyond s64
      if (c.flags & Sat) {
        if (isSigned(c.to)) {
          s64 most = static_cast<s64>((1ull << (toWidth - 1)) - 1), least = -most - 1;
          value = huge || value > most ? most : value < least ? least : value;
        } else {
          u64 most = toWidth == 64 ? ~0ull : (1ull << toWidth) - 1;
          value = !huge && value < 0               ? 0
                  : static_cast<u64>(value) > most ? static_cast<s64>(most)
                                                   : value;
        }
      }
      result = static_cast<u64>(value);
    } else {
      // Up to 53 bits a double is exact; longer ones round to odd first.
      bool negative = isSigned(c.from) && value < 0;
      u64 magnitude = negative ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
      if (c.to == Type::F64 && c.round == static_cast<u8>(Round::Nearest)) {
        f64 exact = static_cast<f64>(magnitude);
        return bits<u64>(negative ? -exact : exact);
      }
      if (magnitude >> 53)
        magnitude = (magnitude & ~0x7ffull) | ((magnitude & 0x7ff) != 0 ? 0x800 : 0);
      f64 exact = static_cast<f64>(magnitude);
      result = narrowLane(c.to, static_cast<Round>(c.round), negative ? -exact : exact);
    }
  }
  // The register may be wider than the type: extend by the type's sign.
  if (toWidth < 64)
    result = isSigned(c.to)
                 ? static_cast<u64>(static_cast<s64>(result << (64 - toWidth)) >> (64 - toWidth))
                 : result & ((1ull << toWidth) - 1);
  return result;
}

static void convertLanes(Warp &w, const Inst &i) {
  Conversion c = __builtin_bit_cast(Conversion, i.imm);
  char *d = w.file + i.s[0];
  for (u32 left = executing(w, i); left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    u64 result = convertLane(c, readBits(w.file + i.s[1], c.fromBytes, lane));
    std::memcpy(d + lane * c.toBytes, &result, c.toBytes);
  }
}

// --- The common ones by vectors ---------------------------------------------

/// Integer widths: value of type From in a register of type RegFrom, to To in a register of type
/// RegTo.
template <class RegTo, class To, class From, class RegFrom> static V<RegTo> resize(V<RegFrom> a) {
  return bits<V<RegTo>>(
      to<std::conditional_t<std::is_signed_v<To>, Signed<RegTo>, RegTo>>(to<To>(to<From>(a))));
}

template <class To, class From> static Exec resizeRegisters(unsigned toBits, unsigned fromBits) {
  auto withFrom = [&]<class RegFrom>(RegFrom) -> Exec {
    if constexpr (sizeof(RegFrom) < sizeof(From))
      return nullptr;
    else {
      auto withTo = [&]<class RegTo>(RegTo) -> Exec {
        if constexpr (sizeof(RegTo) < sizeof(To))
          return nullptr;
        else
          return lanes<[](auto a) { return resize<RegTo, To, From, RegFrom>(a); }, RegTo, RegFrom>;
      };
      return toBits == 16 ? withTo(u16{}) : toBits == 32 ? withTo(u32{}) : withTo(u64{});
    }
  };
  return fromBits == 16 ? withFrom(u16{}) : fromBits == 32 ? withFrom(u32{}) : withFrom(u64{});
}

template <class From> static Exec resizeFrom(Type toType, unsigned toBits, unsigned fromBits) {
  switch (toType) {
  case Type::U8:
    return resizeRegisters<u8, From>(toBits, fromBits);
  case Type::S8:
    return resizeRegisters<s8, From>(toBits, fromBits);
  case Type::U16:
    return resizeRegisters<u16, From>(toBits, fromBits);
  case Type::S16:
    return resizeRegisters<s16, From>(toBits, fromBits);
  case Type::U32:
    return resizeRegisters<u32, From>(toBits, fromBits);
  case Type::S32:
    return resizeRegisters<s32, From>(toBits, fromBits);
  case Type::U64:
    return resizeRegisters<u64, From>(toBits, fromBits);
  case Type::S64:
    return resizeRegisters<s64, From>(toBits, fromBits);
  default:
    return nullptr;
  }
}

static Exec resizeIntegers(Type toType, Type fromType, unsigned toBits, unsigned fromBits) {
  switch (fromType) {
  case Type::U8:
    return resizeFrom<u8>(toType, toBits, fromBits);
  case Type::S8:
    return resizeFrom<s8>(toType, toBits, fromBits);
  case Type::U16:
    return resizeFrom<u16>(toType, toBits, fromBits);
  case Type::S16:
    return resizeFrom<s16>(toType, toBits, fromBits);
  case Type::U32:
    return resizeFrom<u32>(toType, toBits, fromBits);
  case Type::S32:
    return resizeFrom<s32>(toType, toBits, fromBits);
  case Type::U64:
    return resizeFrom<u64>(toType, toBits, fromBits);
  case Type::S64:
    return resizeFrom<s64>(toType, toBits, fromBits);
  default:
    return nullptr;
  }
}

static Vf32 saturate32(Vf32 a) { return saturated(a); }

/// To an integer in the same format, on vectors.
template <Rint Mode> static Vf32 roundLanes(Vf32 a) {
  Vu32 sign = bits<Vu32>(a) & 0x80000000;
  Vf32 magnitude = bits<Vf32>(bits<Vu32>(a) & 0x7fffffff);
  Vf32 nearest = magnitude + 0x1p23f - 0x1p23f, result = nearest;
  if constexpr (Mode != Rint::Nearest) {
    Vf32 one = Vf32{} + 1.0f;
    Vf32 cut = nearest - choose((nearest > magnitude), one, Vf32{});
    Vs32 outwards = bits<Vs32>(sign) != 0; // where rounding goes away from zero
    if constexpr (Mode == Rint::Zero)
      outwards = Vs32{};
    else if constexpr (Mode == Rint::Up)
      outwards = ~outwards;
    result = choose(outwards & (cut != magnitude), cut + one, cut);
  }
  result = bits<Vf32>(bits<Vu32>(result) | sign);
  return choose((magnitude < 0x1p23f), result, canonical(a));
}

/// f32 to s32 or u32: clamped in double, which holds all of both.
template <Rint Mode, bool Unsigned> static Vu32 toInteger32(Vf32 a) {
  Vf64 wide = to<f64>(roundLanes<Mode>(choose((a == a), a, Vf32{})));
  Vf64 least = Vf64{} + (Unsigned ? 0.0 : -0x1p31),
       most = Vf64{} + (Unsigned ? 0x1p32 - 1 : 0x1p31 - 1);
  wide = choose((wide > least), wide, least);
  wide = choose((wide < most), wide, most);
  if constexpr (Unsigned)
    return bits<Vu32>(to<s32>(wide - 0x1p31)) ^ 0x80000000;
  return bits<Vu32>(to<s32>(wide));
}

template <Rint Mode> static Exec commonRounding(Type toType) {
  return toType == Type::F32   ? lanes<roundLanes<Mode>, f32, f32>
         : toType == Type::S32 ? lanes<toInteger32<Mode, false>, u32, f32>
         : toType == Type::U32 ? lanes<toInteger32<Mode, true>, u32, f32>
                               : nullptr;
}

/// Float conversions that kernels do all the time; null: the general path.
static Exec commonFloat(Type toType, Type fromType, s64 flags, Rint rint, Round round,
                        unsigned toBits, unsigned fromBits) {
  if (toBits != std::max(16u, bitsOf(toType)) || fromBits != std::max(16u, bitsOf(fromType)) ||
      round != Round::Nearest)
    return nullptr;
  if (flags == Sat && toType == Type::F32 && fromType == Type::F32 && rint == Rint::None)
    return lanes<saturate32, f32, f32>;
  if (flags)
    return nullptr;
  if (rint != Rint::None) {
    if (fromType != Type::F32)
      return nullptr;
    return rint == Rint::Nearest ? commonRounding<Rint::Nearest>(toType)
           : rint == Rint::Down  ? commonRounding<Rint::Down>(toType)
           : rint == Rint::Zero  ? commonRounding<Rint::Zero>(toType)
                                 : commonRounding<Rint::Up>(toType);
  }
  if (toType == Type::F32) {
    switch (fromType) {
    case Type::BF16:
      return lanes<[](auto a) { return canonical(fromBf16(a)); }, f32, u16>;
    case Type::F16:
      return lanes<[](auto a) { return fromF16(a); }, f32, u16>;
    case Type::S32:
      return lanes<[](auto a) { return to<f32>(a); }, f32, s32>;
    case Type::U32:
      return lanes<[](auto a) { return to<f32>(to<f64>(bits<Vs32>(a ^ 0x80000000)) + 0x1p31); },
                   f32, u32>;
    case Type::F64:
      return lanes<[](auto a) { return canonical(to<f32>(a)); }, f32, f64>;
    default:
      return nullptr;
    }
  }
  if (fromType == Type::F32) {
    switch (toType) {
    case Type::BF16:
      return lanes<[](auto a) { return toBf16(a); }, u16, f32>;
    case Type::F16:
      return lanes<[](auto a) { return toF16(a); }, u16, f32>;
    case Type::F64:
      return lanes<[](auto a) { return canonical(to<f64>(a)); }, f64, f32>;
    default:
      return nullptr;
    }
  }
  return nullptr;
}

// --- Packed forms -----------------------------------------------------------

/// cvt.rn.T x2.f32 d, a, b: a goes to the upper half. Narrow rounds one vector.
template <auto Narrow, bool ReluToo> static Vu32 packHalves(Vf32 a, Vf32 b) {
  if constexpr (ReluToo) {
    a = choose((a > 0.0f) | (a != a), a, Vf32{});
    b = choose((b > 0.0f) | (b != b), b, Vf32{});
  }
  return to<u32>(Narrow(a)) << 16 | to<u32>(Narrow(b));
}
template <auto Narrow> static Vu16 packBytes(Vf32 a, Vf32 b) { return Narrow(a) << 8 | Narrow(b); }
template <auto Widen> static Vu32 widenBytes(Vu16 pair) {
  return to<u32>(Widen(pair >> 8)) << 16 | to<u32>(Widen(pair & 0xff));
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
static Vu32 widenE4m3(Vu16 pair) { return widenBytes<e4m3ToF16>(pair); }
#endif
template <auto Narrow> static Vu16 narrowHalves(Vu32 pair) {
  return Narrow(fromF16(to<u16>(pair >> 16))) << 8 | Narrow(fromF16(to<u16>(pair)));
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

static bool isPacked(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2 || type == Type::E4M3x2 ||
         type == Type::E5M2x2;
}

static void selectPacked(Decoder &d, Type toType, Type fromType) {
  bool nearest = d.take(".rn"), zero = !nearest && d.take(".rz");
  if (!nearest && !zero)
    d.fail("neither .rn nor .rz");
  bool relu = d.take(".relu"), satfinite = d.take(".satfinite");
  bool eight = toType == Type::E4M3x2 || toType == Type::E5M2x2;
  if (eight != satfinite)
    d.fail(eight ? "no .satfinite" : "'.satfinite' is not supported here");
  if ((eight || isPacked(fromType)) && (zero || relu))
    d.fail("only .rn without .relu is supported here");
  d.def(0, bitsOf(toType));
  d.use(1, fromType);
  if (fromType == Type::F32)
    d.use(2, fromType);
  Exec run = nullptr;
  if (toType == Type::BF16x2 && fromType == Type::F32)
    run = relu   ? zero ? lanes<packHalves<cutBf16, true>, u32, f32, f32>
                        : lanes<packHalves<toBf16, true>, u32, f32, f32>
          : zero ? lanes<packHalves<cutBf16, false>, u32, f32, f32>
                 : lanes<packHalves<toBf16, false>, u32, f32, f32>;
  else if (toType == Type::F16x2 && fromType == Type::F32)
    run = relu   ? zero ? lanes<packHalves<cutF16, true>, u32, f32, f32>
                        : lanes<packHalves<toF16, true>, u32, f32, f32>
          : zero ? lanes<packHalves<cutF16, false>, u32, f32, f32>
                 : lanes<packHalves<toF16, false>, u32, f32, f32>;
  else if (toType == Type::E4M3x2 && fromType == Type::F32)
    run = lanes<packBytes<toE4m3>, u16, f32, f32>;
  else if (toType == Type::E5M2x2 && fromType == Type::F32)
    run = lanes<packBytes<toE5m2>, u16, f32, f32>;
  else if (toType == Type::F16x2 && fromType == Type::E4M3x2)
    run = lanes<widenE4m3, u32, u16>;
  else if (toType == Type::F16x2 && fromType == Type::E5M2x2)
    run = lanes<widenBytes<e5m2ToF16>, u32, u16>;
  else if (toType == Type::E4M3x2 && fromType == Type::F16x2)
    run = lanes<narrowHalves<toE4m3>, u16, u32>;
  else if (toType == Type::E5M2x2 && fromType == Type::F16x2)
    run = lanes<narrowHalves<toE5m2>, u16, u32>;
  else
    d.failType(fromType);
  d.emit(run);
}

void selectCvt(Decoder &d) {
  Type toType = d.takeType(), fromType = d.takeType();
  if (isPacked(toType) || isPacked(fromType))
    return selectPacked(d, toType, fromType);
  for (Type type : {toType, fromType})
    if (isBits(type) || type == Type::Pred || type == Type::F32x2)
      d.failType(type);
  Rint rint = d.take(".rni")   ? Rint::Nearest
              : d.take(".rmi") ? Rint::Down
              : d.take(".rzi") ? Rint::Zero
              : d.take(".rpi") ? Rint::Up
                               : Rint::None;
  Round round = Round::Nearest;
  bool rounds = true;
  if (d.take(".rz"))
    round = Round::Zero;
  else if (d.take(".rm"))
    round = Round::Down;
  else if (d.take(".rp"))
    round = Round::Up;
  else
    rounds = d.take(".rn");
  s64 flags = (d.take(".sat") ? s64(Sat) : 0) | (d.take(".ftz") ? s64(Ftz) : 0) |
              (d.take(".relu") ? s64(Relu) : 0);
  bool integers = isInteger(toType) && isInteger(fromType);
  if (isFloat(fromType) && isInteger(toType) && rint == Rint::None)
    d.fail("a conversion to an integer needs a rounding such as .rzi");
  bool narrows = isFloat(toType) && (isInteger(fromType) || bitsOf(toType) < bitsOf(fromType));
  if (narrows != rounds || (rounds && rint != Rint::None))
    d.fail(narrows ? "the conversion needs a rounding such as .rn"
                   : "this conversion takes no rounding");
  if (integers && (rint != Rint::None || (flags & ~s64(Sat))))
    d.fail("modifier is not supported between integers");
  if (rint != Rint::None && isInteger(fromType))
    d.fail("modifier is not supported on integers");

  unsigned toBits = d.defWide(d.operand(0), toType);
  unsigned fromBits = d.useWide(d.operand(1), fromType);
  Exec run = integers ? (flags ? nullptr : resizeIntegers(toType, fromType, toBits, fromBits))
                      : commonFloat(toType, fromType, flags, rint, round, toBits, fromBits);
  if (run) {
    d.emit(run);
    return;
  }
  Conversion c{toType,
               fromType,
               static_cast<u8>(toBits / 8),
               static_cast<u8>(fromBits / 8),
               static_cast<u8>(flags),
               static_cast<u8>(rint),
               static_cast<u8>(round),
               0};
  d.emit(convertLanes, __builtin_bit_cast(s64, c));
}

} // namespace planemu::PLANEMU_ISA
