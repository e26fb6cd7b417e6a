//===- Float.cpp - f32, f32x2 and f64 arithmetic --------------------------===//
//
// PTX ISA, "Floating Point Instructions". The nearest-even forms run on vectors; the directed
// roundings (.rm .rz .rp), which compilers use in range reductions only, go through double lane by
// lane.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/IntegerTypes.h"
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

} // namespace

Modifiers takeModifiers(Decoder &d, bool saturate) {
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

/// With whatever NaN the host makes.
template <class Op, bool Ftz> static Vf32 anyBinary32(Vf32 a, Vf32 b) {
  if constexpr (Ftz)
    a = flush(a), b = flush(b);
  Vf32 result = Op::apply(a, b);
  return Ftz ? flush(result) : result;
}
template <class Op, bool Ftz, bool Sat> static Vf32 binary32(Vf32 a, Vf32 b) {
  Vf32 result = anyBinary32<Op, Ftz>(a, b);
  return Sat ? saturated(result) : canonical(result);
}

template <bool Ftz> static Vf32 anyFma32(Vf32 a, Vf32 b, Vf32 c) {
  if constexpr (Ftz)
    a = flush(a), b = flush(b), c = flush(c);
  Vf32 result = fma(a, b, c);
  return Ftz ? flush(result) : result;
}
template <bool Ftz, bool Sat> static Vf32 fma32(Vf32 a, Vf32 b, Vf32 c) {
  Vf32 result = anyFma32<Ftz>(a, b, c);
  return Sat ? saturated(result) : canonical(result);
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

template <class Op, Operation O>
static void selectBinary(Decoder &d, Type type, const Modifiers &m) {
  if (!m.explicitRound)
    d.noteContractible(type);
  if (type == Type::F64) {
    if (m.ftz || m.sat)
      d.failType(type);
    d.def(0, 64);
    d.use(1, type);
    d.use(2, type);
    if (m.round != Round::Nearest)
      return emitDirected(d, O, type, m);
    d.emit(lanes<[](auto a, auto b) { return canonical(Op::apply(a, b)); }, f64, f64, f64>);
    return;
  }
  if (type == Type::F32x2) {
    if (m.sat)
      d.failType(type);
    d.def(0, 64);
    d.use(1, type);
    d.use(2, type);
    if (m.round != Round::Nearest)
      return emitDirected(d, O, type, m);
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
    return emitDirected(d, O, type, m);
  d.emit(m.ftz   ? m.sat ? lanes<binary32<Op, true, true>, f32, f32, f32>
                         : canonicalLanes<anyBinary32<Op, true>, f32, f32>
         : m.sat ? lanes<binary32<Op, false, true>, f32, f32, f32>
                 : canonicalLanes<anyBinary32<Op, false>, f32, f32>);
}

/// add.f32.bf16 d, a, c: a is bf16 or f16, c and d are f32; a widens exactly.
template <bool Bfloat> static Vf32 widened(Vu16 a) { return Bfloat ? fromBf16(a) : fromF16(a); }

/// Appends the half `n` as an f32.
template <bool Bfloat> static std::uint32_t widen(Decoder &d, unsigned n, Type half) {
  std::uint32_t wide = d.temporary(32);
  d.defTemporary(wide);
  d.use(n, half);
  d.emit(lanes<widened<Bfloat>, f32, u16>);
  return wide;
}

template <class Op, Operation O, bool Bfloat>
static void selectMixedSum(Decoder &d, Type half, const Modifiers &m) {
  if (m.ftz)
    d.fail("'.ftz' is not supported on mixed types");
  if (!m.explicitRound)
    d.noteContractible(Type::F32);
  if (m.round != Round::Nearest) {
    std::uint32_t a = widen<Bfloat>(d, 1, half);
    d.def(0, 32);
    d.useTemporary(a);
    d.use(2, Type::F32);
    return emitDirected(d, O, Type::F32, m);
  }
  d.def(0, 32);
  d.use(1, half);
  d.use(2, Type::F32);
  d.emit(
      m.sat
          ? lanes<[](auto a, auto c) { return binary32<Op, false, true>(widened<Bfloat>(a), c); },
                  f32, u16, f32>
          : lanes<[](auto a, auto c) { return binary32<Op, false, false>(widened<Bfloat>(a), c); },
                  f32, u16, f32>);
}

void selectFloatSum(Decoder &d, Type type, bool subtract, bool saturate) {
  Modifiers m = takeModifiers(d, saturate);
  if (isHalf(type))
    return selectHalfSum(d, type, subtract, m);
  Type second = d.takeTypeIfAny();
  if (second != Type::None) {
    if (type != Type::F32 || (second != Type::BF16 && second != Type::F16))
      d.failType(second);
    auto select = [&]<bool Bfloat>() {
      subtract ? selectMixedSum<Difference, Operation::Sub, Bfloat>(d, second, m)
               : selectMixedSum<Sum, Operation::Add, Bfloat>(d, second, m);
    };
    return second == Type::BF16 ? select.template operator()<true>()
                                : select.template operator()<false>();
  }
  if (subtract)
    selectBinary<Difference, Operation::Sub>(d, type, m);
  else
    selectBinary<Sum, Operation::Add>(d, type, m);
}

void selectFloatMul(Decoder &d) {
  Modifiers m = takeModifiers(d);
  Type type = d.takeType();
  if (isHalf(type))
    return selectHalfMul(d, type, m);
  selectBinary<Product, Operation::Mul>(d, type, m);
}

template <bool Bfloat> static void selectMixedFma(Decoder &d, Type half, const Modifiers &m) {
  if (m.round != Round::Nearest) {
    std::uint32_t a = widen<Bfloat>(d, 1, half), b = widen<Bfloat>(d, 2, half);
    d.def(0, 32);
    d.useTemporary(a);
    d.useTemporary(b);
    d.use(3, Type::F32);
    return emitDirected(d, Operation::Fma, Type::F32, m);
  }
  d.def(0, 32);
  d.use(1, half);
  d.use(2, half);
  d.use(3, Type::F32);
  d.emit(m.sat ? lanes<[](auto a, auto b, auto c) {
    return fma32<false, true>(widened<Bfloat>(a), widened<Bfloat>(b), c);
  },
                       f32, u16, u16, f32>
               : lanes<[](auto a, auto b, auto c) {
                   return fma32<false, false>(widened<Bfloat>(a), widened<Bfloat>(b), c);
                 },
                       f32, u16, u16, f32>);
}

void selectFloatFma(Decoder &d) {
  Modifiers m = takeModifiers(d);
  Type type = d.takeType();
  if (isHalf(type))
    return selectHalfFma(d, type, m);
  Type second = d.takeTypeIfAny();
  if (!m.explicitRound)
    d.fail("no rounding");
  if (second != Type::None) {
    if (m.ftz || type != Type::F32 || (second != Type::BF16 && second != Type::F16))
      d.failType(second);
    return second == Type::BF16 ? selectMixedFma<true>(d, second, m)
                                : selectMixedFma<false>(d, second, m);
  }
  d.def(0, bitsOf(type));
  for (unsigned n = 1; n <= 3; ++n)
    d.use(n, type);
  if (m.round != Round::Nearest &&
      (type == Type::F32 || type == Type::F64 || type == Type::F32x2)) {
    if ((m.sat && type != Type::F32) || (m.ftz && type == Type::F64))
      d.failType(type);
    return emitDirected(d, Operation::Fma, type, m);
  }
  if (type == Type::F64) {
    if (m.ftz || m.sat)
      d.failType(type);
    d.emit(
        lanes<[](auto a, auto b, auto c) { return canonical(fma(a, b, c)); }, f64, f64, f64, f64>);
  } else if (type == Type::F32x2) {
    if (m.sat)
      d.failType(type);
    d.emit(m.ftz
               ? lanes<[](auto a, auto b, auto c) { return onPairs<fma32<true, false>>(a, b, c); },
                       u64, u64, u64, u64>
               : lanes<[](auto a, auto b, auto c) { return onPairs<fma32<false, false>>(a, b, c); },
                       u64, u64, u64, u64>);
  } else if (type == Type::F32) {
    d.emit(m.ftz   ? m.sat ? lanes<fma32<true, true>, f32, f32, f32, f32>
                           : canonicalLanes<anyFma32<true>, f32, f32, f32>
           : m.sat ? lanes<fma32<false, true>, f32, f32, f32, f32>
                   : canonicalLanes<anyFma32<false>, f32, f32, f32>);
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

/// .approx is a * (1 / b), and PTX ISA says what becomes of that: beyond 2^126 the reciprocal is
/// zero, and an infinite a gives NaN.
template <bool Ftz> static Vf32 divApprox32(Vf32 a, Vf32 b) {
  Vu32 raw = bits<Vu32>(b);
  Vs32 magnitude = bits<Vs32>(raw & 0x7fffffff);
  Vs32 large = (magnitude > 0x7e800000) & (magnitude < 0x7f800000);
  return div32<Ftz>(a, bits<Vf32>(choose(large, (raw & 0x80000000) | 0x7f800000, raw)));
}

/// .approx and .full promise 2 ulp: the correctly rounded quotient is within that.
void selectFloatDiv(Decoder &d, Type type) {
  bool product = d.take(".approx"), approximate = product || d.take(".full");
  Modifiers m = takeModifiers(d);
  if (approximate == m.explicitRound)
    d.fail("none or several of a rounding, .approx and .full");
  if (m.sat || (type == Type::F64 && (m.ftz || approximate)))
    d.fail("modifier is not supported on this type");
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, type);
  if (m.round != Round::Nearest && (type == Type::F32 || type == Type::F64))
    return emitDirected(d, Operation::Div, type, m);
  if (type == Type::F64)
    d.emit(lanes<[](auto a, auto b) { return canonical(a / b); }, f64, f64, f64>);
  else if (type == Type::F32)
    d.emit(product ? m.ftz ? lanes<divApprox32<true>, f32, f32, f32>
                           : lanes<divApprox32<false>, f32, f32, f32>
           : m.ftz ? lanes<div32<true>, f32, f32, f32>
                   : lanes<div32<false>, f32, f32, f32>);
  else
    d.failType(type);
}

template <bool Ftz> static Vf32 rcp32(Vf32 a) { return div32<Ftz>(Vf32{} + 1.0f, a); }

/// rcp{.approx|.rn}{.ftz}.f32, rcp.rn.f64. The approximate form promises 1 ulp.
void selectRcp(Decoder &d) {
  bool approximate = d.take(".approx");
  Modifiers m = takeModifiers(d);
  Type type = d.takeType();
  if (approximate == m.explicitRound || m.sat)
    d.fail("none or both of .approx and a rounding");
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (m.round != Round::Nearest && (type == Type::F32 || (type == Type::F64 && !m.ftz)))
    return emitDirected(d, Operation::Rcp, type, m);
  if (type == Type::F32)
    d.emit(m.ftz ? lanes<rcp32<true>, f32, f32> : lanes<rcp32<false>, f32, f32>);
  else if (type == Type::F64 && m.ftz && approximate)
    // Relative error 2^-20, in a double whose low 32 bits are zero: here, the upper half of the
    // true reciprocal. Neither source nor result is subnormal.
    d.emit(lanes<[](auto a) {
      auto flush64 = [](Vu64 raw) {
        return choose((raw & 0x7ff0000000000000) == 0, raw & 0x8000000000000000, raw);
      };
      Vf64 result = canonical(1.0 / bits<Vf64>(flush64(bits<Vu64>(a))));
      return bits<Vf64>(flush64(bits<Vu64>(result)) & 0xffffffff00000000);
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
  Type type = d.takeType();
  if (approximate == m.explicitRound || m.sat)
    d.fail("none or both of .approx and a rounding");
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (m.round != Round::Nearest && (type == Type::F32 || (type == Type::F64 && !m.ftz)))
    return emitDirected(d, Operation::Sqrt, type, m);
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

bool takeXorSign(Decoder &d) {
  if (!d.take(".xorsign"))
    return false;
  if (!d.take(".abs"))
    d.fail("'.xorsign' without '.abs'");
  return true;
}

/// Magnitudes are compared if Abs; with XorSign the result has the exclusive or of both signs.
template <bool Max, bool Nan, bool Abs, bool XorSign> static Vf32 order32(Vf32 a, Vf32 b) {
  Vu32 x = bits<Vu32>(a), y = bits<Vu32>(b);
  if constexpr (Abs)
    a = bits<Vf32>(x & 0x7fffffff), b = bits<Vf32>(y & 0x7fffffff);
  Vf32 result = order<Max, Nan>(a, b);
  if constexpr (XorSign)
    result = canonical(bits<Vf32>(bits<Vu32>(result) | ((x ^ y) & 0x80000000)));
  return result;
}

template <bool Max, bool Nan>
static void emitOrder(Decoder &d, bool ftz, bool three, bool abs, bool xorSign) {
  auto emit = [&]<bool Abs, bool XorSign>() {
    if (ftz)
      three ? d.emit(lanes<[](auto a, auto b, auto c) {
        return order32<Max, Nan, Abs, false>(order32<Max, Nan, Abs, false>(flush(a), flush(b)),
                                             flush(c));
      },
                           f32, f32, f32, f32>)
            : d.emit(lanes<[](auto a, auto b) {
                return order32<Max, Nan, Abs, XorSign>(flush(a), flush(b));
              },
                           f32, f32, f32>);
    else
      three ? d.emit(lanes<[](auto a, auto b, auto c) {
        return order32<Max, Nan, Abs, false>(order32<Max, Nan, Abs, false>(a, b), c);
      },
                           f32, f32, f32, f32>)
            : d.emit(lanes<order32<Max, Nan, Abs, XorSign>, f32, f32, f32>);
  };
  xorSign ? emit.template operator()<true, true>()
  : abs   ? emit.template operator()<true, false>()
          : emit.template operator()<false, false>();
}

/// min and max of two, and of three since sm_100: {.ftz}{.NaN}{.xorsign.abs}, {.ftz}{.NaN}{.abs}.
void selectFloatOrder(Decoder &d, Type type, bool max) {
  if (isHalf(type))
    return selectHalfOrder(d, type, max);
  bool ftz = d.take(".ftz"), nan = d.take(".NaN"), xorSign = takeXorSign(d);
  bool three = d.operandCount() == 4, abs = three && d.take(".abs");
  operands(d, type, three ? 3 : 2);
  if (type == Type::F64) {
    if (ftz || nan || xorSign || three)
      d.failType(type);
    d.emit(max ? lanes<[](auto a, auto b) { return order<true, false>(a, b); }, f64, f64, f64>
               : lanes<[](auto a, auto b) { return order<false, false>(a, b); }, f64, f64, f64>);
    return;
  }
  if (type != Type::F32)
    d.failType(type);
  if (three && xorSign)
    d.fail("'.xorsign' takes two sources");
  if (max)
    nan ? emitOrder<true, true>(d, ftz, three, abs, xorSign)
        : emitOrder<true, false>(d, ftz, three, abs, xorSign);
  else
    nan ? emitOrder<false, true>(d, ftz, three, abs, xorSign)
        : emitOrder<false, false>(d, ftz, three, abs, xorSign);
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
