//===- Bound.h - values and how far a device's may be from them ------------===//
//
// Arithmetic on a real number and a bound for the distance of a device's own. Every rule holds for
// any errors, not to first order only; where each comes from is said in README.md.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_NUMERICS_BOUND_H
#define PLANC_LIB_NUMERICS_BOUND_H

#include "lib/Numerics/Numerics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planc::numerics {

/// Unit roundoff of f32 to nearest (Higham, section 2.1).
inline constexpr double kUnit = 0x1p-24;

/// What a rounding may lose besides, where f32 has no full precision left: half the distance of
/// subnormals to nearest, all of it where an instruction truncates (Higham, equation 2.8).
inline constexpr double kUnderflow = 0x1p-149;

/// A product of d factors 1 + delta, |delta| <= u, is 1 + theta with |theta| <= gamma(d) (Higham,
/// lemma 3.1).
inline double gamma(double units) {
  double d = units * kUnit;
  return d < 1 ? d / (1 - d) : std::numeric_limits<double>::infinity();
}

/// A value and a bound on how far a device's is from it.
struct Value {
  double value = 0;
  double error = 0;
};

/// `x` after as many roundings.
inline Value rounded(Value x, double units) {
  if (units == 0)
    return x;
  return {x.value, x.error + gamma(units) * (std::fabs(x.value) + x.error) + units * kUnderflow};
}

/// A function's result (`exact` for an argument with an error), as a device gives it.
inline Value applied(const Part &function, Value exact) {
  Value result = rounded(exact, function.units);
  if (function.absolute)
    result.error += std::ldexp(1.0, -int(*function.absolute));
  return result;
}

/// Nothing times anything is nothing, even where the anything has no bound.
inline Value times(Value a, Value b) {
  double byB = a.value == 0 ? 0 : std::fabs(a.value) * b.error;
  double byA = a.error == 0 ? 0 : a.error * (std::fabs(b.value) + b.error);
  return {a.value * b.value, byB + byA};
}
inline Value plus(Value a, Value b) { return {a.value + b.value, a.error + b.error}; }

/// min(x, limit).
inline Value atMost(Value x, double limit) {
  double value = std::min(x.value, limit);
  return {value, std::max(std::min(x.value + x.error, limit) - value,
                          value - std::min(x.value - x.error, limit))};
}

/// e^x. Where x is all but unknown the difference itself is taken, so that no 0 meets an infinity.
inline Value exponential(Value x) {
  double e = std::exp(x.value);
  return {e, x.error < 1 ? e * std::expm1(x.error) : std::exp(x.value + x.error) - e};
}

/// 1 / (1 + e^-x). Its slope s * (1 - s) changes by at most a factor of e^|dx|.
inline Value logistic(Value x) {
  auto of = [](double v) { return 1 / (1 + std::exp(-v)); };
  double s = of(x.value);
  if (x.error < 1)
    return {s, s / (1 + std::exp(x.value)) * std::expm1(x.error)};
  // What the differences lose by being rounded is a part of the largest of their terms.
  double most = of(x.value + x.error);
  return {s, std::max(most - s, s - of(x.value - x.error)) + 0x1p-51 * most};
}

/// log(1 + x) for x >= 0, steepest where the argument is least, which is not below 0.
inline Value logOnePlus(Value x) {
  double value = std::log1p(x.value), room = std::min(x.error, x.value) / (1 + x.value);
  return {value, x.error < 1 + x.value
                     ? std::max(-std::log1p(-room), std::log1p(x.error / (1 + x.value)))
                     : std::max(value, std::log1p(x.value + x.error) - value)};
}

/// 1 / x and 1 / sqrt(x) for x > 0: likewise.
inline Value reciprocal(Value x) {
  double least = x.value - x.error;
  return {1 / x.value,
          least > 0 ? x.error / x.value / least : std::numeric_limits<double>::infinity()};
}
inline Value inverseRoot(Value x) {
  double root = 1 / std::sqrt(x.value), part = x.error / x.value;
  return {root, part < 1 ? root * std::expm1(-0.5 * std::log1p(-part))
                         : std::numeric_limits<double>::infinity()};
}

} // namespace planc::numerics

#endif // PLANC_LIB_NUMERICS_BOUND_H
