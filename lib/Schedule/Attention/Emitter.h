//===- Emitter.h - the body of an attention kernel ------------------------===//
//
// Private to lib/Schedule/Attention. Emit.cpp frames the kernel, Slice.cpp attends to one slice of
// the context, Write.cpp deals with positions that the kernel itself writes, Merge.cpp joins slices
// and finishes the row.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_ATTENTION_EMITTER_H
#define PLANC_LIB_SCHEDULE_ATTENTION_EMITTER_H

#include "lib/Schedule/Attention/Attention.h"
#include "lib/Schedule/Elementwise.h"

namespace planc {

/// Where the partial results of the slices, and of each level of merging but the last, lie in the
/// scratch. A partial result is a maximum and a sum of exponentials a head, [2][heads], and
/// elsewhere the unscaled [heads][paddedDim]. Everything is counted in f32 elements.
struct PartialLayout {
  struct Level {
    int64_t nodes;       ///< partial results a row and head tile
    int64_t stats, sums; ///< where those of the first row and tile begin
    int64_t counters;    ///< words a row and tile before those of this level
  };
  /// levels[0]: the slices; levels[i]: nodes of 16 of the level below; the last has one node, which
  /// finishes the row.
  llvm::SmallVector<Level> levels;
  int64_t elements = 0, countersPerTile = 0;

  PartialLayout(const AttentionKernel &parts, int64_t context);

  /// A context of one slice: there is nothing to merge.
  bool isLone() const { return levels.front().nodes == 1; }
};

class AttentionEmitter {
public:
  AttentionEmitter(KernelBuilder &builder, const AttentionKernel &parts, int64_t kvBlock)
      : b(builder), eval(builder), parts(parts), kvBlock(kvBlock),
        context(parts.blockTableWidth * kvBlock), layout(parts, context) {}

  LaunchShape shape() const;
  void emit();

private:
  // Emit.cpp
  void noteArithmetic();

  // Slice.cpp
  int64_t blocksInSlice() const;
  void loadBlocks();
  void emitScores();
  void emitSoftmax();
  void emitValues();
  void storeSums(const Values &sums);
  void stageQueries();
  Values loadQueries();
  Value unitOffset(Value head, Value piece);
  Values loadRun(Value pool, Value fresh, Value start);
  Value runStart(Value step);
  Value slotOf(Value position);
  Value scoresAt(Value head, Value position);
  Value pieceDim(int64_t chunk);

  // Write.cpp
  void writeCaches();
  void findWriters();
  bool readsBack() const;
  Value fromWriter(Value position, Value fresh, Value cached);

  // Merge.cpp
  Value stats(unsigned level, Value node, Value head, bool sum);
  Value sums(unsigned level, Value node);
  void merge(unsigned level);
  void mergeNode(unsigned level, Value node, Value children);
  void weighChildren(unsigned level, Value node, Value children);
  Value totalOf(unsigned level, Value head);
  void finish(Value column, const Values &values);

  KernelBuilder &b;
  Evaluator eval;
  AttentionKernel parts;
  int64_t kvBlock, context;
  PartialLayout layout;

  Value slice, tile, row, kvHead;
  Value length; ///< of the row's sequence
  Value slices; ///< that hold positions of it, one at least
  Value valid;  ///< positions of it in this slice
  Value lane, group, laneInGroup, warp;
  Value sharedBlocks;  ///< i32: the slice's entries of the block table
  Value sharedBuffer;  ///< f32: queries, later sums; [..][heads][paddedDim]
  Value sharedWriters; ///< i32: the row that writes a position of the slice, or -1
  Value sharedScores;  ///< f32 [heads][kSlicePositions + padding]: scores, then exponentials
  // f32 [kMergeWidth][heads] of a merge: maxima, their weights, weighted sums of exponentials.
  Value sharedMaxima, sharedWeights, sharedTotals;
};

/// Elements between the scores of two heads: 8 heads' runs of 4 lie in different banks.
inline constexpr int64_t kScoreStride = kSlicePositions + 4;

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_ATTENTION_EMITTER_H
