//===- Workers.h - work over forked processes -------------------------------===//
//
// Private to lib/Verify. Items are numbers from 0 on; workers take them one by one from a counter in
// shared memory and send a line each through a pipe of their own.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_WORKERS_H
#define PLANC_LIB_VERIFY_WORKERS_H

#include "lib/Support/Error.h"
#include "lib/Support/Json.h"

#include <functional>
#include <optional>

namespace planc::verify {

/// The side of a worker.
class Worker {
public:
  /// The next item that nobody has taken; announces it, so that the parent knows whose fault a crash
  /// is.
  std::optional<size_t> take(size_t count);
  void report(size_t item, const Json &result);

private:
  friend Status runWorkers(unsigned, size_t, const std::function<Status(Worker &)> &,
                           const std::function<void(size_t, const Json &)> &,
                           const std::function<void(size_t, const std::string &)> &);
  void send(const Json &line);

  void *counter = nullptr; // std::atomic<size_t>, shared
  int pipe = -1;
};

/// Runs `body` in `workers` processes (0: one per core) until `count` items are taken. `result` is
/// called for each item that was reported, `died` for each that a worker did not survive or that no
/// worker lived to take: every item is heard of, unless there is an error, which is that of a worker
/// whose body failed. Workers end with their parent.
Status runWorkers(unsigned workers, size_t count, const std::function<Status(Worker &)> &body,
                  const std::function<void(size_t item, const Json &)> &result,
                  const std::function<void(size_t item, const std::string &how)> &died);

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_WORKERS_H
