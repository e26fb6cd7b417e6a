//===- EmitRows.cpp - the general task: one CTA per row -----------------------===//
//
// Convolved channels are made once, in the order of their columns, and kept in shared memory as
// f32; then the factors of the norms, in member order, one warp per stretch (or the CTA, for long
// ones); then every sink, chunk by chunk. Whatever else lies on the way is recomputed where it is
// pulled.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Reduce.h"
#include "lib/Schedule/Rowwise/Tasks.h"

using namespace mlir;
using namespace planc;
using namespace planc::rowwise;
using plan::Format;

static int64_t columnsOf(Value edge) { return *plan::knownDim(edge.getType(), 1); }

/// Stretches that a norm sums over in one row.
static int64_t headsOf(Operation *norm) {
  if (auto l2 = dyn_cast<plan::L2NormOp>(norm))
    return *l2.getHeads().getConstant();
  return columnsOf(norm->getOperand(0)) / normLength(norm);
}

uint64_t rowwise::sharedBytes(const Task &task) {
  if (task.kind != TaskKind::Rows)
    return 0;
  uint64_t floats = 0;
  for (Operation *conv : task.convs)
    floats += columnsOf(conv->getResult(0));
  for (Operation *norm : task.norms)
    floats += headsOf(norm);
  return floats * 4;
}

/// Calls `body` for every chunk of a row, the CTA's threads side by side.
static void forEachChunk(KernelBuilder &b, int64_t width, unsigned vector, unsigned threads,
                         llvm::function_ref<void(Value column)> body) {
  b.forLoop(b.threadId(), b.i32(width / vector), b.i32(threads),
            [&](Value chunk) { body(b.mul(chunk, vector)); });
}

/// Channels into shared memory, windows shifted behind.
static void emitConv(KernelBuilder &b, Evaluator &evaluator, plan::Conv1dUpdateOp conv, Value row,
                     unsigned threads) {
  int64_t channels = columnsOf(conv.getResult());
  Value shared = b.staticShared(channels * 4);
  forEachChunk(b, channels, 1, threads, [&](Value column) {
    Chunk chunk = {row, column, 1};
    b.storeF32(b.at(shared, column, 4), Format::F32, evaluator.held(conv.getResult(), chunk));
    evaluator.writeWindow(conv, chunk);
  });
  b.barrier();
  evaluator.provide(conv.getResult(), [&b, shared](Chunk chunk) {
    return b.loadF32(b.at(shared, chunk.column, 4), Format::F32, chunk.count);
  });
}

static void emitNorm(KernelBuilder &b, Evaluator &evaluator, Operation *norm, unsigned vector,
                     Value row, unsigned threads) {
  int64_t length = normLength(norm), heads = headsOf(norm);
  Value shared = b.staticShared(heads * 4);
  bool byCta = vector > 1 && length > 64 * vector;
  RowLayout layout = RowLayout::make(length, vector, byCta ? threads : 32);
  Value thread = byCta ? b.threadId() : b.laneId();
  auto stretch = [&](Value head) {
    auto values = loadStretch(evaluator, norm, layout, thread, row, head);
    Value scale = normScale(b, norm, sumOfSquares(b, length, layout, thread, values));
    b.ifThen(b.eq(thread, 0), [&] { b.storeF32(b.at(shared, head, 4), Format::F32, {scale}); });
    if (byCta)
      b.barrier(); // the next stretch uses the same partial sums
  };
  if (byCta)
    b.forLoop(b.i32(0), b.i32(heads), b.i32(1), stretch);
  else
    b.forLoop(b.warpId(), b.i32(heads), b.i32(threads / 32), stretch);
  b.barrier();
  evaluator.provideScale(norm, [&b, shared, heads](Value, Value head) {
    // Beyond the normed heads nobody uses the factor, but the address must be one.
    Value index = b.min(head, b.i32(heads - 1));
    return b.loadF32(b.at(shared, index, 4), Format::F32, 1).front();
  });
}

void rowwise::emitRows(KernelBuilder &b, const Task &task, Value cta, unsigned threads) {
  Value row = task.rows == 1 ? b.i32(0) : cta;
  Evaluator evaluator(b);
  SmallVector<Operation *> first(task.convs);
  first.append(task.norms.begin(), task.norms.end());
  llvm::sort(first, [](Operation *a, Operation *c) { return a->isBeforeInBlock(c); });
  for (Operation *op : first)
    if (auto conv = dyn_cast<plan::Conv1dUpdateOp>(op))
      emitConv(b, evaluator, conv, row, threads);
    else
      emitNorm(b, evaluator, op, task.vector, row, threads);
  for (const Sink &sink : task.sinks)
    if (sink.kind != SinkKind::Window)
      forEachChunk(b, sink.width, task.vector, threads,
                   [&](Value column) { write(evaluator, sink, {row, column, task.vector}); });
}
