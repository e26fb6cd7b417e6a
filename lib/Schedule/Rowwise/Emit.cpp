//===- Emit.cpp - tasks over elements and over segments ----------------------===//

#include "lib/Schedule/Reduce.h"
#include "lib/Schedule/Rowwise/Tasks.h"

using namespace mlir;
using namespace planc;
using namespace planc::rowwise;

/// Threads of a row's CTA: one chunk each up to 2048 elements.
static unsigned maxRowThreads(const Task &task) { return std::min(2048 / task.vector, 512u); }

static RowLayout layoutOf(const Task &task) {
  // A lane with single elements keeps the whole stretch in its warp: up to 8 of them.
  unsigned threads = task.vector == 1 && task.segment <= 256 ? 32 : maxRowThreads(task);
  return RowLayout::make(task.segment, task.vector, threads);
}

static int64_t segmentsOf(const Task &task) {
  return (task.width + task.segment - 1) / task.segment;
}

/// Small CTAs: these kernels are latency, and spread over more multiprocessors they are shorter.
static unsigned threadsFor(int64_t total) { return total >= 32768 ? 128 : total >= 64 ? 64 : 32; }

unsigned rowwise::wantedThreads(const Task &task) {
  switch (task.kind) {
  case TaskKind::Elements:
    return threadsFor(task.rows * task.width / task.vector);
  case TaskKind::Segments: {
    RowLayout layout = layoutOf(task);
    return layout.warpBits ? layout.threads()
                           : threadsFor(task.rows * segmentsOf(task) * layout.threads());
  }
  case TaskKind::Rows:
    return 256;
  }
  llvm_unreachable("all kinds are handled");
}

unsigned rowwise::ctaCount(const Task &task, unsigned threads) {
  auto ceil = [](int64_t a, int64_t c) { return unsigned((a + c - 1) / c); };
  switch (task.kind) {
  case TaskKind::Elements:
    return ceil(task.rows * task.width / task.vector, threads);
  case TaskKind::Segments: {
    RowLayout layout = layoutOf(task);
    int64_t groups = task.rows * segmentsOf(task);
    return layout.warpBits ? unsigned(groups) : ceil(groups, threads / layout.threads());
  }
  case TaskKind::Rows:
    return unsigned(task.rows);
  }
  llvm_unreachable("all kinds are handled");
}

void rowwise::write(Evaluator &evaluator, const Sink &sink, Chunk chunk) {
  switch (sink.kind) {
  case SinkKind::Store:
    return evaluator.store(sink.value, chunk);
  case SinkKind::Cache:
    return evaluator.writeCache(cast<plan::KvWriteOp>(sink.op), sink.cache, chunk);
  case SinkKind::Window:
    return evaluator.writeWindow(cast<plan::Conv1dUpdateOp>(sink.op), chunk);
  }
}

/// Windows last: until then they are as the step found them.
static void writeAll(Evaluator &evaluator, const Task &task, Chunk chunk) {
  for (bool windows : {false, true})
    for (const Sink &sink : task.sinks)
      if ((sink.kind == SinkKind::Window) == windows)
        write(evaluator, sink, chunk);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static void emitElements(KernelBuilder &b, const Task &task, Value cta, unsigned threads) {
  int64_t perRow = task.width / task.vector, total = task.rows * perRow;
  Value id = b.add(b.mul(cta, threads), b.threadId());
  auto body = [&] {
    Evaluator evaluator(b);
    Value row = task.rows == 1 ? b.i32(0) : b.div(id, perRow);
    Value chunk = task.rows == 1 ? id : b.rem(id, perRow);
    writeAll(evaluator, task, {row, b.mul(chunk, task.vector), task.vector});
  };
  if (total % threads == 0)
    body();
  else
    b.ifThen(b.lt(id, total), body);
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

namespace {
/// The part of a segment that one thread holds.
struct Piece {
  unsigned block;
  Chunk chunk;
  Value inside; ///< null if always
};
} // namespace

/// The thread's chunks; those beyond the segment or the row are not `inside`.
static SmallVector<Piece> piecesOf(KernelBuilder &b, const Task &task, RowLayout layout,
                                   Value thread, Value row, Value segment, unsigned threads) {
  bool idleThreads = layout.warpBits && threads > layout.threads();
  bool idleLanes = task.segment % layout.elements() != 0;
  bool shortSegment = task.width % task.segment != 0;
  Value start = b.mul(segment, task.segment);
  SmallVector<Piece> pieces;
  for (unsigned block = 0; block < RowLayout::blocks(task.segment); ++block)
    for (unsigned chunk = 0; chunk < layout.chunks(); ++chunk) {
      Value offset = layout.column(b, thread, block, chunk), column = b.add(start, offset);
      Value inside;
      auto require = [&](Value condition) {
        inside = inside ? b.bitAnd(inside, condition) : condition;
      };
      if (idleThreads)
        require(b.lt(thread, layout.threads()));
      if (idleLanes)
        require(b.lt(offset, task.segment));
      if (shortSegment)
        require(b.lt(column, task.width));
      pieces.push_back({block, {row, column, task.vector}, inside});
    }
  return pieces;
}

void rowwise::emitSegments(KernelBuilder &b, const Task &task, Value cta, unsigned threads) {
  RowLayout layout = layoutOf(task);
  int64_t segments = segmentsOf(task), groups = task.rows * segments;
  Value tid = b.threadId(), group = cta, thread = tid, active;
  if (!layout.warpBits) {
    unsigned perCta = threads / layout.threads();
    group = b.add(b.mul(cta, perCta), b.div(tid, layout.threads()));
    thread = b.rem(tid, layout.threads());
    if (groups % perCta) {
      // All lanes take part in the shuffles; the surplus ones repeat the last group and write
      // nothing.
      active = b.lt(group, groups);
      group = b.min(group, b.i32(groups - 1));
    }
  }
  Value row = segments == 1 ? group : b.div(group, segments);
  Value segment = segments == 1 ? b.i32(0) : b.rem(group, segments);
  if (task.rows == 1)
    row = b.i32(0);
  auto pieces = piecesOf(b, task, layout, thread, row, segment, threads);

  Evaluator evaluator(b);
  // What does not wait for a sum is on its way before the first one.
  for (Operation *norm : task.norms)
    for (const Piece &piece : pieces)
      if (!piece.inside)
        evaluator.prefetch(norm, piece.chunk);
  for (Operation *norm : task.norms) {
    SmallVector<Values> blocks(RowLayout::blocks(task.segment));
    auto node = cast<plan::PlanNode>(norm);
    for (const Piece &piece : pieces) {
      auto load = [&] { return evaluator.operand(node, 0, piece.chunk); };
      blocks[piece.block].append(
          piece.inside
              ? b.ifValues(piece.inside, load, [&] { return Values(task.vector, b.f32(0.0f)); })
              : load());
    }
    Value scale = normScale(b, norm, sumOfSquares(b, task.segment, layout, thread, blocks));
    evaluator.provideScale(norm, [scale](Value, Value) { return scale; });
  }
  for (const Piece &piece : pieces) {
    Value condition = piece.inside;
    if (active)
      condition = condition ? b.bitAnd(condition, active) : active;
    auto body = [&] { writeAll(evaluator, task, piece.chunk); };
    if (condition)
      b.ifThen(condition, body);
    else
      body();
  }
}

void rowwise::emitTask(KernelBuilder &b, const Task &task, Value cta, unsigned threads) {
  switch (task.kind) {
  case TaskKind::Elements:
    return emitElements(b, task, cta, threads);
  case TaskKind::Segments:
    return emitSegments(b, task, cta, threads);
  case TaskKind::Rows:
    return emitRows(b, task, cta, threads);
  }
}
