//===- MmaPlan.h - how an mma contraction is laid over warps and CTAs ------===//
//
// Weights are the M operand: 16 matrix rows a fragment; activation rows are N, 8 a fragment. The
// warps of a CTA share K, and each streams its own part of it through a ring of its own in shared
// memory, 16 rows by 128 bytes a stage, so that warps never wait for one another before their sums
// meet.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_MMA_MMAPLAN_H
#define PLANC_LIB_SCHEDULE_MMA_MMAPLAN_H

#include "lib/Schedule/Contraction/Tile.h"

namespace planc::mma {

constexpr unsigned kWarps = 8, kThreads = kWarps * 32;
constexpr int64_t kRows = 16;       ///< of the matrix, in a fragment
constexpr int64_t kStepBytes = 128; ///< of a matrix row, in a stage
constexpr int64_t kStageBytes = kRows * kStepBytes;

struct DotPlan {
  int64_t splits = 1; ///< warps that share K
  int64_t steps = 1;  ///< stages of a warp in 16 matrix rows
  int64_t stages = 1; ///< of a ring, divides steps
  int64_t tiles = 1;  ///< 16 columns each, of the CTA's tile
  int64_t ringOffset = 0;
  contraction::Sums sums;

  int64_t groups() const { return kWarps / splits; } ///< warps that share the tiles
};

struct ComponentPlan {
  int64_t elements = kRows; ///< of a tile
  int64_t rows = 1;         ///< of a tile
  int64_t ctas = 1;
  llvm::SmallVector<DotPlan> dots;
};

struct MmaPlan {
  llvm::SmallVector<ComponentPlan> components;
  int64_t sharedBytes = 0;
};

/// k of a stage.
inline int64_t stepDepth(const contraction::Dot &dot) {
  return kStepBytes / dot.format->codeBytes();
}

/// The tree of a dot's sums.
numerics::Part orderOf(const contraction::Dot &dot, const DotPlan &plan);

/// Why this schedule cannot carry a dot, or "".
std::string judgeDot(const contraction::Dot &dot);

MmaPlan planMma(llvm::ArrayRef<contraction::Component> components);

} // namespace planc::mma

#endif // PLANC_LIB_SCHEDULE_MMA_MMAPLAN_H
