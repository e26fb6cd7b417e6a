//===- Mbarrier.h - where instructions find their mbarrier ----------------===//

#ifndef PLANEMU_OPS_MBARRIER_H
#define PLANEMU_OPS_MBARRIER_H

#include "runtime/emulator/Mbarrier.h"
#include "runtime/emulator/ops/Access.h"

namespace planemu::PLANEMU_ISA {

/// The mbarriers that lanes name; at host.of[n] for lane n, 0 where the address is wrong.
struct Mbarriers {
  Rows rows;
  u32 mask; // lanes whose address is good
  u64 &of(int lane) const { return *reinterpret_cast<u64 *>(rows.host.of[lane]); }
};

/// How an address operand is read.
struct AddressForm {
  bool wide, generic;
  static AddressForm of(const Decoder::Address &address) {
    return {address.baseBits == 64, address.space != Space::Shared};
  }
  s64 packed() const { return (wide ? 1 : 0) | (generic ? 2 : 0); }
  static AddressForm unpack(s64 bits) { return {(bits & 1) != 0, (bits & 2) != 0}; }
};

/// Looks up what the lanes of `mask` name by the addresses in `slot`; reports those outside of shared
/// memory.
Mbarriers findMbarriers(Warp &w, const Inst &i, u32 slot, s64 offset, AddressForm form, u32 mask);
/// Says why the mbarrier of `lane` cannot do what is asked.
void reportMbarrier(Warp &w, const Inst &i, int lane, const u64 &word, const char *what);
/// Asynchronous work of `lane` has brought `bytes`. Adds the release to what checks know.
void completeBytes(Warp &w, const Inst &i, const Mbarriers &barriers, int lane, u32 bytes);
/// Appends the address `n`, which names an mbarrier.
Decoder::Address useMbarrier(Decoder &d, unsigned n, Space space);

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_MBARRIER_H
