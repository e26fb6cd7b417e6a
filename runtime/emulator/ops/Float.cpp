//===- Float.cpp - f32, f32x2 and f64 arithmetic --------------------------===//
//
// PTX ISA, "Floating Point Instructions". The nearest-even forms run on vectors; the directed
// roundings (.rm .rz .rp), which compilers use in range reductions only, go through double lane by
// lane.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/Order.h"

namespace planemu::PLANEMU_ISA {

namespace {

struct Sum {
  template <class T> static T apply(T a, T b) { return a + b; }
};
struct Difference {
  template <class T> static T apply(T a, T b) { return a - b; }
};
struct Product {
  template <class T> static T apply(T a, T b) { return a * b; }
};

/// What the modifiers say; ftz and saturation exist for f32 only.
struct Modifiers {
  Round round = Round::Nearest;
  bool explicitRound = false, ftz = false, sat = false;
};

} // namespace

static Modifiers takeModifiers(Decoder &d, bool saturate = false) {
  Modifiers m;
  m.explicitRound = true;
  if (d.take(".rm"))
    m.round = Round::Down;
  else if (d.take(".rz"))
    m.round = Round::Zero;
  else if (d.take(".rp"))
    m.round = Round::Up;
  else
    m.explicitRound = d.take(".rn");
  m.ftz = d.take(".ftz");
  m.sat = saturate || d.take(".sat");
  return m;
}

template <class Op, bool Ftz, bool Sat> static Vf32 binary32(Vf32 a, Vf32 b) {
  if constexpr (Ftz)
    a = flush(a), b = flush(b);
  Vf32 result = Op::apply(a, b);
  if constexpr (Ftz)
    result = flush(result);
  return Sat ? saturated(result) : canonical(result);
}

template <bool Ftz, bool Sat> static Vf32 fma32(Vf32 a, Vf32 b, Vf32 c) {
  if constexpr (Ftz)
    a = flush(a), b = flush(b), c = flush(c);
  Vf32 result = fma(a, b, c);
  if constexpr (Ftz)
    result = flush(result);
  return Sat ? saturated(result) : canonical(result);
}

/// Error of a + b, exact (Knuth's TwoSum).
static f64 sumError(f64 a, f64 b, f64 sum) {
  f64 bPart = sum - a;
  return (a - (sum - bPart)) + (b - bPart);
}

/// a * b + c with a directed rounding: a double holds the product exactly and the sum but for its
/// error.
static f32 fmaDirected(Round mode, f32 a, f32 b, f32 c) {
  f64 product = static_cast<f64>(a) * b, sum = product + c;
  if (sum == 0 && !(product == 0 && c == 0 && (product < 0) == (c < 0)))
    return mode == Round::Down ? -0.0f : 0.0f; // exact cancellation
  if (product == 0 && c == 0 && __builtin_signbit(product) != __builtin_signbit(c))
    return mode == Round::Down ? -0.0f : 0.0f;
  return roundTo(mode, sum, sumError(product, c, sum));
}

template <Round Mode> static f32 fmaRounded(f32 a, f32 b, f32 c) {
  f32 result = fmaDirected(Mode, a, b, c);
  return result == result ? result : bits<f32>(0x7fffffffu);
}
template <Round Mode> static f32 mulRounded(f32 a, f32 b) {
  f32 result = roundTo(Mode, static_cast<f64>(a) * b, 0);
  return result == result ? result : bits<f32>(0x7fffffffu);
}

static f32 flushLane(f32 value) {
  u32 raw = bits<u32>(value);
  return bits<f32>(raw & 0x7f800000 ? raw : raw & 0x80000000);
}
static f32 saturatedLane(f32 value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }

/// Directed forms with .ftz and .sat looked up in imm: rare enough.
template <Round Mode, int Kind> static f32 directed(f32 a, f32 b, f32 c, s64 flags) {
  if (flags & 1)
    a = flushLane(a), b = flushLane(b), c = flushLane(c);
  f32 result = Kind == 0   ? fmaRounded<Mode>(a, 1.0f, b)
               : Kind == 1 ? fmaRounded<Mode>(a, 1.0f, -b)
               : Kind == 2 ? mulRounded<Mode>(a, b)
                           : fmaRounded<Mode>(a, b, c);
  if (flags & 1)
    result = flushLane(result);
  return flags & 2 ? saturatedLane(result) : result;
}

template <Round Mode, int Kind> static void directedAll(Warp &w, const Inst &i) {
  f32 *d = at<f32>(w, i.s[0]);
  const f32 *a = at<f32>(w, i.s[1]), *b = at<f32>(w, i.s[2]), *c = at<f32>(w, i.s[3]);
  for (u32 left = executing(w, i); left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    d[lane] = directed<Mode, Kind>(a[lane], b[lane], c[lane], i.imm);
  }
}

/// Kind: 0 add, 1 sub, 2 mul, 3 fma.
template <int Kind> static void emitDirected(Decoder &d, const Modifiers &m) {
  if (Kind != 3)
    d.useConstant(0, 32);
  s64 flags = (m.ftz ? 1 : 0) | (m.sat ? 2 : 0);
  switch (m.round) {
  case Round::Down:
    d.emit(directedAll<Round::Down, Kind>, flags);
    break;
  case Round::Zero:
    d.emit(directedAll<Round::Zero, Kind>, flags);
    break;
  default:
    d.emit(directedAll<Round::Up, Kind>, flags);
  }
}

/// f32x2: two f32 in a 64-bit register, so eight lanes are sixteen floats.
template <auto F, class... S> static Vu64 onPairs(S... sources) {
  struct Pair {
    Vf32 low, high;
  };
  auto half = [](Vu64 value, bool high) {
    return bits<Vf32>(high ? bits<Pair>(value).high : bits<Pair>(value).low);
  };
  return bits<Vu64>(Pair{F(half(sources, false)...), F(half(sources, true)...)});
}

static void requireNearest(Decoder &d, const Modifiers &m) {
  if (m.round != Round::Nearest)
    d.fail("only .rn is supported on this type");
}

template <class Op, int Kind> static void selectBinary(Decoder &d, Type type, const Modifiers &m) {
  if (!m.explicitRound)
    d.noteContractible(type);
  if (type == Type::F64) {
    requireNearest(d, m);
    if (m.ftz || m.sat)
      d.failType(type);
    d.def(0, 64);
    d.use(1, type);
    d.use(2, type);
    d.emit(lanes<[](auto a, auto b) { return canonical(Op::apply(a, b)); }, f64, f64, f64>);
    return;
  }
  if (type == Type::F32x2) {
    requireNearest(d, m);
    if (m.sat)
      d.failType(type);
    d.def(0, 64);
    d.use(1, type);
    d.use(2, type);
    d.emit(m.ftz ? lanes<[](auto a, auto b) { return onPairs<binary32<Op, true, false>>(a, b); },
                         u64, u64, u64>
                 : lanes<[](auto a, auto b) { return onPairs<binary32<Op, false, false>>(a, b); },
                         u64, u64, u64>);
    return;
  }
  if (type != Type::F32)
    d.failType(type);
  d.def(0, 32);
  d.use(1, type);
  d.use(2, type);
  if (m.round != Round::Nearest)
    return emitDirected<Kind>(d, m);
  d.emit(m.ftz   ? m.sat ? lanes<binary32<Op, true, true>, f32, f32, f32>
                         : lanes<binary32<Op, true, false>, f32, f32, f32>
         : m.sat ? lanes<binary32<Op, false, true>, f32, f32, f32>
                 : lanes<binary32<Op, false, false>, f32, f32, f32>);
}

/// add.f32.bf16 d, a, c: a is bf16 or f16, c and d are f32; a widens exactly.
template <bool Bfloat> static Vf32 widened(Vu16 a) { return Bfloat ? fromBf16(a) : fromF16(a); }

template <class Op> static void selectMixedSum(Decoder &d, Type half, const Modifiers &m) {
  requireNearest(d, m);
  if (m.ftz)
    d.fail("'.ftz' is not supported on mixed types");
  if (!m.explicitRound)
    d.noteContractible(Type::F32);
  d.def(0, 32);
  d.use(1, half);
  d.use(2, Type::F32);
  if (half == Type::BF16)
    d.emit(
        m.sat
            ? lanes<[](auto a, auto c) { return binary32<Op, false, true>(widened<true>(a), c); },
                    f32, u16, f32>
            : lanes<[](auto a, auto c) { return binary32<Op, false, false>(widened<true>(a), c); },
                    f32, u16, f32>);
  else
    d.emit(
        m.sat
            ? lanes<[](auto a, auto c) { return binary32<Op, false, true>(widened<false>(a), c); },
                    f32, u16, f32>
            : lanes<[](auto a, auto c) { return binary32<Op, false, false>(widened<false>(a), c); },
                    f32, u16, f32>);
}

void selectFloatSum(Decoder &d, Type type, bool subtract, bool saturate) {
  if (isHalf(type))
    return selectHalfSum(d, type, subtract, saturate);
  Modifiers m = takeModifiers(d, saturate);
  Type second = d.takeTypeIfAny();
  if (second != Type::None) {
    if (type != Type::F32 || (second != Type::BF16 && second != Type::F16))
      d.failType(second);
    return subtract ? selectMixedSum<Difference>(d, second, m) : selectMixedSum<Sum>(d, second, m);
  }
  if (subtract)
    selectBinary<Difference, 1>(d, type, m);
  else
    selectBinary<Sum, 0>(d, type, m);
}

void selectFloatMul(Decoder &d) {
  Modifiers m = takeModifiers(d);
  Type type = d.takeType();
  if (isHalf(type)) {
    d.untake();
    d.takeType();
    return selectHalfMul(d, type);
  }
  selectBinary<Product, 2>(d, type, m);
}

void selectFloatFma(Decoder &d) {
  Modifiers m = takeModifiers(d);
  Type type = d.takeType();
  if (isHalf(type)) {
    d.untake();
    d.takeType();
    return selectHalfFma(d, type);
  }
  Type second = d.takeTypeIfAny();
  if (second != Type::None) {
    requireNearest(d, m);
    if (m.ftz || type != Type::F32 || (second != Type::BF16 && second != Type::F16))
      d.failType(second);
    d.def(0, 32);
    d.use(1, second);
    d.use(2, second);
    d.use(3, Type::F32);
    auto emit = [&]<bool Bfloat>() {
      d.emit(m.sat ? lanes<[](auto a, auto b, auto c) {
        return fma32<false, true>(widened<Bfloat>(a), widened<Bfloat>(b), c);
      },
                           f32, u16, u16, f32>
                   : lanes<[](auto a, auto b, auto c) {
                       return fma32<false, false>(widened<Bfloat>(a), widened<Bfloat>(b), c);
                     },
                           f32, u16, u16, f32>);
    };
    second == Type::BF16 ? emit.template operator()<true>() : emit.template operator()<false>();
    return;
  }
  d.def(0, bitsOf(type));
  for (unsigned n = 1; n <= 3; ++n)
    d.use(n, type);
  if (type == Type::F64) {
    requireNearest(d, m);
    if (m.ftz || m.sat)
      d.failType(type);
    d.emit(
        lanes<[](auto a, auto b, auto c) { return canonical(fma(a, b, c)); }, f64, f64, f64, f64>);
  } else if (type == Type::F32x2) {
    requireNearest(d, m);
    if (m.sat)
      d.failType(type);
    d.emit(m.ftz
               ? lanes<[](auto a, auto b, auto c) { return onPairs<fma32<true, false>>(a, b, c); },
                       u64, u64, u64, u64>
               : lanes<[](auto a, auto b, auto c) { return onPairs<fma32<false, false>>(a, b, c); },
                       u64, u64, u64, u64>);
  } else if (type == Type::F32) {
    if (m.round != Round::Nearest)
      return emitDirected<3>(d, m);
    d.emit(m.ftz   ? m.sat ? lanes<fma32<true, true>, f32, f32, f32, f32>
                           : lanes<fma32<true, false>, f32, f32, f32, f32>
           : m.sat ? lanes<fma32<false, true>, f32, f32, f32, f32>
                   : lanes<fma32<false, false>, f32, f32, f32, f32>);
  } else {
    d.failType(type);
  }
}

void selectFma(Decoder &d) { selectFloatFma(d); }

// --- Division and roots -----------------------------------------------------

template <bool Ftz> static Vf32 div32(Vf32 a, Vf32 b) {
  if constexpr (Ftz)
    a = flush(a), b = flush(b);
  Vf32 result = a / b;
  return canonical(Ftz ? flush(result) : result);
}

/// .approx and .full promise 2 ulp: the correctly rounded quotient is within that.
void selectFloatDiv(Decoder &d, Type type) {
  bool approximate = d.take(".approx") || d.take(".full");
  Modifiers m = takeModifiers(d);
  if (!approximate && !m.explicitRound)
    d.fail("no rounding");
  requireNearest(d, m);
  if (m.sat || (type == Type::F64 && (m.ftz || approximate)))
    d.fail("modifier is not supported on this type");
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, type);
  if (type == Type::F64)
    d.emit(lanes<[](auto a, auto b) { return canonical(a / b); }, f64, f64, f64>);
  else if (type == Type::F32)
    d.emit(m.ftz ? lanes<div32<true>, f32, f32, f32> : lanes<div32<false>, f32, f32, f32>);
  else
    d.failType(type);
}

template <bool Ftz> static Vf32 rcp32(Vf32 a) { return div32<Ftz>(Vf32{} + 1.0f, a); }

/// rcp{.approx|.rn}{.ftz}.f32, rcp.rn.f64. The approximate form promises 1 ulp.
void selectRcp(Decoder &d) {
  bool approximate = d.take(".approx");
  Modifiers m = takeModifiers(d);
  requireNearest(d, m);
  Type type = d.takeType();
  if ((!approximate && !m.explicitRound) || m.sat)
    d.fail("neither .approx nor .rn");
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (type == Type::F32)
    d.emit(m.ftz ? lanes<rcp32<true>, f32, f32> : lanes<rcp32<false>, f32, f32>);
  else if (type == Type::F64 && m.ftz && approximate)
    // Relative error 2^-20, in a double whose low 32 bits are zero: here, the upper half of the
    // true reciprocal.
    d.emit(lanes<[](auto a) {
      Vf64 result = canonical(1.0 / a);
      return bits<Vf64>(bits<Vu64>(result) & 0xffffffff00000000ull);
    },
                 f64, f64>);
  else if (type == Type::F64 && !m.ftz && !approximate)
    d.emit(lanes<[](auto a) { return canonical(1.0 / a); }, f64, f64>);
  else
    d.failType(type);
}

/// The root of a, the canonical NaN where a is negative or NaN. Asked as integers: to LLVM all NaNs
/// are the same, and it folds a choice between them away.
template <class T> static T root(T a) {
  using U = Unsigned<std::remove_cvref_t<decltype(a[0])>>;
  constexpr U Infinity = sizeof(U) == 4 ? U(0x7f800000) : U(0x7ff0000000000000);
  constexpr U Nan = sizeof(U) == 4 ? U(0x7fffffff) : U(0x7ff8000000000000);
  V<U> raw = bits<V<U>>(a), sign = raw & (U(1) << (8 * sizeof(U) - 1));
  V<U> result = bits<V<U>>(squareRoot(a));
  auto hasRoot = (raw <= Infinity) | (raw == sign);
  return bits<T>(choose(hasRoot, result, splat<U>(Nan)));
}

template <bool Ftz> static Vf32 sqrt32(Vf32 a) {
  Vf32 result = root(Ftz ? flush(a) : a);
  return Ftz ? flush(result) : result;
}

void selectSqrt(Decoder &d) {
  bool approximate = d.take(".approx");
  Modifiers m = takeModifiers(d);
  requireNearest(d, m);
  Type type = d.takeType();
  if ((!approximate && !m.explicitRound) || m.sat)
    d.fail("neither .approx nor .rn");
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (type == Type::F32)
    d.emit(m.ftz ? lanes<sqrt32<true>, f32, f32> : lanes<sqrt32<false>, f32, f32>);
  else if (type == Type::F64 && !m.ftz && !approximate)
    d.emit(lanes<root<Vf64>, f64, f64>);
  else
    d.failType(type);
}

// --- Sign and order ---------------------------------------------------------

template <bool Ftz, bool Negate> static Vf32 sign32(Vf32 a) {
  if constexpr (Ftz)
    a = flush(a);
  Vu32 raw = bits<Vu32>(a);
  return canonical(bits<Vf32>(Negate ? raw ^ 0x80000000 : raw & 0x7fffffff));
}

void selectFloatSign(Decoder &d, Type type, bool negate) {
  if (isHalf(type))
    return selectHalfSign(d, type, negate);
  bool ftz = d.take(".ftz");
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (type == Type::F64 && !ftz)
    d.emit(negate ? lanes<[](auto a) { return a ^ (1ull << 63); }, u64, u64>
                  : lanes<[](auto a) { return a & ~(1ull << 63); }, u64, u64>);
  else if (type == Type::F32 && negate)
    d.emit(ftz ? lanes<sign32<true, true>, f32, f32> : lanes<sign32<false, true>, f32, f32>);
  else if (type == Type::F32)
    d.emit(ftz ? lanes<sign32<true, false>, f32, f32> : lanes<sign32<false, false>, f32, f32>);
  else
    d.failType(type);
}

void selectFloatOrder(Decoder &d, Type type, bool max) {
  if (isHalf(type))
    return selectHalfOrder(d, type, max);
  bool ftz = d.take(".ftz"), nan = d.take(".NaN");
  unsigned sources = d.operandCount() - 1;
  d.def(0, bitsOf(type));
  if (type == Type::F64) {
    if (ftz || nan || sources != 2)
      d.failType(type);
    d.use(1, type);
    d.use(2, type);
    d.emit(max ? lanes<[](auto a, auto b) { return order<true, false>(a, b); }, f64, f64, f64>
               : lanes<[](auto a, auto b) { return order<false, false>(a, b); }, f64, f64, f64>);
    return;
  }
  if (type != Type::F32 || sources < 2 || sources > 3)
    d.failType(type);
  d.use(1, type);
  d.use(2, type);
  // The third operand of sm_100's three-operand form; the second one again changes nothing.
  d.use(sources == 3 ? 3 : 2, type);
  auto emit = [&]<bool Max, bool Nan>() {
    d.emit(ftz ? lanes<[](auto a, auto b, auto c) {
      return order<Max, Nan>(order<Max, Nan>(flush(a), flush(b)), flush(c));
    },
                       f32, f32, f32, f32>
           : sources == 3
               ? lanes<[](auto a, auto b, auto c) {
                   return order<Max, Nan>(order<Max, Nan>(a, b), c);
                 },
                       f32, f32, f32, f32>
               : lanes<[](auto a, auto b) { return order<Max, Nan>(a, b); }, f32, f32, f32>);
  };
  if (max)
    nan ? emit.template operator()<true, true>() : emit.template operator()<true, false>();
  else
    nan ? emit.template operator()<false, true>() : emit.template operator()<false, false>();
}

/// copysign: the sign of a, the rest of b.
void selectCopysign(Decoder &d) {
  Type type = d.takeType();
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, type);
  if (type == Type::F32)
    d.emit(
        lanes<[](auto a, auto b) { return (a & 0x80000000) | (b & 0x7fffffff); }, u32, u32, u32>);
  else if (type == Type::F64)
    d.emit(lanes<[](auto a, auto b) { return (a & (1ull << 63)) | (b & ~(1ull << 63)); }, u64, u64,
                 u64>);
  else
    d.failType(type);
}

template <class U> static bool hasProperty(U raw, int property) {
  constexpr int Fraction = sizeof(U) == 4 ? 23 : 52;
  U exponentMask = ((U(1) << (8 * sizeof(U) - 1 - Fraction)) - 1) << Fraction;
  U exponent = raw & exponentMask, fraction = raw & ((U(1) << Fraction) - 1);
  bool finite = exponent != exponentMask;
  switch (property) {
  case 0:
    return finite;
  case 1:
    return !finite && fraction == 0;
  case 2:
    return finite || fraction == 0;
  case 3:
    return !finite && fraction != 0;
  case 4:
    return finite && exponent != 0;
  default:
    return exponent == 0 && fraction != 0;
  }
}

template <class U> static void testProperty(Warp &w, const Inst &i) {
  u32 mask = executing(w, i), result = 0;
  for (int lane = 0; lane < 32; ++lane)
    result |= u32(hasProperty(at<U>(w, i.s[1])[lane], static_cast<int>(i.imm))) << lane;
  writeMask(w, i.s[0], result, mask);
}

void selectTestp(Decoder &d) {
  const char *properties[] = {".finite",     ".infinite", ".number",
                              ".notanumber", ".normal",   ".subnormal"};
  int property = -1;
  for (int n = 0; n < 6; ++n)
    if (d.take(properties[n]))
      property = n;
  if (property < 0)
    d.fail("no property");
  Type type = d.takeType();
  d.def(0, 1);
  d.use(1, type);
  if (type == Type::F32)
    d.emit(testProperty<u32>, property);
  else if (type == Type::F64)
    d.emit(testProperty<u64>, property);
  else
    d.failType(type);
}

} // namespace planemu::PLANEMU_ISA
