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

/// Emits F<Format>.
#define PLANEMU_EMIT_HALF(F, ...)                                                                  \
  (type == Type::BF16 || type == Type::BF16x2 ? emitHalf<F<Bf16>>(d, type, __VA_ARGS__)            \
                                              : emitHalf<F<F16>>(d, type, __VA_ARGS__))

template <class Format> static Vu16 halfAdd(Vu16 a, Vu16 b) {
  return Format::narrow(Format::widen(a) + Format::widen(b));
}
template <class Format> static Vu16 halfSub(Vu16 a, Vu16 b) {
  return Format::narrow(Format::widen(a) - Format::widen(b));
}
template <class Format> static Vu16 halfMul(Vu16 a, Vu16 b) {
  return Format::narrow(Format::widen(a) * Format::widen(b));
}
template <class Format> static Vu16 halfMin(Vu16 a, Vu16 b) {
  return Format::narrow(order<false, false>(Format::widen(a), Format::widen(b)));
}
template <class Format> static Vu16 halfMax(Vu16 a, Vu16 b) {
  return Format::narrow(order<true, false>(Format::widen(a), Format::widen(b)));
}
template <class Format> static Vu16 halfMinNan(Vu16 a, Vu16 b) {
  return Format::narrow(order<false, true>(Format::widen(a), Format::widen(b)));
}
template <class Format> static Vu16 halfMaxNan(Vu16 a, Vu16 b) {
  return Format::narrow(order<true, true>(Format::widen(a), Format::widen(b)));
}

/// a * b + c rounded to odd in f32: the product is exact in double, the sum's error says whether
/// something was lost, and a lost part sets the last bit, so that the second rounding sees it. Odd
/// from double to f32 likewise.
static Vf32 fmaOdd(Vf32 a, Vf32 b, Vf32 c) {
  Vf64 product = to<f64>(a) * to<f64>(b), addend = to<f64>(c);
  Vf64 sum = product + addend;
  Vf64 part = sum - product;
  Vf64 error = (product - (sum - part)) + (addend - part);
  // Towards zero in double: if the error points away from the sum's sign, step back, then set the
  // last bit.
  Vs64 raw = bits<Vs64>(sum);
  Vs64 inexact = (error != 0.0) & (sum - sum == 0.0);
  Vs64 opposite = (error < 0.0) ^ (sum < 0.0);
  raw = choose(inexact, (raw + opposite) | 1, raw); // opposite is -1 where true
  // To f32, again to odd: cut 29 bits and keep whether there were any. Exponents are within f32's
  // for all products of 16-bit floats but the smallest, which are below any rounding's reach of a
  // 16-bit result once odd.
  Vf64 odd = bits<Vf64>(raw);
  Vf32 nearest = to<f32>(odd);
  Vf64 back = to<f64>(nearest);
  Vs32 raw32 = bits<Vs32>(nearest);
  Vs32 lost = to<s32>((back != odd) & (sum - sum == 0.0));
  Vs32 above = to<s32>(bits<Vs64>(choose(back < 0.0, Vf64{} - back, back)) >
                       bits<Vs64>(choose(odd < 0.0, Vf64{} - odd, odd)));
  raw32 = choose(lost, (raw32 + above) | 1, raw32);
  return bits<Vf32>(raw32);
}

template <class Format> static Vu16 halfFma(Vu16 a, Vu16 b, Vu16 c) {
  return Format::narrow(fmaOdd(Format::widen(a), Format::widen(b), Format::widen(c)));
}
template <class Format> static Vu16 halfFmaRelu(Vu16 a, Vu16 b, Vu16 c) {
  Vf32 value = fmaOdd(Format::widen(a), Format::widen(b), Format::widen(c));
  return Format::narrow(choose((value < 0.0f), Vf32{}, value));
}

void selectHalfSum(Decoder &d, Type type, bool subtract, bool saturate) {
  if (saturate)
    d.fail("'.sat' is not supported on this type");
  if (!d.take(".rn"))
    d.noteContractible(type);
  subtract ? PLANEMU_EMIT_HALF(halfSub, 1, 2) : PLANEMU_EMIT_HALF(halfAdd, 1, 2);
}

void selectHalfMul(Decoder &d, Type type) {
  if (!d.take(".rn"))
    d.noteContractible(type);
  PLANEMU_EMIT_HALF(halfMul, 1, 2);
}

void selectHalfFma(Decoder &d, Type type) {
  if (!d.take(".rn"))
    d.fail("no rounding");
  d.take(".relu") ? PLANEMU_EMIT_HALF(halfFmaRelu, 1, 2, 3) : PLANEMU_EMIT_HALF(halfFma, 1, 2, 3);
}

void selectHalfOrder(Decoder &d, Type type, bool max) {
  bool nan = d.take(".NaN");
  if (d.operandCount() != 3)
    d.fail("only two sources are supported on this type");
  if (max)
    nan ? PLANEMU_EMIT_HALF(halfMaxNan, 1, 2) : PLANEMU_EMIT_HALF(halfMax, 1, 2);
  else
    nan ? PLANEMU_EMIT_HALF(halfMinNan, 1, 2) : PLANEMU_EMIT_HALF(halfMin, 1, 2);
}

void selectHalfSign(Decoder &d, Type type, bool negate) {
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (bitsOf(type) == 16)
    d.emit(negate ? lanes<[](auto a) { return a ^ u16(0x8000); }, u16, u16>
                  : lanes<[](auto a) { return a & u16(0x7fff); }, u16, u16>);
  else
    d.emit(negate ? lanes<[](auto a) { return a ^ 0x80008000u; }, u32, u32>
                  : lanes<[](auto a) { return a & 0x7fff7fffu; }, u32, u32>);
}

} // namespace planemu::PLANEMU_ISA
