//===- Pool.cpp - host threads that run launches --------------------------===//
//
// A launch is handed over under the mutex by raising `generation`; CTAs are then taken from the
// launch's own counter. A thread that wakes up after the caller has run out of CTAs does not take
// part any more, so a small launch does not wait for threads to wake up.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Pool.h"

#include <algorithm>
#include <new>
#include <system_error>

using namespace planemu;

Pool::~Pool() { stop(); }

void Pool::setThreads(unsigned count) { wanted = count; }

void Pool::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
  stopping = false;
}

void Pool::work(Worker &worker, Launch &launch) {
  try {
    worker.run(launch);
  } catch (const std::bad_alloc &) {
    outOfMemory = true;
  }
}

/// `seen`: the generation when the thread was started. It must not be read here: the first launch
/// may come before the thread does.
void Pool::help(unsigned index, std::uint64_t seen) {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    Launch *launch = current;
    if (!launch)
      continue;
    ++busy;
    lock.unlock();
    work(*workers[index], *launch);
    lock.lock();
    if (--busy == 0)
      finished.notify_one();
  }
}

/// Starts or ends threads until there are `count` workers, or as many as the host gives.
void Pool::resize(unsigned count) {
  stop();
  workers.resize(count);
  for (auto &worker : workers)
    if (!worker)
      worker = std::make_unique<Worker>();
  try {
    for (unsigned index = 1; index < count; ++index)
      threads.emplace_back(&Pool::help, this, index, generation);
  } catch (const std::system_error &) {
    // Fewer will do.
  }
}

void Pool::run(Launch &launch) {
  unsigned count = wanted ? wanted.load() : std::max(1u, std::thread::hardware_concurrency());
  count = std::min(count, 256u);
  if (workers.size() != count)
    resize(count);
  outOfMemory = false;
  std::uint64_t helpers = launch.cooperative || launch.serial
                              ? 0
                              : std::min<std::uint64_t>(threads.size(), launch.ctas - 1);
  if (helpers) {
    std::lock_guard lock(mutex);
    current = &launch;
    ++generation;
  }
  if (helpers == threads.size() && helpers)
    wake.notify_all();
  else
    for (std::uint64_t n = 0; n < helpers; ++n)
      wake.notify_one();
  work(*workers[0], launch);
  if (helpers) {
    std::unique_lock lock(mutex);
    current = nullptr;
    finished.wait(lock, [&] { return busy == 0; });
  }
  if (outOfMemory)
    throw std::bad_alloc();
}
