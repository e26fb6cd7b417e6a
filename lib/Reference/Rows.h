//===- Rows.h - functions that several families share ----------------------===//
//
// Private to lib/Reference.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_ROWS_H
#define PLANC_LIB_REFERENCE_ROWS_H

#include "lib/Reference/Frame.h"

namespace planc::reference {

/// `1 / sqrt(sum x^2 / divisor + eps)` over `count` elements from `begin` on, by the parts of `norm`.
numerics::Value inverseRms(Frame &frame, mlir::Operation *norm, Read x, int64_t begin,
                           int64_t count, double divisor, double eps);

/// By the parts of `op`.
numerics::Value sigmoid(const Frame &frame, mlir::Operation *op, numerics::Value x);

/// x * sigmoid(x), the product not rounded.
inline numerics::Value silu(const Frame &frame, mlir::Operation *op, numerics::Value x) {
  return numerics::times(x, sigmoid(frame, op, x));
}

/// Puts a value into an element of a result.
inline void put(Tensor &out, int64_t i, numerics::Value value, double magnitude) {
  out.exact[i] = value.value;
  out.magnitude[i] = magnitude;
  out.slack[i] = value.error;
}
inline void put(Tensor &out, int64_t i, numerics::Value value) {
  put(out, i, value, std::fabs(value.value));
}

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_ROWS_H
