//===- Worker.cpp - hand CTAs out and take turns --------------------------===//
//
// Which CTA a worker runs:
//
//   normal       the next one of the grid, to its end
//   set aside    a CTA that waits is put away with its registers and memory. Between new ones a few
//                of those set aside are looked at, all of them once no new one is left; so every
//                CTA gets its turn whatever the others wait for
//   cooperative  one worker starts all CTAs and looks at them in turn
//
// A CTA that waits for one that has failed waits forever. When no worker's CTAs can go on and one
// has failed, the launch is over. So it is when all go in circles.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Worker.h"

#include <algorithm>
#include <thread>
#include <utility>

using namespace planemu;

std::atomic<std::uint64_t> planemu::executedInstructions{0};

// Those set aside that are looked at before another CTA is started.
constexpr std::size_t PollsBetween = 8;
// Turns in a row in which warps yield before their CTA is set aside though it may still compute.
// More for each one set aside: long loops must not make all CTAs resident.
constexpr unsigned Patience = 16;
// Rounds in which all CTAs only wait before it is asked whether that can ever end.
constexpr unsigned StillBeforeVerdict = 64;
// CTAs whose buffers are kept for the next launch.
constexpr std::size_t Kept = 16;

/// A permutation of [0, count) for each seed: a Feistel network on the next even number of bits,
/// applied until the result is in range.
static std::uint64_t permute(std::uint64_t index, std::uint64_t count, std::uint64_t seed) {
  unsigned half = 1;
  while (half < 32 && (count - 1) >> (2 * half))
    ++half;
  std::uint64_t mask = (1ull << half) - 1;
  do {
    std::uint64_t high = index >> half, low = index & mask;
    for (unsigned round = 0; round < 4; ++round) {
      std::uint64_t state = seed + (low << 8) + round;
      high ^= nextRandom(state) & mask;
      std::swap(high, low);
    }
    index = high << half | low;
  } while (index >= count);
  return index;
}

/// Starts the next CTA that has to run. Null: there is none.
Resident *Worker::startNext() {
  for (;;) {
    std::uint64_t taken = launch->next.fetch_add(1, std::memory_order_relaxed);
    if (taken >= launch->ctas)
      return nullptr;
    std::uint64_t linear = launch->seed ? permute(taken, launch->ctas, launch->seed) : taken;
    if (linear >= launch->runBelow.load(std::memory_order_relaxed)) {
      if (launch->seed)
        continue;
      return nullptr;
    }
    if (spare.empty()) {
      if (prepared == residents.size())
        residents.push_back(std::make_unique<Resident>());
      Resident *fresh = residents[prepared].get();
      fresh->prepare(*launch);
      ++prepared;
      spare.push_back(fresh);
    }
    Resident *cta = spare.back();
    spare.pop_back();
    cta->start(linear);
    return cta;
  }
}

/// Looks at `count` of the CTAs set aside, from where the last call stopped.
void Worker::poll(std::size_t count) {
  for (; count > 0 && !aside.empty(); --count) {
    nextPoll %= aside.size();
    Resident *cta = aside[nextPoll];
    bool ended = cta->linear() >= launch->runBelow.load(std::memory_order_relaxed) ||
                 cta->run(Patience) == Resident::Outcome::Ended;
    if (ended || cta->progressed())
      launch->progress.fetch_add(1);
    if (!ended) {
      ++nextPoll;
      continue;
    }
    executed += cta->executed();
    cta->handOver();
    aside.erase(aside.begin() + static_cast<std::ptrdiff_t>(nextPoll));
    spare.push_back(cta);
  }
}

/// All CTAs of this worker have been looked at since `progress` was `since`. True if no CTA of any
/// worker has done anything but wait since then, and one has failed. If it has failed because it
/// never ends the others may not either, and the lowest one is to be reported.
bool Worker::waitsForFailed(std::uint64_t since) {
  std::lock_guard lock(launch->faultMutex);
  if (launch->progress.load() != since)
    return false;
  judgeSince(since);
  if (std::exchange(quietAt, since) != since)
    ++launch->quiet;
  bool endless = launch->faulted && (launch->fault.kind == FaultKind::Endless ||
                                     launch->fault.kind == FaultKind::Circles);
  return launch->quiet + launch->left == launch->joined && launch->runBelow.load() != ~0ull &&
         !endless;
}

/// The CTAs of this worker have waited for long. True if all CTAs of the launch go in circles, each
/// seeing the same again and again.
bool Worker::allGoInCircles(std::uint64_t since) {
  if (circlingAt != since)
    for (Resident *cta : aside)
      if (!cta->goesInCircles()) {
        launch->progress.fetch_add(1);
        return false;
      }
  std::lock_guard lock(launch->faultMutex);
  if (launch->progress.load() != since)
    return false;
  judgeSince(since);
  if (std::exchange(circlingAt, since) != since)
    ++launch->circling;
  return launch->circling + launch->left == launch->joined;
}

void Worker::judgeSince(std::uint64_t since) {
  if (std::exchange(launch->judgedAt, since) != since)
    launch->quiet = launch->circling = 0;
}

/// Runs CTAs until none is left, or all that are left wait for one that has failed.
void Worker::runAll() {
  for (Resident *cta = startNext(); cta; cta = startNext()) {
    if (launch->cooperative) {
      aside.push_back(cta);
      continue;
    }
    auto patience = Patience + static_cast<unsigned>(std::min<std::size_t>(aside.size(), 1u << 20));
    if (cta->run(patience) == Resident::Outcome::Ended) {
      executed += cta->executed();
      cta->handOver();
      spare.push_back(cta);
    } else {
      aside.push_back(cta);
    }
    launch->progress.fetch_add(1);
    poll(std::min(PollsBetween, aside.size()));
  }
  for (unsigned still = 0; !aside.empty();) {
    std::uint64_t before = launch->progress.load();
    poll(aside.size());
    if (launch->progress.load() != before) {
      still = 0;
      continue;
    }
    if (waitsForFailed(before))
      break;
    if (++still >= StillBeforeVerdict && allGoInCircles(before)) {
      for (Resident *cta : aside)
        cta->reportCircles();
      break;
    }
    std::this_thread::yield(); // to who may be waited for
  }
  for (Resident *cta : aside) {
    executed += cta->executed();
    cta->handOver();
  }
}

void Worker::run(Launch &toRun) {
  launch = &toRun;
  prepared = nextPoll = quietAt = circlingAt = executed = 0;
  spare.clear();
  aside.clear();
  auto count = [&](unsigned &workers) {
    std::lock_guard lock(launch->faultMutex);
    ++workers;
    launch->progress.fetch_add(1);
  };
  count(launch->joined);
  try {
    runAll();
  } catch (...) {
    launch->runBelow = 0; // others may wait for what this worker cannot run
    count(launch->left);
    throw;
  }
  for (std::size_t n = 0; n < prepared; ++n)
    residents[n]->finish();
  count(launch->left);
  executedInstructions.fetch_add(executed, std::memory_order_relaxed);
  if (residents.size() > Kept)
    residents.resize(Kept);
}
