//===- Convert.cpp - cvt between single numbers ---------------------------===//
//
// PTX ISA, "Data Movement: cvt". A conversion is a reader, which widens the source to an
// intermediate type, and a writer, which rounds that to the destination:
//   integer -> integer   through 64 bits
//   float   -> integer   through double (exact), rounded, clamped; NaN gives 0, or the top bit if one
//                        side has 64 bits
//   any     -> float     as sign, 64-bit significand and exponent, rounded once in integers
// Registers may be wider than the types; the reader truncates and the writer extends. Those that
// kernels use all the time have vector forms as well. Packed formats: ConvertPacked.cpp.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

namespace {
enum Flags : s64 { Sat = 1, Ftz = 2, Relu = 4, Satfinite = 8 };
enum class Rint { None, Nearest, Down, Zero, Up };
} // namespace

// --- One lane at a time: all combinations, for whatever has no vector form ---

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

namespace {
struct Layout {
  int exponent, fraction; // bits
};
} // namespace

static Layout layoutOf(Type type) {
  switch (type) {
  case Type::F64:
    return {11, 52};
  case Type::F32:
    return {8, 23};
  case Type::BF16:
    return {8, 7};
  default:
    return {5, 10};
  }
}

/// The float nearest to significand * 2^exponent in the rounding's direction; nothing is lost on
/// the way.
static u64 roundToFloat(Type type, Round mode, bool satfinite, bool negative, u64 significand,
                        int exponent) {
  Layout layout = layoutOf(type);
  u64 sign = static_cast<u64>(negative) << (layout.exponent + layout.fraction);
  if (!significand)
    return sign;
  int top = 63 - __builtin_clzll(significand), bias = (1 << (layout.exponent - 1)) - 1;
  int last =
      std::max(top + exponent, 1 - bias) - layout.fraction; // weight of the result's last bit
  int dropped = last - exponent;
  u64 kept, rest = 0, half = 1;
  if (dropped <= 0) {
    kept = significand << -dropped;
  } else if (dropped <= 64) {
    kept = dropped == 64 ? 0 : significand >> dropped;
    half = 1ull << (dropped - 1);
    rest = significand & (half | (half - 1));
  } else {
    kept = 0;
    rest = 1;
    half = 2;
  }
  bool away = mode == Round::Nearest ? rest > half || (rest == half && (kept & 1))
              : mode == Round::Down  ? negative && rest
              : mode == Round::Up    ? !negative && rest
                                     : false;
  // A significand with its leading bit adds one to the exponent field, a carry another one.
  u64 result =
      (static_cast<u64>(last + layout.fraction + bias - 1) << layout.fraction) + kept + away;
  u64 infinity = ((1ull << layout.exponent) - 1) << layout.fraction;
  if (result >= infinity) {
    bool reached = mode == Round::Nearest || mode == (negative ? Round::Down : Round::Up);
    result = reached && !satfinite ? infinity : infinity - 1;
  }
  return sign | result;
}

static u64 roundToFloat(Type type, Round mode, bool satfinite, f64 value) {
  Layout layout = layoutOf(type);
  u64 infinity = ((1ull << layout.exponent) - 1) << layout.fraction;
  if (value != value)
    return type == Type::F64 ? 0x7ff8000000000000 : type == Type::F32 ? 0x7fffffff : 0x7fff;
  u64 raw = bits<u64>(value), fraction = raw & 0x000fffffffffffff;
  bool negative = raw >> 63;
  int exponent = static_cast<int>(raw >> 52 & 0x7ff);
  if (exponent == 0x7ff)
    return static_cast<u64>(negative) << (layout.exponent + layout.fraction) |
           (satfinite ? infinity - 1 : infinity);
  return roundToFloat(type, mode, satfinite, negative,
                      exponent ? fraction | 0x0010000000000000 : fraction,
                      std::max(exponent, 1) - 1075);
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
      if (value != value && c.to == Type::F64 && c.from == Type::F32)
        result = bits<u64>(value); // as the fast form does
      else
        result = roundToFloat(c.to, static_cast<Round>(c.round), c.flags & Satfinite, value);
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
      bool negative = isSigned(c.from) && value < 0;
      u64 magnitude = negative ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
      if (c.flags & Sat) { // to [0, 1]
        magnitude = negative ? 0 : std::min<u64>(magnitude, 1);
        negative = false;
      }
      result = roundToFloat(c.to, static_cast<Round>(c.round), false, negative, magnitude, 0);
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

/// f32 to s32 or u32. The host converts what fits s32; the upper half of u32 is moved there, which is
/// exact.
template <Rint Mode, bool Unsigned> static Vu32 toInteger32(Vf32 a) {
  Vf32 number = choose(a == a, a, Vf32{});
  if constexpr (Mode != Rint::Zero) // the host's conversion does that itself
    number = roundLanes<Mode>(number);
  Vf32 least = Vf32{} + (Unsigned ? 0.0f : -0x1p31f);
  number = choose(number > least, number, least);
  Vs32 high = number >= 0x1p31f; // beyond s32
  if constexpr (Unsigned) {
    Vs32 over = number >= 0x1p32f;
    Vf32 moved = number - bits<Vf32>(high & bits<s32>(0x1p31f));
    Vu32 result =
        bits<Vu32>(to<s32>(choose(over, Vf32{}, moved))) ^ bits<Vu32>(high & s32(1u << 31));
    return choose(over, splat<u32>(~0u), result);
  } else {
    return choose(high, splat<u32>(0x7fffffff), bits<Vu32>(to<s32>(choose(high, Vf32{}, number))));
  }
}

template <Rint Mode> static Exec commonRounding(Type toType) {
  return toType == Type::F32   ? lanes<roundLanes<Mode>, f32, f32>
         : toType == Type::S32 ? lanes<toInteger32<Mode, false>, u32, f32>
         : toType == Type::U32 ? lanes<toInteger32<Mode, true>, u32, f32>
                               : nullptr;
}

// Sources of cvt.f32.bf16 and cvt.f32.f16 before they were split off or widened.
template <int By> static Vf32 bf16In(Vu32 a) { return bits<Vf32>(a << By & 0xffff0000); }
template <int By> static Vf32 f16In(Vu32 a) { return fromF16(to<u16>(a >> By)); }
template <int By, class T> static Vf32 e4m3In(V<T> a) { return e4m3ToF32(to<u32>(a) >> By); }
static constexpr SourceForms bf16Forms = {
    {canonicalLanes<bf16In<16>, u32>, canonicalLanes<bf16In<0>, u32>}, {}, {}};
static constexpr SourceForms f16Forms = {
    {lanes<f16In<0>, f32, u32>, lanes<f16In<16>, f32, u32>},
    {lanes<e4m3In<0, u16>, f32, u16>, lanes<e4m3In<8, u16>, f32, u16>},
    {lanes<e4m3In<0, u32>, f32, u32>, lanes<e4m3In<8, u32>, f32, u32>,
     lanes<e4m3In<16, u32>, f32, u32>, lanes<e4m3In<24, u32>, f32, u32>}};

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
      return canonicalLanes<[](auto a) { return fromBf16(a); }, u16>.with(bf16Forms);
    case Type::F16:
      return lanes<[](auto a) { return fromF16(a); }, f32, u16>.with(f16Forms);
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
  if (toType == Type::F64 && fromType == Type::S32)
    return lanes<[](auto a) { return to<f64>(a); }, f64, s32>;
  if (toType == Type::F64 && fromType == Type::U32)
    return lanes<[](auto a) { return to<f64>(bits<Vs32>(a ^ 0x80000000)) + 0x1p31; }, f64, u32>;
  if (fromType == Type::F32) {
    switch (toType) {
    case Type::BF16:
      return lanes<[](auto a) { return toBf16(a); }, u16, f32>;
    case Type::F16:
      return lanes<[](auto a) { return toF16(a); }, u16, f32>;
    case Type::F64: // keeps what is in a NaN, as the host does: cuda_fp8.hpp counts on it
      return lanes<[](auto a) { return to<f64>(a); }, f64, f32>;
    default:
      return nullptr;
    }
  }
  return nullptr;
}

// --- Selection --------------------------------------------------------------

void selectCvt(Decoder &d) {
  if (d.take(".pack"))
    return selectPack(d);
  Type toType = d.takeType(), fromType = d.takeType();
  if (isPackedFormat(toType) || isPackedFormat(fromType))
    return selectPackedCvt(d, toType, fromType);
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
              (d.take(".relu") ? s64(Relu) : 0) | (d.take(".satfinite") ? s64(Satfinite) : 0);
  bool integers = isInteger(toType) && isInteger(fromType);
  bool floats = isFloat(toType) && isFloat(fromType);
  if (isFloat(fromType) && isInteger(toType) && rint == Rint::None)
    d.fail("a conversion to an integer needs a rounding such as .rzi");
  if (rint != Rint::None && (isInteger(fromType) || (floats && toType != fromType)))
    d.fail("a rounding to an integer such as .rni is for floats, and not for two formats");
  // f16 and bf16 hold numbers that the other one does not.
  bool narrows = isFloat(toType) && (isInteger(fromType) || bitsOf(toType) < bitsOf(fromType) ||
                                     (toType != fromType && bitsOf(toType) == bitsOf(fromType)));
  if (narrows != rounds)
    d.fail(narrows ? "the conversion needs a rounding such as .rn"
                   : "this conversion takes no rounding");
  if ((flags & Ftz) && toType != Type::F32 && fromType != Type::F32)
    d.fail("'.ftz' is for f32");
  if ((flags & Sat) && (toType == Type::BF16 || (floats && fromType == Type::BF16)))
    d.fail("'.sat' is not supported on bf16");
  if (flags & (Relu | Satfinite)) {
    if (fromType != Type::F32 || !isFloat(toType) || bitsOf(toType) != 16)
      d.fail("'.relu' and '.satfinite' are for f32 to f16 or bf16");
    if ((flags & (Sat | Ftz)) || (round != Round::Nearest && round != Round::Zero))
      d.fail("'.relu' and '.satfinite' go with .rn and .rz only");
  }

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
