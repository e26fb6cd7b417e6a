//===- Interpreter.cpp - run one warp -------------------------------------===//
//
// A warp is a set of fragments (place, mask). While there is one fragment, blocks follow each other
// without any bookkeeping (Group.cpp). When lanes part, the fragment whose block comes first in the kernel's
// loop-aware order runs, and fragments that meet at one place merge.
//
//   bar.sync        parks the fragment; when every live lane is parked, the warp has arrived. They
//                   must be parked at one place, or at barrier instructions that are not .aligned
//                   but otherwise the same
//   .sync           an instruction with Inst::Sync waits until the lanes of its member mask that
//                   still live are there (only looked at while there are several fragments)
//   fairness        a fragment that only waits for another one (a lock between lanes) would starve
//                   it under a fixed priority: after many backward jumps without a merge, or many
//                   more with merges, the fragments of all lanes take turns. Likewise a warp yields
//                   to the others of its CTA
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Machine.h"
#include "runtime/emulator/observe/Observer.h"

#include <algorithm>

using namespace planemu;

// Instructions without a merge, or without the warp being whole, before fragments take turns.
constexpr unsigned ApartBeforeTurns = 4096, BrokenBeforeTurns = 1 << 17;
constexpr unsigned PicksOfATurn = 128; // blocks

namespace {

/// Watched: an observer hears of the instructions, or their effects are traced.
template <bool Watched> class WarpRun {
public:
  WarpRun(const Kernel &kernel, Warp &warp, bool tracing = false)
      : kernel(kernel), warp(warp), tracing(tracing) {}
  Stop run();

private:
  std::uint32_t lanes(std::uint32_t guard, std::uint32_t guardXor) const {
    std::uint32_t predicate;
    __builtin_memcpy(&predicate, warp.file + guard, 4);
    return warp.active & (predicate ^ guardXor);
  }
  bool before(const Fragment &a, const Fragment &b) const {
    std::uint32_t orderA = kernel.blocks[a.block].order, orderB = kernel.blocks[b.block].order;
    return orderA != orderB ? orderA < orderB : a.inst < b.inst;
  }
  void step(const Inst &inst) {
    if (Watched && warp.observer && warp.observer->hears(inst))
      warp.observer->executed(warp, inst);
    inst.run(warp, inst);
    if (Watched && tracing)
      warp.trace = (warp.trace ^ hashRegisters(kernel, warp)) * 0x9e3779b97f4a7c15 + 1;
  }
  void push(std::uint32_t block, std::uint32_t inst, std::uint32_t mask);
  void pushBlock(std::uint32_t block, std::uint32_t mask) {
    push(block, kernel.blocks[block].first, mask);
  }
  void park(std::uint32_t block, std::uint32_t mask);
  void split();
  unsigned whoseTurn();
  bool pick();
  std::uint32_t membersOf(const Inst &inst, std::uint32_t lanes) const;
  std::uint32_t blockedAt(const Inst &inst, std::uint32_t active) const;
  bool mayRun(const Inst &inst, std::uint32_t block, std::uint32_t index);
  bool wake();
  bool meet();
  bool execute(std::uint32_t &block, const Inst *inst, const Inst *end);
  bool executeApart(std::uint32_t block, const Inst *inst, const Inst *end);
  bool mayArrive() const;
  Stop arrive();

  const Kernel &kernel;
  Warp &warp;
  const bool tracing;
};

} // namespace

/// Adds lanes to the runnable fragments; `ready` is sorted so that the next to run is last.
template <bool Watched>
void WarpRun<Watched>::push(std::uint32_t block, std::uint32_t inst, std::uint32_t mask) {
  if (!mask)
    return;
  Fragment fragment{block, inst, mask};
  unsigned at = warp.readyCount;
  while (at > 0 && before(warp.ready[at - 1], fragment))
    --at;
  if (at > 0 && warp.ready[at - 1].block == block && warp.ready[at - 1].inst == inst) {
    warp.ready[at - 1].mask |= mask;
    warp.mergedAt = warp.executed;
    return;
  }
  std::copy_backward(warp.ready + at, warp.ready + warp.readyCount,
                     warp.ready + warp.readyCount + 1);
  warp.ready[at] = fragment;
  ++warp.readyCount;
}

template <bool Watched> void WarpRun<Watched>::park(std::uint32_t block, std::uint32_t mask) {
  for (unsigned n = 0; n < warp.parkedCount; ++n)
    if (warp.parked[n].block == block) {
      warp.parked[n].mask |= mask;
      return;
    }
  warp.parked[warp.parkedCount++] = {block, 0, mask};
}

/// The running fragment is about to become several.
template <bool Watched> void WarpRun<Watched>::split() {
  if (!warp.readyCount)
    warp.mergedAt = warp.wholeAt = warp.executed;
}

/// The fragment of the lane whose turn it is. Turns go by lanes because fragments have no identity;
/// a turn that ends goes on to a lane of another fragment.
template <bool Watched> unsigned WarpRun<Watched>::whoseTurn() {
  std::uint32_t lanes = 0, others = 0;
  unsigned chosen = warp.readyCount;
  for (unsigned n = 0; n < warp.readyCount; ++n) {
    lanes |= warp.ready[n].mask;
    if (warp.ready[n].mask >> warp.turnLane & 1)
      chosen = n;
    else
      others |= warp.ready[n].mask;
  }
  if (chosen < warp.readyCount && ++warp.turnPicks <= PicksOfATurn)
    return chosen;
  warp.turnPicks = 0;
  std::uint32_t candidates = others ? others : lanes;
  std::uint32_t later = candidates & (~1u << warp.turnLane);
  warp.turnLane = static_cast<std::uint32_t>(__builtin_ctz(later ? later : candidates));
  for (chosen = 0; !(warp.ready[chosen].mask >> warp.turnLane & 1);)
    ++chosen;
  return chosen;
}

/// Chooses the fragment to run. False: nothing is runnable.
template <bool Watched> bool WarpRun<Watched>::pick() {
  if (!warp.readyCount)
    return false;
  unsigned chosen = warp.readyCount - 1;
  if (warp.executed - warp.mergedAt > ApartBeforeTurns ||
      warp.executed - warp.wholeAt > BrokenBeforeTurns)
    chosen = whoseTurn();
  else if (warp.random && chosen)
    // A quarter of the choices: lanes drift apart, but loops still mostly merge.
    if (std::uint64_t random = nextRandom(warp.random); random % 4 == 0)
      chosen = static_cast<unsigned>((random >> 32) % warp.readyCount);
  Fragment fragment = warp.ready[chosen];
  std::copy(warp.ready + chosen + 1, warp.ready + warp.readyCount, warp.ready + chosen);
  --warp.readyCount;
  warp.block = fragment.block;
  warp.inst = fragment.inst;
  warp.active = fragment.mask;
  return true;
}

/// Of the lanes `active` at a .sync instruction, those that have to wait: some live lane of their
/// member mask is not among them. Operand 0 of the instruction is the mask, and lanes may have
/// different ones. A lane that does not execute it (its guard is false) stays with those that name
/// it.
template <bool Watched>
std::uint32_t WarpRun<Watched>::blockedAt(const Inst &inst, std::uint32_t active) const {
  std::uint32_t guard;
  __builtin_memcpy(&guard, warp.file + inst.guard, 4);
  std::uint32_t here = active & (guard ^ inst.guardXor), blocked = 0, named = 0;
  for (std::uint32_t left = here; left; left &= left - 1) {
    std::uint32_t members = membersOf(inst, left);
    if (members & warp.live & ~active) {
      blocked |= left & -left;
      named |= members;
    }
  }
  return blocked | (active & ~here & named);
}

/// The member mask that the lowest of `lanes` has at a .sync instruction.
template <bool Watched>
std::uint32_t WarpRun<Watched>::membersOf(const Inst &inst, std::uint32_t lanes) const {
  std::uint32_t members;
  __builtin_memcpy(&members, warp.file + *operandsOf(inst) + 4 * __builtin_ctz(lanes), 4);
  return members;
}

/// A .sync instruction met while lanes are apart. Leaves in `active` those that may execute it;
/// false if there are none.
template <bool Watched>
bool WarpRun<Watched>::mayRun(const Inst &inst, std::uint32_t block, std::uint32_t index) {
  for (unsigned n = 0; n < warp.waitingCount; ++n)
    if (warp.waiting[n].inst == index) {
      warp.active |= warp.waiting[n].mask;
      warp.waiting[n] = warp.waiting[--warp.waitingCount];
      warp.mergedAt = warp.executed;
      break;
    }
  std::uint32_t blocked = blockedAt(inst, warp.active);
  if (blocked) {
    warp.waiting[warp.waitingCount++] = {block, index, blocked};
    warp.active &= ~blocked;
  }
  return warp.active != 0;
}

/// Makes runnable what waited for lanes that have exited meanwhile.
template <bool Watched> bool WarpRun<Watched>::wake() {
  for (unsigned n = 0; n < warp.waitingCount; ++n) {
    Fragment fragment = warp.waiting[n];
    if (blockedAt(kernel.insts[fragment.inst], fragment.mask) == fragment.mask)
      continue;
    warp.waiting[n] = warp.waiting[--warp.waitingCount];
    push(fragment.block, fragment.inst, fragment.mask);
    return true;
  }
  return false;
}

/// Nothing is runnable: lets lanes go on that wait for each other at several bar.warp.sync, as they
/// need not be the same one.
template <bool Watched> bool WarpRun<Watched>::meet() {
  std::uint32_t here = 0, passed = 0;
  for (unsigned n = 0; n < warp.waitingCount; ++n)
    if (kernel.insts[warp.waiting[n].inst].flags & Inst::Meet)
      here |= warp.waiting[n].mask;
  for (unsigned n = 0; n < warp.waitingCount;) {
    Fragment &fragment = warp.waiting[n];
    const Inst &inst = kernel.insts[fragment.inst];
    std::uint32_t pass = 0;
    if (inst.flags & Inst::Meet)
      for (std::uint32_t left = fragment.mask; left; left &= left - 1)
        if ((membersOf(inst, left) & warp.live & ~here) == 0)
          pass |= left & -left;
    passed |= pass;
    push(fragment.block, fragment.inst + 1, pass);
    fragment.mask &= ~pass;
    if (fragment.mask)
      ++n;
    else
      fragment = warp.waiting[--warp.waitingCount];
  }
  if (passed && warp.observer)
    warp.observer->syncLanes(warp, passed);
  return passed != 0;
}

/// Runs the straight part of a block, and of those behind it while the warp stays together; `block` is
/// then the last one. False: the fragment waits at a .sync instruction.
template <bool Watched>
inline bool WarpRun<Watched>::execute(std::uint32_t &block, const Inst *inst, const Inst *end) {
  warp.executed += static_cast<std::uint64_t>(end - inst) + 1;
  if (warp.active != warp.live)
    return executeApart(block, inst, end);
  if (!Watched && warp.active == ~0u && inst == kernel.insts.data() + kernel.blocks[block].first) {
    Warp *const self = &warp;
    runGroup(kernel, {&self, 1}, block);
    block = warp.block;
    return true;
  }
  for (; inst != end; ++inst)
    step(*inst);
  return true;
}

/// The same while some lanes are elsewhere.
template <bool Watched>
bool WarpRun<Watched>::executeApart(std::uint32_t block, const Inst *inst, const Inst *end) {
  for (; inst != end; ++inst) {
    std::uint32_t index = static_cast<std::uint32_t>(inst - kernel.insts.data());
    if ((inst->flags & Inst::Sync) && !mayRun(*inst, block, index)) {
      warp.executed -= static_cast<std::uint64_t>(end - inst) + 1;
      warp.mergedAt = std::min(warp.mergedAt, warp.executed);
      return false;
    }
    step(*inst);
  }
  return true;
}

/// All live lanes are parked: true if that is one barrier.
template <bool Watched> bool WarpRun<Watched>::mayArrive() const {
  auto specOf = [&](const Fragment &parked) -> const BarrierSpec & {
    return kernel.barriers[kernel.blocks[parked.block].index];
  };
  auto operand = [&](const Fragment &parked, std::uint32_t offset) {
    std::uint32_t value;
    __builtin_memcpy(&value, warp.file + offset + 4 * __builtin_ctz(parked.mask), 4);
    return value;
  };
  const Fragment &first = warp.parked[0];
  const BarrierSpec &one = specOf(first);
  for (unsigned n = 1; n < warp.parkedCount; ++n) {
    const BarrierSpec &other = specOf(warp.parked[n]);
    if (one.aligned || other.aligned || one.kind != other.kind ||
        operand(first, one.id) != operand(warp.parked[n], other.id) ||
        (one.threads ? operand(first, one.threads) : 0) !=
            (other.threads ? operand(warp.parked[n], other.threads) : 0))
      return false;
  }
  return true;
}

/// All live lanes are parked: behind the barrier they go on from where they are.
template <bool Watched> Stop WarpRun<Watched>::arrive() {
  warp.atBarrier = true;
  if (warp.parkedCount == 1) {
    warp.active = warp.live;
    warp.block = kernel.blocks[warp.parked[0].block].next;
    warp.inst = kernel.blocks[warp.block].first;
    return Stop::Barrier;
  }
  for (unsigned n = 0; n < warp.parkedCount; ++n)
    pushBlock(kernel.blocks[warp.parked[n].block].next, warp.parked[n].mask);
  pick();
  return Stop::Barrier;
}

template <bool Watched> Stop WarpRun<Watched>::run() {
  const Inst *const insts = kernel.insts.data();
  const Block *const blocks = kernel.blocks.data();
  std::uint32_t current = warp.block, inst = warp.inst;
  enum { Pushed = 1, Yielding = 2 }; // why the next block does not simply follow
  for (;;) {
    unsigned bend = 0;
    if (execute(current, insts + inst, insts + blocks[current].last)) {
      const Block &block = blocks[current];
      if (block.backward) {
        if (Watched && block.order < blocks[warp.loop].order)
          warp.loop = current;
        if (warp.executed >= warp.stopAt) [[unlikely]] {
          if (warp.cta->failed)
            return Stop::Exit;
          if (warp.executed > warp.launch->maxSteps) {
            reportLoop(kernel, warp, current, FaultKind::Endless);
            return Stop::Exit;
          }
          bend = Yielding;
        }
      }
      std::uint32_t taken = lanes(block.guard, block.guardXor);
      std::uint32_t rest = warp.active & ~taken;
      if (Watched && warp.observer)
        warp.observer->ended(warp, block, taken);
      switch (block.ending) {
      case Ending::Next:
        current = block.next;
        break;
      case Ending::Branch:
        if (!rest || !taken) {
          current = taken ? block.target : block.next;
          break;
        }
        split();
        pushBlock(block.target, taken);
        pushBlock(block.next, rest);
        bend |= Pushed;
        break;
      case Ending::Switch: {
        split();
        for (std::uint32_t left = taken; left;) {
          unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
          std::uint32_t index;
          __builtin_memcpy(&index, warp.file + block.index + 4 * lane, 4);
          if (index >= block.targets.size()) {
            reportFault(warp, block.line, FaultKind::BadOperand, lane, index, 0, "brx.idx");
            return Stop::Exit;
          }
          pushBlock(block.targets[index], 1u << lane);
          left &= left - 1;
        }
        pushBlock(block.next, rest);
        bend |= Pushed;
        break;
      }
      case Ending::Exit:
        warp.live &= ~taken;
        if (!warp.live)
          return Stop::Exit;
        pushBlock(block.next, rest);
        while (taken && wake())
          ;
        bend |= Pushed;
        break;
      case Ending::Trap:
        if (taken) {
          reportFault(warp, block.line, FaultKind::Trap,
                      static_cast<unsigned>(__builtin_ctz(taken)));
          return Stop::Exit;
        }
        current = block.next;
        break;
      case Ending::Barrier:
        if (taken == warp.live) {
          warp.parked[0] = {current, 0, taken};
          warp.parkedCount = 1;
          return arrive();
        }
        if (!taken) {
          current = block.next;
          break;
        }
        park(current, taken);
        pushBlock(block.next, rest);
        bend |= Pushed;
        break;
      }
    } else {
      bend |= Pushed;
    }

    if (!(bend | warp.readyCount)) {
      inst = blocks[current].first;
      continue;
    }
    if (!(bend & Pushed))
      pushBlock(current, warp.active);
    if (!pick() && !((wake() || meet()) && pick())) {
      // Members of a .sync that will never come: they wait at a barrier or at another .sync.
      if (warp.waitingCount) {
        Fragment fragment = warp.waiting[0];
        reportFault(warp, kernel.insts[fragment.inst].line, FaultKind::Deadlock,
                    static_cast<unsigned>(__builtin_ctz(fragment.mask)));
        return Stop::Exit;
      }
      if (!mayArrive()) {
        reportFault(warp, kernel.blocks[warp.parked[1].block].line, FaultKind::BarrierDivergence,
                    static_cast<unsigned>(__builtin_ctz(warp.parked[1].mask)));
        return Stop::Exit;
      }
      return arrive();
    }
    if (bend & Yielding)
      return Stop::Yield;
    current = warp.block;
    inst = warp.inst;
  }
}

Stop planemu::runWarp(const Kernel &kernel, Warp &warp) {
  return warp.observer ? WarpRun<true>(kernel, warp).run() : WarpRun<false>(kernel, warp).run();
}

Stop planemu::traceWarp(const Kernel &kernel, Warp &warp) {
  warp.trace = 0;
  warp.loop = static_cast<std::uint32_t>(kernel.blocks.size()) - 1;
  return WarpRun<true>(kernel, warp, true).run();
}

std::uint64_t planemu::hashRegisters(const Kernel &kernel, const Warp &warp) {
  // Four lanes of a multiplicative hash; the file is a multiple of 64 bytes.
  std::uint64_t lanes[4] = {warp.live, 1, 2, 3};
  for (std::uint32_t at = 0; at < kernel.fileBytes; at += 32) {
    std::uint64_t words[4];
    __builtin_memcpy(words, warp.file + at, 32);
    for (unsigned n = 0; n < 4; ++n) {
      lanes[n] = (lanes[n] ^ words[n]) * 0x9e3779b97f4a7c15;
      lanes[n] ^= lanes[n] >> 29;
    }
  }
  std::uint64_t state = 0;
  for (std::uint64_t lane : lanes)
    state = (state ^ lane) * 0xbf58476d1ce4e5b9 + 1;
  return state;
}

void planemu::reportLoop(const Kernel &kernel, Warp &warp, std::uint32_t index, FaultKind kind) {
  const Block &block = kernel.blocks[index];
  std::uint32_t start = block.line;
  auto consider = [&](std::uint32_t successor) {
    const Block &head = kernel.blocks[successor];
    if (head.order <= block.order)
      start = std::min(start, head.first < head.last ? kernel.insts[head.first].line : head.line);
  };
  if (block.guard || block.ending == Ending::Next || block.ending == Ending::Barrier)
    consider(block.next);
  if (block.ending == Ending::Branch)
    consider(block.target);
  for (std::uint32_t target : block.targets)
    consider(target);
  std::uint32_t lanes = warp.active ? warp.active : warp.live;
  reportFault(warp, block.line, kind, static_cast<unsigned>(__builtin_ctz(lanes)), warp.executed,
              start);
}
