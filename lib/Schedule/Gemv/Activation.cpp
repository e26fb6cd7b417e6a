//===- Activation.cpp - activation rows in shared memory -------------------===//
//
// Once per CTA and tile of rows: a row is loaded, or made element by element (silu of gate times
// up), and laid out as lanes will read it.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Gemv/GemvEmitter.h"

using namespace planc;
using namespace planc::gemv;
using namespace planc::contraction;

/// Values that a thread makes at once: wide accesses if there is enough for all threads.
static int64_t widthFor(int64_t values, const Dot &dot) {
  int64_t codes = dot.format->codes();
  for (int64_t width : {8, 4, 2})
    if (values >= width * kThreads || width == 2)
      return std::min(width, codes);
  return 2;
}

/// True if each thread makes the one piece of the row that it reads.
static bool makesOwnPiece(const Dot &dot, const DotPlan &plan, int64_t width) {
  return plan.activationRows == 1 && width == dot.format->codes() &&
         dot.depth == width * kThreads && plan.splits == kWarps && plan.steps == plan.splits &&
         plan.items() == kWarps;
}

bool gemv::emitActivation(KernelBuilder &b, const Component &component, const Dot &dot,
                          const DotPlan &plan, const NormFactors &norms, const Tile &tile) {
  int64_t width = widthFor(plan.activationRows * dot.depth, dot);
  int64_t perRow = dot.depth / width, codes = dot.format->codes();
  Value firstRow =
      b.div(b.mul(tile.firstRow, component.rowsPerElementRow(dot)), dot.rowsPerActivation());
  Value shared = b.at(b.dynamicShared(), b.i32(plan.xOffset), 1);
  Evaluator evaluator(b);
  norms.provide(evaluator);
  forThreads(b, plan.activationRows * perRow, kThreads, [&](Value index) {
    bool single = plan.activationRows == 1;
    Value row = single ? b.i32(0) : b.div(index, perRow);
    Value k = b.mul(single ? index : b.rem(index, perRow), width);
    Values values = activationAt(b, evaluator, dot, b.add(firstRow, row), k, width);
    Value offset = b.add(b.mul(b.div(k, codes), plan.xLaneBytes), b.mul(b.rem(k, codes), 4));
    b.storeF32(b.at(shared, b.add(offset, b.mul(row, plan.xRowBytes)), 1), plan::Format::F32,
               values);
  });
  return !makesOwnPiece(dot, plan, width);
}
