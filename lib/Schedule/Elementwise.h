//===- Elementwise.h - the formulas of element-wise nodes, once -------------===//
//
// Every schedule emits element-wise nodes through this: a chunk of consecutive columns of a value
// is pulled from the values that it depends on, down to the kernel's inputs or to whatever the
// schedule holds in registers. So any of these nodes is a prologue or an epilogue of any schedule:
//
//   residual_add, sigmoid_gate_mul, silu_mul, gdn_gates, blend, split, rope, conv1d_update, and the
//   norms once their row's factor is known
//
// A chunk is `count` elements (1, 2, 4 or 8) at a column that is a multiple of `count`.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_ELEMENTWISE_H
#define PLANC_LIB_SCHEDULE_ELEMENTWISE_H

#include "lib/Schedule/KernelBuilder.h"

#include <functional>

namespace planc {

/// Where a chunk is: `row` and `column` are i32.
struct Chunk {
  Value row, column;
  unsigned count;
};

/// True for nodes that `Evaluator` computes.
bool isElementwise(mlir::Operation *node);

/// The largest chunk (1, 2, 4, 8) in which `node` can be computed, given its dims; 0 if it cannot
/// at all.
unsigned maxChunk(mlir::Operation *node);

class Evaluator {
public:
  using Source = std::function<Values(Chunk)>;
  using Scale = std::function<Value(Value row, Value head)>;

  explicit Evaluator(KernelBuilder &b) : b(b) {}

  /// Takes chunks of `value` from `held`, in f32 before they are rounded to the value's stored
  /// format.
  void provide(Value value, Source held) { sources[value] = std::move(held); }
  /// Takes the factor of a norm from `scale`. `head` counts the norm's rows within `row`; for
  /// l2_norm it may lie beyond the normed heads, and the factor is not used then.
  void provideScale(mlir::Operation *norm, Scale scale) { scales[norm] = std::move(scale); }

  /// A chunk as it is once stored.
  Values stored(Value value, Chunk chunk);
  /// A chunk in f32 before rounding; of a kernel's input, as stored.
  Values held(Value value, Chunk chunk);
  /// A chunk of an operand, in the precision in which `node` reads it.
  Values operand(plan::PlanNode node, unsigned index, Chunk chunk);
  /// `count` elements of a one-dimensional weight as f32.
  Values weight(Value weight, Value index, unsigned count);

  /// Loads the weights that `norm` applies to a chunk, ahead of its factor.
  void prefetch(mlir::Operation *norm, Chunk chunk) { normWeights(norm, chunk); }

  /// Stores a chunk of a yielded value.
  void store(Value yielded, Chunk chunk);
  /// One chunk of a kv_write's key (0) or value (1) row, where the row has a slot.
  void writeCache(plan::KvWriteOp node, unsigned cache, Chunk chunk);
  /// The shifted windows of a conv1d_update, where the row has a slot. Reads through the same
  /// chunk.
  void writeWindow(plan::Conv1dUpdateOp node, Chunk chunk);

  KernelBuilder &builder() { return b; }

private:
  Values compute(Value value, Chunk chunk);
  Values blend(plan::BlendOp node, Chunk chunk);
  Values gates(plan::GdnGatesOp node, unsigned result, Chunk chunk);
  Values rope(plan::RopeOp node, unsigned result, Chunk chunk);
  Values norm(mlir::Operation *node, Chunk chunk);
  Values normWeights(mlir::Operation *node, Chunk chunk);
  Values conv(plan::Conv1dUpdateOp node, Chunk chunk);
  /// The windows after the step, oldest entry first, channel by channel.
  Values window(plan::Conv1dUpdateOp node, Chunk chunk);

  KernelBuilder &b;
  llvm::DenseMap<Value, Source> sources;
  llvm::DenseMap<mlir::Operation *, Scale> scales;

  /// What was computed where, so that several readers of a chunk share it. Valid in the block it
  /// was made in and in blocks inside that.
  struct Entry {
    Value value;
    Chunk chunk;
    mlir::Block *block;
    Values held;
  };
  llvm::SmallVector<Entry> memo, windows, weights;
  const Values *lookup(llvm::ArrayRef<Entry> entries, Value value, Chunk chunk);
};

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_ELEMENTWISE_H
