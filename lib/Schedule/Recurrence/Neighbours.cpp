//===- Neighbours.cpp - gates and norms around a recurrence ---------------===//
//
// Each warp computes for itself what it needs of the members before the recurrence; where their
// results are yielded, too, one warp of the grid stores them. The norm after it is the work of the
// CTA that owns the head.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Recurrence/Emitter.h"
#include "lib/Schedule/Reduce.h"

using namespace mlir;
using namespace plan;

namespace planc {

/// Bounds of the decay as the recurrence uses it: 1e-6 and the f32 nearest to 1 - 1e-6.
static constexpr float kMinDecay = 1e-6f, kMaxDecay = 0x1.ffffdep-1f;

void RecurrenceEmitter::loadGates() {
  GdnRecurrenceOp recurrence = parts.recurrence;
  auto node = cast<PlanNode>(recurrence.getOperation());
  Chunk chunk{row, head, 1};
  Value asStored = eval.operand(node, 1, chunk)[0];
  decay = b.fmin(b.fmax(asStored, b.f32(kMinDecay)), b.f32(kMaxDecay));
  beta = eval.operand(node, 2, chunk)[0];
  if (!parts.gates)
    return;
  Value stores = b.bitAnd(storesHead, b.eq(b.laneId(), 0));
  for (Value gate : parts.gates->getResults())
    if (b.outputPointer(gate))
      b.ifThen(stores, [&] { eval.store(gate, chunk); });
}

/// The factor of a norm over `length` elements, by one warp: all of its lanes call it and get it.
static Value factorOf(KernelBuilder &b, Operation *norm,
                      llvm::function_ref<Values(Value, unsigned)> load) {
  int64_t length = normLength(norm);
  constexpr unsigned vector = 4;
  RowLayout layout = RowLayout::make(length, vector, 32);
  Value thread = b.rem(b.laneId(), layout.threads());
  Values all;
  for (unsigned chunk = 0; chunk < layout.chunks(); ++chunk) {
    Value column = layout.column(b, thread, 0, chunk);
    bool mayEnd = layout.elements() > length;
    for (Value value : load(mayEnd ? b.min(column, b.i32(length - vector)) : column, vector))
      all.push_back(mayEnd ? b.select(b.lt(column, length), value, b.f32(0)) : value);
  }
  return normScale(b, norm, sumOfSquares(b, length, layout, thread, {all}));
}

/// q and k at the lane's rows.
void RecurrenceEmitter::loadKeys() {
  GdnRecurrenceOp recurrence = parts.recurrence;
  L2NormOp l2Norm = parts.l2Norm;
  // The widest pieces that are as aligned as they are long.
  int64_t piece = std::min<int64_t>(laneRows & -laneRows, 8);
  for (Values *vector : {&q, &k}) {
    int64_t offset = vector == &q ? 0 : parts.keyHeads * parts.keyDim;
    Value first = b.add(b.mul(keyHead, parts.keyDim), offset);
    if (l2Norm)
      headFactor = factorOf(b, l2Norm, [&](Value column, unsigned count) {
        return eval.operand(cast<PlanNode>(l2Norm.getOperation()), 0,
                            {row, b.add(first, column), count});
      });
    Value firstOfLane = b.add(first, b.mul(group, laneRows));
    for (int64_t i = 0; i < laneRows; i += piece) {
      Chunk chunk{row, b.add(firstOfLane, i), unsigned(piece)};
      vector->append(eval.operand(cast<PlanNode>(recurrence.getOperation()), 0, chunk));
      if (l2Norm && b.outputPointer(l2Norm.getResult()))
        b.ifThen(b.bitAnd(storesKeyHead, b.eq(quad, 0)),
                 [&] { eval.store(l2Norm.getResult(), chunk); });
    }
  }
}

/// The lane's 4 values from `column` of the head on.
Values RecurrenceEmitter::loadValues(Value column) {
  Value inRow = b.add(b.add(b.mul(head, parts.valueDim), column), parts.valueOffset());
  Chunk chunk{row, inRow, 4};
  Values v = eval.operand(cast<PlanNode>(parts.recurrence.getOperation()), 0, chunk);
  if (parts.l2Norm && b.outputPointer(parts.l2Norm.getResult()))
    b.ifThen(b.eq(group, 0), [&] { eval.store(parts.l2Norm.getResult(), chunk); });
  return v;
}

/// The norm of the head in shared memory, 4 elements a thread.
void RecurrenceEmitter::emitNorm() {
  GatedRmsNormOp norm = parts.norm;
  constexpr unsigned count = 4;
  int64_t length = parts.valueDim, threads = length / count;
  Value thread = b.threadId(), first = b.mul(head, length);
  eval.provide(norm.getCore(), [&](Chunk chunk) {
    Value address = b.at(sharedCore, b.sub(chunk.column, first), Format::F32);
    return b.loadF32(address, Format::F32, chunk.count);
  });
  // Whole warps, since a warp sums over the head; the last one may be partly idle afterwards.
  b.ifThen(b.lt(thread, (threads + 31) / 32 * 32), [&] {
    Value factor = factorOf(b, norm, [&](Value column, unsigned count) {
      return eval.operand(cast<PlanNode>(norm.getOperation()), 0,
                          {row, b.add(first, column), count});
    });
    eval.provideScale(norm, [&](Value, Value) { return factor; });
    b.ifThen(b.lt(thread, threads), [&] {
      if (b.outputPointer(norm.getResult()))
        eval.store(norm.getResult(), {row, b.add(first, b.mul(thread, count)), count});
    });
  });
}

} // namespace planc
