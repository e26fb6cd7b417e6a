//===- Tasks.h - what a rowwise kernel does, and in which pieces ------------===//
//
// A *sink* is something that the kernel writes: a stored value, a cache, a conv window. Its chunks
// are pulled through the members by Evaluator, so that sinks can be divided among threads freely,
// as long as the sums of the norms on the way are known to the threads that need them. A *task* is
// a set of sinks of one shape, divided alike:
//
//   elements   no norm: one thread a chunk
//   segments   norms over stretches of one length that do not move on the way to the sinks: one
//   group of threads per
//              row and stretch, factors in registers
//   rows       anything else: one CTA per row, factors and convolved channels in shared memory
//
// Tasks are independent: each has CTAs of its own.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_ROWWISE_TASKS_H
#define PLANC_LIB_SCHEDULE_ROWWISE_TASKS_H

#include "lib/Schedule/Elementwise.h"
#include "lib/Schedule/Schedule.h"

namespace planc::rowwise {

enum class SinkKind { Store, Cache, Window };

struct Sink {
  SinkKind kind;
  Value value;                   ///< whose chunks are pulled
  mlir::Operation *op = nullptr; ///< the kv_write or conv1d_update
  unsigned cache = 0;            ///< which of the two caches
  int64_t rows = 0, width = 0;
};

enum class TaskKind { Elements, Segments, Rows };

struct Task {
  TaskKind kind = TaskKind::Elements;
  int64_t rows = 0;
  int64_t width = 0;   ///< of all sinks, 0 for Rows
  int64_t segment = 0; ///< length of a stretch, for Segments
  unsigned vector = 1; ///< elements of a chunk
  llvm::SmallVector<Sink> sinks;
  llvm::SmallVector<mlir::Operation *> norms, convs; ///< on the way, in member order
};

/// The tasks of a kernel, or why there are none.
struct Tasks {
  llvm::SmallVector<Task> tasks;
  std::optional<Refusal> refusal;
};
Tasks divide(plan::KernelOp kernel);

/// Shared memory that a task of kind Rows needs, in bytes.
uint64_t sharedBytes(const Task &task);
/// Threads that a task wants in a CTA at least (a power of two) and CTAs it needs with `threads` in
/// each.
unsigned wantedThreads(const Task &task);
unsigned ctaCount(const Task &task, unsigned threads);

/// Emits one task; `cta` counts from 0 within the task.
void emitTask(KernelBuilder &b, const Task &task, Value cta, unsigned threads);
void emitSegments(KernelBuilder &b, const Task &task, Value cta, unsigned threads);
void emitRows(KernelBuilder &b, const Task &task, Value cta, unsigned threads);

/// Writes one chunk of a sink.
void write(Evaluator &evaluator, const Sink &sink, Chunk chunk);

} // namespace planc::rowwise

#endif // PLANC_LIB_SCHEDULE_ROWWISE_TASKS_H
