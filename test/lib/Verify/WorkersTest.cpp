//===- WorkersTest.cpp - nothing is lost with a worker ----------------------===//
//
// Whatever becomes of the processes, each item ends in a result or as one that its worker did not
// survive: an item of which nobody hears would pass for one that holds.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Workers.h"
#include "test/unit/Check.h"

#include <csignal>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace planc;
using namespace planc::verify;

namespace {
/// What the parent hears.
struct Heard {
  std::map<size_t, int> results;
  std::map<size_t, std::string> deaths;
  std::string error;
};
} // namespace

static Heard run(unsigned workers, size_t count, std::function<Status(Worker &)> body) {
  Heard heard;
  Status status = runWorkers(
      workers, count, body,
      [&](size_t item, const Json &result) { heard.results[item] += result.get<int>(); },
      [&](size_t item, const std::string &how) { heard.deaths[item] = how; });
  if (!status.ok())
    heard.error = status.error().message;
  return heard;
}

TEST(each_item_is_heard_of_once) {
  Heard heard = run(3, 50, [](Worker &worker) -> Status {
    while (auto item = worker.take(50))
      worker.report(*item, 1);
    return {};
  });
  CHECK_EQ(heard.results.size(), 50u);
  for (auto [item, times] : heard.results)
    CHECK_EQ(times, 1);
  CHECK(heard.deaths.empty());
}

TEST(an_item_that_kills_its_worker_costs_itself) {
  Heard heard = run(2, 20, [](Worker &worker) -> Status {
    while (auto item = worker.take(20)) {
      if (*item == 7)
        raise(SIGKILL);
      worker.report(*item, 1);
    }
    return {};
  });
  CHECK_EQ(heard.results.size(), 19u);
  CHECK_EQ(heard.deaths.size(), 1u);
  CHECK_CONTAINS(heard.deaths[7], "signal 9");
}

TEST(workers_that_never_start_to_work_leave_all_items_failed) {
  Heard heard = run(2, 5, [](Worker &) -> Status {
    raise(SIGKILL);
    return {};
  });
  CHECK(heard.results.empty());
  CHECK_EQ(heard.deaths.size(), 5u);
  CHECK_CONTAINS(heard.deaths[0], "signal 9");
}

TEST(a_worker_that_dies_between_items_is_replaced) {
  Heard heard = run(1, 6, [](Worker &worker) -> Status {
    while (auto item = worker.take(6)) {
      worker.report(*item, 1);
      if (*item == 2)
        raise(SIGKILL);
    }
    return {};
  });
  CHECK_EQ(heard.results.size(), 6u);
  CHECK(heard.deaths.empty());
}

TEST(an_error_of_a_worker_is_that_of_all) {
  Heard heard =
      run(2, 5, [](Worker &) -> Status { return makeError(ErrorKind::Environment, "no device"); });
  CHECK_EQ(heard.error, "no device");
}

TEST(workers_end_with_their_parent) {
  // Orphans come to this process, which sees them end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  pid_t parent = fork();
  if (parent == 0) {
    setpgid(0, 0);
    run(2, 2, [&](Worker &worker) -> Status {
      worker.take(2);
      (void)!write(ends[1], "", 1);
      for (;;)
        pause();
    });
    _exit(0);
  }
  setpgid(parent, 0);
  char byte;
  for (int i = 0; i < 2; ++i) // both are at work
    CHECK_EQ(read(ends[0], &byte, 1), 1);
  close(ends[1]);
  kill(parent, SIGTERM);
  // The pipe ends when nobody holds its other end any more.
  pollfd wait = {ends[0], POLLIN, 0};
  CHECK_EQ(poll(&wait, 1, /*ms=*/20000), 1);
  kill(-parent, SIGKILL);
  while (::wait(nullptr) > 0)
    ;
}

CHECK_MAIN
