//===- Rows.h - rows of memory to registers and back ----------------------===//
//
// What one lane reads or writes is a row: N elements of type T, which registers hold as R, an unsigned
// type that may be wider. All lanes move theirs here; where the rows lie, and that they may be
// accessed, is found in Access.h.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_ROWS_H
#define PLANEMU_OPS_ROWS_H

#include "runtime/emulator/ops/Access.h"
#include "runtime/emulator/ops/Transpose.h"

namespace planemu::PLANEMU_ISA {

template <class T> inline T *hostPointer(u64 address) { return reinterpret_cast<T *>(address); }

/// The rows of eight lanes as vectors. Rows are read straight into registers where the compiler can
/// join them: going through a buffer would make wide loads wait for narrow stores.
template <class T, int N> inline void gatherRows(const u64 *host, V<T> *v) {
  constexpr int RowBytes = N * sizeof(T);
  struct Image {
    char bytes[Chunk * RowBytes];
  } image;
  if constexpr (RowBytes == 16) {
    typedef u64 Half __attribute__((vector_size(16)));
    typedef u64 Whole __attribute__((vector_size(32)));
    struct {
      Whole pairs[4];
    } rows;
    for (int n = 0; n < 4; ++n) {
      Half low, high;
      std::memcpy(&low, hostPointer<char>(host[2 * n]), 16);
      std::memcpy(&high, hostPointer<char>(host[2 * n + 1]), 16);
      rows.pairs[n] = __builtin_shufflevector(low, high, 0, 1, 2, 3);
    }
    image = bits<Image>(rows);
  } else if constexpr (RowBytes <= 8) {
    using Row = typename IntegerOf<RowBytes>::u;
    // A lane's local memory begins anywhere on the host.
    auto row = [&](int lane) {
      Row value;
      std::memcpy(&value, hostPointer<char>(host[lane]), sizeof value);
      return value;
    };
    image = bits<Image>(V<Row>{row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)});
  } else {
    for (int lane = 0; lane < Chunk; ++lane)
      std::memcpy(image.bytes + lane * RowBytes, hostPointer<char>(host[lane]), RowBytes);
  }
  std::memcpy(v, &image, sizeof(image));
}

/// A value as a register holds it.
template <class T, class R> inline V<R> widen(V<T> v) {
  if constexpr (sizeof(T) == sizeof(R))
    return bits<V<R>>(v);
  else
    return bits<V<R>>(to<std::conditional_t<std::is_signed_v<T>, Signed<R>, R>>(v));
}

/// All lanes, their rows one after the other.
template <class T, class R, int N>
inline void loadContiguous(char *file, const u32 *slots, const char *from) {
  if constexpr (N == 1 && sizeof(T) == sizeof(R)) {
    std::memcpy(file + slots[0], from, 32 * sizeof(T));
  } else {
    for (int c = 0; c < Chunks; ++c) {
      V<T> v[N];
      std::memcpy(v, from + c * sizeof(v), sizeof(v));
      rowsToColumns<T, N>(v);
      for (int n = 0; n < N; ++n)
        store<R>(file + slots[n], c, widen<T, R>(v[n]));
    }
  }
}

/// All lanes, one row.
template <class T, class R, int N>
inline void loadUniform(char *file, const u32 *slots, const char *from) {
  T row[N];
  std::memcpy(row, from, sizeof(row));
  for (int n = 0; n < N; ++n) {
    V<R> value = widen<T, R>(splat<T>(row[n]));
    for (int c = 0; c < Chunks; ++c)
      store<R>(file + slots[n], c, value);
  }
}

/// All lanes, each row at an address of its own.
template <class T, class R, int N>
inline void loadScattered(char *file, const u32 *slots, const u64 *host) {
  for (int c = 0; c < Chunks; ++c) {
    V<T> v[N];
    gatherRows<T, N>(host + c * Chunk, v);
    rowsToColumns<T, N>(v);
    for (int n = 0; n < N; ++n)
      store<R>(file + slots[n], c, widen<T, R>(v[n]));
  }
}

/// All lanes, rows with gaps between them.
template <class T, class R, int N>
inline void loadStrided(char *file, const u32 *slots, const Strided &from) {
  u64 host[Chunk];
  for (int lane = 0; lane < Chunk; ++lane)
    host[lane] = reinterpret_cast<u64>(from.first) + static_cast<u64>(lane) * from.stride;
  for (int c = 0; c < Chunks; ++c) {
    V<T> v[N];
    gatherRows<T, N>(host, v);
    rowsToColumns<T, N>(v);
    for (int n = 0; n < N; ++n)
      store<R>(file + slots[n], c, widen<T, R>(v[n]));
    for (u64 &at : host)
      at += Chunk * from.stride;
  }
}

/// What the registers hold, as rows in memory.
template <class T, class R, int N>
inline void storeContiguous(const char *file, const u32 *slots, char *into) {
  for (int c = 0; c < Chunks; ++c) {
    V<T> v[N];
    for (int n = 0; n < N; ++n) {
      if constexpr (sizeof(T) == sizeof(R))
        v[n] = load<T>(file + slots[n], c);
      else
        v[n] = to<T>(load<R>(file + slots[n], c));
    }
    columnsToRows<T, N>(v);
    std::memcpy(into + c * sizeof(v), v, sizeof(v));
  }
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_ROWS_H
