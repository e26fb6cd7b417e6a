//===- Mma.h - what the files of mma share --------------------------------===//

#ifndef PLANEMU_OPS_MMA_H
#define PLANEMU_OPS_MMA_H

#include "runtime/emulator/ops/Lanes.h"

#include <string_view>

namespace planemu::PLANEMU_ISA {

/// One shape with its types: the function, and how many registers D and C, A, B have.
struct MmaForm {
  Exec run = nullptr;
  unsigned sums = 0, a = 0, b = 0;
  Type sumType = Type::None;
};

/// MmaScalar.cpp. No `run` if there is no such shape.
MmaForm findIntegers(std::string_view shape, std::string_view a, std::string_view b, bool saturate);
MmaForm findBits(std::string_view shape, bool exclusive);
MmaForm findTf32(std::string_view shape);
/// The whole statement on f64; `rest`: shape and the four types.
void selectDoubleMma(Decoder &d, const std::vector<std::string_view> &rest);

/// Reports a fault if `mask`, which is not all lanes, has any; false.
bool partialWarp(Warp &w, const Inst &i, u32 mask, const char *what);
/// All 32 lanes must execute; true if they do, else a fault is reported.
inline bool wholeWarp(Warp &w, const Inst &i, const char *what) {
  u32 mask = executing(w, i);
  return mask == ~0u || partialWarp(w, i, mask, what);
}
/// Transposes 8 x 8 elements in place.
void transposeTile(u16 *tile);

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_MMA_H
