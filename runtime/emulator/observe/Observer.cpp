//===- Observer.cpp - what looks on while a CTA runs ----------------------===//

#include "runtime/emulator/observe/Observer.h"
#include "planemu/planemu.h"
#include "runtime/emulator/observe/AsyncCopies.h"
#include "runtime/emulator/observe/InitCheck.h"
#include "runtime/emulator/observe/RaceCheck.h"
#include "runtime/emulator/observe/SkipCheck.h"

using namespace planemu;

Observer::Observer(LaunchObserver &launch)
    : launch(launch), checksMembers(launch.has(PLANEMU_CHECK_SYNC)),
      counters(launch.makeCounters()) {
  if (launch.has(PLANEMU_CHECK_INIT))
    init = std::make_unique<InitCheck>(launch);
  if (launch.has(PLANEMU_CHECK_RACE))
    race = std::make_unique<RaceCheck>(launch);
  if (checksMembers)
    skips = std::make_unique<SkipCheck>(launch);
  if (init || race)
    copies = std::make_unique<AsyncCopies>();
}

Observer::~Observer() {
  if (counters)
    launch.addCounters(*counters);
}

void Observer::start(const Warp *warps, unsigned count) {
  if (copies)
    copies->start(count);
  follows = false;
  if (init)
    init->start(warps, count);
  if (race)
    race->start(warps, count);
  if (skips)
    skips->start(warps, count);
}

void Observer::executed(Warp &warp, const Inst &inst) {
  if (counters)
    counters->executed(warp, inst);
  if (follows)
    init->executed(warp, inst);
  if (checksMembers && (inst.flags & Inst::Sync)) {
    checkMembers(warp, inst);
    skips->comes(warp, warp.active);
  }
}

void Observer::ended(const Warp &warp, const Block &block, std::uint32_t taken) {
  if (counters)
    counters->ended(block, warp.active, taken);
  if (follows)
    init->ended(warp, block);
  if (skips)
    skips->ended(warp, block, taken);
}

void Observer::arrive(const Warp &warp, unsigned id) {
  if (skips && id < Cluster)
    skips->arrive(warp);
  if (race)
    race->arrive(warp, id);
}

void Observer::pass(const Warp &warp, unsigned id) {
  if (race)
    race->pass(warp, id);
}

void Observer::complete(unsigned id) {
  if (race)
    race->complete(id);
}

void Observer::access(Warp &warp, const Inst &inst, const Access &access) {
  if (counters)
    counters->access(warp, inst, access);
  if (init)
    follows |= init->access(warp, inst, access);
  if (copies && access.kind == AccessKind::AsyncStore)
    copies->issued(warp, inst, access);
  if (race)
    race->access(warp, inst, access);
}

void Observer::fence(Warp &warp, const Inst &inst, std::uint32_t mask) {
  if (race)
    race->fence(warp, mask, scopeOf(inst));
}

void Observer::syncLanes(Warp &warp, std::uint32_t mask) {
  if (race)
    race->syncLanes(warp, mask);
}

void Observer::commitGroup(Warp &warp, std::uint32_t mask) {
  if (copies)
    copies->commitGroup(warp, mask);
}

void Observer::copiesArrive(Warp &warp, unsigned lane, std::uint64_t host, bool parity) {
  if (copies)
    copies->arrive(warp, lane, host, parity);
}

void Observer::passMbarrier(std::uint64_t host, bool parity) {
  // To the race check the mbarrier itself is what orders.
  if (init)
    init->copiesEnd(copies->pass(host, parity), *copies);
}

void Observer::waitGroups(Warp &warp, std::uint32_t mask, std::uint32_t pending) {
  if (!copies)
    return;
  AsyncCopies::Copies ended = copies->wait(warp, mask, pending);
  if (init)
    init->copiesEnd(ended, *copies);
  if (race)
    race->copiesEnd(warp, ended);
}
