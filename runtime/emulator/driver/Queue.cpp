//===- Queue.cpp - work in the order of its dependencies ------------------===//
//
// Work whose predecessors are done runs in the call that enqueues it. Host functions are handed to
// one thread, and what has to come after one becomes a task: it counts what it waits for, and
// whoever brings the count to zero runs it.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstdio>

using namespace planemu;

static thread_local bool hostFunctionRuns = false;

bool planemu::inHostFunction() { return hostFunctionRuns; }

static bool isPending(const std::shared_ptr<Task> &task) { return task && !task->done; }

std::vector<std::shared_ptr<Task>> Driver::predecessors(const Stream &stream) const {
  std::vector<std::shared_ptr<Task>> tasks;
  auto add = [&](const Stream &other) {
    if (isPending(other.last))
      tasks.push_back(other.last);
  };
  add(stream);
  const Context &context = *stream.context;
  // The legacy stream and the blocking ones wait for each other.
  if (stream.legacy) {
    for (auto &[handle, other] : streams)
      if (other->context.get() == &context && !(other->flags & CU_STREAM_NON_BLOCKING))
        add(*other);
    for (auto &[thread, other] : context.perThread)
      add(*other);
  } else if (!(stream.flags & CU_STREAM_NON_BLOCKING) && context.legacy) {
    add(*context.legacy);
  }
  return tasks;
}

CUresult Driver::submit(std::shared_ptr<Context> context, Work work,
                        const std::vector<std::shared_ptr<Task>> &after,
                        std::shared_ptr<Task> &task) {
  bool waits = false;
  for (const std::shared_ptr<Task> &earlier : after)
    waits |= isPending(earlier);
  if (!waits && !std::holds_alternative<HostWork>(work)) {
    task = nullptr;
    return execute(*context, work);
  }
  task = std::make_shared<Task>();
  task->context = std::move(context);
  task->work = std::move(work);
  ++task->context->pending;
  for (const std::shared_ptr<Task> &earlier : after)
    if (isPending(earlier)) {
      earlier->next.push_back(task);
      ++task->waits;
    }
  if (task->waits == 0)
    start(task);
  return CUDA_SUCCESS;
}

void Driver::start(std::shared_ptr<Task> task) {
  hostQueue.push_back(std::move(task));
  if (!hostThread.joinable())
    hostThread = std::thread(&Driver::runHostFunctions, this);
  hostWake.notify_one();
}

/// Marks the task done and runs what waited for it alone.
void Driver::finish(std::shared_ptr<Task> task) {
  std::deque<std::shared_ptr<Task>> done{std::move(task)};
  while (!done.empty()) {
    std::shared_ptr<Task> first = std::move(done.front());
    done.pop_front();
    first->done = true;
    --first->context->pending;
    for (std::shared_ptr<Task> &next : first->next) {
      if (--next->waits)
        continue;
      if (std::holds_alternative<HostWork>(next->work)) {
        start(next);
        continue;
      }
      // Nobody is there to take a late failure, so it sticks like a kernel's.
      Context &context = *next->context;
      if (context.alive && context.sticky == CUDA_SUCCESS)
        if (CUresult result = execute(context, next->work); result != CUDA_SUCCESS)
          context.sticky = result;
      done.push_back(std::move(next));
    }
    first->next.clear();
    first->work = EmptyWork(); // lets go of what it held
  }
  changed.notify_all();
}

void Driver::runHostFunctions() {
  hostFunctionRuns = true;
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    hostWake.wait(lock, [&] { return !hostQueue.empty(); });
    std::shared_ptr<Task> task = std::move(hostQueue.front());
    hostQueue.pop_front();
    HostWork work = std::get<HostWork>(task->work);
    CUresult status = task->context->sticky;
    // After a fault a plain host function no longer runs; a callback is told.
    if (work.callback || status == CUDA_SUCCESS) {
      lock.unlock();
      if (work.callback)
        work.callback(work.stream, status, work.userData);
      else
        work.function(work.userData);
      lock.lock();
    }
    finish(std::move(task));
  }
}

CUresult Driver::enqueue(Stream &stream, Work work) {
  if (stream.capture)
    return capture(stream, std::move(work));
  PLANEMU_TRY(checkLegacy(stream));
  std::shared_ptr<Task> task;
  PLANEMU_TRY(submit(stream.context, std::move(work), predecessors(stream), task));
  if (task)
    stream.last = std::move(task);
  return CUDA_SUCCESS;
}

void Driver::follow(Stream &stream, std::shared_ptr<Task> task) {
  if (!isPending(task))
    return;
  std::vector<std::shared_ptr<Task>> after = predecessors(stream);
  after.push_back(std::move(task));
  std::shared_ptr<Task> joined;
  submit(stream.context, EmptyWork(), after, joined);
  stream.last = std::move(joined);
}

/// CUDA hands over what kernels have printed when the host synchronises with them.
void Context::print() {
  if (output.empty())
    return;
  std::fwrite(output.data(), 1, output.size(), stdout);
  std::fflush(stdout);
  output.clear();
}

CUresult Driver::wait(std::unique_lock<std::mutex> &lock, Context &context,
                      const std::vector<std::shared_ptr<Task>> &tasks) {
  std::shared_ptr<Context> keep = shared(&context);
  for (const std::shared_ptr<Task> &task : tasks)
    changed.wait(lock, [&] { return !isPending(task); });
  context.print();
  return context.alive ? context.sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void Driver::drain(std::unique_lock<std::mutex> &lock, Context &context) {
  std::shared_ptr<Context> keep = shared(&context);
  changed.wait(lock, [&] { return context.pending == 0; });
  context.print();
}
