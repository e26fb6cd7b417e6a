//===- Reduce.h - the one order of summation of all norms -------------------===//
//
// Every sum of squares over a row is one tree, a function of its length N alone (semantics.md,
// section 8), whatever schedule, lane layout or number of rows carries it. In terms of the bits of
// an element's index e within its row:
//
//   1  pairs e, e^1; then, for N > 2048, the 2048-element blocks of the row, one after the other
//   2  bits 5, 4, 3, 2, 1 (a warp of virtual threads, each with the pairs of one bit pattern)
//   3  bits 10, 9, 8, 7, 6 (the warps)
//
// Each step adds the two halves; where N ends, zeros follow, which change nothing. A layout says
// which of these bits are registers, lanes and warps; f32 addition commutes, so that nothing else
// matters.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_REDUCE_H
#define PLANC_LIB_SCHEDULE_REDUCE_H

#include "lib/Schedule/KernelBuilder.h"

namespace planc {

class Evaluator;

/// Which threads hold which elements of a row. From the low bits of e up: 2^vectorBits neighbours
/// in one thread, 2^laneBits lanes, 2^warpBits warps, 2^extraBits more chunks in the same thread.
struct RowLayout {
  unsigned vectorBits = 0, laneBits = 0, warpBits = 0, extraBits = 0;

  unsigned vector() const { return 1u << vectorBits; }
  unsigned chunks() const { return 1u << extraBits; } ///< per thread and block
  unsigned threads() const { return 1u << (laneBits + warpBits); }
  unsigned elements() const { return threads() << (vectorBits + extraBits); }

  /// Blocks that a row of this length has; 1 up to 2048 elements. A layout of more blocks covers
  /// 2048 elements.
  static unsigned blocks(int64_t length) {
    return length <= 2048 ? 1 : unsigned((length + 2047) / 2048);
  }
  /// Rows of this length with `vector` (a power of two) elements together, over as few lanes as
  /// hold one chunk each, at most `maxThreads` (a power of two).
  static RowLayout make(int64_t length, unsigned vector, unsigned maxThreads);

  /// First column of a chunk; `thread` counts within the row's threads.
  Value column(KernelBuilder &b, Value thread, unsigned block, unsigned chunk) const;
};

/// The thread's elements of one stretch of a norm's input, zeros beyond it.
llvm::SmallVector<Values> loadStretch(Evaluator &evaluator, mlir::Operation *norm, RowLayout layout,
                                      Value thread, Value row, Value head);

/// Sum of squares of a row, in all of its threads. `values[block]` holds the thread's elements of
/// that block, chunk by chunk, zeros beyond the row. `thread` counts within the row's threads; a
/// row over several warps is a CTA's only one and its threads are the first of the CTA, which all
/// call this.
Value sumOfSquares(KernelBuilder &b, int64_t length, RowLayout layout, Value thread,
                   llvm::ArrayRef<Values> values);

/// The factor of a norm node (rms_norm, final_norm, qk_norm, gated_rms_norm, l2_norm) for a sum of
/// squares.
Value normScale(KernelBuilder &b, mlir::Operation *norm, Value sum);
/// Length of the rows that a norm node sums over, 0 for other nodes.
int64_t normLength(mlir::Operation *node);

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_REDUCE_H
