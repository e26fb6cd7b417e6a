//===- Worker.cpp - run CTAs on one host thread ---------------------------===//
//
// Warps run in turn to their next barrier. Barriers follow PTX: each of the 16 counts arriving
// threads, a warp that has exited no longer counts, and bar.red combines predicates.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Machine.h"
#include "runtime/emulator/Memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

using namespace planemu;

std::atomic<std::uint64_t> planemu::executedInstructions{0};

void Worker::fillConstant(const Constant &constant, Warp &warp) {
  const Launch &l = *launch;
  const std::uint32_t *block = l.block;
  auto fill = [&](auto value) {
    char *at = warp.file + constant.offset;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      std::uint64_t bits = value(lane);
      std::memcpy(at + lane * constant.bytes, &bits, constant.bytes);
    }
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
    return all(l.kernel->staticShared + l.dynamicShared);
  case Constant::CtaidX:
  case Constant::CtaidY:
  case Constant::CtaidZ:
    return all(cta.id[constant.kind - Constant::CtaidX]);
  }
}

void Worker::prepare(Launch &toRun) {
  launch = &toRun;
  const Kernel &kernel = *launch->kernel;
  std::uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  std::uint32_t count = (threads + 31) / 32;
  std::size_t needed = std::size_t(count) * kernel.fileBytes;
  if (needed > filesBytes) {
    files.reset();
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
    std::uint32_t always = ~0u;
    std::memcpy(warp.file, &always, 4);
    for (const Constant &constant : kernel.constants)
      if (!constant.perCta())
        fillConstant(constant, warp);
  }
}

void Worker::startCta(std::uint64_t linear) {
  const Kernel &kernel = *launch->kernel;
  cta.linear = linear;
  cta.failed = false;
  cta.id[0] = static_cast<std::uint32_t>(linear % launch->grid[0]);
  cta.id[1] = static_cast<std::uint32_t>(linear / launch->grid[0] % launch->grid[1]);
  cta.id[2] = static_cast<std::uint32_t>(linear / launch->grid[0] / launch->grid[1]);
  // A program that reads what it never wrote must at least read the same on any worker.
  std::fill(shared.begin(), shared.end(), 0);
  std::fill(local.begin(), local.end(), 0);
  std::uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  for (Warp &warp : warps) {
    std::uint32_t lanes = std::min(32u, threads - warp.index * 32);
    warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.active = warp.live;
    warp.block = 0;
    warp.inst = kernel.blocks[0].first;
    warp.readyCount = warp.parkedCount = warp.waitingCount = 0;
    warp.atBarrier = warp.done = false;
    for (const Constant &constant : kernel.constants)
      if (constant.perCta())
        fillConstant(constant, warp);
    for (const Slot &slot : kernel.readFirst)
      std::memset(warp.file + slot.offset, 0, slot.bytes);
  }
  liveWarps = static_cast<std::uint32_t>(warps.size());
  std::fill(std::begin(barriers), std::end(barriers), BarrierState());
}

static std::uint32_t readFirstLane(const Warp &warp, std::uint32_t offset) {
  std::uint32_t value;
  std::memcpy(&value, warp.file + offset + 4 * __builtin_ctz(warp.live), 4);
  return value;
}

/// All live threads of `warp` have arrived at a barrier.
void Worker::arrive(Warp &warp) {
  const Block &block = launch->kernel->blocks[warp.barrierBlock];
  const BarrierSpec &spec = launch->kernel->barriers[block.index];
  std::uint32_t id = readFirstLane(warp, spec.id);
  std::uint32_t expected = spec.threads ? readFirstLane(warp, spec.threads) : 0;
  if (id >= std::size(barriers) || expected % 32) {
    warp.atBarrier = false;
    return reportFault(warp, block.line, FaultKind::BadOperand, 0, id, 0, "bar");
  }
  BarrierState &state = barriers[id];
  std::uint32_t predicate;
  std::memcpy(&predicate, warp.file + spec.source, 4);
  predicate ^= spec.negated ? ~0u : 0;
  state.arrived += 32;
  state.expected = expected;
  state.count += static_cast<std::uint32_t>(__builtin_popcount(predicate & warp.live));
  state.all &= (predicate & warp.live) == warp.live;
  state.any |= (predicate & warp.live) != 0;
  warp.barrierId = id;
  if (spec.kind == BarrierSpec::Arrive)
    warp.atBarrier = false;
  completeBarrier(id);
}

/// Lets the warps at barrier `id` go on if all it waits for have arrived. Without a count these are
/// all warps that have not exited.
void Worker::completeBarrier(std::uint32_t id) {
  BarrierState &state = barriers[id];
  std::uint32_t expected = state.expected ? state.expected : liveWarps * 32;
  if (state.arrived == 0 || state.arrived < expected)
    return;
  for (Warp &warp : warps) {
    if (!warp.atBarrier || warp.barrierId != id)
      continue;
    warp.atBarrier = false;
    const BarrierSpec &spec =
        launch->kernel->barriers[launch->kernel->blocks[warp.barrierBlock].index];
    if (spec.kind == BarrierSpec::RedPopc) {
      for (unsigned lane = 0; lane < 32; ++lane)
        if (warp.live >> lane & 1)
          std::memcpy(warp.file + spec.result + 4 * lane, &state.count, 4);
    } else if (spec.kind == BarrierSpec::RedAnd || spec.kind == BarrierSpec::RedOr) {
      std::uint32_t result;
      std::memcpy(&result, warp.file + spec.result, 4);
      bool value = spec.kind == BarrierSpec::RedAnd ? state.all : state.any;
      result = value ? result | warp.live : result & ~warp.live;
      std::memcpy(warp.file + spec.result, &result, 4);
    }
  }
  state = {};
}

void Worker::runCta() {
  const Kernel &kernel = *launch->kernel;
  while (liveWarps) {
    bool progress = false;
    for (Warp &warp : warps) {
      if (warp.done || warp.atBarrier)
        continue;
      progress = true;
      Stop stop = runWarp(kernel, warp);
      if (stop == Stop::Barrier) {
        arrive(warp);
      } else if (stop == Stop::Exit) {
        warp.done = true;
        --liveWarps;
        for (std::uint32_t id = 0; id < std::size(barriers); ++id)
          completeBarrier(id);
      }
      if (cta.failed)
        return;
    }
    if (progress)
      continue;
    for (Warp &warp : warps)
      if (warp.atBarrier)
        return reportFault(warp, kernel.blocks[warp.barrierBlock].line, FaultKind::Deadlock,
                           static_cast<unsigned>(__builtin_ctz(warp.live)));
  }
}

void Worker::run(Launch &toRun) {
  prepare(toRun);
  for (;;) {
    std::uint64_t linear = launch->next.fetch_add(1, std::memory_order_relaxed);
    if (linear >= launch->ctas || linear > launch->failedCta.load(std::memory_order_relaxed))
      break;
    startCta(linear);
    runCta();
  }
  std::uint64_t executed = 0;
  for (Warp &warp : warps)
    executed += std::exchange(warp.executed, 0);
  executedInstructions.fetch_add(executed, std::memory_order_relaxed);
}

void planemu::reportFault(Warp &warp, std::uint32_t line, FaultKind kind, unsigned lane,
                          std::uint64_t address, std::uint32_t bytes, const char *access) {
  if (warp.cta->failed)
    return;
  warp.cta->failed = true;
  Launch &launch = *warp.launch;
  std::lock_guard lock(launch.faultMutex);
  if (launch.faulted && launch.fault.linearCta <= warp.cta->linear)
    return;
  launch.faulted = true;
  launch.failedCta = warp.cta->linear;
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
    region = {SharedWindow, warp.sharedBytes,
              reinterpret_cast<std::uintptr_t>(warp.shared) - SharedWindow};
    return true;
  }
  return warp.launch->memory->find(address, region);
}
