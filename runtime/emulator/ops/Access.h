//===- Access.h - addresses of a warp to host memory ----------------------===//
//
// Every memory instruction does the same three things: form 32 addresses, find out that they are
// valid, and move rows (what one lane reads or writes). The usual warp lies in one region, and the
// instruction remembers which: then validity is two comparisons for a contiguous warp and a handful
// of vector operations for any other. What falls outside is looked at lane by lane, where faults
// are reported and skipped.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_ACCESS_H
#define PLANEMU_OPS_ACCESS_H

#include "runtime/emulator/observe/Observer.h"
#include "runtime/emulator/ops/Lanes.h"

namespace planemu::PLANEMU_ISA {

/// What an address is looked up in. Generic addresses reach global memory and both windows.
enum class Where : u8 { Global, Shared, Local };

struct Addresses {
  alignas(64) u64 of[32];
};

template <class Base> inline void formAddresses(Warp &w, u32 slot, s64 offset, Addresses &out) {
  if constexpr (sizeof(Base) == 8) {
    for (int c = 0; c < Chunks; ++c)
      store<u64>(reinterpret_cast<char *>(out.of), c,
                 load<u64>(w.file + slot, c) + static_cast<u64>(offset));
  } else {
    // 32-bit addresses wrap in 32 bits.
    for (int c = 0; c < Chunks; ++c)
      store<u64>(reinterpret_cast<char *>(out.of), c,
                 to<u64>(load<u32>(w.file + slot, c) + static_cast<u32>(offset)));
  }
}

/// True if lane n accesses the bytes right after lane n - 1.
template <u32 RowBytes> inline bool contiguous(const Addresses &a) {
  if (a.of[31] - a.of[0] != 31ull * RowBytes || a.of[1] - a.of[0] != RowBytes)
    return false;
  Vu64 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  Vu64 expected = lane * u64(RowBytes) + a.of[0];
  Vu64 different = {};
  for (int c = 0; c < Chunks; ++c) {
    different |= load<u64>(reinterpret_cast<const char *>(a.of), c) ^ expected;
    expected += u64(Chunk) * RowBytes;
  }
  return compress(different != 0) == 0;
}

/// True if all lanes of `mask` lie in `region` and are aligned to their rows.
template <u32 RowBytes>
inline bool allInside(const Addresses &a, u32 mask, const RegionRef &region) {
  if (region.size < RowBytes)
    return false;
  u64 last = region.size - RowBytes;
  Vs64 bad = {};
  for (int c = 0; c < Chunks; ++c) {
    Vu64 address = load<u64>(reinterpret_cast<const char *>(a.of), c);
    Vs64 offset = bits<Vs64>(address - region.low);
    Vs64 wrong = offset | (static_cast<s64>(last) - offset) |
                 bits<Vs64>(Vu64{} - (address & u64(RowBytes - 1)));
    bad |= mask == ~0u ? wrong : wrong & expand<u64>(mask >> (c * Chunk));
  }
  return compress(bad < 0) == 0;
}

/// Host address of one lane's row, or 0 after reporting a fault.
template <Where Space>
inline u64 resolveLane(Warp &w, const Inst &i, int lane, u64 address, u32 rowBytes, u32 align,
                       const char *access) {
  if (address & (align - 1)) {
    reportFault(w, i.line, FaultKind::Misaligned, static_cast<unsigned>(lane), address, rowBytes,
                access);
    return 0;
  }
  u64 limit = 0, base = 0;
  if (Space == Where::Local || (Space == Where::Global && (address & WindowMask) == LocalWindow)) {
    u64 offset = Space == Where::Local ? address : address - LocalWindow;
    limit = w.localBytes;
    base = reinterpret_cast<u64>(w.local) + static_cast<u64>(lane) * w.localBytes;
    if (offset < limit && rowBytes <= limit - offset)
      return base + offset;
  } else if (Space == Where::Shared) {
    if (address < w.sharedBytes && rowBytes <= w.sharedBytes - address)
      return reinterpret_cast<u64>(w.shared) + address;
  } else {
    RegionRef region;
    if (findRegion(w, address, region) && rowBytes <= region.size - (address - region.low)) {
      w.regions[i.cache] = region;
      return address + region.delta;
    }
  }
  reportFault(w, i.line, FaultKind::OutOfBounds, static_cast<unsigned>(lane), address, rowBytes,
              access);
  return 0;
}

/// The host's rows of a warp. `whole`: lane n's row is at rows + n * RowBytes; else at host.of[n],
/// which is 0 for lanes that do not access.
struct Rows {
  char *whole;
  Addresses host;
};

template <Where Space> inline RegionRef regionOf(Warp &w, const Inst &i) {
  if constexpr (Space == Where::Shared)
    return {0, w.sharedBytes, reinterpret_cast<u64>(w.shared)};
  else
    return w.regions[i.cache];
}

/// Resolves the addresses in rows.host (in place).
template <Where Space, u32 RowBytes>
inline void resolve(Warp &w, const Inst &i, u32 mask, const char *access, Rows &rows) {
  rows.whole = nullptr;
  if constexpr (Space != Where::Local) {
    RegionRef region = regionOf<Space>(w, i);
    u64 first = rows.host.of[0];
    if (mask == ~0u && contiguous<RowBytes>(rows.host)) {
      if (first - region.low >= region.size && Space == Where::Global &&
          findRegion(w, first, region))
        w.regions[i.cache] = region;
      u64 all = 32ull * RowBytes, offset = first - region.low;
      if (offset < region.size && all <= region.size - offset && !(first & (RowBytes - 1))) {
        rows.whole = reinterpret_cast<char *>(first + region.delta);
        return;
      }
    }
    bool inside = allInside<RowBytes>(rows.host, mask, region);
    if (!inside && Space == Where::Global && mask) {
      u64 some = rows.host.of[__builtin_ctz(mask)];
      if (some - region.low >= region.size && findRegion(w, some, region)) {
        w.regions[i.cache] = region;
        inside = allInside<RowBytes>(rows.host, mask, region);
      }
    }
    if (inside) {
      if (mask == ~0u && region.delta == 0)
        return;
      for (int c = 0; c < Chunks; ++c) {
        char *at = reinterpret_cast<char *>(rows.host.of);
        Vu64 host = load<u64>(at, c) + region.delta;
        store<u64>(at, c, mask == ~0u ? host : host & bits<Vu64>(expand<u64>(mask >> (c * Chunk))));
      }
      return;
    }
  }
  for (int lane = 0; lane < 32; ++lane)
    rows.host.of[lane] = mask >> lane & 1 ? resolveLane<Space>(w, i, lane, rows.host.of[lane],
                                                               RowBytes, RowBytes, access)
                                          : 0;
}

/// Rows of all lanes, equally far from each other. `stride` 0: one row for all.
struct Strided {
  char *first; // of lane 0 in the host's memory, or null
  u64 stride;
};

/// Of an Inst that makes a note of its addresses, `note` being where its operands have the offset.
inline void noteNotSo(Warp &w, const Inst &i, const u32 *note) {
  if (i.flags & Inst::MakesNote)
    at<AddressNote>(w, *note)->stride = AddressNote::NotSo;
}

/// The first of a register's lanes and how far they are from each other. The stride is NotSo if that
/// is not the same for all; or backwards, or too far to be worth it.
template <class Base> inline AddressNote lookAt(const char *addresses) {
  Base first, second, last;
  std::memcpy(&first, addresses, sizeof(Base));
  std::memcpy(&second, addresses + sizeof(Base), sizeof(Base));
  const Base stride = second - first;
  std::memcpy(&last, addresses + 31 * sizeof(Base), sizeof(Base));
  if (stride > (1u << 20) || last - first != 31 * stride)
    return {first, AddressNote::NotSo};
  V<Base> expected = to<Base>(Vu32{0, 1, 2, 3, 4, 5, 6, 7} * static_cast<u32>(stride)) + first;
  V<Base> different = {};
  for (int c = 0; c < Chunks; ++c) {
    different |= load<Base>(addresses, c) ^ expected;
    expected += static_cast<Base>(Chunk * stride);
  }
  return {first, allZero<Base>(different) ? stride : AddressNote::NotSo};
}

/// What most warps do: all lanes access one region, lane n at n times a stride from lane 0. Null if
/// it is not so. `note`: as of noteNotSo.
template <Where Space, class Base, u32 RowBytes>
inline Strided strided(Warp &w, const Inst &i, u32 slot, s64 offset, const u32 *note) {
  AddressNote lanes;
  if (i.flags & Inst::ReadsNote) {
    lanes = *at<AddressNote>(w, *note);
  } else {
    lanes = lookAt<Base>(w.file + slot);
    if (i.flags & Inst::MakesNote)
      *at<AddressNote>(w, *note) = lanes;
  }
  if (lanes.stride == AddressNote::NotSo)
    return {nullptr, 0};
  const u64 address = static_cast<Base>(static_cast<Base>(lanes.first) + static_cast<Base>(offset));
  const u64 bytes = 31 * lanes.stride + RowBytes;
  RegionRef region = regionOf<Space>(w, i);
  u64 inside = address - region.low;
  if (inside >= region.size || bytes > region.size - inside ||
      ((address | lanes.stride) & (RowBytes - 1)))
    return {nullptr, 0};
  return {reinterpret_cast<char *>(address + region.delta), lanes.stride};
}

/// Host addresses of the first `Lanes` lanes, if all their rows are valid and in the region of last
/// time. Else false, and what `out` holds is of no use.
template <Where Space, class Base, u32 RowBytes, int Lanes = 32>
inline bool scattered(Warp &w, const Inst &i, u32 slot, s64 offset, Addresses &out) {
  static_assert(Space != Where::Local);
  const RegionRef region = regionOf<Space>(w, i);
  if (region.size < RowBytes)
    return false;
  // Regions are smaller than half of what a Base counts: the sign bit of `wrong` says whether a row
  // starts before its region, ends behind it, or is not aligned.
  const Base low = static_cast<Base>(region.low), last = static_cast<Base>(region.size - RowBytes);
  const Base shift = static_cast<Base>(offset) - low;
  const u64 host = region.low + region.delta;
  V<Base> wrong = {};
  for (int c = 0; c < Lanes / Chunk; ++c) {
    V<Base> inside = load<Base>(w.file + slot, c) + shift;
    V<Base> astray = (inside + low) & Base(RowBytes - 1);
    wrong |= inside | (last - inside) | (V<Base>{} - astray);
    store<u64>(reinterpret_cast<char *>(out.of), c, to<u64>(inside) + host);
  }
  return compress(bits<V<Signed<Base>>>(wrong) < 0) == 0;
}

/// Tells the observer, if there is one, before memory changes. `data`: the rows that are stored.
inline void observe(Warp &w, const Inst &i, AccessKind kind, u32 mask, u32 rowBytes,
                    const Rows &rows, const char *data = nullptr, const u32 *sizes = nullptr) {
  if (w.observer && w.observer->seesMemory()) [[unlikely]]
    w.observer->access(
        w, i, {kind, mask, rowBytes, reinterpret_cast<u64>(rows.whole), rows.host.of, data, sizes});
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_ACCESS_H
