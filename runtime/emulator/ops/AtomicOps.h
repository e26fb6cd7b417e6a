//===- AtomicOps.h - what atomic operations compute -----------------------===//
//
// Shared by atom, red and the reductions of bulk copies.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_ATOMICOPS_H
#define PLANEMU_OPS_ATOMICOPS_H

#include "runtime/emulator/ops/Formats.h"

namespace planemu::PLANEMU_ISA {

enum class Op : u8 {
  Add,
  Inc,
  Dec,
  And,
  Or,
  Xor,
  Min,
  Max,
  Exch,
  Cas,
  // Of halves, by format and number: op - AddF16 is 4 * (add, min, max) + 2 * bf16 + pair.
  AddF16,
  AddF16x2,
  AddBf16,
  AddBf16x2,
  MinF16,
  MinF16x2,
  MinBf16,
  MinBf16x2,
  MaxF16,
  MaxF16x2,
  MaxBf16,
  MaxBf16x2
};

/// The operation on a half type that `op`, one of Add, Min and Max, is; others stay what they are.
inline Op halfOp(Op op, Type type) {
  int row = op == Op::Add ? 0 : op == Op::Min ? 1 : op == Op::Max ? 2 : -1;
  if (row < 0)
    return op;
  bool bfloat = type == Type::BF16 || type == Type::BF16x2;
  bool pair = type == Type::F16x2 || type == Type::BF16x2;
  return static_cast<Op>(int(Op::AddF16) + 4 * row + 2 * bfloat + pair);
}

/// `O`: of one half.
template <Op O> inline u16 updatedHalf(u16 a, u16 b) {
  constexpr bool Bfloat = O == Op::AddBf16 || O == Op::MinBf16 || O == Op::MaxBf16;
  Vf32 x = Bfloat ? fromBf16(splat<u16>(a)) : fromF16(splat<u16>(a));
  Vf32 y = Bfloat ? fromBf16(splat<u16>(b)) : fromF16(splat<u16>(b));
  if constexpr (O == Op::AddF16 || O == Op::AddBf16)
    return (Bfloat ? toBf16(x + y) : toF16(x + y))[0];
  constexpr bool Least = O == Op::MinF16 || O == Op::MinBf16;
  // A number wins over NaN, and -0 is less than +0.
  f32 p = x[0], q = y[0];
  if (p != p)
    return q != q ? u16(0x7fff) : b;
  if (q != q)
    return a;
  bool less = p < q || (p == q && a >> 15 && !(b >> 15));
  return less == Least ? a : b;
}

template <Op O, class T> inline T updated(T old, T b, T c) {
  if constexpr (O == Op::Add)
    return static_cast<T>(old + b);
  else if constexpr (O == Op::Inc)
    return old >= b ? 0 : old + 1;
  else if constexpr (O == Op::Dec)
    return old == 0 || old > b ? b : old - 1;
  else if constexpr (O == Op::And)
    return old & b;
  else if constexpr (O == Op::Or)
    return old | b;
  else if constexpr (O == Op::Xor)
    return old ^ b;
  else if constexpr (O == Op::Min)
    return b < old ? b : old;
  else if constexpr (O == Op::Max)
    return b > old ? b : old;
  else if constexpr (O == Op::Exch)
    return b;
  else if constexpr (O == Op::Cas)
    return old == b ? c : old;
  else if constexpr ((int(O) - int(Op::AddF16)) % 2 == 0) {
    return updatedHalf<O>(old, b);
  } else {
    constexpr Op Half = static_cast<Op>(int(O) - 1);
    return updatedHalf<Half>(static_cast<u16>(old), static_cast<u16>(b)) |
           u32(updatedHalf<Half>(static_cast<u16>(old >> 16), static_cast<u16>(b >> 16))) << 16;
  }
}

/// The operation that a modifier names, taken; fails if there is none.
Op takeOperation(Decoder &d);

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_ATOMICOPS_H
