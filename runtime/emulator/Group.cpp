//===- Group.cpp - run several warps together -----------------------------===//
//
// Warps of a CTA that are at one place, with all their lanes, execute each instruction one after the
// other before the next instruction comes. A warp's instructions mostly wait for each other, through
// registers that are memory here; those of several warps do not, so that the host has enough to do.
//
//     warp 0   ld  cvt  fma  st              ld ld ld  cvt cvt cvt  fma fma fma  st st st
//     warp 1       ld  cvt  fma  st    -->    0  1  2   0   1   2    0   1   2    0  1  2
//     warp 2           ld  cvt  fma  st
//
// At the end of a block a group goes on, parts, or lets warps go whose lanes part. Those go on by
// themselves in Interpreter.cpp, as does every warp behind a barrier; the CTA makes groups anew
// (Resident.cpp).
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Machine.h"
#include "runtime/emulator/Tier.h"

using namespace planemu;

void planemu::runEach(const Group &group, const Inst &inst) {
  for (Warp *warp : group)
    inst.run(*warp, inst);
}

static std::uint32_t takenBy(const Warp &warp, const Block &block) {
  std::uint32_t guard;
  __builtin_memcpy(&guard, warp.file + block.guard, 4);
  return guard ^ block.guardXor;
}

static std::uint32_t lengthOf(const Block &block) { return block.last - block.first + 1; }

/// The straight part of a block.
static void runBlock(const Kernel &kernel, const Group &group, std::uint32_t index) {
  if (Tier *const tier = group.warps[0]->launch->tier) {
    planemu_jit_run compiled = nullptr;
    for (unsigned n = 0; n < group.count; ++n)
      compiled = tier->enter(index);
    if (compiled) {
      for (Warp *warp : group)
        compiled(warp, warp->file);
      return;
    }
  }
  const Block &block = kernel.blocks[index];
  const Inst *const end = kernel.groupInsts.data() + block.groupLast;
  for (const Inst *inst = kernel.groupInsts.data() + block.groupFirst; inst != end; ++inst)
    inst->together(group, *inst);
}

/// The lanes of each warp that go aside run that block, and are back with the others then.
static void runAside(const Kernel &kernel, const Group &group, const Block &from) {
  const bool jumps = from.aside == Aside::Target;
  const Block &block = kernel.blocks[jumps ? from.target : from.next];
  for (Warp *warp : group) {
    const std::uint32_t taken = takenBy(*warp, from), lanes = jumps ? taken : ~taken;
    if (!lanes)
      continue;
    warp->executed += lengthOf(block);
    warp->active = lanes;
    for (std::uint32_t n = block.first; n < block.last; ++n)
      kernel.insts[n].run(*warp, kernel.insts[n]);
    warp->active = ~0u;
  }
}

static void enter(const Kernel &kernel, const Group &group, std::uint32_t block) {
  for (Warp *warp : group)
    warp->executed += lengthOf(kernel.blocks[block]);
}

/// Warps all of whose lanes take the ending go to `target`, those of which none does to the next block.
static void part(const Kernel &kernel, const Group &group, const Block &ending,
                 std::uint32_t target) {
  Warp *jump[MaxGroup], *fall[MaxGroup];
  unsigned jumps = 0, falls = 0;
  for (Warp *warp : group) {
    const std::uint32_t taken = takenBy(*warp, ending);
    if (taken == ~0u)
      jump[jumps++] = warp;
    else if (!taken)
      fall[falls++] = warp;
  }
  auto run = [&](const Group &some, std::uint32_t block) {
    if (!some.count)
      return;
    enter(kernel, some, block);
    runGroup(kernel, some, block);
  };
  run({jump, jumps}, target);
  run({fall, falls}, ending.next);
}

void planemu::runGroup(const Kernel &kernel, const Group &group, std::uint32_t block) {
  for (;;) {
    runBlock(kernel, group, block);
    const Block &ending = kernel.blocks[block];
    std::uint32_t all = ~0u, any = 0;
    bool looks = false;
    for (Warp *warp : group) {
      const std::uint32_t taken = takenBy(*warp, ending);
      all &= taken;
      any |= taken;
      looks |= ending.backward && warp->executed >= warp->stopAt;
      warp->block = block;
    }
    const bool branches = ending.ending == Ending::Branch || ending.ending == Ending::Next;
    if (looks || (any && !branches))
      return;
    const std::uint32_t target = ending.ending == Ending::Branch ? ending.target : ending.next;
    if (!any || all == ~0u) {
      block = any ? target : ending.next;
    } else if (ending.aside != Aside::None && !group.warps[0]->random) {
      runAside(kernel, group, ending);
      block = ending.aside == Aside::Target ? ending.next : target;
    } else {
      return part(kernel, group, ending, target);
    }
    enter(kernel, group, block);
  }
}

void planemu::startGroup(const Kernel &kernel, const Group &group) {
  const std::uint32_t block = group.warps[0]->block;
  enter(kernel, group, block);
  runGroup(kernel, group, block);
  // Each does its ending by itself, which counts it.
  for (Warp *warp : group) {
    warp->inst = kernel.blocks[warp->block].last;
    warp->executed -= 1;
  }
}
