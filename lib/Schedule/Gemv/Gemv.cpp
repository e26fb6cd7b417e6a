//===- Gemv.cpp - contractions with few rows on CUDA cores -----------------===//
//
// Takes any set of contractions whose activations are stored or made element by element, and whose
// sums go through element-wise ops. Components share the grid. A CTA makes the activation rows of
// its tile in shared memory, its warps stream matrix rows and leave sums there, and its threads
// store what the epilogue makes of them.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Gemv/GemvEmitter.h"
#include "lib/Target/Target.h"

using namespace mlir;
using namespace planc;
using namespace planc::gemv;
using namespace planc::contraction;

namespace {
struct GemvSchedule : Schedule {
  llvm::StringRef name() const override { return "gemv"; }

  Content analyzeKernel(plan::KernelOp kernel) const { return analyze(kernel, {judgeDot}); }

  std::optional<Refusal> refuses(plan::KernelOp kernel) const override {
    if (kernel.getCompute() != "cuda_core" && kernel.getCompute() != "memory")
      return Refusal{"it runs on CUDA cores, but the group asks for " + kernel.getCompute().str()};
    Content content = analyzeKernel(kernel);
    if (content.refusal)
      return content.refusal;
    if (llvm::all_of(content.components, [](const Component &c) { return c.dots.empty(); }))
      return Refusal{"nothing in it multiplies a matrix"};
    if (!planGemv(content.components))
      return Refusal{"a row of an activation does not fit in shared memory"};
    return std::nullopt;
  }

  LogicalResult emit(plan::KernelOp kernel, KernelBuilder &b, const ScheduleContext &,
                     LaunchShape &shape) const override {
    Content content = analyzeKernel(kernel);
    GemvPlan plan = *planGemv(content.components);
    SmallVector<int64_t> ctas;
    for (const ComponentPlan &component : plan.components)
      ctas.push_back(component.ctas());
    shape.grid[0] = std::accumulate(ctas.begin(), ctas.end(), int64_t(0));
    shape.block[0] = kThreads;
    shape.dynamicSharedBytes = plan.sharedBytes;
    // Sums of several rows fill the registers, and their activations the shared memory.
    if (llvm::any_of(plan.components, [](const ComponentPlan &c) { return c.rows > 1; }))
      shape.minBlocks = 1;
    b.begin(shape);
    dispatch(b, ctas, [&](size_t index, Value cta) {
      emitComponent(b, content.components[index], plan.components[index], cta);
    });
    return success();
  }

  /// One tile of rows: activation, sums, epilogue.
  static void emitTile(KernelBuilder &b, const Component &component, const ComponentPlan &plan,
                       const Tile &tile) {
    NormFactors norms(b, component, tile, kThreads);
    SmallVector<Sums> sums;
    SmallVector<DotPlan> dots(plan.dots);
    bool shares = false; // activations between threads
    for (auto [dot, dotPlan] : llvm::zip(component.dots, dots)) {
      // The last tile may have fewer rows; what is laid out for more serves it.
      dotPlan.sums.rows = tile.rows * component.rowsPerElementRow(dot);
      dotPlan.activationRows = std::max<int64_t>(1, dotPlan.sums.rows / dot.rowsPerActivation());
      shares |= emitActivation(b, component, dot, dotPlan, norms, tile);
      sums.push_back(dotPlan.sums);
    }
    // Nor are the sums of the last tile to be overwritten while they are stored.
    if (shares || (tile.follows && !dots.empty()))
      b.barrier();
    for (auto [dot, dotPlan] : llvm::zip(component.dots, dots))
      emitDot(b, component, dot, dotPlan, tile);
    // A single sum is stored and used by the first thread.
    bool single =
        plan.elements == 1 && tile.rows == 1 &&
        llvm::all_of(dots, [](const DotPlan &dot) { return dot.columns == 1 && dot.splits == 1; });
    if (!dots.empty() && !single)
      b.barrier();
    emitEpilogue(b, component, sums, norms, tile, kThreads, plan.width);
  }

  static void emitComponent(KernelBuilder &b, const Component &component, const ComponentPlan &plan,
                            Value cta) {
    Tile tile{plan.elements, plan.rows};
    tile.firstElement = b.mul(b.rem(cta, plan.tiles), plan.elements);
    if (component.gathered()) {
      tile.firstRow = b.div(cta, plan.tiles);
      return emitTile(b, component, plan, tile);
    }
    forRowTiles(b, component.rows, tile,
                [&](const Tile &tile) { emitTile(b, component, plan, tile); });
  }
};
} // namespace

namespace planc {
const Schedule &gemvSchedule() {
  static const GemvSchedule schedule;
  return schedule;
}
} // namespace planc
