//===- Bulk.cpp - cp.async.bulk, cp.reduce.async.bulk ---------------------===//
//
// PTX ISA, "Data Movement: Non-tensor copy". As with cp.async the copy happens at issue. What is
// written to shared memory counts as in flight until a wait on its mbarrier finds the phase over;
// bulk groups, which say when the source may change, order nothing here. A cluster is one CTA.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/AtomicOps.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"
#include "runtime/emulator/ops/Mbarrier.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

namespace {
/// Inst::imm of a bulk copy. Each address may have 32 bits or be generic.
struct BulkForm {
  bool toGlobal, fromGlobal, signals;
  AddressForm to, from, barrier;
  s64 packed() const {
    return s64(toGlobal) | s64(fromGlobal) << 1 | s64(signals) << 2 | to.packed() << 4 |
           from.packed() << 6 | barrier.packed() << 8;
  }
  static BulkForm unpack(s64 bits) {
    return {(bits & 1) != 0,
            (bits & 2) != 0,
            (bits & 4) != 0,
            AddressForm::unpack(bits >> 4),
            AddressForm::unpack(bits >> 6),
            AddressForm::unpack(bits >> 8)};
  }
};
} // namespace

// Operands of all instructions here: to, from, bytes, mbarrier; then their offsets.
enum Slot { To, From, Bytes, Barrier, ToOffset, FromOffset, BarrierOffset };

static u64 addressOf(Warp &w, u32 slot, u32 offsetSlot, bool wide, int lane) {
  u64 offset = at<u64>(w, offsetSlot)[lane];
  return wide ? at<u64>(w, slot)[lane] + offset
              : static_cast<u32>(at<u32>(w, slot)[lane] + static_cast<u32>(offset));
}

/// Host address of `bytes` bytes, or 0 after reporting a fault.
static u64 hostOf(Warp &w, const Inst &i, int lane, u64 address, bool isGlobal, u32 bytes,
                  const char *access) {
  auto report = [&](FaultKind kind, u32 size) {
    reportFault(w, i.line, kind, static_cast<unsigned>(lane), address, size, access);
    return u64(0);
  };
  if (address % 16)
    return report(FaultKind::Misaligned, 16);
  if (isGlobal) {
    RegionRef region;
    if (findRegion(w, address, region) && bytes <= region.size - (address - region.low))
      return address + region.delta;
  } else if ((address & WindowMask) == SharedWindow || address < w.sharedBytes) {
    u64 offset = address & ~WindowMask;
    if (offset < w.sharedBytes && bytes <= w.sharedBytes - offset)
      return reinterpret_cast<u64>(w.shared) + offset;
  }
  return report(FaultKind::OutOfBounds, bytes);
}

/// Tells the observer of a long row in pieces it can take.
static void observeLong(Warp &w, const Inst &i, AccessKind kind, int lane, u64 host, u32 bytes,
                        const u64 *barrier = nullptr, bool parity = false) {
  if (!w.observer || !w.observer->seesMemory())
    return;
  for (u32 done = 0; done < bytes; done += 512) {
    Addresses rows = {};
    rows.of[lane] = host + done;
    Access access{kind, 1u << lane, std::min(512u, bytes - done), 0, rows.of};
    access.mbarrier = reinterpret_cast<u64>(barrier);
    access.parity = parity;
    w.observer->access(w, i, access);
  }
}

using Combine = void (*)(char *to, const char *from, u32 bytes, bool isGlobal);

static void copyRow(char *to, const char *from, u32 bytes, bool) { std::memcpy(to, from, bytes); }

/// Each element is an atomic operation, as other CTAs see it.
template <Op O, class T> static void combineRow(char *to, const char *from, u32 bytes, bool) {
  using U = Unsigned<T>;
  for (u32 at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, from + at, sizeof(T));
    U *word = reinterpret_cast<U *>(to + at);
    U seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &seen,
                                        bits<U>(updated<O, T>(bits<T>(seen), value, T())), true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
      ;
  }
}

template <Combine Run, bool Reduces> static void bulk(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  BulkForm form = BulkForm::unpack(i.imm);
  Mbarriers barriers;
  if (form.signals) {
    // The offset is the same in all lanes.
    s64 offset = static_cast<s64>(at<u64>(w, i.ops[BarrierOffset])[0]);
    barriers = findMbarriers(w, i, i.ops[Barrier], offset, form.barrier, mask);
    mask = barriers.mask;
  }
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    u32 bytes = at<u32>(w, i.ops[Bytes])[lane];
    if (bytes % 16)
      return reportFault(w, i.line, FaultKind::BadOperand, static_cast<unsigned>(lane), bytes, 16,
                         "size of a bulk copy, a multiple of 16");
    u64 to = hostOf(w, i, lane, addressOf(w, i.ops[To], i.ops[ToOffset], form.to.wide, lane),
                    form.toGlobal, bytes,
                    form.toGlobal ? "bulk copy (to global)" : "bulk copy (destination)");
    u64 from =
        hostOf(w, i, lane, addressOf(w, i.ops[From], i.ops[FromOffset], form.from.wide, lane),
               form.fromGlobal, bytes,
               form.fromGlobal ? "bulk copy (from global)" : "bulk copy (from shared)");
    if (!to || !from)
      return;
    const u64 *barrier = form.signals ? &barriers.of(lane) : nullptr;
    bool parity = barrier && Mbarrier::read(*barrier).parity;
    observeLong(w, i, AccessKind::AsyncLoad, lane, from, bytes);
    observeLong(w, i, Reduces ? AccessKind::Atomic : AccessKind::AsyncStore, lane, to, bytes,
                barrier, parity);
    Run(reinterpret_cast<char *>(to), reinterpret_cast<char *>(from), bytes, form.toGlobal);
    if (barrier)
      completeBytes(w, i, barriers, lane, bytes);
  }
}

// --- Choosing ---------------------------------------------------------------

/// Consumes the spaces and how completion is told, which go together.
static BulkForm takeBulkForm(Decoder &d) {
  bool cluster = d.take(".shared::cluster"), own = d.take(".shared::cta"),
       global = d.take(".global");
  bool group = d.take(".bulk_group");
  if (!group && !d.take(".mbarrier::complete_tx::bytes"))
    d.fail("neither .mbarrier::complete_tx::bytes nor .bulk_group");
  // Which of two spaces is the destination follows from how completion is told.
  if (cluster + own + global != 2 || (group && cluster))
    d.fail(
        "the spaces are none of .shared::cluster.global, .shared::cta.global and "
        ".shared::cluster.shared::cta with .mbarrier::complete_tx::bytes, and .global.shared::cta "
        "with .bulk_group");
  BulkForm form = {};
  form.toGlobal = group;
  form.fromGlobal = !group && global;
  form.signals = !group;
  return form;
}

/// Appends the operands.
static void useBulk(Decoder &d, BulkForm &form) {
  unsigned hints = takeHints(d), needed = form.signals ? 4 : 3;
  if (d.operandCount() != needed + hints)
    d.fail("takes " + std::to_string(needed + hints) + " operands");
  Decoder::Address to = d.useAddress(0, form.toGlobal ? Space::Global : Space::Shared);
  Decoder::Address from = d.useAddress(1, form.fromGlobal ? Space::Global : Space::Shared);
  d.use(2, Type::U32);
  Decoder::Address barrier = {};
  if (form.signals)
    barrier = useMbarrier(d, 3, Space::Shared);
  else
    d.useConstant(0, 32);
  form.to = AddressForm::of(to);
  form.from = AddressForm::of(from);
  form.barrier = form.signals ? AddressForm::of(barrier) : AddressForm{};
  for (const Decoder::Address &address : {to, from, barrier})
    d.useConstant(static_cast<u64>(address.offset), 64);
}

void selectBulkCopy(Decoder &d) {
  if (d.take(".commit_group"))
    return d.emitNothing();
  if (d.take(".wait_group")) {
    d.take(".read");
    if (std::int64_t groups; !d.isImmediate(0, groups) || groups < 0)
      d.fail("the number of groups is not a constant");
    d.operandUsed(0);
    return d.emitNothing();
  }
  if (d.take(".prefetch")) {
    if (!d.take(".L2") || !d.take(".global"))
      d.fail("only cp.async.bulk.prefetch.L2.global is supported");
    if (d.operandCount() != 2u + takeHints(d))
      d.fail("takes an address and a size");
    d.useAddress(0, Space::Global);
    d.use(1, Type::U32);
    return d.emitNothing();
  }
  if (d.take(".tensor"))
    d.fail("copies of tensors are not supported");
  BulkForm form = takeBulkForm(d);
  if (d.take(".multicast::cluster"))
    d.fail("copies to several CTAs of a cluster are not supported");
  useBulk(d, form);
  d.emitList(bulk<copyRow, false>, form.packed(),
             form.signals ? Inst::ScopeCta | Inst::Release : 0);
  d.needsRegionCache();
}

static Exec findReduction(Op op, Type type) {
#define PLANEMU_REDUCE(O, T, Host)                                                                 \
  if (op == Op::O && type == Type::T)                                                              \
    return bulk<combineRow<Op::O, Host>, true>;
  PLANEMU_REDUCE(And, B32, u32)
  PLANEMU_REDUCE(And, B64, u64)
  PLANEMU_REDUCE(Or, B32, u32)
  PLANEMU_REDUCE(Or, B64, u64)
  PLANEMU_REDUCE(Xor, B32, u32)
  PLANEMU_REDUCE(Xor, B64, u64)
  PLANEMU_REDUCE(Inc, U32, u32)
  PLANEMU_REDUCE(Dec, U32, u32)
  PLANEMU_REDUCE(Add, U32, u32)
  PLANEMU_REDUCE(Add, S32, u32)
  PLANEMU_REDUCE(Add, U64, u64)
  PLANEMU_REDUCE(Add, F32, f32)
  PLANEMU_REDUCE(Add, F64, f64)
  PLANEMU_REDUCE(AddF16, F16, u16)
  PLANEMU_REDUCE(AddBf16, BF16, u16)
  PLANEMU_REDUCE(Min, U32, u32)
  PLANEMU_REDUCE(Min, S32, s32)
  PLANEMU_REDUCE(Min, U64, u64)
  PLANEMU_REDUCE(Min, S64, s64)
  PLANEMU_REDUCE(MinF16, F16, u16)
  PLANEMU_REDUCE(MinBf16, BF16, u16)
  PLANEMU_REDUCE(Max, U32, u32)
  PLANEMU_REDUCE(Max, S32, s32)
  PLANEMU_REDUCE(Max, U64, u64)
  PLANEMU_REDUCE(Max, S64, s64)
  PLANEMU_REDUCE(MaxF16, F16, u16)
  PLANEMU_REDUCE(MaxBf16, BF16, u16)
#undef PLANEMU_REDUCE
  return nullptr;
}

/// cp.reduce.async.bulk.to.from.completion{.hint}.op{.noftz}.type
void selectBulkReduce(Decoder &d) {
  if (!d.take(".async") || !d.take(".bulk"))
    d.fail("only cp.reduce.async.bulk is supported");
  if (d.take(".tensor"))
    d.fail("copies of tensors are not supported");
  BulkForm form = takeBulkForm(d);
  if (form.fromGlobal)
    d.fail("the source is in shared memory");
  Op op = takeOperation(d);
  bool noftz = d.take(".noftz");
  Type type = d.takeType();
  if (noftz != (isHalf(type) && op == Op::Add))
    d.fail("additions of f16 and bf16, and no others, need '.noftz'");
  bool isFloat = isHalf(type) || type == Type::F32 || type == Type::F64;
  if (isFloat && !form.toGlobal)
    d.failType(type);
  if (isHalf(type))
    op = halfOp(op, type);
  if (isFloat)
    d.noteOrderedCtas();
  Exec run = findReduction(op, type);
  if (!run)
    d.failType(type);
  useBulk(d, form);
  d.emitList(run, form.packed(), Inst::ScopeGpu | (form.signals ? Inst::Release : 0));
  d.needsRegionCache();
}

} // namespace planemu::PLANEMU_ISA
