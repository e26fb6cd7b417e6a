//===- Exact.h - arithmetic that is rounded once, in any direction --------===//
//
// Sums, products, quotients and roots of f32 and f64 as integers: a 128-bit significand whose last
// bit also stands for everything below it, an exponent, and one rounding at the end. Slow; for the
// directed roundings that vectors do not have. The host's rounding mode is never touched.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_EXACT_H
#define PLANEMU_OPS_EXACT_H

#include "runtime/emulator/ops/Float.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

__extension__ typedef unsigned __int128 u128;

template <class T> struct FloatLayout;
template <> struct FloatLayout<f32> {
  static constexpr int Precision = 24, LeastExponent = -126; // of normal numbers, 2^e <= |x|
  static constexpr u32 CanonicalNan = 0x7fffffff;
};
template <> struct FloatLayout<f64> {
  static constexpr int Precision = 53, LeastExponent = -1022;
  static constexpr u64 CanonicalNan = 0x7ff8000000000000;
};

/// (-1)^negative * significand * 2^exponent.
struct Exact {
  bool negative;
  int exponent;
  u128 significand;
};

inline int leadingZeros(u128 value) {
  u64 high = static_cast<u64>(value >> 64);
  return high ? __builtin_clzll(high) : 64 + __builtin_clzll(static_cast<u64>(value));
}

/// The same value with its first bit at position 126, so that a sum still fits.
inline Exact normalized(Exact x) {
  int by = leadingZeros(x.significand) - 1;
  return {x.negative, x.exponent - by, by < 0 ? x.significand >> 1 : x.significand << by};
}

/// A finite number other than zero.
template <class T> inline Exact unpack(T value) {
  using Layout = FloatLayout<T>;
  using U = Unsigned<T>;
  constexpr int Fraction = Layout::Precision - 1;
  U raw = bits<U>(value), fraction = raw & ((U(1) << Fraction) - 1);
  int exponent = static_cast<int>(raw >> Fraction & (sizeof(T) == 4 ? 0xff : 0x7ff));
  if (exponent == 0)
    exponent = 1;
  else
    fraction |= U(1) << Fraction;
  return normalized(
      {__builtin_signbit(value) != 0, exponent - 1 + Layout::LeastExponent - Fraction, fraction});
}

/// Rounds towards -inf, zero or +inf.
template <class T> inline T pack(Round mode, Exact x) {
  using Layout = FloatLayout<T>;
  using U = Unsigned<T>;
  constexpr int Precision = Layout::Precision;
  constexpr U Infinity = U(~U(0) >> Precision) << (Precision - 1);
  int exponent = x.exponent + 126; // x is normalized
  int drop = 127 - Precision;
  if (exponent < Layout::LeastExponent)
    drop += Layout::LeastExponent - exponent;
  u128 kept = drop > 127 ? 0 : x.significand >> drop;
  bool inexact = drop > 127 || kept << drop != x.significand;
  bool away = mode == (x.negative ? Round::Down : Round::Up);
  U raw = static_cast<U>(kept) + (inexact && away);
  // A carry out of the significand moves on to the next exponent by itself, also out of subnormals.
  if (exponent >= Layout::LeastExponent)
    raw += static_cast<U>(std::min(exponent - Layout::LeastExponent, 1 << 12)) << (Precision - 1);
  if (exponent > 1 - Layout::LeastExponent || raw >= Infinity)
    raw = away ? Infinity : Infinity - 1;
  return bits<T>(static_cast<U>(raw | U(x.negative) << (8 * sizeof(T) - 1)));
}

inline Exact product(Exact a, Exact b) {
  // Both significands have their bits in the upper half.
  return normalized(
      {a.negative != b.negative, a.exponent + b.exponent + 128,
       u128(static_cast<u64>(a.significand >> 64)) * static_cast<u64>(b.significand >> 64)});
}

/// a + b; a significand of zero if they cancel.
inline Exact sum(Exact a, Exact b) {
  if (a.exponent < b.exponent)
    std::swap(a, b);
  int by = a.exponent - b.exponent;
  u128 lost = by == 0 ? 0 : by > 127 ? b.significand : b.significand << (128 - by);
  u128 aligned = (by > 127 ? 0 : b.significand >> by) | (lost != 0);
  if (a.negative == b.negative)
    return normalized({a.negative, a.exponent, a.significand + aligned});
  if (a.significand == aligned)
    return {false, 0, 0};
  bool less = a.significand < aligned;
  return normalized(
      {a.negative != less, a.exponent, less ? aligned - a.significand : a.significand - aligned});
}

inline Exact quotient(Exact a, Exact b) {
  u128 divisor = b.significand >> 64; // 63 bits, the lower half is zero
  u128 whole = a.significand / divisor;
  bool rest = a.significand % divisor != 0;
  return normalized({a.negative != b.negative, a.exponent - b.exponent - 64, whole | rest});
}

inline Exact squareRoot(Exact a) {
  if (a.exponent & 1)
    a = {a.negative, a.exponent - 1, a.significand << 1};
  u128 root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    u128 next = root | u128(1) << bit;
    if (next * next <= a.significand)
      root = next;
  }
  // Two bits more, so that the last one can say whether something is left.
  bool rest = root * root != a.significand;
  return normalized({false, a.exponent / 2 - 2, root << 2 | rest});
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_EXACT_H
