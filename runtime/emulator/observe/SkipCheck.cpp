//===- SkipCheck.cpp - threads that go past a barrier and exit ------------===//

#include "runtime/emulator/observe/SkipCheck.h"

#include <cstring>

using namespace planemu;

static constexpr const char *SkippedBarrier =
    "a barrier that not all threads of the block come to: some do what is behind it and exit";
static constexpr const char *SkippedSync =
    "lanes of the member mask do not execute this: they do what is behind it and exit";
static constexpr const char *ExitsAt = "another exits at";

void SkipCheck::start(const Warp *all, unsigned number) {
  warps = all;
  count = number;
  states.assign(number, WarpState());
}

/// True if others can see what the block does.
bool SkipCheck::works(const Kernel &kernel, const Block &block) {
  effects.resize(kernel.blocks.size());
  std::uint8_t &known = effects[static_cast<std::size_t>(&block - kernel.blocks.data())];
  if (!known) {
    known = 1;
    for (std::uint32_t n = block.first; n < block.last; ++n)
      switch (kernel.classes[n]) {
      case InstClass::StoreGlobal:
      case InstClass::StoreShared:
      case InstClass::Atomic:
      case InstClass::Async:
        known = 2;
        break;
      default:
        break;
      }
  }
  return known == 2;
}

/// True if `to` comes behind `from`, or is what follows in it.
bool SkipCheck::leadsTo(const Kernel &kernel, std::uint32_t from, std::uint32_t to) {
  std::vector<bool> &reached = behind[from];
  if (reached.empty()) {
    reached.resize(kernel.blocks.size());
    std::vector<std::uint32_t> todo{from};
    auto visit = [&](std::uint32_t source, std::uint32_t target) {
      if (kernel.blocks[target].order > kernel.blocks[source].order && !reached[target]) {
        reached[target] = true;
        todo.push_back(target);
      }
    };
    while (!todo.empty()) {
      std::uint32_t id = todo.back();
      todo.pop_back();
      const Block &block = kernel.blocks[id];
      if (block.ending == Ending::Branch)
        visit(id, block.target);
      for (std::uint32_t target : block.targets)
        visit(id, target);
      if ((block.ending != Ending::Exit && block.ending != Ending::Trap) || block.guard)
        visit(id, block.next);
    }
  }
  return reached[to];
}

/// `waiter` has lanes at `place` that wait for the lanes `named` of `warp`.
void SkipCheck::waits(const Warp &warp, const Block &block, std::uint32_t exiting,
                      const Warp &waiter, const Fragment &place, std::uint32_t named,
                      bool atBarrier) {
  const Kernel &kernel = *warp.launch->kernel;
  std::uint32_t id = static_cast<std::uint32_t>(&block - kernel.blocks.data());
  if (works(kernel, block) && leadsTo(kernel, place.block, id))
    states[warp.index].past |= warp.active & named;
  std::uint32_t skipped = states[warp.index].past & exiting & named;
  if (!skipped)
    return;
  auto firstOf = [](std::uint32_t lanes) { return static_cast<unsigned>(__builtin_ctz(lanes)); };
  std::uint32_t line = atBarrier ? kernel.blocks[place.block].line : kernel.insts[place.inst].line;
  Site other{block.line, warp.cta->linear, warp.index, firstOf(skipped)};
  launch.findings().add(*warp.launch, "sync", atBarrier ? SkippedBarrier : SkippedSync,
                        {line, warp.cta->linear, waiter.index, firstOf(place.mask)}, {}, &other,
                        ExitsAt);
}

/// True if the barrier says how many threads come to it.
static bool counts(const Kernel &kernel, const Fragment &parked) {
  return kernel.barriers[kernel.blocks[parked.block].index].threads != 0;
}

void SkipCheck::arrive(const Warp &warp) {
  const Kernel &kernel = *warp.launch->kernel;
  WarpState &state = states[warp.index];
  state.past = 0;
  state.came.resize(kernel.blocks.size());
  for (unsigned n = 0; n < warp.parkedCount; ++n)
    state.came[warp.parked[n].block] = true;
  const Fragment &place = warp.parked[0];
  if (counts(kernel, place))
    return;
  // Those who have exited before.
  for (unsigned n = 0; n < count; ++n) {
    const WarpState &gone = states[n];
    if (warps[n].live || (!gone.came.empty() && gone.came[place.block]))
      continue;
    for (std::uint32_t id = 0; id < gone.worked.size(); ++id)
      if (gone.worked[id] && leadsTo(kernel, place.block, id)) {
        launch.findings().add(*warp.launch, "sync", SkippedBarrier,
                              {kernel.blocks[place.block].line, warp.cta->linear, warp.index,
                               static_cast<unsigned>(__builtin_ctz(place.mask))},
                              {}, &gone.exit, ExitsAt);
        break;
      }
  }
}

void SkipCheck::ended(const Warp &warp, const Block &block, std::uint32_t taken) {
  const Kernel &kernel = *warp.launch->kernel;
  WarpState &state = states[warp.index];
  if (works(kernel, block)) {
    state.worked.resize(kernel.blocks.size());
    state.worked[static_cast<std::size_t>(&block - kernel.blocks.data())] = true;
  }
  if (block.ending == Ending::Exit && taken == warp.live)
    state.exit = {block.line, warp.cta->linear, warp.index,
                  static_cast<unsigned>(__builtin_ctz(taken))};
  std::uint32_t exiting = block.ending == Ending::Exit ? taken & states[warp.index].past : 0;
  if (!exiting && !works(kernel, block))
    return;
  exiting = block.ending == Ending::Exit ? taken : 0;
  for (unsigned n = 0; n < warp.parkedCount; ++n)
    if (!counts(kernel, warp.parked[n]))
      waits(warp, block, exiting, warp, warp.parked[n], ~0u, true);
  for (unsigned n = 0; n < warp.waitingCount; ++n) {
    const Fragment &waiting = warp.waiting[n];
    std::uint32_t named = 0, mask;
    for (std::uint32_t left = waiting.mask; left; left &= left - 1) {
      const Inst &inst = kernel.insts[waiting.inst];
      std::memcpy(&mask, warp.file + *operandsOf(inst) + 4 * __builtin_ctz(left), 4);
      named |= mask;
    }
    waits(warp, block, exiting, warp, waiting, named, false);
  }
  std::uint32_t seen = ~0u; // most warps wait at the same
  for (unsigned n = 0; n < count; ++n) {
    const Warp &other = warps[n];
    if (&other == &warp || !other.atBarrier || !other.parkedCount ||
        (other.parked[0].block == seen && !exiting))
      continue;
    seen = other.parked[0].block;
    if (!counts(kernel, other.parked[0]))
      waits(warp, block, exiting, other, other.parked[0], ~0u, true);
  }
}
