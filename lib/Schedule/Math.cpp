//===- Math.cpp - elementary functions from PTX approximations --------------===//
//
// Built from ex2.approx (2 ulp), rcp.approx (1 ulp) and rsqrt.approx (2 ulp), whose errors the PTX
// ISA states, so that no kernel needs libdevice. The error of each function is stated in
// KernelBuilder.h; where it comes from is said here.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/KernelBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace planc;

/// 1.5 * 2^23: added to |x| < 2^22 it leaves the nearest integer in the low bits.
static constexpr float kRoundToInt = 12582912.0f;

/// The part of a constant that f32 takes, and what is left of it.
static constexpr float head(double constant) { return float(constant); }
static constexpr float tail(double constant) { return float(constant - double(head(constant))); }

Value KernelBuilder::exp2(Value x) {
  return intrinsic("llvm.nvvm.ex2.approx.f32", b.getF32Type(), {x});
}

Value KernelBuilder::rcp(Value x) {
  return NVVM::RcpApproxFtzF32Op::create(b, loc, b.getF32Type(), x);
}

Value KernelBuilder::rsqrt(Value x) {
  return intrinsic("llvm.nvvm.rsqrt.approx.f", b.getF32Type(), {x});
}

/// e^x = 2^t * 2^d with t = f32(x*log2(e)) and d the rest of that product, |d| < 2^-16 for the x in
/// range: 2^d is 1 + d*ln(2) to 2^-33. Without d the error grows with |x|. An x above 88.72 would
/// make 2^t infinite and the sum a NaN.
Value KernelBuilder::exp(Value x) { return expNegative(fmin(x, f32(88.7228f))); }

Value KernelBuilder::expNegative(Value x) {
  constexpr double log2e = std::numbers::log2e;
  // Below, the result is zero in any case, and an infinity would make d a NaN.
  x = fmax(x, f32(-200.0f));
  Value t = fmul(x, f32(head(log2e)));
  Value d = fma(x, f32(tail(log2e)), fma(x, f32(head(log2e)), fneg(t)));
  Value power = exp2(t);
  return fma(fmul(power, f32(float(std::numbers::ln2))), d, power);
}

/// 1 / (1 + e^-|x|) lies in [1/2, 1] and is well conditioned; a negative x takes e^-|x| times it.
Value KernelBuilder::sigmoid(Value x) {
  Value e = expNegative(fneg(fabs(x)));
  Value upper = rcp(fadd(e, f32(1.0f)));
  return fmul(select(lt(x, f32(0.0f)), e, f32(1.0f)), upper);
}

Value KernelBuilder::silu(Value x) { return fmul(x, sigmoid(x)); }

/// 1 + x = 2^k * (1 + f) with f in [-1/4, 1/2), f rounded once; log(1 + f) = 2*atanh(s), s = f / (2
/// + f), |s| <= 1/5, so that the series up to s^9 is good to 2^-26.
Value KernelBuilder::log1p(Value x) {
  // The exponent of (1 + x) / 0.75, as bits.
  Value exponent = bitAnd(wrapAdd(asI32(fadd(x, f32(1.0f))), -0x3f400000), int32_t(0xff800000));
  Value scale = asF32(wrapSub(i32(0x3f800000), exponent)); // 2^-k
  Value f = fma(x, scale, fadd(scale, f32(-1.0f)));
  Value s = fmul(f, rcp(fadd(f, f32(2.0f))));
  Value s2 = fmul(s, s);
  Value series = f32(1.0f / 9);
  for (float odd : {7.0f, 5.0f, 3.0f})
    series = fma(series, s2, f32(1.0f / odd));
  Value twice = fadd(s, s);
  Value logarithm = fma(fmul(twice, s2), series, twice);
  Value k = toF32(ashr(exponent, 23));
  return fma(k, f32(float(std::numbers::ln2)), logarithm);
}

/// x = n * pi/2 + r. pi/2 = c1 + c2 + c3: x - n*c1 is exact, since it is a multiple of the last
/// place of c1 and below 1; the next two each round once, at |r| < 1. Taylor up to r^9 and r^10 is
/// then good to 2^-28.
std::array<Value, 2> KernelBuilder::sinCos(Value x) {
  constexpr double halfPi = std::numbers::pi / 2;
  constexpr float c1 = head(halfPi), c2 = head(halfPi - double(c1));
  // pi/2 as a double ends 6e-17 early: with n < 2^19 that is below 2^-34.
  constexpr float c3 = float(halfPi - double(c1) - double(c2));
  Value shifted = fadd(fmul(x, f32(float(2 / std::numbers::pi))), f32(kRoundToInt));
  Value quadrant = asI32(shifted);
  Value n = fneg(fadd(shifted, f32(-kRoundToInt)));
  Value r = fma(n, f32(c3), fma(n, f32(c2), fma(n, f32(c1), x)));
  Value r2 = fmul(r, r);

  Value sine = f32(1.0f / 362880);
  for (float factor : {-1.0f / 5040, 1.0f / 120, -1.0f / 6})
    sine = fma(sine, r2, f32(factor));
  sine = fma(fmul(r, r2), sine, r);
  Value cosine = f32(-1.0f / 3628800);
  for (float factor : {1.0f / 40320, -1.0f / 720, 1.0f / 24, -0.5f, 1.0f})
    cosine = fma(cosine, r2, f32(factor));

  // Odd quadrants swap the two; the sine is negative in quadrants 2 and 3, the cosine in 1 and 2.
  Value odd = ne(bitAnd(quadrant, 1), 0);
  Value sineSign = shl(bitAnd(quadrant, 2), 30);
  Value cosineSign = shl(bitAnd(wrapAdd(quadrant, 1), 2), 30);
  auto flip = [&](Value value, Value sign) { return asF32(bitXor(asI32(value), sign)); };
  return {flip(select(odd, cosine, sine), sineSign), flip(select(odd, sine, cosine), cosineSign)};
}
