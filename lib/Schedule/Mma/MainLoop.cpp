//===- MainLoop.cpp - the sums of an mma contraction -----------------------===//
//
// Stage in shared memory: 16 matrix rows of 128 raw bytes, in 16-byte chunks; odd rows have their
// halves swapped, so that the eight lanes of a phase, two rows of four chunks, meet all banks.
//
//             chunk   0   1   2   3   4   5   6   7
//   even row          0   1   2   3 | 4   5   6   7         half of a row: k of lanes t = 0..3
//   odd row           4   5   6   7 | 0   1   2   3
//
// Lane (g, t) takes chunk t of a half from rows g and g + 8. Its codes, four at a time, are an A
// fragment: a0, a2 from row g, a1, a3 from row g + 8. The k of the fragment's slots are those of
// the lane's chunk, and B takes the activation at the same k, so that no byte changes lane.
//
// Column n of B is activation row n; lanes past the last row repeat it, and their sums are not
// stored: columns of an mma do not mix.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Mma/MainLoop.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace planc;
using namespace planc::mma;
using namespace planc::contraction;

/// Registers for the activation's fragments, if it stays in registers over the tiles.
static constexpr int64_t kMaxActivationWords = 64;

static constexpr int64_t kHalves = 2; // of a stage's rows

namespace {
class MainLoop {
public:
  MainLoop(KernelBuilder &b, const Component &component, const Dot &dot, const DotPlan &plan,
           const NormFactors &norms, const Tile &tile)
      : b(b), component(component), dot(dot), format(*dot.format), plan(plan), tile(tile),
        fragments(llvm::divideCeil(tile.rows, 8)), evaluator(b) {
    norms.provide(evaluator);
  }

  void emit();

private:
  void emitWarp(Value warp);
  void emitTile(Value index, Value next);
  void issue(Value index, int64_t step);
  Values loadActivation(int64_t fragment, int64_t step, int64_t half);
  Value loadScale(Value index, int64_t row, int64_t step);
  void multiplyStage(int64_t step, llvm::MutableArrayRef<Values> sums);
  void store(Value index, llvm::ArrayRef<Values> sums);

  /// True if the 16 rows of a tile follow each other in the matrix and lie in one block of scales.
  bool contiguous() const {
    return !dot.gate && component.map.elements % tile.elements == 0 && tile.elements % kRows == 0 &&
           component.map.stretch % kRows == 0;
  }

  KernelBuilder &b;
  const Component &component;
  const Dot &dot;
  const WeightFormat &format;
  const DotPlan &plan;
  const Tile &tile;
  const int64_t fragments; // of activation rows
  Evaluator evaluator;

  Value split, g, t, ring;
  llvm::SmallVector<Values> kept; // activation fragments by fragment, step, half; empty: not kept
};
} // namespace

void mma::emitDot(KernelBuilder &b, const Component &component, const Dot &dot, const DotPlan &plan,
                  const NormFactors &norms, const Tile &tile) {
  b.note(Dot(dot).op, orderOf(dot, plan));
  MainLoop(b, component, dot, plan, norms, tile).emit();
}

void MainLoop::emit() {
  Value warp = b.warpId();
  int64_t busy = plan.splits * std::min(plan.groups(), plan.tiles);
  if (busy == kWarps)
    emitWarp(warp);
  else
    b.ifThen(b.lt(warp, busy), [&] { emitWarp(warp); });
}

void MainLoop::emitWarp(Value warp) {
  split = b.rem(warp, plan.splits);
  Value group = b.div(warp, plan.splits);
  g = b.div(b.laneId(), 4);
  t = b.rem(b.laneId(), 4);
  Value rings = b.at(b.dynamicShared(), b.i32(plan.ringOffset), 1);
  ring = b.at(rings, b.mul(warp, plan.stages * kStageBytes), 1);
  for (int64_t step = 0; step < plan.stages; ++step)
    issue(group, step);

  if (fragments * plan.steps * kHalves * format.codes() / 2 <= kMaxActivationWords)
    for (int64_t fragment = 0; fragment < fragments; ++fragment)
      for (int64_t step = 0; step < plan.steps; ++step)
        for (int64_t half = 0; half < kHalves; ++half)
          kept.push_back(loadActivation(fragment, step, half));

  if (plan.tiles <= plan.groups())
    return emitTile(group, Value());
  b.forLoop(group, b.i32(plan.tiles), b.i32(plan.groups()),
            [&](Value index) { emitTile(index, b.add(index, plan.groups())); });
}

/// Copies a stage: a lane has chunk l % 8 of rows l / 8, l / 8 + 4, ...
void MainLoop::issue(Value index, int64_t step) {
  Value lane = b.laneId(), row = b.div(lane, 8), chunk = b.rem(lane, 8);
  int64_t pitch = dot.depth * format.codeBytes(), perPass = 32 / (kStepBytes / 16);
  Value depth = b.add(b.mul(split, plan.steps * kStepBytes), b.mul(chunk, 16));
  Value swapped = b.bitXor(chunk, b.shl(b.bitAnd(row, 1), 2));
  Value shared = b.at(ring, b.add(b.mul(row, kStepBytes), b.mul(swapped, 16)), 1);
  Value first = b.add(b.mul(index, kRows), row), source;
  for (int64_t pass = 0; pass < kRows / perPass; ++pass) {
    if (pass == 0 || !contiguous()) {
      Value column = matrixColumn(b, component, dot, tile, b.add(first, pass * perPass));
      Value offset = b.add(b.mul(b.toI64(column), pitch), b.toI64(depth));
      source = b.at(b.pointer(dot.matrix()), offset, 1);
    }
    int64_t ahead = step * kStepBytes + (contiguous() ? pass * perPass * pitch : 0);
    int64_t to = (step % plan.stages) * kStageBytes + pass * perPass * kStepBytes;
    b.cpAsync16(b.at(shared, b.i32(to), 1), b.at(source, b.i32(ahead), 1));
  }
  b.cpAsyncCommit();
}

/// Words of two bf16: activation row n = g of a fragment at the k of the lane's chunk.
Values MainLoop::loadActivation(int64_t fragment, int64_t step, int64_t half) {
  Value row = b.add(g, fragment * 8);
  if (tile.rows < fragment * 8 + 8)
    row = b.min(row, b.i32(tile.rows - 1));
  row = b.add(tile.firstRow, row);
  int64_t depth = stepDepth(dot);
  Value k = b.add(b.add(b.mul(split, plan.steps * depth), b.mul(t, format.codes())),
                  step * depth + half * (depth / kHalves));
  Value x = dot.x();
  Values words;
  if (!x.getDefiningOp() && plan::storedFormat(x) == plan::Format::BF16) {
    Value pointer = b.at(b.pointer(x), b.add(b.mul(row, columnsOf(x)), k), 2);
    for (unsigned word = 0; word < format.codes() / 2; word += 4)
      words.append(b.loadWords(b.at(pointer, b.i32(word), 4), 4));
    return words;
  }
  Values values = activationAt(b, evaluator, dot, row, k, format.codes());
  for (size_t i = 0; i < values.size(); i += 2)
    words.push_back(b.packBf16(values[i], values[i + 1]));
  return words;
}

Value MainLoop::loadScale(Value index, int64_t row, int64_t step) {
  Value local = b.add(b.mul(index, kRows), contiguous() ? b.i32(0) : b.add(g, row));
  Value column = matrixColumn(b, component, dot, tile, local);
  Value block = b.mul(b.div(column, format.scaleRows()), dot.depth / format.scaleDepth());
  Value at = b.add(block, b.mul(split, plan.steps));
  Value pointer = b.at(b.at(b.scales(dot.matrix()), at, 4), b.i32(step), 4);
  return b.loadF32(pointer, plan::Format::F32, 1).front();
}

/// Adds a stage, of which this warp's copies have arrived, to the sums of each fragment.
void MainLoop::multiplyStage(int64_t step, llvm::MutableArrayRef<Values> sums) {
  Value stage = b.at(ring, b.i32((step % plan.stages) * kStageBytes), 1);
  Value swap = b.shl(b.bitAnd(g, 1), 2);
  SmallVector<Values> upper, lower;
  for (int64_t half = 0; half < kHalves; ++half) {
    Value chunk = b.bitXor(b.add(t, half * 4), swap);
    Value from = b.at(stage, b.add(b.mul(g, kStepBytes), b.mul(chunk, 16)), 1);
    upper.push_back(b.loadWords(from, 4));
    lower.push_back(b.loadWords(b.at(from, b.i32(8 * kStepBytes), 1), 4));
  }
  for (int64_t half = 0; half < kHalves; ++half) {
    SmallVector<Values> activation;
    for (int64_t fragment = 0; fragment < fragments; ++fragment)
      activation.push_back(kept.empty() ? loadActivation(fragment, step, half)
                                        : kept[(fragment * plan.steps + step) * kHalves + half]);
    Values high = format.toBf16Pairs(b, upper[half]), low = format.toBf16Pairs(b, lower[half]);
    for (unsigned i = 0; i < high.size(); i += 2)
      for (int64_t fragment = 0; fragment < fragments; ++fragment)
        sums[fragment] = b.mmaBf16({high[i], low[i], high[i + 1], low[i + 1]},
                                   ValueRange(activation[fragment]).slice(i, 2), sums[fragment]);
  }
}

void MainLoop::emitTile(Value index, Value next) {
  SmallVector<Values> sums(fragments, Values(4, b.f32(0)));
  SmallVector<std::array<Value, 2>> scales;
  if (format.scaled())
    for (int64_t step = 0; step < plan.steps; ++step) {
      Value first = loadScale(index, 0, step);
      scales.push_back({first, contiguous() ? first : loadScale(index, 8, step)});
    }
  for (int64_t step = 0; step < plan.steps; ++step) {
    b.cpAsyncWait(plan.stages - 1);
    b.warpSync();
    SmallVector<Values> partial(fragments, Values(4, b.f32(0)));
    multiplyStage(step, format.scaled() ? llvm::MutableArrayRef(partial) : sums);
    int64_t ahead = step + plan.stages;
    // All lanes have read the stage before one of them refills it.
    if (ahead < plan.steps || next)
      b.warpSync();
    if (ahead < plan.steps)
      issue(index, ahead);
    else if (next)
      b.ifElse(
          b.lt(next, plan.tiles), [&] { issue(next, ahead - plan.steps); },
          [&] { b.cpAsyncCommit(); });
    else
      b.cpAsyncCommit();
    if (!format.scaled())
      continue;
    for (int64_t fragment = 0; fragment < fragments; ++fragment)
      for (unsigned i = 0; i < 4; ++i)
        sums[fragment][i] = b.fma(scales[step][i / 2], partial[fragment][i], sums[fragment][i]);
  }
  store(index, sums);
}

/// c0, c1 = rows 2t, 2t + 1 of the activation at matrix row g; c2, c3 at g + 8.
void MainLoop::store(Value index, llvm::ArrayRef<Values> sums) {
  Value column = b.add(b.mul(index, kRows), g);
  for (int64_t fragment = 0; fragment < fragments; ++fragment)
    for (int64_t odd = 0; odd < 2; ++odd) {
      int64_t first = fragment * 8 + odd;
      if (first >= tile.rows)
        continue;
      Value row = b.add(b.mul(t, 2), first);
      auto storeRow = [&] {
        for (int64_t low = 0; low < 2; ++low)
          b.storeF32(plan.sums.address(b, split, row, b.add(column, low * 8)), plan::Format::F32,
                     {sums[fragment][low * 2 + odd]});
      };
      if (first + 6 < tile.rows)
        storeRow();
      else
        b.ifThen(b.lt(row, tile.rows), storeRow);
    }
}
