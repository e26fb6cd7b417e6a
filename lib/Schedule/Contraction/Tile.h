//===- Tile.h - what all contraction schedules do alike --------------------===//
//
// A component's work is cut into tiles, `elements` columns of elements by `rows` of their rows. A
// CTA leaves the sums of a tile in shared memory, one partial per split of K; the epilogue adds the
// partials in ascending order, evaluates what is stored, element by element, and stores it.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_CONTRACTION_TILE_H
#define PLANC_LIB_SCHEDULE_CONTRACTION_TILE_H

#include "lib/Schedule/Contraction/Content.h"
#include "lib/Schedule/Elementwise.h"

namespace planc::contraction {

/// Where the sums of a dot's tile lie in shared memory: f32 [split][row][column], columns by part,
/// then element.
struct Sums {
  int64_t offset = 0; ///< bytes into the dynamic shared memory
  int64_t splits = 1, rows = 1, columns = 1;

  int64_t bytes() const { return splits * rows * columns * 4; }
  Value address(KernelBuilder &b, Value split, Value row, Value column) const;
};

/// The tile that a CTA works on.
struct Tile {
  int64_t elements = 1; ///< columns of elements, the same for all tiles of a component
  int64_t rows = 1;     ///< rows of elements at once
  Value firstElement, firstRow;
  bool follows = false; ///< the CTA has worked on another one before
  bool repeats = false; ///< with the same code, that is with the same static shared memory
};

/// The column of a dot's matrix that local column `local` of the tile stands for; in range even
/// where the tile is not.
Value matrixColumn(KernelBuilder &b, const Component &component, const Dot &dot, const Tile &tile,
                   Value local);

/// The factors of a component's norms for the rows of a tile, in shared memory.
class NormFactors {
public:
  /// Computes them; all threads of the CTA take part.
  NormFactors(KernelBuilder &b, const Component &component, const Tile &tile, unsigned threads);
  /// Lets an evaluator use them.
  void provide(Evaluator &evaluator) const;

private:
  struct Factors {
    mlir::Operation *norm;
    Value shared;        ///< f32 [row][head]
    Value firstRow;      ///< of the norm's input, in the tile
    int64_t rows, heads; ///< of the tile; stretches of a row that have a factor each
  };
  /// Computes those of one norm for all threads to read.
  void compute(Evaluator &evaluator, const Factors &factors, unsigned threads);

  KernelBuilder &b;
  llvm::SmallVector<Factors> all;
};

/// `count` values of a dot's activation as they are multiplied, from column `k` of a row on.
Values activationAt(KernelBuilder &b, Evaluator &evaluator, const Dot &dot, Value row, Value k,
                    int64_t count);

/// Stores a tile's outputs. `sums` has one entry per dot of the component.
void emitEpilogue(KernelBuilder &b, const Component &component, llvm::ArrayRef<Sums> sums,
                  const NormFactors &norms, const Tile &tile, unsigned threads, unsigned width);

/// Calls `body(i, n)` where CTA n of range i works, for ranges of `ctas[i]` CTAs side by side.
void dispatch(KernelBuilder &b, llvm::ArrayRef<int64_t> ctas,
              llvm::function_ref<void(size_t, Value)> body);

/// Calls `body` with the tiles that cover `total` rows, as many at once as `tile` has and the rest
/// last.
void forRowTiles(KernelBuilder &b, int64_t total, Tile tile,
                 llvm::function_ref<void(const Tile &)> body);

/// Calls `body(index)` for the indices below `count` that belong to this thread.
void forThreads(KernelBuilder &b, int64_t count, unsigned threads,
                llvm::function_ref<void(Value)> body);

} // namespace planc::contraction

#endif // PLANC_LIB_SCHEDULE_CONTRACTION_TILE_H
