//===- Order.h - floating-point minimum and maximum -----------------------===//

#ifndef PLANEMU_OPS_ORDER_H
#define PLANEMU_OPS_ORDER_H

#include "runtime/emulator/ops/Float.h"

namespace planemu::PLANEMU_ISA {

/// min and max: -0 is less than +0; a NaN loses, or wins with .NaN.
template <bool Max, bool Nan, class T> inline T order(T a, T b) {
  using E = std::remove_cvref_t<decltype(a[0])>;
  using S = V<Signed<E>>;
  // On equal values (zeros of either sign) the sign bits decide: or for the minimum, and for the
  // maximum.
  T equal = bits<T>(Max ? bits<S>(a) & bits<S>(b) : bits<S>(a) | bits<S>(b));
  T result = choose((Max ? a > b : a < b), a, b);
  result = choose((a == b), equal, result);
  result = choose((a != a), Nan ? a : b, result);
  if constexpr (Nan)
    result = choose((b != b), b, result);
  else
    result = choose((b != b), a, result);
  return canonical(result);
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_ORDER_H
