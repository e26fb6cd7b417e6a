//===- Half.cpp - f16 and bf16 arithmetic, single and in pairs ------------===//
//
// Sums and products of two 16-bit floats are formed in f32 and rounded once more: f32 has more than
// twice their precision plus two bits, so that is the correctly rounded result. fma needs more
// care, see fmaOdd.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Order.h"

namespace planemu::PLANEMU_ISA {

namespace {

struct Bf16 {
  static Vf32 widen(Vu16 value) { return fromBf16(value); }
  static Vu16 narrow(Vf32 value) { return toBf16(value); }
};
struct F16 {
  static Vf32 widen(Vu16 value) { return fromF16(value); }
  static Vu16 narrow(Vf32 value) { return toF16(value); }
};

} // namespace

bool isHalf(Type type) {
  return type == Type::F16 || type == Type::F16x2 || type == Type::BF16 || type == Type::BF16x2;
}

/// Calls F on both halves of 32-bit lanes.
template <auto F, class... S> static Vu32 onHalves(S... sources) {
  return to<u32>(F(to<u16>(sources)...)) | to<u32>(F(to<u16>(sources >> 16)...)) << 16;
}

/// Emits F, a function on vectors of one format, for single values or pairs.
template <auto F, class... S> static void emitHalf(Decoder &d, Type type, S... sources) {
  d.def(0, bitsOf(type));
  (d.use(sources, type), ...);
  if (bitsOf(type) == 16)
    d.emit(lanes<F, u16, std::conditional_t<true, u16, S>...>);
  else
    d.emit(lanes<[](auto... a) { return onHalves<F>(a...); }, u32,
                 std::conditional_t<true, u32, S>...>);
}

/// Subnormals become zero of their sign; only f16 has .ftz.
static Vu16 flushHalf(Vu16 value) { return choose(((value & 0x7c00) == 0), value & 0x8000, value); }

template <class Format, class Op, bool Ftz, bool Sat> static Vu16 halfBinary(Vu16 a, Vu16 b) {
  if constexpr (Ftz)
    a = flushHalf(a), b = flushHalf(b);
  Vf32 exact = Op::apply(Format::widen(a), Format::widen(b));
  Vu16 result = Format::narrow(Sat ? saturated(exact) : exact);
  return Ftz ? flushHalf(result) : result;
}

/// With XorSign the magnitudes are compared, and the result has the exclusive or of both signs.
template <class Format, bool Max, bool Nan, bool Ftz, bool XorSign>
static Vu16 halfOrder(Vu16 a, Vu16 b) {
  if constexpr (Ftz)
    a = flushHalf(a), b = flushHalf(b);
  Vu16 sign = (a ^ b) & 0x8000;
  if constexpr (XorSign)
    a &= 0x7fff, b &= 0x7fff;
  Vf32 chosen = order<Max, Nan>(Format::widen(a), Format::widen(b));
  Vu16 result = Format::narrow(chosen);
  if constexpr (XorSign)
    result |= choose(to<s16>(bits<Vs32>(chosen == chosen)), sign, Vu16{});
  return result;
}

/// a * b + c rounded to odd in f32: the product is exact in double, and the sum's error (Knuth's
/// TwoSum) says whether something was lost. The only products of 16-bit floats beyond f32's
/// exponents are too small for any rounding of a 16-bit result to tell.
static Vf32 fmaOdd(Vf32 a, Vf32 b, Vf32 c) {
  Vf64 product = to<f64>(a) * to<f64>(b), addend = to<f64>(c);
  Vf64 sum = product + addend;
  Vf64 part = sum - product;
  Vf64 error = (product - (sum - part)) + (addend - part);
  return narrowToOdd(roundToOdd(sum, error));
}

/// .relu is the maximum with +0 that keeps a NaN.
template <class Format, bool Ftz, bool Sat, bool Relu> static Vu16 halfFma(Vu16 a, Vu16 b, Vu16 c) {
  if constexpr (Ftz)
    a = flushHalf(a), b = flushHalf(b), c = flushHalf(c);
  Vf32 value = fmaOdd(Format::widen(a), Format::widen(b), Format::widen(c));
  if constexpr (Sat)
    value = saturated(value);
  if constexpr (Relu)
    value = choose((value <= 0.0f), Vf32{}, value);
  Vu16 result = Format::narrow(value);
  return Ftz ? flushHalf(result) : result;
}

namespace {

struct Sum {
  static Vf32 apply(Vf32 a, Vf32 b) { return a + b; }
};
struct Difference {
  static Vf32 apply(Vf32 a, Vf32 b) { return a - b; }
};
struct Product {
  static Vf32 apply(Vf32 a, Vf32 b) { return a * b; }
};

} // namespace

static bool isBfloat(Type type) { return type == Type::BF16 || type == Type::BF16x2; }

template <class Op> static void selectHalfBinary(Decoder &d, Type type, const Modifiers &m) {
  if (m.round != Round::Nearest)
    d.fail("only .rn is supported on this type");
  if (!m.explicitRound)
    d.noteContractible(type);
  if (isBfloat(type)) {
    if (m.ftz || m.sat)
      d.fail("neither .ftz nor .sat is supported on this type");
    return emitHalf<halfBinary<Bf16, Op, false, false>>(d, type, 1, 2);
  }
  if (m.ftz)
    m.sat ? emitHalf<halfBinary<F16, Op, true, true>>(d, type, 1, 2)
          : emitHalf<halfBinary<F16, Op, true, false>>(d, type, 1, 2);
  else
    m.sat ? emitHalf<halfBinary<F16, Op, false, true>>(d, type, 1, 2)
          : emitHalf<halfBinary<F16, Op, false, false>>(d, type, 1, 2);
}

void selectHalfSum(Decoder &d, Type type, bool subtract, const Modifiers &m) {
  subtract ? selectHalfBinary<Difference>(d, type, m) : selectHalfBinary<Sum>(d, type, m);
}

void selectHalfMul(Decoder &d, Type type, const Modifiers &m) {
  selectHalfBinary<Product>(d, type, m);
}

void selectHalfFma(Decoder &d, Type type, const Modifiers &m) {
  if (!m.explicitRound || m.round != Round::Nearest)
    d.fail("only .rn is supported on this type");
  bool relu = d.take(".relu");
  if (relu && m.sat)
    d.fail("both .relu and .sat");
  if (isBfloat(type)) {
    if (m.ftz || m.sat)
      d.fail("neither .ftz nor .sat is supported on this type");
    return relu ? emitHalf<halfFma<Bf16, false, false, true>>(d, type, 1, 2, 3)
                : emitHalf<halfFma<Bf16, false, false, false>>(d, type, 1, 2, 3);
  }
  auto emit = [&]<bool Ftz>() {
    relu    ? emitHalf<halfFma<F16, Ftz, false, true>>(d, type, 1, 2, 3)
    : m.sat ? emitHalf<halfFma<F16, Ftz, true, false>>(d, type, 1, 2, 3)
            : emitHalf<halfFma<F16, Ftz, false, false>>(d, type, 1, 2, 3);
  };
  m.ftz ? emit.template operator()<true>() : emit.template operator()<false>();
}

void selectHalfOrder(Decoder &d, Type type, bool max) {
  bool ftz = d.take(".ftz"), nan = d.take(".NaN"), xorSign = takeXorSign(d);
  if (d.operandCount() != 3)
    d.fail("only two sources are supported on this type");
  if (ftz && isBfloat(type))
    d.fail("'.ftz' is not supported on this type");
  auto emit = [&]<class Format, bool Ftz, bool XorSign>() {
    if (max)
      nan ? emitHalf<halfOrder<Format, true, true, Ftz, XorSign>>(d, type, 1, 2)
          : emitHalf<halfOrder<Format, true, false, Ftz, XorSign>>(d, type, 1, 2);
    else
      nan ? emitHalf<halfOrder<Format, false, true, Ftz, XorSign>>(d, type, 1, 2)
          : emitHalf<halfOrder<Format, false, false, Ftz, XorSign>>(d, type, 1, 2);
  };
  if (isBfloat(type))
    xorSign ? emit.template operator()<Bf16, false, true>()
            : emit.template operator()<Bf16, false, false>();
  else if (ftz)
    xorSign ? emit.template operator()<F16, true, true>()
            : emit.template operator()<F16, true, false>();
  else
    xorSign ? emit.template operator()<F16, false, true>()
            : emit.template operator()<F16, false, false>();
}

void selectHalfSign(Decoder &d, Type type, bool negate) {
  bool ftz = d.take(".ftz");
  if (ftz && isBfloat(type))
    d.fail("'.ftz' is not supported on this type");
  auto emit = [&]<bool Negate, bool Ftz>() {
    emitHalf<[](Vu16 a) -> Vu16 {
      if constexpr (Ftz)
        a = flushHalf(a);
      return Negate ? a ^ u16(0x8000) : a & u16(0x7fff);
    }>(d, type, 1);
  };
  if (negate)
    ftz ? emit.template operator()<true, true>() : emit.template operator()<true, false>();
  else
    ftz ? emit.template operator()<false, true>() : emit.template operator()<false, false>();
}

} // namespace planemu::PLANEMU_ISA
