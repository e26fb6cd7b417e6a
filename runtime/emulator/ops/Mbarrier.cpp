//===- Mbarrier.cpp - mbarrier, cp.async.mbarrier.arrive ------------------===//
//
// PTX ISA, "mbarrier". Lanes act one after the other. An arrival is a strong write that releases,
// and a wait that finds its phase over a strong read that acquires, which is how the checks see
// them. try_wait does not suspend: kernels ask again, and warps take turns anyway.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Mbarrier.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

namespace planemu::PLANEMU_ISA {

Mbarriers findMbarriers(Warp &w, const Inst &i, u32 slot, s64 offset, AddressForm form, u32 mask) {
  Mbarriers found;
  if (form.wide)
    formAddresses<u64>(w, slot, offset, found.rows.host);
  else
    formAddresses<u32>(w, slot, offset, found.rows.host);
  found.rows.whole = nullptr;
  found.mask = 0;
  u64 *addresses = found.rows.host.of;
  for (int lane = 0; lane < 32; ++lane) {
    u64 address = addresses[lane];
    addresses[lane] = 0;
    if (!(mask >> lane & 1))
      continue;
    if (form.generic && (address & WindowMask) != SharedWindow) {
      reportFault(w, i.line, FaultKind::OutOfBounds, static_cast<unsigned>(lane), address, 8,
                  "mbarrier (shared)");
      continue;
    }
    u64 host = resolveLane<Where::Shared>(
        w, i, lane, form.generic ? address - SharedWindow : address, 8, 8, "mbarrier (shared)");
    addresses[lane] = host;
    found.mask |= host ? 1u << lane : 0;
  }
  return found;
}

void reportMbarrier(Warp &w, const Inst &i, int lane, const u64 &word, const char *what) {
  reportFault(w, i.line, FaultKind::Mbarrier, static_cast<unsigned>(lane),
              reinterpret_cast<u64>(&word) - reinterpret_cast<u64>(w.shared), 8, what);
}

static constexpr const char *NotInitialised = "nothing has initialised it";

void completeBytes(Warp &w, const Inst &i, const Mbarriers &barriers, int lane, u32 bytes) {
  u64 &word = barriers.of(lane);
  Mbarrier barrier = Mbarrier::read(word);
  const char *wrong = barrier.valid ? barrier.completeBytes(bytes) : NotInitialised;
  if (wrong)
    return reportMbarrier(w, i, lane, word, wrong);
  observe(w, i, AccessKind::Atomic, 1u << lane, 8, barriers.rows);
  word = barrier.word();
}

namespace {
enum class Act : u8 { Init, Invalidate, Arrive, Drop, Expect, Complete };

/// Inst::imm of what changes an mbarrier.
struct Change {
  Act act;
  bool expects, noComplete;
  AddressForm form;
  s32 offset;
  s64 packed() const {
    return static_cast<s64>(u64(act) << 36 | u64(expects) << 35 | u64(noComplete) << 34 |
                            u64(form.packed()) << 32 | static_cast<u32>(offset));
  }
  static Change unpack(s64 bits) {
    return {static_cast<Act>(bits >> 36), (bits >> 35 & 1) != 0, (bits >> 34 & 1) != 0,
            AddressForm::unpack(bits >> 32), static_cast<s32>(bits)};
  }
};
} // namespace

/// What the instruction does to one mbarrier; null, or what is wrong.
static const char *apply(const Change &change, Mbarrier &barrier, u32 count) {
  if (change.act == Act::Init) {
    if (count == 0 || count > Mbarrier::MostArrivals)
      return "the count to initialise it with is none of 1 to 1048575";
    barrier = Mbarrier();
    barrier.valid = true;
    barrier.pending = barrier.expected = count;
    return nullptr;
  }
  if (!barrier.valid)
    return NotInitialised;
  bool drops = change.act == Act::Drop;
  switch (change.act) {
  case Act::Invalidate:
    barrier = Mbarrier();
    return nullptr;
  case Act::Expect:
    return barrier.expectBytes(count);
  case Act::Complete:
    return barrier.completeBytes(count);
  default:
    break;
  }
  if (change.expects) {
    if (const char *wrong = barrier.expectBytes(count))
      return wrong;
    count = 1;
  }
  return drops ? barrier.arriveAndDrop(count, !change.noComplete)
               : barrier.arrive(count, !change.noComplete);
}

/// Operands: token, address, count.
static void changeBarrier(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  Change change = Change::unpack(i.imm);
  Mbarriers barriers = findMbarriers(w, i, i.s[1], change.offset, change.form, mask);
  bool starts = change.act == Act::Init;
  observe(w, i, starts ? AccessKind::Store : AccessKind::Atomic, barriers.mask, 8, barriers.rows);
  u64 *tokens = at<u64>(w, i.s[0]);
  const u32 *counts = at<u32>(w, i.s[2]);
  for (u32 left = barriers.mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    u64 &word = barriers.of(lane);
    Mbarrier barrier = Mbarrier::read(word);
    u32 count = counts[lane];
    tokens[lane] = word;
    if (const char *wrong = apply(change, barrier, count))
      return reportMbarrier(w, i, lane, word, wrong);
    word = barrier.word();
  }
}

/// Operands: predicate, address, token (a b64) or parity (a b32). imm: offset, form, 34: parity.
static void testBarrier(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  bool byParity = i.imm >> 34 & 1;
  Mbarriers barriers =
      findMbarriers(w, i, i.s[1], static_cast<s32>(i.imm), AddressForm::unpack(i.imm >> 32), mask);
  u32 over = 0;
  for (u32 left = barriers.mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    const u64 &word = barriers.of(lane);
    Mbarrier barrier = Mbarrier::read(word);
    if (!barrier.valid)
      return reportMbarrier(w, i, lane, word, NotInitialised);
    bool parity =
        byParity ? at<u32>(w, i.s[2])[lane] & 1 : Mbarrier::read(at<u64>(w, i.s[2])[lane]).parity;
    if (!barrier.isOver(parity))
      continue;
    over |= 1u << lane;
    if (w.observer)
      w.observer->passMbarrier(reinterpret_cast<u64>(&word), parity);
  }
  if (over)
    observe(w, i, AccessKind::Load, over, 8, barriers.rows);
  writeMask(w, i.s[0], over, mask);
}

/// Operands: address. What the lane has copied so far arrives with it. imm: offset, form, 34: noinc.
static void arriveCopies(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  Mbarriers barriers =
      findMbarriers(w, i, i.s[0], static_cast<s32>(i.imm), AddressForm::unpack(i.imm >> 32), mask);
  bool counted = i.imm >> 34 & 1;
  observe(w, i, AccessKind::Atomic, barriers.mask, 8, barriers.rows);
  for (u32 left = barriers.mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    u64 &word = barriers.of(lane);
    Mbarrier barrier = Mbarrier::read(word);
    bool parity = barrier.parity;
    // Without .noinc the phase waits for one arrival more, which comes at once: copies are done.
    const char *wrong = !barrier.valid ? NotInitialised : counted ? barrier.arrive(1) : nullptr;
    if (wrong)
      return reportMbarrier(w, i, lane, word, wrong);
    word = barrier.word();
    if (w.observer)
      w.observer->copiesArrive(w, static_cast<unsigned>(lane), reinterpret_cast<u64>(&word),
                               parity);
  }
}

Decoder::Address useMbarrier(Decoder &d, unsigned n, Space space) {
  Decoder::Address address = d.useAddress(n, space);
  if (address.space != Space::Shared && address.space != Space::Generic)
    d.fail("an mbarrier lies in shared memory");
  if (address.offset != static_cast<s32>(address.offset))
    d.fail("offset out of range");
  return address;
}

/// {.shared|.shared::cta|.shared::cluster}.b64, or generic. A cluster is one CTA.
static Space takePlace(Decoder &d) {
  bool shared = d.take(".shared") || d.take(".shared::cta") || d.take(".shared::cluster");
  if (Type type = d.takeType(); type != Type::B64)
    d.failType(type);
  return shared ? Space::Shared : Space::Generic;
}

/// {.relaxed|`strong`}{.cta|.cluster}; the flags of the access.
static unsigned takeOrder(Decoder &d, const char *strong, unsigned flag) {
  bool relaxed = d.take(".relaxed"), ordered = !relaxed && d.take(strong);
  bool scope = d.take(".cta") || d.take(".cluster");
  if ((relaxed || ordered) != scope)
    d.fail(std::string("'.relaxed' and '") + strong + "' go with a scope, .cta or .cluster");
  return Inst::ScopeCta | (relaxed ? 0 : flag);
}

static void selectWait(Decoder &d, bool mayTakeHint) {
  bool parity = d.take(".parity");
  unsigned order = takeOrder(d, ".acquire", Inst::Acquire);
  Space space = takePlace(d);
  d.def(0, 1);
  AddressForm form = {};
  Decoder::Address address = useMbarrier(d, 1, space);
  form = AddressForm::of(address);
  d.use(2, parity ? Type::U32 : Type::B64);
  if (mayTakeHint && d.operandCount() == 4) {
    // How long it may suspend: not at all here.
    if (std::int64_t hint; !d.isImmediate(3, hint) && d.registerBits(d.operand(3)) != 32)
      d.fail("the time limit has 32 bits");
    d.operandUsed(3);
  }
  d.emit(testBarrier,
         static_cast<s64>(u64(parity) << 34 | u64(form.packed()) << 32 |
                          static_cast<u32>(static_cast<s32>(address.offset))),
         order);
}

void selectMbarrier(Decoder &d) {
  if (d.take(".test_wait"))
    return selectWait(d, false);
  if (d.take(".try_wait"))
    return selectWait(d, true);
  if (d.take(".pending_count")) {
    if (Type type = d.takeType(); type != Type::B64)
      d.failType(type);
    d.def(0, 32);
    d.use(1, Type::B64);
    d.emit(each<[](u64 token) { return Mbarrier::read(token).pending; }, u32, u64>);
    return;
  }
  static constexpr struct {
    const char *text;
    Act act;
  } Acts[] = {{".init", Act::Init},        {".inval", Act::Invalidate},
              {".arrive", Act::Arrive},    {".arrive_drop", Act::Drop},
              {".expect_tx", Act::Expect}, {".complete_tx", Act::Complete}};
  const Act *act = nullptr;
  for (const auto &row : Acts)
    if (!act && d.take(row.text))
      act = &row.act;
  if (!act)
    d.fail("none of .init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx, .test_wait, "
           ".try_wait and .pending_count");
  Change change{*act, false, false, {}, 0};
  bool arrives = *act == Act::Arrive || *act == Act::Drop;
  bool counts = *act == Act::Expect || *act == Act::Complete;
  // To end one is no plain write: who used it before may have learnt that all others are done by
  // means that order nothing, as libcu++'s pipelines do; who uses it later is a fault of its own.
  unsigned order = *act == Act::Invalidate ? unsigned(Inst::ScopeCta) : 0;
  if (arrives) {
    change.expects = d.take(".expect_tx");
    change.noComplete = !change.expects && d.take(".noComplete");
    order = takeOrder(d, ".release", Inst::Release);
  } else if (counts) {
    if (d.take(".relaxed") && !d.take(".cta") && !d.take(".cluster"))
      d.fail("'.relaxed' goes with a scope, .cta or .cluster");
    order = Inst::ScopeCta;
  }
  Space space = takePlace(d);
  unsigned n = 0;
  if (arrives)
    d.def(n++, 64);
  else
    d.defUnused(64);
  Decoder::Address address = useMbarrier(d, n++, space);
  change.form = AddressForm::of(address);
  change.offset = static_cast<s32>(address.offset);
  bool needsCount = change.expects || change.noComplete || counts || *act == Act::Init;
  if (needsCount || (arrives && d.operandCount() > n))
    d.use(n, Type::U32);
  else
    d.useConstant(1, 32);
  d.emit(changeBarrier, change.packed(), order);
}

void selectArriveCopies(Decoder &d) {
  if (!d.take(".arrive"))
    d.fail("only cp.async.mbarrier.arrive is supported");
  bool counted = d.take(".noinc");
  Space space = takePlace(d);
  Decoder::Address address = useMbarrier(d, 0, space);
  AddressForm form = AddressForm::of(address);
  d.emit(arriveCopies,
         static_cast<s64>(u64(counted) << 34 | u64(form.packed()) << 32 |
                          static_cast<u32>(static_cast<s32>(address.offset))),
         Inst::ScopeCta | Inst::Release);
}

} // namespace planemu::PLANEMU_ISA
