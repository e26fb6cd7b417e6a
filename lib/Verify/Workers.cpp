//===- Workers.cpp - work over forked processes -----------------------------===//

#include "lib/Verify/Workers.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace planc::verify {

using Counter = std::atomic<size_t>;
static_assert(Counter::is_always_lock_free); // it is shared by processes

std::optional<size_t> Worker::take(size_t count) {
  size_t item = static_cast<Counter *>(counter)->fetch_add(1);
  if (item >= count)
    return std::nullopt;
  send({{"taken", item}});
  return item;
}

void Worker::report(size_t item, const Json &result) { send({{"item", item}, {"result", result}}); }

void Worker::send(const Json &line) {
  std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t sent = 0; sent < text.size();) {
    ssize_t count = write(pipe, text.data() + sent, text.size() - sent);
    if (count < 0 && errno != EINTR)
      _exit(1); // the parent is gone
    sent += count > 0 ? size_t(count) : 0;
  }
}

namespace {
/// The parent's view of a worker.
struct Child {
  pid_t process = -1;
  int pipe = -1;
  std::string text;           // that is no line yet
  std::optional<size_t> item; // taken, and not reported
  bool hasWorked = false;     // it has taken one
};
} // namespace

/// A worker makes and frees buffers of up to gigabytes hundreds of times. From the system they would
/// come as zeroed pages each time, which takes longer than what is computed with them.
static void keepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

static std::string howItEnded(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

Status runWorkers(unsigned workers, size_t count, const std::function<Status(Worker &)> &body,
                  const std::function<void(size_t, const Json &)> &result,
                  const std::function<void(size_t, const std::string &)> &died) {
  if (workers == 0)
    workers = std::max(1u, std::thread::hardware_concurrency());
  void *shared =
      mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return makeError(ErrorKind::Memory, "cannot share memory: {}", std::strerror(errno));
  auto *counter = new (shared) Counter(0);
  std::vector<Child> children;
  std::vector<bool> isHeardOf(count);
  std::string lastEnd;
  Status failure;

  auto lose = [&](size_t item, const std::string &how) {
    isHeardOf[item] = true;
    died(item, how);
  };
  auto start = [&]() -> Status {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      return makeError(ErrorKind::Environment, "cannot make a pipe: {}", std::strerror(errno));
    std::fflush(nullptr);
    pid_t parent = getpid(), process = fork();
    if (process < 0)
      return makeError(ErrorKind::Environment, "cannot start a process: {}", std::strerror(errno));
    if (process == 0) {
      // Not to be outlived, whatever ends it: an item may take minutes.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent)
        _exit(1);
      close(ends[0]);
      for (const Child &other : children)
        close(other.pipe);
      keepFreedMemory();
      Worker worker;
      worker.counter = counter;
      worker.pipe = ends[1];
      Status status = body(worker);
      if (!status.ok())
        worker.send({{"error", status.error().message}, {"kind", int(status.error().kind)}});
      _exit(0); // nothing of the parent's is to be flushed or destroyed here
    }
    close(ends[1]);
    Child &child = children.emplace_back();
    child.process = process;
    child.pipe = ends[0];
    return {};
  };
  auto handle = [&](Child &child, std::string_view line) {
    Result<Json> parsed = parseJson(line);
    if (!parsed.ok())
      return;
    const Json &json = *parsed;
    if (json.contains("taken")) {
      child.item = json["taken"].get<size_t>();
      child.hasWorked = true;
    } else if (json.contains("item")) {
      child.item.reset();
      size_t item = json["item"].get<size_t>();
      isHeardOf[item] = true;
      result(item, json["result"]);
    } else if (json.contains("error")) {
      failure =
          makeError(ErrorKind(json["kind"].get<int>()), "{}", json["error"].get<std::string>());
    }
  };

  for (unsigned i = 0; i < std::min<size_t>(workers, count); ++i)
    if (Status status = start(); !status.ok())
      failure = std::move(status);
  while (!children.empty()) {
    std::vector<pollfd> waits;
    for (const Child &child : children)
      waits.push_back({child.pipe, POLLIN, 0});
    if (poll(waits.data(), waits.size(), -1) < 0)
      continue;
    for (size_t i = waits.size(); i-- > 0;) {
      if (!waits[i].revents)
        continue;
      Child &child = children[i];
      char buffer[65536];
      ssize_t got = read(child.pipe, buffer, sizeof buffer);
      if (got > 0) {
        child.text.append(buffer, size_t(got));
        for (size_t end; (end = child.text.find('\n')) != std::string::npos;) {
          handle(child, std::string_view(child.text).substr(0, end));
          child.text.erase(0, end + 1);
        }
        continue;
      }
      if (got < 0 && errno == EINTR)
        continue;
      close(child.pipe);
      int status = 0;
      while (waitpid(child.process, &status, 0) < 0 && errno == EINTR)
        ;
      Child ended = std::move(child);
      children.erase(children.begin() + long(i));
      lastEnd = howItEnded(status);
      if (ended.item)
        lose(*ended.item, lastEnd);
      // One that never came to work would be followed by others like it.
      bool hasFailed = ended.item || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      if (hasFailed && ended.hasWorked)
        if (Status again = start(); !again.ok())
          failure = std::move(again);
    }
  }
  munmap(shared, sizeof(Counter));
  // Nobody was left to take it, or who took it ended before it could say so.
  for (size_t item = 0; item < count && failure.ok(); ++item)
    if (!isHeardOf[item])
      lose(item, lastEnd + ", and nobody took over");
  return failure;
}

} // namespace planc::verify
