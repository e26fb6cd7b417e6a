//===- Emit.cpp - the frame of an attention kernel ------------------------===//
//
// One CTA for each slice of 128 positions, kv head (or part of its query heads) and row. All query
// heads of a kv head share one read of keys and values. CTAs beyond the sequence's end leave at
// once; the others put a partial result into scratch, and whoever comes last of 16 merges them in
// the order of their positions, level by level. Merging one partial result changes no bit of it: a
// sum does not depend on the longest context that the kernel is made for.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Attention/Emitter.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace plan;

namespace planc {

PartialLayout::PartialLayout(const AttentionKernel &parts, int64_t context) {
  int64_t tiles = parts.rows * parts.headTiles();
  int64_t nodes = llvm::divideCeil(context, kSlicePositions);
  do {
    Level level{nodes, elements, 0, countersPerTile};
    elements += tiles * nodes * 2 * parts.heads;
    // 16-byte accesses of the sums.
    level.sums = elements = llvm::alignTo(elements, 4);
    elements += tiles * nodes * parts.heads * parts.paddedDim();
    if (!levels.empty())
      countersPerTile += nodes;
    levels.push_back(level);
    nodes = llvm::divideCeil(nodes, kMergeWidth);
  } while (nodes > 1);
  levels.push_back({1, 0, 0, countersPerTile});
  countersPerTile += !isLone();
}

LaunchShape AttentionEmitter::shape() const {
  LaunchShape shape;
  shape.grid = {uint32_t(layout.levels[0].nodes), uint32_t(parts.headTiles()),
                uint32_t(parts.rows)};
  shape.block = {kAttentionThreads, 1, 1};
  shape.scratchBytes = uint64_t(layout.elements) * 4;
  shape.counters = uint64_t(layout.countersPerTile) * parts.rows * parts.headTiles();
  return shape;
}

/// What Slice.cpp and Merge.cpp emit, for the longest sum; a short sequence has fewer terms.
void AttentionEmitter::noteArithmetic() {
  using enum numerics::LevelKind;
  Operation *op = parts.attention;
  double unit = 1 / std::sqrt(double(parts.headDim));
  b.note(op, numerics::sum("scores", {{fused, uint32_t(8 * parts.chunks)},
                                      {tree, uint32_t(parts.lanes)},
                                      {scale, double(float(unit)) == unit ? 1u : 2u}}));
  b.note(op, numerics::rounding("difference", 1));
  b.note(op, KernelBuilder::Function::Exp);
  numerics::Level joined = {numerics::LevelKind::merge, kMergeWidth, kSlicePositions};
  b.note(op, numerics::sum("weights", {{tree, 4}, {tree, 32}, joined}));
  b.note(op, numerics::sum("values", {{fused, uint32_t(parts.steps() * kRun)},
                                      {chain, uint32_t(kAttentionWarps * parts.groups())},
                                      joined}));
  b.note(op, KernelBuilder::Function::Rcp);
  b.note(op, numerics::rounding("product", 1));
}

void AttentionEmitter::emit() {
  noteArithmetic();
  slice = b.blockId(0);
  tile = b.blockId(1);
  row = b.blockId(2);
  kvHead = b.div(tile, parts.headTiles() / parts.kvHeads);
  lane = b.laneId();
  warp = b.warpId();
  group = b.div(lane, parts.lanes);
  laneInGroup = b.rem(lane, parts.lanes);

  Value stored = b.loadI32(b.at(b.pointer(parts.attention.getSeqLens()), row, Format::I32));
  length = b.min(b.max(stored, b.i32(0)), b.i32(context));
  slices = b.max(b.div(b.add(length, kSlicePositions - 1), kSlicePositions), b.i32(1));
  auto attend = [&] {
    valid = b.min(b.sub(length, b.mul(slice, kSlicePositions)), b.i32(kSlicePositions));
    sharedBlocks = b.staticShared(4 * blocksInSlice());
    sharedScores = b.staticShared(4 * parts.heads * kScoreStride);
    int64_t headsInBuffer =
        std::max(parts.heads, kAttentionWarps * parts.groups() * parts.headsSummedAtOnce());
    sharedBuffer = b.staticShared(4 * headsInBuffer * parts.paddedDim());
    loadBlocks();
    stageQueries();
    if (parts.write)
      writeCaches();
    b.barrier();
    if (parts.write && !readsBack()) {
      findWriters();
      b.barrier();
    }
    emitScores();
    b.barrier();
    emitSoftmax();
    b.barrier();
    emitValues();
    if (!layout.isLone())
      for (Value *array : {&sharedMaxima, &sharedWeights, &sharedTotals})
        *array = b.staticShared(4 * kMergeWidth * parts.heads);
    merge(1);
  };
  if (layout.isLone())
    attend();
  else
    b.ifThen(b.lt(slice, slices), attend);
}

} // namespace planc
