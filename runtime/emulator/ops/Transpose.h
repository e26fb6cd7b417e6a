//===- Transpose.h - rows of lanes to registers and back ------------------===//
//
// A vector load gives every lane a row of N elements; registers want element n of all lanes side by
// side. Eight lanes at a time: unzip halves the elements of two vectors into even and odd ones,
// which applied log2 N times transposes.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_TRANSPOSE_H
#define PLANEMU_OPS_TRANSPOSE_H

#include "runtime/emulator/ops/Lanes.h"

namespace planemu::PLANEMU_ISA {

template <class T> inline V<T> evens(V<T> a, V<T> b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}
template <class T> inline V<T> odds(V<T> a, V<T> b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
template <class T> inline V<T> zipLow(V<T> a, V<T> b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
template <class T> inline V<T> zipHigh(V<T> a, V<T> b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/// v: N vectors holding N elements of each of 8 lanes, lane after lane. On return v[n] is element n
/// of all lanes.
template <class T, int N> inline void rowsToColumns(V<T> *v) {
  if constexpr (N > 1) {
    V<T> even[N / 2], odd[N / 2];
    for (int n = 0; n < N / 2; ++n) {
      even[n] = evens<T>(v[2 * n], v[2 * n + 1]);
      odd[n] = odds<T>(v[2 * n], v[2 * n + 1]);
    }
    rowsToColumns<T, N / 2>(even);
    rowsToColumns<T, N / 2>(odd);
    for (int n = 0; n < N / 2; ++n) {
      v[2 * n] = even[n];
      v[2 * n + 1] = odd[n];
    }
  }
}

/// The way back.
template <class T, int N> inline void columnsToRows(V<T> *v) {
  if constexpr (N > 1) {
    V<T> even[N / 2], odd[N / 2];
    for (int n = 0; n < N / 2; ++n) {
      even[n] = v[2 * n];
      odd[n] = v[2 * n + 1];
    }
    columnsToRows<T, N / 2>(even);
    columnsToRows<T, N / 2>(odd);
    for (int n = 0; n < N / 2; ++n) {
      v[2 * n] = zipLow<T>(even[n], odd[n]);
      v[2 * n + 1] = zipHigh<T>(even[n], odd[n]);
    }
  }
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_TRANSPOSE_H
