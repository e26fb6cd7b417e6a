//===- Norms.cpp - factors of norms before a contraction -------------------===//
//
// Every CTA computes the factors of the rows that its tile reads, in the one order of Reduce.h: a
// stretch by a warp, a long one by the CTA. What a norm makes of a row is then element-wise.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Contraction/Tile.h"
#include "lib/Schedule/Reduce.h"

using namespace mlir;
using namespace planc;
using namespace planc::contraction;

static int64_t headsOf(Operation *norm) {
  if (auto l2 = dyn_cast<plan::L2NormOp>(norm))
    return *l2.getHeads().getConstant();
  return columnsOf(norm->getOperand(0)) / normLength(norm);
}

/// True if outputs read norms, and not only the activations of dots.
static bool storesNorms(const Component &component) {
  SmallVector<Value> pending(component.outputs);
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || llvm::any_of(component.dots,
                            [&](const Dot &dot) { return dot.result() == op->getResult(0); }))
      continue;
    if (llvm::is_contained(component.norms, op))
      return true;
    llvm::append_range(pending, op->getOperands());
  }
  return false;
}

NormFactors::NormFactors(KernelBuilder &b, const Component &component, const Tile &tile,
                         unsigned threads)
    : b(b) {
  if (component.norms.empty())
    return;
  // Those who make activations are done with the last tile's factors; who stores may not be.
  if (tile.repeats && storesNorms(component))
    b.barrier();
  Evaluator evaluator(b);
  for (Operation *norm : component.norms) {
    // A norm has a row per element row, or several, or one for the experts of a token.
    int64_t rows = rowsOf(norm->getOperand(0)), heads = headsOf(norm);
    Value firstRow = b.div(b.mul(tile.firstRow, std::max<int64_t>(1, rows / component.rows)),
                           std::max<int64_t>(1, component.rows / rows));
    int64_t inTile = std::max<int64_t>(1, tile.rows * rows / component.rows);
    all.push_back({norm, b.staticShared(inTile * heads * 4), firstRow, inTile, heads});
    compute(evaluator, all.back(), threads);
    provide(evaluator);
  }
}

void NormFactors::compute(Evaluator &evaluator, const Factors &factors, unsigned threads) {
  Operation *norm = factors.norm;
  int64_t length = normLength(norm), stretches = factors.rows * factors.heads;
  unsigned vector = maxChunk(norm);
  bool byCta = length > 64 * vector;
  RowLayout layout = RowLayout::make(length, vector, byCta ? threads : 32);
  Value thread = byCta ? b.threadId() : b.laneId();
  auto stretch = [&](Value index) {
    Value row = b.add(factors.firstRow, b.div(index, factors.heads));
    auto values = loadStretch(evaluator, norm, layout, thread, row, b.rem(index, factors.heads));
    Value factor = normScale(b, norm, sumOfSquares(b, length, layout, thread, values));
    b.ifThen(b.eq(thread, 0),
             [&] { b.storeF32(b.at(factors.shared, index, 4), plan::Format::F32, {factor}); });
    if (byCta)
      b.barrier(); // the factor is there, and the next stretch may use the same partial sums
  };
  if (byCta)
    return b.forLoop(b.i32(0), b.i32(stretches), b.i32(1), stretch);
  b.forLoop(b.warpId(), b.i32(stretches), b.i32(threads / 32), stretch);
  b.barrier();
}

void NormFactors::provide(Evaluator &evaluator) const {
  for (const Factors &factors : all)
    evaluator.provideScale(factors.norm, [&b = b, factors](Value row, Value head) {
      // Beyond the normed heads nobody uses the factor, but the address must be one.
      if (factors.heads * normLength(factors.norm) < columnsOf(factors.norm->getOperand(0)))
        head = b.min(head, b.i32(factors.heads - 1));
      Value index = b.mul(b.sub(row, factors.firstRow), factors.heads);
      if (factors.heads > 1)
        index = b.add(index, head);
      return b.loadF32(b.at(factors.shared, index, 4), plan::Format::F32, 1).front();
    });
}
