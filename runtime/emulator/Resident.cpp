//===- Resident.cpp - start a CTA and run its warps -----------------------===//
//
// Warps run in turn, each to its next barrier or for so many instructions. Barriers follow PTX: each
// of the 16 counts arriving threads, a warp that has exited no longer counts, and bar.red combines
// predicates.
//
// A warp that only waits runs in a circle: nothing but what another one writes gets it out. It is
// known by its registers, which are the same again after a while. Such a warp gets short turns, and
// a CTA all of whose warps wait lets other CTAs go on.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Resident.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/observe/Observer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

using namespace planemu;

// Instructions of a turn: how many the first one has, one after the warp was found waiting, and the
// longest. They double in between.
constexpr unsigned FirstTurn = 4096, ShortTurn = 256, LongTurn = 16384;

Resident::Resident() = default;
Resident::~Resident() = default;

void Resident::fillConstant(const Constant &constant, Warp &warp) {
  const Launch &l = *launch;
  const std::uint32_t *block = l.block;
  auto fill = [&](auto value) {
    auto put = [&]<class T>(T) {
      T *lanes = reinterpret_cast<T *>(warp.file + constant.offset);
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        lanes[lane] = static_cast<T>(value(lane));
    };
    constant.bytes == 2   ? put(std::uint16_t())
    : constant.bytes == 4 ? put(std::uint32_t())
                          : put(std::uint64_t());
  };
  auto all = [&](std::uint64_t value) { fill([&](std::uint32_t) { return value; }); };
  auto thread = [&](std::uint32_t lane) { return warp.index * 32 + lane; };
  switch (constant.kind) {
  case Constant::Bits:
    return all(constant.value);
  case Constant::Param: {
    std::uint64_t value = 0;
    std::uint32_t bits = 8 * (constant.value & 0x7f);
    std::memcpy(&value, l.parameters + (constant.value >> 8), bits / 8);
    if (constant.value & 0x80) // signed
      value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << (64 - bits)) >>
                                         (64 - bits));
    return all(value);
  }
  case Constant::ParamAddress:
    return all(reinterpret_cast<std::uintptr_t>(l.parameters) + constant.value);
  case Constant::TidX:
    return fill([&](std::uint32_t lane) { return thread(lane) % block[0]; });
  case Constant::TidY:
    return fill([&](std::uint32_t lane) { return thread(lane) / block[0] % block[1]; });
  case Constant::TidZ:
    return fill([&](std::uint32_t lane) { return thread(lane) / block[0] / block[1]; });
  case Constant::LaneId:
    return fill([](std::uint32_t lane) { return lane; });
  case Constant::WarpId:
    return all(warp.index);
  case Constant::LaneMaskEq:
    return fill([](std::uint32_t lane) { return 1u << lane; });
  case Constant::LaneMaskLe:
    return fill([](std::uint32_t lane) { return (2ull << lane) - 1; });
  case Constant::LaneMaskLt:
    return fill([](std::uint32_t lane) { return (1u << lane) - 1; });
  case Constant::LaneMaskGe:
    return fill([](std::uint32_t lane) { return ~0u << lane; });
  case Constant::LaneMaskGt:
    return fill([](std::uint32_t lane) { return ~0u << lane << 1; });
  case Constant::NtidX:
  case Constant::NtidY:
  case Constant::NtidZ:
    return all(block[constant.kind - Constant::NtidX]);
  case Constant::NctaidX:
  case Constant::NctaidY:
  case Constant::NctaidZ:
    return all(l.grid[constant.kind - Constant::NctaidX]);
  case Constant::NwarpId:
    return all(warps.size());
  case Constant::DynamicShared:
    return all(l.dynamicShared);
  case Constant::TotalShared:
  case Constant::DynamicBase:
  case Constant::LocalBase:
  case Constant::FrameBytes:
  case Constant::FrameAlign:
    return all(l.kernel->staticShared + l.dynamicShared);
  case Constant::WorkspaceHigh:
    return all(l.workspace >> 32);
  case Constant::WorkspaceLow:
    return all(l.workspace & 0xffffffff);
  case Constant::CtaidX:
  case Constant::CtaidY:
  case Constant::CtaidZ:
    return all(cta.id[constant.kind - Constant::CtaidX]);
  }
}

void Resident::prepare(Launch &toRun) {
  launch = &toRun;
  observer = launch->observer ? std::make_unique<Observer>(*launch->observer) : nullptr;
  const Kernel &kernel = *launch->kernel;
  std::uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  std::uint32_t count = (threads + 31) / 32;
  std::size_t needed = std::size_t(count) * kernel.fileBytes;
  if (needed > filesBytes) {
    filesBytes = 0;
    files = {static_cast<char *>(std::aligned_alloc(64, needed)), std::free};
    if (!files)
      throw std::bad_alloc();
    std::memset(files.get(), 0, needed);
    filesBytes = needed;
  }
  // 16 bytes more than asked: vector code may read a whole vector at the last valid address.
  shared.resize(kernel.staticShared + launch->dynamicShared + 64);
  local.resize(std::size_t(count) * 32 * kernel.localBytes + 64);
  regions.assign(kernel.cacheEntries, {});
  warps.resize(count);
  order.resize(count);
  for (std::uint32_t n = 0; n < count; ++n) {
    Warp &warp = warps[n];
    warp.file = files.get() + std::size_t(n) * kernel.fileBytes;
    warp.index = n;
    warp.shared =
        reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(shared.data()) + 15) & ~15ull);
    warp.sharedBytes = kernel.staticShared + launch->dynamicShared;
    warp.local = local.data() + std::size_t(n) * 32 * kernel.localBytes;
    warp.localBytes = kernel.localBytes;
    warp.regions = regions.data();
    warp.launch = launch;
    warp.cta = &cta;
    warp.observer = observer.get();
    std::uint32_t always = ~0u;
    std::memcpy(warp.file, &always, 4);
    for (const Constant &constant : kernel.constants)
      if (!constant.perCta())
        fillConstant(constant, warp);
  }
}

void Resident::start(std::uint64_t linear) {
  const Kernel &kernel = *launch->kernel;
  cta.linear = linear;
  cta.failed = false;
  cta.warps = warps.data();
  cta.warpCount = static_cast<std::uint32_t>(warps.size());
  cta.clusterPhase = 1;
  cta.output.clear();
  cta.id[0] = static_cast<std::uint32_t>(linear % launch->grid[0]);
  cta.id[1] = static_cast<std::uint32_t>(linear / launch->grid[0] % launch->grid[1]);
  cta.id[2] = static_cast<std::uint32_t>(linear / launch->grid[0] / launch->grid[1]);
  // A program that reads what it never wrote must at least read the same on any worker.
  std::fill(shared.begin(), shared.end(), 0);
  std::fill(local.begin(), local.end(), 0);
  std::uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  random = launch->seed ? launch->seed + (linear << 20) : 0;
  for (Warp &warp : warps) {
    std::uint32_t lanes = std::min(32u, threads - warp.index * 32);
    warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.active = warp.live;
    warp.executed = warp.clockReads = 0;
    warp.atCluster = 0;
    warp.block = 0;
    warp.inst = kernel.blocks[0].first;
    warp.readyCount = warp.parkedCount = warp.waitingCount = 0;
    warp.atBarrier = warp.done = false;
    warp.mergedAt = warp.wholeAt = 0;
    warp.loop = 0;
    warp.turnLane = warp.turnPicks = 0;
    warp.random = random ? nextRandom(random) | 1 : 0;
    warp.seenState = 0;
    warp.sinceSeen = warp.seenFor = 0;
    warp.turn = FirstTurn;
    for (const Constant &constant : kernel.constants)
      if (constant.perCta())
        fillConstant(constant, warp);
    for (const Slot &slot : kernel.readFirst)
      std::memset(warp.file + slot.offset, 0, slot.bytes);
  }
  if (observer)
    observer->start(warps.data(), static_cast<unsigned>(warps.size()));
  liveWarps = static_cast<std::uint32_t>(warps.size());
  std::fill(std::begin(barriers), std::end(barriers), BarrierState());
  for (std::uint32_t n = 0; n < order.size(); ++n)
    order[n] = n;
}

static std::uint32_t readFirstLane(const Warp &warp, std::uint32_t offset) {
  std::uint32_t value;
  std::memcpy(&value, warp.file + offset + 4 * __builtin_ctz(warp.live), 4);
  return value;
}

/// All live threads of `warp` have arrived at a barrier.
void Resident::arrive(Warp &warp) {
  const Block &block = launch->kernel->blocks[warp.parked[0].block];
  const BarrierSpec &spec = launch->kernel->barriers[block.index];
  std::uint32_t id = readFirstLane(warp, spec.id);
  std::uint32_t expected = spec.threads ? readFirstLane(warp, spec.threads) : 0;
  if (id >= std::size(barriers) || expected % 32) {
    warp.atBarrier = false;
    return reportFault(warp, block.line, FaultKind::BadOperand, 0, id, 0, "bar");
  }
  BarrierState &state = barriers[id];
  state.arrived += 32;
  state.expected = expected;
  for (unsigned n = 0; n < warp.parkedCount; ++n) {
    const BarrierSpec &each = specOf(warp.parked[n]);
    std::uint32_t predicate, mask = warp.parked[n].mask;
    std::memcpy(&predicate, warp.file + each.source, 4);
    predicate ^= each.negated ? ~0u : 0;
    state.count += static_cast<std::uint32_t>(__builtin_popcount(predicate & mask));
    state.all &= (predicate & mask) == mask;
    state.any |= (predicate & mask) != 0;
  }
  warp.barrierId = id;
  if (observer)
    observer->arrive(warp, id);
  if (spec.kind == BarrierSpec::Arrive) {
    warp.atBarrier = false;
    warp.parkedCount = 0;
  }
  completeBarrier(id);
}

const BarrierSpec &Resident::specOf(const Fragment &parked) const {
  return launch->kernel->barriers[launch->kernel->blocks[parked.block].index];
}

/// Lets the warps at barrier `id` go on if all it waits for have arrived. Without a count these are
/// all warps that have not exited.
void Resident::completeBarrier(std::uint32_t id) {
  BarrierState &state = barriers[id];
  std::uint32_t expected = state.expected ? state.expected : liveWarps * 32;
  if (state.arrived == 0 || state.arrived < expected)
    return;
  for (Warp &warp : warps) {
    if (!warp.atBarrier || warp.barrierId != id)
      continue;
    warp.atBarrier = false;
    if (observer)
      observer->pass(warp, id);
    for (unsigned n = 0; n < warp.parkedCount; ++n) {
      const BarrierSpec &spec = specOf(warp.parked[n]);
      std::uint32_t mask = warp.parked[n].mask;
      if (spec.kind == BarrierSpec::RedPopc) {
        for (std::uint32_t left = mask; left; left &= left - 1)
          std::memcpy(warp.file + spec.result + 4 * __builtin_ctz(left), &state.count, 4);
      } else if (spec.kind == BarrierSpec::RedAnd || spec.kind == BarrierSpec::RedOr) {
        std::uint32_t result;
        std::memcpy(&result, warp.file + spec.result, 4);
        bool value = spec.kind == BarrierSpec::RedAnd ? state.all : state.any;
        result = value ? result | mask : result & ~mask;
        std::memcpy(warp.file + spec.result, &result, 4);
      }
    }
    warp.parkedCount = 0;
  }
  state = {};
  if (observer)
    observer->complete(id);
}

void Resident::setSlice(Warp &warp) {
  std::uint32_t steps = warp.turn;
  warp.turn = std::min(2 * warp.turn, LongTurn);
  if (warp.random && steps > ShortTurn)
    steps = 1 + static_cast<std::uint32_t>(nextRandom(warp.random) % 1024);
  warp.stopAt = std::min(warp.executed + steps, launch->maxSteps);
}

/// After a yield: true if the registers are as at one of the warp's last yields.
bool Resident::hasNotChanged(Warp &warp) const {
  std::uint64_t state = hashRegisters(*launch->kernel, warp);
  bool same = warp.seenFor && state == warp.seenState;
  // Brent's way to find a cycle: compare with one earlier state, for twice as long each time. It
  // starts over early, as a warp may begin to wait at any time.
  if (++warp.sinceSeen >= warp.seenFor) {
    warp.seenFor = warp.seenFor >= 16 ? 1 : warp.seenFor * 2 + !warp.seenFor;
    warp.sinceSeen = 0;
    warp.seenState = state;
  }
  return same;
}

/// Under a seed the warps run in another order each time all have had their turn.
void Resident::orderWarps() {
  for (std::size_t n = order.size(); n > 1; --n)
    std::swap(order[n - 1], order[nextRandom(random) % n]);
}

/// Warps that are at one place start together.
void Resident::runGroups() {
  const Kernel &kernel = *launch->kernel;
  if (observer || random || kernel.orderedWarps)
    return;
  Warp *group[MaxGroup];
  for (std::size_t n = 0; n < warps.size();) {
    const std::uint32_t block = warps[n].block;
    unsigned count = 0;
    for (; n < warps.size() && count < MaxGroup && warps[n].block == block && mayJoin(warps[n]);
         ++n)
      group[count++] = &warps[n];
    if (count > 1)
      startGroup(kernel, {group, count});
    n += count == 0;
  }
}

/// All lanes are at the beginning of a block.
bool Resident::mayJoin(const Warp &warp) const {
  return !warp.done && !warp.atBarrier && warp.active == ~0u &&
         !(warp.readyCount | warp.parkedCount | warp.waitingCount) &&
         warp.inst == launch->kernel->blocks[warp.block].first;
}

Resident::Outcome Resident::run(unsigned patience, bool traced) {
  const Kernel &kernel = *launch->kernel;
  progress = cta.failed;
  if (cta.failed)
    return Outcome::Ended;
  circles = true;
  unsigned yields = 0;
  while (liveWarps) {
    if (random)
      orderWarps();
    bool ran = false, waits = true, yielded = true;
    for (Warp &warp : warps)
      if (!warp.done && !warp.atBarrier)
        setSlice(warp);
    if (!traced)
      runGroups();
    for (std::uint32_t index : order) {
      Warp &warp = warps[index];
      if (warp.done || warp.atBarrier)
        continue;
      ran = true;
      Stop stop = traced ? traceWarp(kernel, warp) : runWarp(kernel, warp);
      if (cta.failed) {
        progress = true;
        return Outcome::Ended;
      }
      if (stop == Stop::Yield) {
        if (hasNotChanged(warp))
          warp.turn = ShortTurn;
        else
          waits = false;
        if (traced)
          circles &= std::exchange(warp.seenTrace, warp.trace) == warp.trace;
        continue;
      }
      waits = yielded = false;
      if (stop == Stop::Barrier) {
        arrive(warp);
      } else {
        warp.done = true;
        --liveWarps;
        for (std::uint32_t id = 0; id < std::size(barriers); ++id)
          completeBarrier(id);
      }
      if (cta.failed) {
        progress = true;
        return Outcome::Ended;
      }
    }
    if (!ran) {
      for (Warp &warp : warps)
        if (warp.atBarrier)
          reportFault(warp, kernel.blocks[warp.parked[0].block].line, FaultKind::Deadlock,
                      static_cast<unsigned>(__builtin_ctz(warp.live)));
      progress = true;
      return Outcome::Ended;
    }
    progress |= !waits;
    if (cta.linear >= launch->runBelow.load(std::memory_order_relaxed))
      return Outcome::Ended;
    yields = yielded ? yields + 1 : 0;
    if (waits || yields > patience)
      return Outcome::Waiting;
  }
  progress = true;
  return Outcome::Ended;
}

void Resident::handOver() {
  if (cta.output.empty())
    return;
  std::lock_guard lock(launch->faultMutex);
  launch->output[cta.linear] = std::move(cta.output);
}

void Resident::finish() { observer.reset(); }

bool Resident::goesInCircles() {
  // Twice for the same trace; a warp that does anything else has made progress.
  for (int time = 0; time < 2; ++time)
    if (run(0, true) != Outcome::Waiting || progress)
      return false;
  return circles;
}

void Resident::reportCircles() {
  for (Warp &warp : warps)
    if (!warp.done && !warp.atBarrier)
      reportLoop(*launch->kernel, warp, warp.loop, FaultKind::Circles);
}

std::uint64_t Resident::executed() const {
  std::uint64_t sum = 0;
  for (const Warp &warp : warps)
    sum += warp.executed;
  return sum;
}

void planemu::reportFault(Warp &warp, std::uint32_t line, FaultKind kind, unsigned lane,
                          std::uint64_t address, std::uint32_t bytes, const char *access) {
  if (warp.cta->failed)
    return;
  warp.cta->failed = true;
  warp.stopAt = 0;
  Launch &launch = *warp.launch;
  std::lock_guard lock(launch.faultMutex);
  if (launch.faulted && launch.fault.linearCta <= warp.cta->linear)
    return;
  launch.faulted = true;
  launch.runBelow = warp.cta->linear;
  Fault &fault = launch.fault;
  fault.kind = kind;
  fault.line = line;
  fault.linearCta = warp.cta->linear;
  fault.address = address;
  fault.bytes = bytes;
  fault.access = access;
  std::uint32_t thread = warp.index * 32 + lane;
  fault.thread[0] = thread % launch.block[0];
  fault.thread[1] = thread / launch.block[0] % launch.block[1];
  fault.thread[2] = thread / launch.block[0] / launch.block[1];
  std::copy(warp.cta->id, warp.cta->id + 3, fault.cta);
}

bool planemu::findRegion(const Warp &warp, std::uint64_t address, RegionRef &region) {
  if ((address & WindowMask) == SharedWindow) {
    if (address - SharedWindow >= warp.sharedBytes)
      return false;
    region = {SharedWindow, warp.sharedBytes,
              reinterpret_cast<std::uintptr_t>(warp.shared) - SharedWindow};
    return true;
  }
  const Memory &memory = *warp.launch->memory;
  return warp.launch->namedRanges ? memory.findNamed(address, region)
                                  : memory.find(address, region);
}
