//===- Rows.h - functions that several families share ----------------------===//
//
// Private to lib/Reference. Each comes with how far a device's own value may be off.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_ROWS_H
#define PLANC_LIB_REFERENCE_ROWS_H

#include "lib/Reference/Limits.h"

#include <cstdint>

namespace planc::reference {

/// `1 / sqrt(sum x^2 / divisor + eps)`, and how much of it the errors of x may move.
struct Scale {
  double value;
  double relativeError;
};
Scale inverseRms(const double *x, const double *error, int64_t count, double divisor, double eps);

/// A gate and how far a device's may be from it, given how far its argument may be.
struct Gate {
  double value;
  double error;
};

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

inline Gate sigmoid(double x, double error) {
  double s = logistic(x);
  return {s, s * expError(x) + error * s * (1 - s) + kTiny};
}

inline Gate silu(double x, double error) {
  double s = logistic(x);
  return {x * s, std::fabs(x * s) * expError(x) + error * (s + std::fabs(x) * s * (1 - s)) + kTiny};
}

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_ROWS_H
