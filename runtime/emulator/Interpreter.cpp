//===- Interpreter.cpp - run one warp -------------------------------------===//
//
// A warp is a set of fragments (place, mask). While there is one fragment, blocks follow each other
// without any bookkeeping. When lanes part, the fragment whose block comes first in the kernel's
// loop-aware order runs, and fragments that meet at one place merge.
//
//   bar.sync        parks the fragment; when every live lane is parked, the warp has arrived
//   .sync           an instruction with Inst::Sync waits until the lanes of its member mask that
//   still live are
//                   there (only looked at while there are several fragments)
//   fairness        a fragment that only waits for another one (a lock between lanes) would starve
//   it under a fixed
//                   priority: after many backward jumps without a merge fragments take turns.
//                   Likewise a warp yields to the other warps of its CTA
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Machine.h"

#include <algorithm>

using namespace planemu;

constexpr unsigned BackwardsBeforeTurns = 512, BackwardsBeforeYield = 4096;

namespace {

class WarpRun {
public:
  WarpRun(const Kernel &kernel, Warp &warp) : kernel(kernel), warp(warp) {}
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
  void push(std::uint32_t block, std::uint32_t inst, std::uint32_t mask);
  void pushBlock(std::uint32_t block, std::uint32_t mask) {
    push(block, kernel.blocks[block].first, mask);
  }
  void park(std::uint32_t block, std::uint32_t mask);
  bool pick();
  std::uint32_t membersOf(const Inst &inst, std::uint32_t here) const;
  bool mayRun(const Inst &inst, std::uint32_t block, std::uint32_t index);
  bool wake();
  bool execute(std::uint32_t block, std::uint32_t &inst);
  Stop arrive(std::uint32_t block);

  const Kernel &kernel;
  Warp &warp;
  unsigned sinceMerge = 0, backwards = 0, turn = 0;
};

} // namespace

/// Adds lanes to the runnable fragments; `ready` is sorted so that the next to run is last.
void WarpRun::push(std::uint32_t block, std::uint32_t inst, std::uint32_t mask) {
  if (!mask)
    return;
  Fragment fragment{block, inst, mask};
  unsigned at = warp.readyCount;
  while (at > 0 && before(warp.ready[at - 1], fragment))
    --at;
  if (at > 0 && warp.ready[at - 1].block == block && warp.ready[at - 1].inst == inst) {
    warp.ready[at - 1].mask |= mask;
    sinceMerge = 0;
    return;
  }
  std::copy_backward(warp.ready + at, warp.ready + warp.readyCount,
                     warp.ready + warp.readyCount + 1);
  warp.ready[at] = fragment;
  ++warp.readyCount;
}

void WarpRun::park(std::uint32_t block, std::uint32_t mask) {
  for (unsigned n = 0; n < warp.parkedCount; ++n)
    if (warp.parked[n].block == block) {
      warp.parked[n].mask |= mask;
      return;
    }
  warp.parked[warp.parkedCount++] = {block, 0, mask};
}

/// Chooses the fragment to run. False: nothing is runnable.
bool WarpRun::pick() {
  if (!warp.readyCount)
    return false;
  unsigned chosen = warp.readyCount - 1;
  if (sinceMerge > BackwardsBeforeTurns)
    chosen = turn++ / BackwardsBeforeTurns % warp.readyCount;
  Fragment fragment = warp.ready[chosen];
  std::copy(warp.ready + chosen + 1, warp.ready + warp.readyCount, warp.ready + chosen);
  --warp.readyCount;
  warp.block = fragment.block;
  warp.inst = fragment.inst;
  warp.active = fragment.mask;
  return true;
}

/// The member mask of a .sync instruction: its operand 0, one value for all executing lanes.
std::uint32_t WarpRun::membersOf(const Inst &inst, std::uint32_t here) const {
  std::uint32_t members;
  std::uint32_t offset = inst.ops ? inst.ops[0] : inst.s[0];
  __builtin_memcpy(&members, warp.file + offset + 4 * __builtin_ctz(here), 4);
  return members;
}

/// A .sync instruction met while lanes are apart: true if all members that live are here.
bool WarpRun::mayRun(const Inst &inst, std::uint32_t block, std::uint32_t index) {
  std::uint32_t here = lanes(inst.guard, inst.guardXor);
  if (!here)
    return true;
  std::uint32_t members = membersOf(inst, here);
  for (unsigned n = 0; n < warp.waitingCount; ++n)
    if (warp.waiting[n].inst == index) {
      warp.active |= warp.waiting[n].mask;
      warp.waiting[n] = warp.waiting[--warp.waitingCount];
      sinceMerge = 0;
      break;
    }
  if ((members & warp.live & ~warp.active) == 0)
    return true;
  warp.waiting[warp.waitingCount++] = {block, index, warp.active};
  return false;
}

/// Makes runnable what waited for lanes that have exited meanwhile.
bool WarpRun::wake() {
  for (unsigned n = 0; n < warp.waitingCount; ++n) {
    Fragment fragment = warp.waiting[n];
    if (membersOf(kernel.insts[fragment.inst], fragment.mask) & warp.live & ~fragment.mask)
      continue;
    warp.waiting[n] = warp.waiting[--warp.waitingCount];
    push(fragment.block, fragment.inst, fragment.mask);
    return true;
  }
  return false;
}

/// Runs the straight part of a block. False: the fragment waits at a .sync instruction.
bool WarpRun::execute(std::uint32_t block, std::uint32_t &at) {
  const Inst *inst = kernel.insts.data() + at;
  const Inst *end = kernel.insts.data() + kernel.blocks[block].last;
  warp.executed += static_cast<std::uint64_t>(end - inst) + 1;
  if (warp.active == warp.live) {
    for (; inst != end; ++inst)
      inst->run(warp, *inst);
    return true;
  }
  for (; inst != end; ++inst) {
    if (inst->flags & Inst::Sync) {
      std::uint32_t index = static_cast<std::uint32_t>(inst - kernel.insts.data());
      if (!mayRun(*inst, block, index))
        return false;
    }
    inst->run(warp, *inst);
  }
  return true;
}

Stop WarpRun::arrive(std::uint32_t block) {
  warp.atBarrier = true;
  warp.barrierBlock = block;
  warp.active = warp.live;
  warp.block = kernel.blocks[block].next;
  warp.inst = kernel.blocks[warp.block].first;
  warp.parkedCount = 0;
  return Stop::Barrier;
}

Stop WarpRun::run() {
  std::uint32_t current = warp.block, inst = warp.inst;
  for (;;) {
    bool alone = true;
    if (execute(current, inst)) {
      const Block &block = kernel.blocks[current];
      if (block.backward) {
        ++sinceMerge;
        if (warp.cta->failed)
          return Stop::Exit;
        if (++backwards > BackwardsBeforeYield) {
          backwards = 0;
          // The ending is still to be executed: come back to it, behind the last instruction.
          push(current, block.last, warp.active);
          pick();
          return Stop::Yield;
        }
      }
      std::uint32_t taken = lanes(block.guard, block.guardXor);
      std::uint32_t rest = warp.active & ~taken;
      switch (block.ending) {
      case Ending::Next:
        current = block.next;
        break;
      case Ending::Branch:
        if (!rest || !taken) {
          current = taken ? block.target : block.next;
          break;
        }
        pushBlock(block.target, taken);
        pushBlock(block.next, rest);
        alone = false;
        break;
      case Ending::Switch: {
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
        alone = false;
        break;
      }
      case Ending::Exit:
        warp.live &= ~taken;
        if (!warp.live)
          return Stop::Exit;
        pushBlock(block.next, rest);
        alone = false;
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
        if (taken == warp.live)
          return arrive(current);
        if (!taken) {
          current = block.next;
          break;
        }
        park(current, taken);
        pushBlock(block.next, rest);
        alone = false;
        break;
      }
    } else {
      alone = false;
    }

    if (alone && !warp.readyCount) {
      inst = kernel.blocks[current].first;
      continue;
    }
    if (alone)
      pushBlock(current, warp.active);
    if (!pick() && !(wake() && pick())) {
      // Members of a .sync that will never come: they wait at a barrier or at another .sync.
      if (warp.waitingCount) {
        Fragment fragment = warp.waiting[0];
        reportFault(warp, kernel.insts[fragment.inst].line, FaultKind::Deadlock,
                    static_cast<unsigned>(__builtin_ctz(fragment.mask)));
        return Stop::Exit;
      }
      if (warp.parkedCount > 1) {
        reportFault(warp, kernel.blocks[warp.parked[1].block].line, FaultKind::BarrierDivergence,
                    static_cast<unsigned>(__builtin_ctz(warp.parked[1].mask)));
        return Stop::Exit;
      }
      return arrive(warp.parked[0].block);
    }
    current = warp.block;
    inst = warp.inst;
  }
}

Stop planemu::runWarp(const Kernel &kernel, Warp &warp) { return WarpRun(kernel, warp).run(); }
