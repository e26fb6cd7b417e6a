//===- Bound.h - values and how far a device's may be from them ------------===//
//
// Arithmetic on a real number and a bound for the distance of a device's own. Every rule holds for
// any errors, not to first order only; where each comes from is said in README.md.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_NUMERICS_BOUND_H
#define PLANC_LIB_NUMERICS_BOUND_H

#include "lib/Numerics/Numerics.h"

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

inline Value times(Value a, Value b) {
  return {a.value * b.value,
          std::fabs(a.value) * b.error + a.error * (std::fabs(b.value) + b.error)};
}
inline Value plus(Value a, Value b) { return {a.value + b.value, a.error + b.error}; }

/// e^x.
inline Value exponential(Value x) {
  double e = std::exp(x.value);
  return {e, x.error == 0 ? 0 : e * std::expm1(x.error)};
}

/// 1 / (1 + e^-x). Its slope s * (1 - s) changes by at most a factor of e^|dx|.
inline Value logistic(Value x) {
  double s = 1 / (1 + std::exp(-x.value));
  return {s, x.error == 0 ? 0 : s / (1 + std::exp(x.value)) * std::expm1(x.error)};
}

/// log(1 + x) for x >= 0: steepest where the argument is least.
inline Value logOnePlus(Value x) {
  double room = x.error / (1 + x.value);
  return {std::log1p(x.value),
          room < 1 ? -std::log1p(-room) : std::numeric_limits<double>::infinity()};
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
