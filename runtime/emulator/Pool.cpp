//===- Pool.cpp - host threads that run launches --------------------------===//
//
// A launch is handed over under the mutex by raising `generation`; CTAs are then taken from the
// launch's own counter.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Pool.h"

#include <algorithm>
#include <new>

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

void Pool::work(Worker &worker) {
  try {
    worker.run(*current);
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
    lock.unlock();
    work(*workers[index]);
    lock.lock();
    if (--busy == 0)
      finished.notify_one();
  }
}

void Pool::run(Launch &launch) {
  unsigned count = wanted ? wanted.load() : std::max(1u, std::thread::hardware_concurrency());
  count = std::min(count, 256u);
  if (workers.size() != count) {
    stop();
    workers.resize(count);
    for (auto &worker : workers)
      if (!worker)
        worker = std::make_unique<Worker>();
    for (unsigned index = 1; index < count; ++index)
      threads.emplace_back(&Pool::help, this, index, generation);
  }
  outOfMemory = false;
  current = &launch;
  bool alone = launch.ctas == 1 || launch.cooperative || threads.empty();
  if (!alone) {
    std::lock_guard lock(mutex);
    busy = static_cast<unsigned>(threads.size());
    ++generation;
  }
  if (!alone)
    wake.notify_all();
  work(*workers[0]);
  if (!alone) {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return busy == 0; });
  }
  if (outOfMemory)
    throw std::bad_alloc();
}
