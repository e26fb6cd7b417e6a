//===- Worker.h - a host thread that runs CTAs ----------------------------===//
//
// A worker runs one CTA at a time. One that only waits for other CTAs is set aside and others go
// on, so a kernel that ends where enough of its CTAs are resident together ends here too.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_WORKER_H
#define PLANEMU_WORKER_H

#include "runtime/emulator/Resident.h"

namespace planemu {

/// One per thread, kept between launches for its buffers.
class Worker {
public:
  /// Runs CTAs of `launch` until none is left. Throws std::bad_alloc.
  void run(Launch &launch);

private:
  void runAll();
  Resident *startNext();
  void poll(std::size_t count);
  bool waitsForFailed(std::uint64_t since);
  bool allGoInCircles(std::uint64_t since);
  void judgeSince(std::uint64_t since);

  Launch *launch = nullptr;
  std::vector<std::unique_ptr<Resident>> residents;
  std::vector<Resident *> spare, aside;
  std::size_t prepared = 0;                  // residents that are ready for this launch
  std::size_t nextPoll = 0;                  // of `aside`
  std::uint64_t quietAt = 0, circlingAt = 0; // values of Launch::progress
  std::uint64_t executed = 0;
};

} // namespace planemu

#endif // PLANEMU_WORKER_H
