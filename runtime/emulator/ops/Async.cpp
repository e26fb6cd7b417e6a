//===- Async.cpp - cp.async -----------------------------------------------===//
//
// Copies happen at issue, so commit and wait only tell the observer. Lanes copy one after the other; a
// zero source size reads nothing and fills with zeros.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Access.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

namespace planemu::PLANEMU_ISA {

static void commitGroup(Warp &w, const Inst &i) {
  if (w.observer)
    w.observer->commitGroup(w, executing(w, i));
}

/// imm: groups that may be open, or Observer::All for cp.async.wait_all.
static void waitGroups(Warp &w, const Inst &i) {
  if (w.observer)
    w.observer->waitGroups(w, executing(w, i), static_cast<u32>(i.imm));
}

constexpr int CacheLine = 64; // of the host, in bytes

/// True if all lanes hold `value`.
static bool allEqual(const u32 *lanes, u32 value) {
  Vu32 different = {};
  for (int c = 0; c < Chunks; ++c)
    different |= load<u32>(reinterpret_cast<const char *>(lanes), c) ^ value;
  return allZero<u32>(different);
}

/// Operands: shared address, global address, bytes of the source that count (a b32).
template <class SharedBase, u32 Bytes, bool Sized> static void copyAsync(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  Rows to, from;
  const u32 *sizes = at<u32>(w, i.s[2]);
  if (mask == ~0u && !w.observer && (!Sized || allEqual(sizes, Bytes)) &&
      scattered<Where::Shared, SharedBase, Bytes>(w, i, i.s[0], static_cast<s32>(i.imm), to.host) &&
      scattered<Where::Global, u64, Bytes>(w, i, i.s[1], i.imm >> 32, from.host)) [[likely]] {
    for (int lane = 0; lane < 32; ++lane) {
      const char *source = reinterpret_cast<const char *>(from.host.of[lane]);
      std::memcpy(reinterpret_cast<char *>(to.host.of[lane]), source, Bytes);
      // Tiles go on where they are; the host's own prefetcher does not see that in short rows.
      __builtin_prefetch(source + CacheLine);
    }
    return;
  }
  formAddresses<SharedBase>(w, i.s[0], static_cast<s32>(i.imm), to.host);
  formAddresses<u64>(w, i.s[1], i.imm >> 32, from.host);
  resolve<Where::Shared, Bytes>(w, i, mask, "cp.async (destination)", to);
  u32 reads = mask;
  if constexpr (Sized)
    for (u32 left = mask; left; left &= left - 1)
      if (sizes[__builtin_ctz(left)] == 0)
        reads &= ~(left & -left);
  resolve<Where::Global, Bytes>(w, i, reads, "cp.async (source)", from);
  observe(w, i, AccessKind::AsyncLoad, reads, Bytes, from, nullptr, Sized ? sizes : nullptr);
  observe(w, i, AccessKind::AsyncStore, mask, Bytes, to);
  if (to.whole && from.whole && !Sized) {
    std::memcpy(to.whole, from.whole, 32 * Bytes);
    return;
  }
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    char *into = to.whole ? to.whole + lane * Bytes : reinterpret_cast<char *>(to.host.of[lane]);
    const char *source =
        from.whole ? from.whole + lane * Bytes : reinterpret_cast<char *>(from.host.of[lane]);
    if (!into)
      continue;
    u32 size = Sized ? sizes[lane] : Bytes;
    if (size > Bytes) {
      reportFault(w, i.line, FaultKind::BadOperand, static_cast<unsigned>(lane), size, Bytes,
                  "cp.async");
      continue;
    }
    if (size == Bytes && source) {
      std::memcpy(into, source, Bytes);
    } else {
      std::memset(into, 0, Bytes);
      if (source)
        std::memcpy(into, source, size);
    }
  }
}

template <class SharedBase, bool Sized> static Exec bySize(std::int64_t bytes) {
  return bytes == 4   ? grouped<copyAsync<SharedBase, 4, Sized>>
         : bytes == 8 ? grouped<copyAsync<SharedBase, 8, Sized>>
                      : grouped<copyAsync<SharedBase, 16, Sized>>;
}

/// The source size where operand 3 is a predicate that says to ignore the source.
static std::uint32_t sizeUnless(Decoder &d, u32 bytes) {
  std::uint32_t size = d.temporary(32);
  d.defTemporary(size);
  d.use(3, Type::Pred);
  Inst &inst = d.emitBeside(InstClass::Part, [](Warp &w, const Inst &i) {
    u32 mask = executing(w, i), flip = static_cast<u32>(i.imm >> 32);
    u32 ignored = readMask(w, i.s[1]) ^ flip;
    for (u32 left = mask; left; left &= left - 1) {
      int lane = __builtin_ctz(left);
      at<u32>(w, i.s[0])[lane] = ignored >> lane & 1 ? 0 : static_cast<u32>(i.imm);
    }
  });
  inst.imm = static_cast<s64>((d.operand(3).negated ? 0xffffffffull << 32 : 0) | bytes);
  return size;
}

/// cp.async.{ca|cg}.shared.global [to], [from], bytes{, source bytes | predicate}{, policy}; commit_group; wait_group n;
/// wait_all.
void selectCp(Decoder &d) {
  if (d.take(".reduce"))
    return selectBulkReduce(d);
  if (!d.take(".async"))
    d.fail("neither cp.async nor cp.reduce");
  if (d.take(".bulk"))
    return selectBulkCopy(d);
  if (d.take(".mbarrier"))
    return selectArriveCopies(d);
  if (d.take(".commit_group")) {
    d.emit(grouped<commitGroup>);
    return;
  }
  if (d.take(".wait_all")) {
    d.emit(grouped<waitGroups>, Observer::All);
    return;
  }
  if (d.take(".wait_group")) {
    std::int64_t groups;
    if (!d.isImmediate(0, groups))
      d.fail("the number of groups is not a constant");
    d.use(0, Type::U32);
    d.emit(grouped<waitGroups>, groups);
    return;
  }
  bool all = d.take(".ca");
  if (!all && !d.take(".cg"))
    d.fail("neither .ca nor .cg");
  if (!d.take(".shared") && !d.take(".shared::cta"))
    d.fail("the destination is not .shared");
  if (!d.take(".global"))
    d.fail("the source is not .global");
  unsigned operands = d.operandCount() - takeHints(d);
  std::int64_t bytes;
  if (!d.isImmediate(2, bytes) || (bytes != 16 && (!all || (bytes != 4 && bytes != 8))))
    d.fail("the size is none of 16 and, with .ca, 4 and 8");
  d.operandUsed(2);
  bool sized = operands == 4, ignores = sized && d.registerBits(d.operand(3)) == 1;
  std::uint32_t size = ignores ? sizeUnless(d, static_cast<u32>(bytes)) : 0;
  Decoder::Address to = d.useAddress(0, Space::Shared), from = d.useAddress(1, Space::Global);
  if (ignores)
    d.useTemporary(size);
  else if (sized)
    d.use(3, Type::U32);
  else
    d.useConstant(0, 32);
  if (from.baseBits != 64)
    d.fail("the source address has 32 bits");
  if (to.offset != static_cast<s32>(to.offset) || from.offset != static_cast<s32>(from.offset))
    d.fail("offset out of range");
  Exec run = to.baseBits == 32 ? (sized ? bySize<u32, true>(bytes) : bySize<u32, false>(bytes))
                               : (sized ? bySize<u64, true>(bytes) : bySize<u64, false>(bytes));
  d.emit(run, from.offset * (1ll << 32) | static_cast<u32>(to.offset));
  d.needsRegionCache();
}

} // namespace planemu::PLANEMU_ISA
