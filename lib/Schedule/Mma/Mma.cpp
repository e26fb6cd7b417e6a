//===- Mma.cpp - contractions on tensor cores ------------------------------===//
//
// mma.sync.m16n8k16 on bf16, the same on every target: fp8 weights are widened in registers. Takes
// any set of contractions with bf16 activations, stored or made element by element, whose sums go
// through element-wise ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Mma/MainLoop.h"
#include "lib/Target/Target.h"

using namespace mlir;
using namespace planc;
using namespace planc::mma;
using namespace planc::contraction;

static constexpr llvm::StringLiteral kUnit = "tensor_core:mma.sync.m16n8k16.bf16";

namespace {
struct MmaSchedule : Schedule {
  llvm::StringRef name() const override { return "mma"; }

  std::optional<Refusal> refuses(plan::KernelOp kernel) const override {
    if (kernel.getCompute() != kUnit)
      return Refusal{"it runs on " + kUnit.str() + ", but the group asks for " +
                     kernel.getCompute().str()};
    Content content = analyze(kernel, {judgeDot});
    if (content.refusal)
      return content.refusal;
    bool multiplies =
        llvm::any_of(content.components, [](const Component &c) { return !c.dots.empty(); });
    if (!multiplies)
      return Refusal{"the group asks for an mma, but nothing in it multiplies a matrix"};
    return std::nullopt;
  }

  LogicalResult emit(plan::KernelOp kernel, KernelBuilder &b, const ScheduleContext &context,
                     LaunchShape &shape) const override {
    for (Feature feature : {Feature::CpAsync, Feature::MmaBf16})
      if (!context.target.has(feature))
        return kernel.emitError() << "target " << context.target.arch() << " has no "
                                  << std::string(describe(feature));
    Content content = analyze(kernel, {judgeDot});
    MmaPlan plan = planMma(content.components);
    SmallVector<int64_t> ctas;
    for (const ComponentPlan &component : plan.components)
      ctas.push_back(component.ctas);
    shape.grid[0] = std::accumulate(ctas.begin(), ctas.end(), int64_t(0));
    shape.block[0] = kThreads;
    shape.dynamicSharedBytes = plan.sharedBytes;
    b.begin(shape);
    dispatch(b, ctas, [&](size_t index, Value cta) {
      emitComponent(b, content.components[index], plan.components[index], cta);
    });
    return success();
  }

  static void emitComponent(KernelBuilder &b, const Component &component, const ComponentPlan &plan,
                            Value cta) {
    Tile tile{plan.elements, plan.rows};
    tile.firstElement = b.mul(cta, plan.elements);
    forRowTiles(b, component.rows, tile, [&](const Tile &tile) {
      // The sums overwrite those of the rows before, which are being stored.
      if (tile.follows && component.norms.empty())
        b.barrier();
      NormFactors norms(b, component, tile, kThreads);
      SmallVector<Sums> sums;
      for (auto [dot, dotPlan] : llvm::zip(component.dots, plan.dots)) {
        DotPlan now = dotPlan;
        now.sums.rows = tile.rows;
        emitDot(b, component, dot, now, norms, tile);
        sums.push_back(now.sums);
      }
      if (!sums.empty())
        b.barrier();
      emitEpilogue(b, component, sums, norms, tile, kThreads, 1);
    });
  }
};
} // namespace

namespace planc {
const Schedule &mmaSchedule() {
  static const MmaSchedule schedule;
  return schedule;
}
} // namespace planc
