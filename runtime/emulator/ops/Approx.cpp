//===- Approx.cpp - ex2, lg2, rsqrt, sin, cos, tanh -----------------------===//
//
// PTX bounds the error of these and leaves the bits open. Here they are the correctly rounded
// values, and the same on every host: no libm, and no fma, so that hosts with and without it agree.
// A sum in double is not enough for that: of 2^32 inputs some come within 2^-53 of a tie. So the
// last sum is kept as two doubles, as are large terms before it, and rounded once. How many terms
// need it was found by comparing all inputs with MPFR, which test/nightly repeats.
//
//   ex2    2^n * 2^f, |f| <= 1/2
//   lg2    e + atanh series in (m - 1) / (m + 1), m in [sqrt 1/2, sqrt 2]
//   sin    four-part reduction by pi/2, Taylor to r^17 and r^18
//   tanh   (e^2a - 1) / (e^2a + 1), e^2a likewise
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"

namespace planemu::PLANEMU_ISA {

// Adding and subtracting it rounds a double to an integer, which then lies in the low bits.
constexpr f64 Magic = 0x1.8p52;

namespace {
/// An unevaluated sum; low is at most half of high's last bit.
struct Pair {
  Vf64 high, low;
};
} // namespace

/// a + b where |a| >= |b| or a is zero; exact.
static Pair ordered(Vf64 a, Vf64 b) {
  Vf64 sum = a + b;
  return {sum, b - (sum - a)};
}
/// a + b; exact (Knuth's TwoSum).
static Pair sum(Vf64 a, Vf64 b) {
  Vf64 sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}
/// The upper 26 bits of a double; the other 27 are the difference. Products of such halves are exact.
static Vf64 upperHalf(Vf64 a) { return bits<Vf64>(bits<Vu64>(a) & 0xfffffffff8000000); }

static Vf32 round(Pair a) { return to<f32>(roundToOdd(a.high, a.low)); }

/// roundToOdd where the sum is positive and finite.
static Vf64 positiveToOdd(Pair a) {
  return bits<Vf64>((bits<Vs64>(a.high) + bits<Vs64>(a.low < 0.0)) |
                    (bits<Vs64>(a.low != 0.0) & 1));
}
/// value, or the canonical NaN where x is one.
static Vf32 numberOr(Vf32 x, Vf32 value) {
  return choose(x == x, value, bits<Vf32>(splat<u32>(0x7fffffff)));
}

/// c[0] + c[1] x + ... as two interleaved Horner chains, which halves the time they wait.
template <std::size_t Count> static Vf64 polynomial(const f64 (&c)[Count], Vf64 x) {
  constexpr int Last = static_cast<int>(Count) - 1;
  Vf64 square = x * x, even = Vf64{} + c[Last & ~1], odd = Vf64{} + c[(Last - 1) | 1];
  for (int n = (Last & ~1) - 2; n >= 0; n -= 2)
    even = even * square + c[n];
  for (int n = ((Last - 1) | 1) - 2; n >= 1; n -= 2)
    odd = odd * square + c[n];
  return even + odd * x;
}

// ln 2: 29 bits, whose products with f32 numbers are exact, and the rest.
constexpr f64 Ln2 = 0x1.62e42fep-1, Ln2Rest = 0x1.f473de6af278fp-30;

/// e^(r + rest) - 1 - r for |r| <= ln 2 / 2 and a rest below 2^-30: at most a sixth of r's share. The
/// polynomial meets (e^r - 1 - r) / r^2 at Chebyshev's points, which takes two terms fewer than
/// Taylor's series for the same error, 2^-61.
static Vf64 expTail(Vf64 r, Vf64 rest) {
  constexpr f64 Terms[] = {0x1.0000000000000p-1,  0x1.5555555555557p-3,  0x1.5555555555556p-5,
                           0x1.11111111100dfp-7,  0x1.6c16c16c162d6p-10, 0x1.a01a01abe62ddp-13,
                           0x1.a01a01a6d7808p-16, 0x1.71de02375656cp-19, 0x1.27e4db67b4303p-22,
                           0x1.af4ddd84882fep-26, 0x1.1f72fc730b4ffp-29};
  Vf64 tail = r * r * polynomial(Terms, r);
  return tail + rest * (1.0 + r + tail);
}

/// 2^x rounded to odd; anything if x is NaN.
static Vf64 exp2Odd(Vf32 x) {
  // Beyond these all results are the same, and double's exponent suffices.
  Vf32 low = Vf32{} - 200.0f, high = Vf32{} + 200.0f;
  Vf64 clamped = to<f64>(choose((x < low), low, choose((x > high), high, x)));
  Vf64 shifted = clamped + Magic;
  Vf64 fraction = clamped - (shifted - Magic);
  // 2^f = 1 + f ln 2 + f^2 (...), the polynomial as in expTail, its error 2^-58.
  constexpr f64 Terms[] = {0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0c2p-5,  0x1.3b2ab6fba4e78p-7,
                           0x1.5d87fe78a5276p-10, 0x1.430912f86bf52p-13, 0x1.ffcbfc670dcd4p-17,
                           0x1.62c022401b97dp-20, 0x1.b524fae627834p-24, 0x1.e4cf1cd08d4b8p-28,
                           0x1.e9d3fe3952179p-32, 0x1.c48f769ad2c46p-36};
  Vf64 tail =
      fraction * Ln2 + (fraction * fraction * polynomial(Terms, fraction) + fraction * Ln2Rest);
  Pair result = ordered(Vf64{} + 1.0, tail);
  Vf64 odd = positiveToOdd(result);
  // The exponent is added where it is; the sum lies in [1/2, 2].
  return bits<Vf64>(bits<Vs64>(odd) + (bits<Vs64>(shifted) << 52));
}

static Vf32 exp2Exact(Vf32 x) { return numberOr(x, to<f32>(exp2Odd(x))); }

static Vf32 log2Exact(Vf32 x) {
  Vu64 raw = bits<Vu64>(to<f64>(x)); // f32 subnormals are normal here
  Vs64 exponent = bits<Vs64>(raw >> 52 & 0x7ff) - 1023;
  Vf64 m = bits<Vf64>((raw & 0x000fffffffffffff) | 0x3ff0000000000000);
  Vs64 large = m > 0x1.6a09e667f3bcdp0; // sqrt 2
  m = choose(large, m * 0.5, m);
  exponent -= large; // -1 where true
  // log2 m = 2 / ln 2 * (s + s^3/3 + s^5/5 + ...), s = upper + lower
  constexpr f64 Scale = 0x1.7154760p+1,
                ScaleRest = 0x1.4ae0bf85ddf44p-25; // 2 / ln 2, 26 bits first
  constexpr f64 Odd[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                         1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  Vf64 above = m - 1.0, below = m + 1.0, s = above / below, square = s * s;
  Vf64 upper = upperHalf(s), lower = s - upper;
  lower += ((above - upper * below) - lower * below) / below; // what the division rounded off
  Vf64 tail =
      Scale * lower + (ScaleRest * s + (Scale + ScaleRest) * s * square * polynomial(Odd, square));
  // Integer to double through the magic number: exponents are small.
  Vf64 e = bits<Vf64>(exponent + bits<s64>(Magic)) - Magic;
  Pair whole = ordered(e, Scale * upper);
  Pair all = ordered(whole.high, tail);
  Vf32 result = round({all.high, all.low + whole.low});
  Vf32 infinity = bits<Vf32>(splat<u32>(0x7f800000)), nan = bits<Vf32>(splat<u32>(0x7fffffff));
  result = choose((x == infinity), infinity, result);
  result = choose((x == 0.0f), Vf32{} - infinity, result);
  return choose((x < 0.0f) | (x != x), nan, result);
}

/// One double of each step suffices here: that no tie is that near is known from all inputs.
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
  // pi/2 to 2^-117 in four parts, the first three of 21 bits at most: their products with n are
  // exact, and so are the first two differences.
  Vf64 near = wide - n * 0x1.921fbp0 - n * 0x1.5110ap-22;
  Pair rest = sum(near, Vf64{} - n * 0x1.4611ap-42);
  rest = sum(rest.high, rest.low - n * 0x1.898cc51701b84p-64);
  const Vf64 r = rest.high, low = rest.low;
  // r^2 as a sum of two doubles, for the cosine's largest term
  Vf64 upper = upperHalf(r), lower = r - upper;
  Vf64 squareUpper = upper * upper, squareLower = lower * (r + upper), square = r * r;
  constexpr f64 Sines[] = {-1.0 / 6,
                           1.0 / 120,
                           -1.0 / 5040,
                           1.0 / 362880,
                           -1.0 / 39916800,
                           1.0 / 6227020800.0,
                           -1.0 / 1307674368000.0,
                           1.0 / 355687428096000.0};
  constexpr f64 Cosines[] = {1.0 / 24,
                             -1.0 / 720,
                             1.0 / 40320,
                             -1.0 / 3628800,
                             1.0 / 479001600,
                             -1.0 / 87178291200.0,
                             1.0 / 20922789888000.0,
                             -1.0 / 6402373705728000.0};
  Pair sine = ordered(r, r * square * polynomial(Sines, square) + low * (1.0 - 0.5 * square));
  Pair whole = ordered(Vf64{} + 1.0, -0.5 * squareUpper);
  Pair cosine = ordered(whole.high, square * square * polynomial(Cosines, square) -
                                        0.5 * squareLower - r * low);
  cosine.low += whole.low;
  Vs64 isCosine = (quadrant & 1) != 0, isNegative = (quadrant & 2) != 0;
  Vf64 result =
      roundToOdd(choose(isCosine, cosine.high, sine.high), choose(isCosine, cosine.low, sine.low));
  result = choose(isNegative, Vf64{} - result, result);
  Vf32 narrow = to<f32>(result);
  if constexpr (Shift == 0)
    narrow = choose((x == 0.0f), x, narrow);
  return choose((magnitude < bits<f32>(0x7f800000u)), narrow, bits<Vf32>(splat<u32>(0x7fffffff)));
}

/// tanh x rounded to odd, anything if x is NaN: with e^2a = 2^n (1 + r + tail), both sides of the fraction divided by 2^n.
static Vf64 tanhOdd(Vf32 x) {
  Vf32 magnitude = bits<Vf32>(bits<Vu32>(x) & 0x7fffffff), most = Vf32{} + 10.0f; // 1 from here on
  Vf64 angle = to<f64>(choose((magnitude < most), magnitude, most)) * 2.0;
  Vf64 shifted = angle * 0x1.71547652b82fep0 + Magic; // 1 / ln 2
  Vf64 n = shifted - Magic;
  Vf64 r = angle - n * Ln2, tail = expTail(r, Vf64{} - n * Ln2Rest);
  Vf64 power = bits<Vf64>((1023ll << 52) - (bits<Vs64>(shifted) << 52)); // 2^-n
  Pair above = ordered(1.0 - power, r), below = ordered(1.0 + power, r);
  auto add = [](Pair a, Vf64 b) {
    Pair all = ordered(a.high, b);
    return Pair{all.high, all.low + a.low};
  };
  above = add(above, tail), below = add(below, tail);
  Vf64 quotient = above.high / below.high;
  Vf64 upper = upperHalf(quotient), lower = quotient - upper;
  Vf64 belowUpper = upperHalf(below.high), belowLower = below.high - belowUpper;
  Vf64 left = (((above.high - upper * belowUpper) - upper * belowLower) - lower * belowUpper) -
              lower * belowLower;
  Vf64 odd = positiveToOdd({quotient, (left + above.low - quotient * below.low) / below.high});
  return bits<Vf64>(bits<Vu64>(odd) | (to<u64>(bits<Vu32>(x) & 0x80000000) << 32));
}

static Vf32 tanhExact(Vf32 x) { return numberOr(x, to<f32>(tanhOdd(x))); }

/// F with subnormal inputs and results flushed.
template <auto F> static Vf32 flushed(Vf32 x) { return flush(F(flush(x))); }

template <auto F, bool HasFtz = true> static void selectApproximate(Decoder &d) {
  if (!d.take(".approx"))
    d.fail("no .approx");
  bool ftz = HasFtz && d.take(".ftz");
  Type type = d.takeType();
  if (type != Type::F32)
    d.failType(type);
  d.def(0, 32);
  d.use(1, type);
  d.emit(ftz ? lanes<flushed<F>, f32, f32> : lanes<F, f32, f32>);
}

/// Forms on 16-bit floats: widen, F to odd, round.
template <auto F, bool Bfloat, bool Ftz> static Vu16 narrowed(Vu16 x) {
  Vf32 wide = Bfloat ? fromBf16(x) : fromF16(x);
  Vf32 value = numberOr(wide, narrowToOdd(F(Ftz ? flush(wide) : wide)));
  Vu16 result = Bfloat ? toBf16(value) : toF16(value);
  // bf16 has f32's exponents, and so the same subnormals
  return Ftz ? choose((result & u16(0x7f80)) == 0, result & u16(0x8000), result) : result;
}
template <auto F, bool Bfloat, bool Ftz> static Vu32 narrowedPair(Vu32 x) {
  return to<u32>(narrowed<F, Bfloat, Ftz>(to<u16>(x))) |
         to<u32>(narrowed<F, Bfloat, Ftz>(to<u16>(x >> 16))) << 16;
}
/// BfloatFtz: .ftz belongs to the spelling on bf16. Elsewhere there is none.
template <auto F, bool BfloatFtz> static bool selectHalfForm(Decoder &d) {
  for (bool bfloat : {false, true})
    for (bool pair : {false, true}) {
      const char *text = bfloat ? (pair ? ".bf16x2" : ".bf16") : (pair ? ".f16x2" : ".f16");
      if (!d.take(text))
        continue;
      if (!d.take(".approx"))
        d.fail("no .approx");
      if (bfloat && BfloatFtz && !d.take(".ftz"))
        d.fail("no .ftz, which is part of this form on bf16");
      d.def(0, pair ? 32 : 16);
      d.use(1, pair ? Type::B32 : Type::B16);
      if (pair)
        d.emit(bfloat ? lanes<narrowedPair<F, true, BfloatFtz>, u32, u32>
                      : lanes<narrowedPair<F, false, false>, u32, u32>);
      else
        d.emit(bfloat ? lanes<narrowed<F, true, BfloatFtz>, u16, u16>
                      : lanes<narrowed<F, false, false>, u16, u16>);
      return true;
    }
  return false;
}

/// rsqrt.approx{.ftz}.f64; the form with .ftz gives the upper half of the root and knows no
/// subnormals.
static void selectRsqrt64(Decoder &d, bool ftz) {
  d.def(0, 64);
  d.use(1, Type::F64);
  auto run = [](auto a) {
    Vf64 result = canonical(1.0 / squareRoot(a));
    // The root of -0 is -0 and its reciprocal -inf, as PTX has it.
    return choose(bits<Vs64>(a < 0.0), bits<Vf64>(splat<u64>(0x7ff8000000000000)), result);
  };
  d.emit(ftz ? lanes<[](auto a) {
    Vu64 raw = bits<Vu64>(a);
    raw = choose((raw & 0x7ff0000000000000) == 0, raw & 0x8000000000000000, raw);
    Vf64 value = bits<Vf64>(raw), result = canonical(1.0 / squareRoot(value));
    result = choose(bits<Vs64>(value < 0.0), bits<Vf64>(splat<u64>(0x7ff8000000000000)), result);
    return bits<Vf64>(bits<Vu64>(result) & 0xffffffff00000000);
  },
                     f64, f64>
             : lanes<run, f64, f64>);
}

void selectEx2(Decoder &d) {
  if (!selectHalfForm<exp2Odd, true>(d))
    selectApproximate<exp2Exact>(d);
}
void selectTanh(Decoder &d) {
  if (!selectHalfForm<tanhOdd, false>(d))
    selectApproximate<tanhExact, false>(d);
}
void selectLg2(Decoder &d) { selectApproximate<log2Exact>(d); }
void selectRsqrt(Decoder &d) {
  if (d.take(".f64")) {
    if (!d.take(".approx"))
      d.fail("no .approx");
    return selectRsqrt64(d, d.take(".ftz"));
  }
  selectApproximate<rsqrtExact>(d);
}
void selectSin(Decoder &d) { selectApproximate<sineExact<0>>(d); }
void selectCos(Decoder &d) { selectApproximate<sineExact<1>>(d); }

} // namespace planemu::PLANEMU_ISA
