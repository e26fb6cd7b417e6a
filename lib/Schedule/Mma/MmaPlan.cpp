//===- MmaPlan.cpp - how an mma contraction is laid over warps and CTAs ----===//

#include "lib/Schedule/Mma/MmaPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace planc;
using namespace planc::mma;
using namespace planc::contraction;

/// Of dynamic shared memory, on every target: a block may have 99 KiB, and the factors of norms
/// take some.
static constexpr int64_t kSharedLimit = 92 * 1024;

/// Activation rows of one stream of weights: four fragments, whose sums are 16 registers.
static constexpr int64_t kMaxTileRows = 32;

static constexpr int64_t kMaxStages = 4;

static int64_t largestDivisor(int64_t value, int64_t limit) {
  for (int64_t divisor = limit; divisor > 1; --divisor)
    if (value % divisor == 0)
      return divisor;
  return 1;
}

std::string mma::judgeDot(const Dot &dot) {
  if (dot.activation != plan::Format::BF16)
    return "its activation is f32, and an mma on bf16 would round it";
  if (!dot.format->fitsBf16())
    return "its weights do not fit the bf16 that the mma multiplies";
  if (dot.ids())
    return "it gathers experts, a matrix per row, which leaves an mma one row";
  if (dot.format->scaled() && dot.format->scaleDepth() != stepDepth(dot))
    return "its scales do not cover a stage of the pipeline each";
  if (dot.depth % stepDepth(dot))
    return "rows of " + std::to_string(dot.depth) + " values do not consist of stages of " +
           std::to_string(stepDepth(dot));
  return "";
}

numerics::Part mma::orderOf(const Dot &dot, const DotPlan &plan) {
  using enum numerics::LevelKind;
  auto depth = uint32_t(stepDepth(dot)), steps = uint32_t(plan.steps);
  std::vector<numerics::Level> levels;
  if (dot.format->scaled())
    levels = {{numerics::LevelKind::mma, depth}, {fused, steps}};
  else
    levels = {{numerics::LevelKind::mma, depth * steps}};
  levels.push_back({chain, uint32_t(plan.splits)});
  return numerics::sum("dot", std::move(levels), "mma.sync.m16n8k16.bf16");
}

static void planDot(const Dot &dot, DotPlan &plan) {
  int64_t steps = dot.depth / stepDepth(dot);
  plan.splits = largestDivisor(steps, kWarps);
  plan.steps = steps / plan.splits;
  plan.stages = largestDivisor(plan.steps, kMaxStages);
}

static int64_t placeInShared(const Component &component, ComponentPlan &plan) {
  int64_t bytes = 0;
  for (auto [dot, dotPlan] : llvm::zip(component.dots, plan.dots)) {
    dotPlan.ringOffset = bytes;
    bytes += kWarps * dotPlan.stages * kStageBytes;
    dotPlan.sums = {bytes, dotPlan.splits, plan.rows, dotPlan.tiles * kRows};
    bytes += llvm::alignTo(dotPlan.sums.bytes(), 16);
  }
  return bytes;
}

MmaPlan mma::planMma(llvm::ArrayRef<Component> components) {
  int64_t work = 0;
  for (const Component &component : components)
    work += component.map.columns() / kRows;
  // More columns a CTA: the activation is read less often. Fewer: all of the machine has work.
  int64_t wanted = work >= 1536 ? 4 : work >= 384 ? 2 : 1;

  MmaPlan plan;
  for (const Component &component : components) {
    ComponentPlan &tile = plan.components.emplace_back();
    tile.rows = std::min(component.rows, kMaxTileRows);
    int64_t tiles = std::max(wanted, component.map.parts);
    for (const Dot &dot : component.dots) {
      planDot(dot, tile.dots.emplace_back());
      tiles = std::max(tiles, tile.dots.back().groups());
    }
    for (int64_t bytes;; tiles /= 2) {
      tile.elements = tiles * kRows / component.map.parts;
      for (auto [dot, dotPlan] : llvm::zip(component.dots, tile.dots))
        dotPlan.tiles = dot.gate ? 1 : tiles;
      while ((bytes = placeInShared(component, tile)) > kSharedLimit && tile.rows > 8)
        tile.rows -= 8;
      plan.sharedBytes = std::max(plan.sharedBytes, bytes);
      if (bytes <= kSharedLimit || tiles <= component.map.parts)
        break;
    }
    tile.ctas = llvm::divideCeil(component.map.elements, tile.elements);
  }
  return plan;
}
