//===- Directed.cpp - the roundings .rm .rz .rp ---------------------------===//
//
// Lane by lane: compilers use them in range reductions and conversions only. The f32 operations
// that appear there go through double, which holds their results but for an error of known sign;
// the rest through Exact.h.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Exact.h"
#include "runtime/emulator/ops/Float.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

/// Error of a + b, exact (Knuth's TwoSum).
static f64 sumError(f64 a, f64 b, f64 sum) {
  f64 bPart = sum - a;
  return (a - (sum - bPart)) + (b - bPart);
}

/// a * b + c with a directed rounding: a double holds the product exactly and the sum but for its
/// error.
static f32 fmaDirected(Round mode, f32 a, f32 b, f32 c) {
  f64 product = static_cast<f64>(a) * b, sum = product + c;
  if (sum == 0 && !(product == 0 && c == 0 && (product < 0) == (c < 0)))
    return mode == Round::Down ? -0.0f : 0.0f; // exact cancellation
  if (product == 0 && c == 0 && __builtin_signbit(product) != __builtin_signbit(c))
    return mode == Round::Down ? -0.0f : 0.0f;
  return roundTo(mode, sum, sumError(product, c, sum));
}

template <Round Mode> static f32 fmaRounded(f32 a, f32 b, f32 c) {
  f32 result = fmaDirected(Mode, a, b, c);
  return result == result ? result : bits<f32>(0x7fffffffu);
}
template <Round Mode> static f32 mulRounded(f32 a, f32 b) {
  f32 result = roundTo(Mode, static_cast<f64>(a) * b, 0);
  return result == result ? result : bits<f32>(0x7fffffffu);
}

static f32 flushLane(f32 value) {
  u32 raw = bits<u32>(value);
  return bits<f32>(raw & 0x7f800000 ? raw : raw & 0x80000000);
}
static f32 saturatedLane(f32 value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }

template <class T> static bool isFinite(T value) { return value - value == 0; }

/// Zero as the sum of two that cancel or differ in sign.
template <Round Mode, class T> static T zeroSum() { return Mode == Round::Down ? T(-0.0) : T(0); }

template <Round Mode> static f64 fmaRounded(f64 a, f64 b, f64 c) {
  if (!isFinite(a) || !isFinite(b) || !isFinite(c))
    return a * b + c; // exact: infinite or NaN
  if (a == 0 || b == 0) {
    if (c != 0)
      return c;
    bool negative = (__builtin_signbit(a) != 0) != (__builtin_signbit(b) != 0);
    return negative == (__builtin_signbit(c) != 0) ? c : zeroSum<Mode, f64>();
  }
  Exact result = product(unpack(a), unpack(b));
  if (c != 0)
    result = sum(result, unpack(c));
  return result.significand == 0 ? zeroSum<Mode, f64>() : pack<f64>(Mode, result);
}
template <Round Mode> static f64 mulRounded(f64 a, f64 b) {
  if (!isFinite(a) || !isFinite(b) || a == 0 || b == 0)
    return a * b;
  return pack<f64>(Mode, product(unpack(a), unpack(b)));
}
template <Round Mode, class T> static T divRounded(T a, T b) {
  if (!isFinite(a) || !isFinite(b) || a == 0 || b == 0)
    return a / b;
  return pack<T>(Mode, quotient(unpack(a), unpack(b)));
}
template <Round Mode, class T> static T sqrtRounded(T a) {
  if (a < 0)
    return bits<T>(FloatLayout<T>::CanonicalNan);
  if (!isFinite(a) || a == 0)
    return a;
  return pack<T>(Mode, squareRoot(unpack(a)));
}

template <Round Mode, Operation O, class T> static T rounded(T a, T b, T c) {
  T result = O == Operation::Add   ? fmaRounded<Mode>(a, T(1), b)
             : O == Operation::Sub ? fmaRounded<Mode>(a, T(1), -b)
             : O == Operation::Mul ? mulRounded<Mode>(a, b)
             : O == Operation::Fma ? fmaRounded<Mode>(a, b, c)
             : O == Operation::Div ? divRounded<Mode>(a, b)
             : O == Operation::Rcp ? divRounded<Mode>(T(1), a)
                                   : sqrtRounded<Mode>(a);
  return result == result ? result : bits<T>(FloatLayout<T>::CanonicalNan);
}

/// imm: 1 flushes, 2 saturates.
template <Round Mode, Operation O> static f32 modified(f32 a, f32 b, f32 c, s64 flags) {
  if (flags & 1)
    a = flushLane(a), b = flushLane(b), c = flushLane(c);
  f32 result = rounded<Mode, O>(a, b, c);
  if (flags & 1)
    result = flushLane(result);
  return flags & 2 ? saturatedLane(result) : result;
}

/// T: f32, f64, or u64 for a pair of f32.
template <class T, Round Mode, Operation O> static void directed(Warp &w, const Inst &i) {
  T *d = at<T>(w, i.s[0]);
  const T *a = at<T>(w, i.s[1]), *b = at<T>(w, i.s[2]), *c = at<T>(w, i.s[3]);
  for (u32 left = executing(w, i); left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    if constexpr (std::is_same_v<T, f64>) {
      d[lane] = rounded<Mode, O>(a[lane], b[lane], c[lane]);
    } else if constexpr (std::is_same_v<T, f32>) {
      d[lane] = modified<Mode, O>(a[lane], b[lane], c[lane], i.imm);
    } else {
      u64 pair = 0;
      for (int by : {0, 32})
        pair |= u64(bits<u32>(modified<Mode, O>(bits<f32>(u32(a[lane] >> by)),
                                                bits<f32>(u32(b[lane] >> by)),
                                                bits<f32>(u32(c[lane] >> by)), i.imm)))
                << by;
      d[lane] = pair;
    }
  }
}

template <class T, Round Mode> static Exec byOperation(Operation operation) {
  switch (operation) {
  case Operation::Add:
    return directed<T, Mode, Operation::Add>;
  case Operation::Sub:
    return directed<T, Mode, Operation::Sub>;
  case Operation::Mul:
    return directed<T, Mode, Operation::Mul>;
  case Operation::Fma:
    return directed<T, Mode, Operation::Fma>;
  case Operation::Div:
    return directed<T, Mode, Operation::Div>;
  case Operation::Rcp:
    return directed<T, Mode, Operation::Rcp>;
  case Operation::Sqrt:
    break;
  }
  return directed<T, Mode, Operation::Sqrt>;
}

template <class T> static Exec byMode(Operation operation, Round round) {
  return round == Round::Down   ? byOperation<T, Round::Down>(operation)
         : round == Round::Zero ? byOperation<T, Round::Zero>(operation)
                                : byOperation<T, Round::Up>(operation);
}

void emitDirected(Decoder &d, Operation operation, Type type, const Modifiers &m) {
  unsigned sources = operation == Operation::Fma                                   ? 3
                     : operation == Operation::Rcp || operation == Operation::Sqrt ? 1
                                                                                   : 2;
  for (; sources < 3; ++sources)
    d.useConstant(0, bitsOf(type));
  s64 flags = (m.ftz ? 1 : 0) | (m.sat ? 2 : 0);
  d.emit(type == Type::F64     ? byMode<f64>(operation, m.round)
         : type == Type::F32x2 ? byMode<u64>(operation, m.round)
                               : byMode<f32>(operation, m.round),
         flags);
}

} // namespace planemu::PLANEMU_ISA
