//===- GemvPlan.cpp - how a gemv is laid over warps and CTAs ---------------===//

#include "lib/Schedule/Gemv/GemvPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace planc;
using namespace planc::gemv;
using namespace planc::contraction;

/// Of dynamic shared memory, on every target: a block may have 99 KiB, and the factors of norms
/// take some.
static constexpr int64_t kSharedLimit = 92 * 1024;

/// Activation rows that share a stream of weights; more would cost registers for little.
static constexpr int64_t kMaxTileRows = 8;

static int64_t powerOfTwoIn(int64_t value) { return value & -value; }

std::string gemv::judgeDot(const Dot &dot) {
  if (dot.depth % dot.format->codes())
    return "rows of " + std::to_string(dot.depth) + " values do not consist of 16-byte pieces";
  return "";
}

numerics::Part gemv::orderOf(const Dot &dot, const DotPlan &plan) {
  using enum numerics::LevelKind;
  auto codes = uint32_t(dot.format->codes()), steps = uint32_t(plan.steps / plan.splits);
  std::vector<numerics::Level> levels;
  if (dot.format->scaled())
    levels = {{fused, codes}, {fused, steps}}; // the scale is a factor of the second fma
  else
    levels = {{fused, codes * steps}};
  levels.push_back({tree, uint32_t(plan.lanes)});
  levels.push_back({chain, uint32_t(plan.splits)});
  return numerics::sum("dot", std::move(levels));
}

/// How K is cut: a function of the matrix alone.
static void planDepth(const Dot &dot, DotPlan &plan) {
  int64_t pieces = dot.depth / dot.format->codes();
  plan.lanes = std::min<int64_t>(32, powerOfTwoIn(pieces));
  plan.steps = pieces / plan.lanes;
  // A matrix of few rows has too few warps without it.
  int64_t wanted = dot.columns < 32 ? 8 : dot.columns < 128 ? 4 : dot.columns < 512 ? 2 : 1;
  plan.splits = std::min(wanted, powerOfTwoIn(plan.steps));
  plan.xLaneBytes = dot.format->codes() * 4 + (dot.format->codes() > 4 ? 16 : 0);
  plan.xRowBytes = pieces * plan.xLaneBytes;
}

/// Matrix rows of a lane: as many loads in flight as registers allow, if the machine is full
/// without more warps. Where several activation rows share the weights, their sums take the
/// registers.
static int64_t rowsOfLane(int64_t work, int64_t sharing, const DotPlan &plan) {
  int64_t steps = plan.steps / plan.splits;
  int64_t rows = work >= 8192 ? (steps == 1 ? 8 : 4) : work >= 4096 ? 2 : 1;
  int64_t limit = sharing > 4 ? 2 : sharing > 1 ? 4 : 8;
  return std::min({rows, limit, plan.lanes});
}

static int64_t unitsOf(const Component &component) {
  return component.gathered() ? component.rows : 1;
}

/// Offsets in shared memory; the bytes in use.
static int64_t placeInShared(const Component &component, ComponentPlan &plan) {
  int64_t bytes = 0;
  for (auto [dot, dotPlan] : llvm::zip(component.dots, plan.dots)) {
    int64_t rows = plan.rows * component.rowsPerElementRow(dot);
    dotPlan.activationRows = std::max<int64_t>(1, rows / dot.rowsPerActivation());
    dotPlan.xOffset = bytes;
    bytes += dotPlan.activationRows * dotPlan.xRowBytes;
    dotPlan.sums = {bytes, dotPlan.splits, rows, dotPlan.columns};
    bytes += llvm::alignTo(dotPlan.sums.bytes(), 16);
  }
  return bytes;
}

static bool planComponent(const Component &component, int64_t work, ComponentPlan &plan,
                          int64_t &sharedBytes) {
  plan.units = unitsOf(component);
  plan.rows = component.gathered() ? 1 : std::min(component.rows, kMaxTileRows);
  const ColumnMap &map = component.map;
  bool gatesOnly = true;
  int64_t side = 1; // of all dots: powers of two
  for (const Dot &dot : component.dots) {
    DotPlan &dotPlan = plan.dots.emplace_back();
    planDepth(dot, dotPlan);
    gatesOnly &= dot.gate;
    if (dot.gate)
      continue;
    dotPlan.rows = rowsOfLane(work, plan.rows, dotPlan);
    // All warps have an item if there are as many, and an element has all its columns in the tile.
    int64_t columns = kWarps / dotPlan.splits * dotPlan.itemColumns();
    plan.elements = std::max(plan.elements, std::min(columns / map.parts, map.elements));
    side = std::max(side, dotPlan.side());
  }
  plan.elements = llvm::alignTo(plan.elements, side);
  if (gatesOnly) {
    plan.width = map.elements % 2 == 0 && map.stretch == map.elements ? 2 : 1;
    plan.elements = std::min<int64_t>(kThreads, map.elements);
  }
  for (auto [dot, dotPlan] : llvm::zip(component.dots, plan.dots)) {
    dotPlan.columns = dot.gate ? 1 : plan.elements * map.parts;
    while (dotPlan.columns % dotPlan.itemColumns() && dotPlan.rows > 1)
      dotPlan.rows /= 2;
    // A gate has fewer columns than a warp may have side by side: it is computed more than once.
    dotPlan.columns = llvm::alignTo(dotPlan.columns, dotPlan.itemColumns());
  }
  plan.tiles = llvm::divideCeil(map.elements, plan.elements);
  int64_t bytes;
  while ((bytes = placeInShared(component, plan)) > kSharedLimit && plan.rows > 1)
    --plan.rows;
  sharedBytes = std::max(sharedBytes, bytes);
  return bytes <= kSharedLimit;
}

std::optional<GemvPlan> gemv::planGemv(llvm::ArrayRef<Component> components) {
  int64_t work = 0;
  for (const Component &component : components)
    work += unitsOf(component) * component.map.columns();
  GemvPlan plan;
  for (const Component &component : components)
    if (!planComponent(component, work, plan.components.emplace_back(), plan.sharedBytes))
      return std::nullopt;
  return plan;
}
