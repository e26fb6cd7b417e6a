//===- IntegerTypes.h - from PTX's integer types to the host's ------------===//

#ifndef PLANEMU_OPS_INTEGERTYPES_H
#define PLANEMU_OPS_INTEGERTYPES_H

#include "runtime/emulator/ops/Lanes.h"

namespace planemu::PLANEMU_ISA {

/// Calls f(T{}) with the unsigned type of `type`'s width.
template <class F> inline void byWidth(Decoder &d, Type type, F f) {
  switch (bitsOf(type)) {
  case 16:
    return f(u16{});
  case 32:
    return f(u32{});
  case 64:
    return f(u64{});
  default:
    d.failType(type);
  }
}

/// Calls f(T{}) with the type itself.
template <class F> inline void byType(Decoder &d, Type type, F f) {
  switch (type) {
  case Type::U16:
    return f(u16{});
  case Type::S16:
    return f(s16{});
  case Type::U32:
    return f(u32{});
  case Type::S32:
    return f(s32{});
  case Type::U64:
    return f(u64{});
  case Type::S64:
    return f(s64{});
  default:
    d.failType(type);
  }
}

inline void operands(Decoder &d, Type type, unsigned sources) {
  d.def(0, bitsOf(type));
  for (unsigned n = 1; n <= sources; ++n)
    d.use(n, type);
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_INTEGERTYPES_H
