//===- Approx.cpp - ex2, lg2, rsqrt, sin, cos, tanh -----------------------===//
//
// PTX bounds the error of these and leaves the bits open. Here they are formed in double by
// polynomials and rounded once, so they are the correctly rounded value but for the rarest ties,
// and the same on every host: no libm, and no fma, so that hosts with and without it agree.
//
//   ex2    2^n * p(r), |r| <= 1/2, Taylor in r ln 2 to degree 11
//   lg2    e + atanh series in (m - 1) / (m + 1), m in [sqrt 1/2, sqrt 2]
//   sin    three-part reduction by pi/2, Taylor to degree 15 and 16
//   tanh   from 2^x, by its series near zero
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"

namespace planemu::PLANEMU_ISA {

// Adding and subtracting it rounds a double to an integer, which then lies in the low bits.
constexpr f64 Magic = 0x1.8p52;

/// 2^n for integers n within double's exponents, given as doubles with Magic added.
static Vf64 powerOfTwo(Vf64 withMagic) {
  return bits<Vf64>((bits<Vs64>(withMagic) << 52) + (1023ll << 52));
}

/// 2^x in double for |x| <= 1022.
static Vf64 exp2Double(Vf64 x) {
  Vf64 shifted = x + Magic;
  Vf64 r = (x - (shifted - Magic)) * 0x1.62e42fefa39efp-1; // ln 2
  constexpr f64 Inverse[] = {
      1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
      1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      0.5,           1.0,          1.0};
  Vf64 p = Vf64{} + Inverse[0];
  for (int n = 1; n < 12; ++n)
    p = p * r + Inverse[n];
  return p * powerOfTwo(shifted);
}

static Vf32 exp2Exact(Vf32 x) {
  // Beyond these all results are the same, and double's exponent suffices.
  Vf32 low = Vf32{} - 200.0f, high = Vf32{} + 200.0f;
  Vf32 clamped = choose((x < low), low, choose((x > high), high, x));
  return canonical(choose((x == x), to<f32>(exp2Double(to<f64>(clamped))), x));
}

static Vf32 log2Exact(Vf32 x) {
  Vf64 wide = to<f64>(x);
  Vu64 raw = bits<Vu64>(wide); // f32 subnormals are normal here
  Vs64 exponent = bits<Vs64>(raw >> 52 & 0x7ff) - 1023;
  Vf64 m = bits<Vf64>((raw & 0x000fffffffffffff) | 0x3ff0000000000000);
  Vs64 large = m > 0x1.6a09e667f3bcdp0; // sqrt 2
  m = choose(large, m * 0.5, m);
  exponent -= large; // -1 where true
  Vf64 s = (m - 1.0) / (m + 1.0), square = s * s;
  Vf64 p = Vf64{} + 1.0 / 25.0;
  for (int n = 23; n >= 1; n -= 2)
    p = p * square + 1.0 / n;
  // Integer to double through the magic number: exponents are small.
  Vf64 e = bits<Vf64>(exponent + bits<s64>(Magic)) - Magic;
  Vf32 result = to<f32>(e + p * s * 0x1.71547652b82fep1); // 2 / ln 2
  Vf32 infinity = bits<Vf32>(splat<u32>(0x7f800000)), nan = bits<Vf32>(splat<u32>(0x7fffffff));
  result = choose((x == infinity), infinity, result);
  result = choose((x == 0.0f), Vf32{} - infinity, result);
  return choose((x < 0.0f) | (x != x), nan, result);
}

static Vf32 rsqrtExact(Vf32 x) {
  Vf32 nan = bits<Vf32>(splat<u32>(0x7fffffff));
  return choose((x >= 0.0f), to<f32>(1.0 / squareRoot(to<f64>(x))), nan);
}

/// Sine (Shift 0) or cosine (Shift 1) as the quadrant's sine or cosine of the rest.
template <int Shift> static Vf32 sineExact(Vf32 x) {
  // Beyond 2^31 the reduction has no bits left: the angle counts as zero there, PTX promises
  // nothing.
  Vf32 magnitude = bits<Vf32>(bits<Vu32>(x) & 0x7fffffff);
  Vf64 wide = to<f64>(choose((magnitude < 0x1p31f), x, Vf32{}));
  Vf64 shifted = wide * 0x1.45f306dc9c883p-1 + Magic; // 2 / pi
  Vf64 n = shifted - Magic;
  Vs64 quadrant = bits<Vs64>(shifted) + Shift;
  // pi/2 in three parts of 33 bits: products with n < 2^31 are exact or nearly so.
  Vf64 r = wide - n * 0x1.921fb544p0 - n * 0x1.0b4611a6p-34 - n * 0x1.3198a2e037073p-69;
  Vf64 square = r * r;
  constexpr f64 Sine[] = {
      -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
      -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0,        1.0};
  constexpr f64 Cosine[] = {1.0 / 20922789888000.0,
                            -1.0 / 87178291200.0,
                            1.0 / 479001600.0,
                            -1.0 / 3628800.0,
                            1.0 / 40320.0,
                            -1.0 / 720.0,
                            1.0 / 24.0,
                            -0.5,
                            1.0};
  Vf64 sine = Vf64{} + Sine[0], cosine = Vf64{} + Cosine[0];
  for (int k = 1; k < 8; ++k)
    sine = sine * square + Sine[k];
  for (int k = 1; k < 9; ++k)
    cosine = cosine * square + Cosine[k];
  sine = sine * r;
  Vf64 result = choose(((quadrant & 1) != 0), cosine, sine);
  result = choose(((quadrant & 2) != 0), Vf64{} - result, result);
  Vf32 narrow = to<f32>(result);
  if constexpr (Shift == 0)
    narrow = choose((x == 0.0f), x, narrow);
  return choose((magnitude < bits<f32>(0x7f800000u)), narrow, bits<Vf32>(splat<u32>(0x7fffffff)));
}

static Vf32 tanhExact(Vf32 x) {
  Vf32 magnitude = bits<Vf32>(bits<Vu32>(x) & 0x7fffffff);
  Vf32 most = Vf32{} + 20.0f; // 1 from here on
  Vf64 a = to<f64>(choose((magnitude < most), magnitude, most));
  Vf64 power = exp2Double(a * 0x1.71547652b82fep1); // e^2a
  Vf64 far = (power - 1.0) / (power + 1.0);
  // Near zero power - 1 cancels: x - x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835 - 1382x^11/155925
  Vf64 square = a * a;
  Vf64 p = Vf64{} - 1382.0 / 155925.0;
  p = p * square + 62.0 / 2835.0;
  p = p * square - 17.0 / 315.0;
  p = p * square + 2.0 / 15.0;
  p = p * square - 1.0 / 3.0;
  Vf64 near = a + a * square * p;
  Vf32 result = to<f32>(choose((a < 0.05), near, far));
  result = bits<Vf32>(bits<Vu32>(result) | (bits<Vu32>(x) & 0x80000000));
  return choose((x == x), result, bits<Vf32>(splat<u32>(0x7fffffff)));
}

/// F with subnormal inputs and results flushed.
template <auto F> static Vf32 flushed(Vf32 x) { return flush(F(flush(x))); }

template <auto F> static void selectApproximate(Decoder &d) {
  if (!d.take(".approx"))
    d.fail("no .approx");
  bool ftz = d.take(".ftz");
  Type type = d.takeType();
  if (type != Type::F32)
    d.failType(type);
  d.def(0, 32);
  d.use(1, type);
  d.emit(ftz ? lanes<flushed<F>, f32, f32> : lanes<F, f32, f32>);
}

/// Forms on 16-bit floats: widen, F, round.
template <auto F, bool Bfloat> static Vu16 narrowed(Vu16 x) {
  Vf32 value = F(Bfloat ? fromBf16(x) : fromF16(x));
  return Bfloat ? toBf16(value) : toF16(value);
}
template <auto F> static bool selectHalfForm(Decoder &d) {
  for (bool bfloat : {false, true})
    for (bool pair : {false, true}) {
      const char *text = bfloat ? (pair ? ".bf16x2" : ".bf16") : (pair ? ".f16x2" : ".f16");
      if (!d.take(text))
        continue;
      if (!d.take(".approx"))
        d.fail("no .approx");
      // For bf16, .ftz is part of the only spelling there is: results are far from f32's
      // subnormals.
      d.take(".ftz");
      d.def(0, pair ? 32 : 16);
      d.use(1, pair ? Type::B32 : Type::B16);
      if (!pair)
        d.emit(bfloat ? lanes<narrowed<F, true>, u16, u16> : lanes<narrowed<F, false>, u16, u16>);
      else
        d.emit(bfloat ? lanes<[](auto a) {
          return to<u32>(narrowed<F, true>(to<u16>(a))) |
                 to<u32>(narrowed<F, true>(to<u16>(a >> 16))) << 16;
        },
                              u32, u32>
                      : lanes<[](auto a) {
                          return to<u32>(narrowed<F, false>(to<u16>(a))) |
                                 to<u32>(narrowed<F, false>(to<u16>(a >> 16))) << 16;
                        },
                              u32, u32>);
      return true;
    }
  return false;
}

void selectEx2(Decoder &d) {
  if (!selectHalfForm<exp2Exact>(d))
    selectApproximate<exp2Exact>(d);
}
void selectTanh(Decoder &d) {
  if (!selectHalfForm<tanhExact>(d))
    selectApproximate<tanhExact>(d);
}
void selectLg2(Decoder &d) { selectApproximate<log2Exact>(d); }
void selectRsqrt(Decoder &d) { selectApproximate<rsqrtExact>(d); }
void selectSin(Decoder &d) { selectApproximate<sineExact<0>>(d); }
void selectCos(Decoder &d) { selectApproximate<sineExact<1>>(d); }

} // namespace planemu::PLANEMU_ISA
