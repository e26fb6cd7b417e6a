//===- Attention.h - what the attention schedule knows of a kernel --------===//
//
// Private to lib/Schedule/Attention. A kernel is taken apart once, by `matchAttention`; what is
// emitted follows from the `AttentionKernel` and the cache's block size.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_ATTENTION_ATTENTION_H
#define PLANC_LIB_SCHEDULE_ATTENTION_ATTENTION_H

#include "lib/Schedule/Schedule.h"

namespace planc {

/// Positions of the context that one CTA attends to. The same for every shape and target, so that
/// the order of a sum depends on the position alone.
inline constexpr int64_t kSlicePositions = 128;
inline constexpr int64_t kAttentionWarps = 4;
inline constexpr int64_t kAttentionThreads = 32 * kAttentionWarps;
/// Positions of a lane group's run: consecutive, and one 16-byte access of scores.
inline constexpr int64_t kRun = 4;
/// Partial results that one merge takes.
inline constexpr int64_t kMergeWidth = 16;
inline constexpr int64_t kMaxHeadDim = 512;

struct AttentionKernel {
  plan::PagedAttentionOp attention;
  plan::KvWriteOp write; ///< of the same caches, before it; null if there is none
  llvm::SmallVector<mlir::Value> yielded;

  int64_t rows, queryHeads, kvHeads, headDim, blockTableWidth;

  // How a head is spread over a warp: each position by `lanes` lanes, each with `chunks` pieces of
  // 8 dims (16 bytes of the cache), so that a warp reads 32 / lanes positions at once. Head dims
  // that are no power of two leave some of the pieces idle.
  int64_t lanes, chunks;
  /// Query heads that a CTA serves from one read of keys and values.
  int64_t heads;

  int64_t groups() const { return 32 / lanes; }
  int64_t paddedDim() const { return lanes * chunks * 8; }
  /// CTAs a row and slice.
  int64_t headTiles() const { return queryHeads / heads; }
  /// Heads whose sums, of each group of lanes one, lie in shared memory at once: 16 KiB if any.
  int64_t headsSummedAtOnce() const {
    int64_t fit = 4096 / (kAttentionWarps * groups() * paddedDim());
    int64_t some = std::min(heads, std::max<int64_t>(1, fit));
    while (heads % some)
      --some;
    return some;
  }
  /// Positions that a CTA takes at once, and how many such steps a slice has.
  int64_t stepPositions() const { return kAttentionWarps * groups() * kRun; }
  int64_t steps() const { return kSlicePositions / stepPositions(); }
};

/// Fills `parts`, or says why the kernel is not taken.
std::optional<Refusal> matchAttention(plan::KernelOp kernel, AttentionKernel &parts);

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_ATTENTION_ATTENTION_H
