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

/// Four 32-bit elements a lane, the most frequent shape: a 4 x 4 transposition in each half, where
/// shuffles are cheapest. It is its own inverse but for how the halves are dealt out.
template <class T> inline void transposeFours(V<T> *v) {
  V<T> a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13),
       b = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15),
       c = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13),
       d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  v[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  v[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}
template <class T> inline V<T> lowHalves(V<T> a, V<T> b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
}
template <class T> inline V<T> highHalves(V<T> a, V<T> b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

/// v: N vectors holding N elements of each of 8 lanes, lane after lane. On return v[n] is element n
/// of all lanes.
template <class T, int N> inline void rowsToColumns(V<T> *v) {
  if constexpr (N == 4 && sizeof(T) == 4) {
    V<T> dealt[4] = {lowHalves<T>(v[0], v[2]), highHalves<T>(v[0], v[2]), lowHalves<T>(v[1], v[3]),
                     highHalves<T>(v[1], v[3])};
    transposeFours<T>(dealt);
    std::memcpy(v, dealt, sizeof(dealt));
  } else if constexpr (N > 1) {
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
  if constexpr (N == 4 && sizeof(T) == 4) {
    V<T> dealt[4] = {v[0], v[1], v[2], v[3]};
    transposeFours<T>(dealt);
    v[0] = lowHalves<T>(dealt[0], dealt[1]);
    v[1] = lowHalves<T>(dealt[2], dealt[3]);
    v[2] = highHalves<T>(dealt[0], dealt[1]);
    v[3] = highHalves<T>(dealt[2], dealt[3]);
  } else if constexpr (N > 1) {
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
