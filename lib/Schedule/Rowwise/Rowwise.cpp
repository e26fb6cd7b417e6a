//===- Rowwise.cpp - the schedule for rows ------------------------------------===//
//
// Takes any DAG of element-wise nodes, norms over rows or heads, cache writes and conv updates.
// Each task of Tasks.h has CTAs of its own in one grid, one after the other.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Rowwise/Tasks.h"

using namespace mlir;
using namespace planc;
using namespace planc::rowwise;

namespace {
class Rowwise : public Schedule {
public:
  StringRef name() const override { return "rowwise"; }

  std::optional<Refusal> refuses(plan::KernelOp kernel) const override {
    return divide(kernel).refusal;
  }

  LogicalResult emit(plan::KernelOp kernel, KernelBuilder &b, const ScheduleContext &,
                     LaunchShape &shape) const override {
    // Nothing to write (a snapshot in a decode step): one warp that ends at once.
    SmallVector<Task> tasks = divide(kernel).tasks;
    unsigned threads = 32;
    for (const Task &task : tasks)
      threads = std::max(threads, wantedThreads(task));
    uint32_t ctas = 0;
    for (const Task &task : tasks)
      ctas += ctaCount(task, threads);
    shape.block = {threads, 1, 1};
    shape.grid = {std::max(ctas, 1u), 1, 1};
    b.begin(shape);
    emitFrom(b, tasks, b.blockId(), threads);
    return success();
  }

private:
  /// The first task, or those after it where the CTA lies behind.
  static void emitFrom(KernelBuilder &b, ArrayRef<Task> tasks, Value cta, unsigned threads) {
    if (tasks.empty())
      return;
    if (tasks.size() == 1)
      return emitTask(b, tasks.front(), cta, threads);
    uint32_t count = ctaCount(tasks.front(), threads);
    b.ifElse(
        b.lt(cta, count), [&] { emitTask(b, tasks.front(), cta, threads); },
        [&] { emitFrom(b, tasks.drop_front(), b.sub(cta, count), threads); });
  }
};
} // namespace

namespace planc {
const Schedule &rowwiseSchedule() {
  static const Rowwise schedule;
  return schedule;
}
} // namespace planc
