//===- GemvPlan.h - how a gemv is laid over warps and CTAs -----------------===//
//
// A row of a matrix is read by `lanes` lanes, 16 bytes each, in `steps` steps; a warp works on
// `rows * 32 / lanes` matrix rows at once, the item; `splits` warps share an item's K. How K is cut
// is a function of the matrix alone, so that a sum has one order wherever it is computed; how many
// matrix rows an item has follows from the whole kernel's work.
//
// A kernel's rows (of tokens) are taken in tiles: the weights stream once a tile.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_GEMV_GEMVPLAN_H
#define PLANC_LIB_SCHEDULE_GEMV_GEMVPLAN_H

#include "lib/Schedule/Contraction/Tile.h"

namespace planc::gemv {

constexpr unsigned kWarps = 8, kThreads = kWarps * 32;

struct DotPlan {
  int64_t lanes = 32;  ///< that share a matrix row
  int64_t steps = 1;   ///< 16-byte loads of a lane in a matrix row, over all splits
  int64_t splits = 1;  ///< divides steps
  int64_t rows = 1;    ///< matrix rows of a lane
  int64_t columns = 1; ///< of a tile: matrix rows
  int64_t activationRows = 1;

  // The activation in shared memory, f32: what a lane reads in a step lies together, padded so that
  // the lanes of an access meet different banks.
  int64_t xOffset = 0, xRowBytes = 0, xLaneBytes = 0;
  contraction::Sums sums;

  int64_t side() const { return 32 / lanes; } ///< matrix rows side by side in a warp
  int64_t itemColumns() const { return rows * side(); }
  int64_t items() const { return columns / itemColumns() * splits; }
};

struct ComponentPlan {
  int64_t elements = 1; ///< of a tile
  int64_t rows = 1;     ///< of a tile
  int64_t units = 1;    ///< CTAs along the rows: one per row where experts are gathered, else 1
  int64_t tiles = 1;    ///< CTAs along the elements
  unsigned width = 1;   ///< elements that a thread of the epilogue handles at once
  llvm::SmallVector<DotPlan> dots;

  int64_t ctas() const { return units * tiles; }
};

struct GemvPlan {
  llvm::SmallVector<ComponentPlan> components;
  int64_t sharedBytes = 0;
};

/// The tree of a dot's sums.
numerics::Part orderOf(const contraction::Dot &dot, const DotPlan &plan);

/// Why this schedule cannot carry a dot, or "".
std::string judgeDot(const contraction::Dot &dot);

/// The plan; nothing if no row of some dot fits in shared memory.
std::optional<GemvPlan> planGemv(llvm::ArrayRef<contraction::Component> components);

} // namespace planc::gemv

#endif // PLANC_LIB_SCHEDULE_GEMV_GEMVPLAN_H
