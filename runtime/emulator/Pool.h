//===- Pool.h - host threads that run launches ----------------------------===//
//
// Threads are started once and sleep between launches; the caller of run works too. Not locked: the
// driver runs one launch at a time.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_POOL_H
#define PLANEMU_POOL_H

#include "runtime/emulator/Worker.h"

#include <condition_variable>
#include <thread>

namespace planemu {

class Pool {
public:
  ~Pool();
  /// Threads that work on a launch, the caller included. 0: one per core.
  void setThreads(unsigned count);
  /// Returns when all CTAs have run. Throws std::bad_alloc if there is no memory for their
  /// registers.
  void run(Launch &launch);

private:
  void stop();
  void help(unsigned index, std::uint64_t seen);
  void resize(unsigned count);
  void work(Worker &worker, Launch &launch);

  std::atomic<unsigned> wanted{0};
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Worker>> workers; // 0 is the caller's

  std::mutex mutex;
  std::condition_variable wake, finished;
  Launch *current = nullptr; // what threads may join
  std::uint64_t generation = 0;
  unsigned busy = 0; // threads that have joined
  bool stopping = false;
  std::atomic<bool> outOfMemory{false};
};

} // namespace planemu

#endif // PLANEMU_POOL_H
