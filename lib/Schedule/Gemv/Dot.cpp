//===- Dot.cpp - the sums of a gemv ----------------------------------------===//
//
// A warp takes an item: a few matrix rows (a lane's `rows`, times what lies side by side) and a
// split of K. Per step a lane loads 16 bytes of each of its rows, all loads of a body before the
// first use; then, with the activation in shared memory, it adds
//
//   sum = fma(scale, x0*w0 + ... + x15*w15, sum)      formats with scales
//   sum = fma(x, w, sum)                              others
//
// in ascending k. Lanes are added by a tree that hands each of them another matrix row as it goes
// down, so that a warp needs few shuffles: the order within a sum is the usual xor order, L/2
// first.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Gemv/GemvEmitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace planc;
using namespace planc::gemv;
using namespace planc::contraction;

/// Loads of a loop's body; one body holds the whole sum if it needs no more than `kMaxLoads`.
static constexpr int64_t kBodyLoads = 16, kMaxLoads = 32;

namespace {
class DotEmitter {
public:
  DotEmitter(KernelBuilder &b, const Component &component, const Dot &dot, const DotPlan &plan,
             const Tile &tile)
      : b(b), component(component), dot(dot), format(*dot.format), plan(plan), tile(tile) {}

  void emit();

private:
  void emitItem(Value item);
  /// Sums of `rows` result rows over one matrix, `x` the first one's activation in shared memory.
  void emitSums(Value matrix, Value scales, Value x, int64_t rows, Value firstSum);
  void locateRows(Value matrix, Value scales);
  Values emitSteps(Value step, int64_t count, Value x, int64_t rows, ValueRange sums);
  Value loadScale(int64_t row, Value step, int64_t ahead);
  Values loadActivation(Value x, int64_t row, Value step, int64_t ahead);
  Value multiplyAdd(ValueRange x, ValueRange weights, Value scale, Value sum);
  Value reduce(Values sums);

  KernelBuilder &b;
  const Component &component;
  const Dot &dot;
  const WeightFormat &format;
  const DotPlan &plan;
  const Tile &tile;

  Value split, group, lane, side; // of this thread's item
  Values rowPointers, scalePointers;
};
} // namespace

void gemv::emitDot(KernelBuilder &b, const Component &component, const Dot &dot,
                   const DotPlan &plan, const Tile &tile) {
  b.note(Dot(dot).op, orderOf(dot, plan));
  DotEmitter(b, component, dot, plan, tile).emit();
}

void DotEmitter::emit() {
  lane = b.rem(b.laneId(), plan.lanes);
  side = b.div(b.laneId(), plan.lanes);
  Value warp = b.warpId();
  int64_t items = plan.items();
  if (items > kWarps)
    b.forLoop(warp, b.i32(items), b.i32(kWarps), [&](Value item) { emitItem(item); });
  else if (items == kWarps)
    emitItem(warp);
  else
    b.ifThen(b.lt(warp, items), [&] { emitItem(warp); });
}

void DotEmitter::emitItem(Value item) {
  split = b.rem(item, plan.splits);
  group = b.div(item, plan.splits);
  Value x = b.at(b.dynamicShared(), b.i32(plan.xOffset), 1);
  Value matrix = b.pointer(dot.matrix());
  Value scales = format.scaled() ? b.scales(dot.matrix()) : Value();
  if (!dot.ids())
    return emitSums(matrix, scales, x, plan.sums.rows, b.i32(0));

  // Every result row has a matrix of its own.
  int64_t rows = plan.sums.rows, rowsPerX = std::max<int64_t>(1, rows / plan.activationRows);
  Value firstRow = b.mul(tile.firstRow, component.rowsPerElementRow(dot));
  auto expertRow = [&](Value row) {
    Value expert = b.toI64(b.loadI32(b.at(b.pointer(dot.ids()), b.add(firstRow, row), 4)));
    int64_t bytes = dot.columns * dot.depth * format.codeBytes();
    Value expertScales;
    if (scales)
      expertScales = b.at(
          scales,
          b.mul(expert, dot.columns / format.scaleRows() * (dot.depth / format.scaleDepth())), 4);
    Value expertX = b.at(x, b.mul(b.div(row, rowsPerX), plan.xRowBytes), 1);
    emitSums(b.at(matrix, b.mul(expert, bytes), 1), expertScales, expertX, 1, row);
  };
  if (rows == 1)
    return expertRow(b.i32(0));
  b.forLoop(b.i32(0), b.i32(rows), b.i32(1), expertRow);
}

/// Pointers to this lane's first 16 bytes of each of its matrix rows, and to their scales.
void DotEmitter::locateRows(Value matrix, Value scales) {
  rowPointers.clear();
  scalePointers.clear();
  int64_t pitch = dot.depth * format.codeBytes(), perSplit = plan.steps / plan.splits;
  Value piece = b.add(b.mul(split, perSplit * plan.lanes), lane);
  // Rows of an item that are aligned to their number lie in one block of scales.
  int64_t aligned = plan.itemColumns();
  bool oneScale = format.scaled() && format.scaleRows() % aligned == 0 && !dot.gate &&
                  tile.elements % aligned == 0 && component.map.stretch % tile.elements == 0;
  for (int64_t row = 0; row < plan.rows; ++row) {
    Value local = b.add(b.add(b.mul(group, plan.itemColumns()), row * plan.side()), side);
    Value column = matrixColumn(b, component, dot, tile, local);
    Value offset = b.add(b.mul(b.toI64(column), pitch), b.toI64(b.mul(piece, 16)));
    rowPointers.push_back(b.at(matrix, offset, 1));
    if (!scales)
      continue;
    if (row > 0 && oneScale) {
      scalePointers.push_back(scalePointers.front());
      continue;
    }
    Value index = b.add(b.mul(b.div(column, format.scaleRows()), dot.depth / format.scaleDepth()),
                        b.div(b.mul(piece, format.codes()), format.scaleDepth()));
    scalePointers.push_back(b.at(scales, index, 4));
  }
}

void DotEmitter::emitSums(Value matrix, Value scales, Value x, int64_t rows, Value firstSum) {
  locateRows(matrix, scales);
  int64_t steps = plan.steps / plan.splits, body = steps;
  if (steps * plan.rows > kMaxLoads)
    for (body = std::max<int64_t>(1, kBodyLoads / plan.rows); steps % body;)
      body /= 2;
  Value piece = b.add(b.mul(split, steps * plan.lanes), lane);
  x = b.at(x, b.mul(piece, plan.xLaneBytes), 1);
  Values sums(rows * plan.rows, b.f32(0));
  if (body == steps)
    sums = emitSteps(b.i32(0), body, x, rows, sums);
  else
    sums =
        b.forLoop(b.i32(0), b.i32(steps), b.i32(body), sums, [&](Value step, ValueRange carried) {
          return emitSteps(step, body, x, rows, carried);
        });

  // Lane 0 of a row's lanes, or of the stretch that holds a matrix row after the tree, stores.
  int64_t stretch = plan.lanes / plan.rows;
  Value index = b.div(lane, stretch);
  Value column = b.add(b.add(b.mul(group, plan.itemColumns()), b.mul(index, plan.side())), side);
  Values reduced;
  for (int64_t row = 0; row < rows; ++row)
    reduced.push_back(reduce(Values(ArrayRef<Value>(sums).slice(row * plan.rows, plan.rows))));
  Value stores = b.eq(b.rem(lane, stretch), 0);
  // A tile with more columns than there are repeats one of them, to no purpose.
  if (dot.gate && plan.itemColumns() > 1)
    stores = b.bitAnd(stores, b.lt(column, 1));
  if (!dot.gate && component.map.elements < tile.elements)
    stores = b.bitAnd(stores, b.lt(b.rem(column, tile.elements), component.map.elements));
  b.ifThen(stores, [&] {
    for (int64_t row = 0; row < rows; ++row)
      b.storeF32(plan.sums.address(b, split, b.add(firstSum, row), column), plan::Format::F32,
                 {reduced[row]});
  });
}

Value DotEmitter::loadScale(int64_t row, Value step, int64_t ahead) {
  int64_t perStep = plan.lanes * format.codes() / format.scaleDepth();
  Value pointer = b.at(scalePointers[row], b.mul(step, perStep), 4);
  return b.loadF32(b.at(pointer, b.i32(ahead * perStep), 4), plan::Format::F32, 1).front();
}

Values DotEmitter::loadActivation(Value x, int64_t row, Value step, int64_t ahead) {
  int64_t stepBytes = plan.lanes * plan.xLaneBytes;
  Value pointer = b.at(x, b.mul(step, stepBytes), 1);
  return b.loadF32(b.at(pointer, b.i32(ahead * stepBytes + row * plan.xRowBytes), 1),
                   plan::Format::F32, format.codes());
}

Value DotEmitter::multiplyAdd(ValueRange x, ValueRange weights, Value scale, Value sum) {
  if (!scale) {
    for (auto [value, weight] : llvm::zip(x, weights))
      sum = b.fma(value, weight, sum);
    return sum;
  }
  Value partial = b.fmul(x.front(), weights.front());
  for (auto [value, weight] : llvm::zip(x.drop_front(), weights.drop_front()))
    partial = b.fma(value, weight, partial);
  return b.fma(scale, partial, sum);
}

/// `count` steps from `step` on; sums by result row, then matrix row.
Values DotEmitter::emitSteps(Value step, int64_t count, Value x, int64_t rows, ValueRange carried) {
  Values sums(carried);
  SmallVector<SmallVector<Values>> words(count);
  SmallVector<Values> scales(count);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t row = 0; row < plan.rows; ++row) {
      int64_t stepBytes = plan.lanes * 16;
      Value pointer = b.at(rowPointers[row], b.mul(step, stepBytes), 1);
      words[i].push_back(b.loadStream16(b.at(pointer, b.i32(i * stepBytes), 1)));
      Value scale;
      if (format.scaled())
        scale = row > 0 && scalePointers[row] == scalePointers[0] ? scales[i][0]
                                                                  : loadScale(row, step, i);
      scales[i].push_back(scale);
    }
  for (int64_t i = 0; i < count; ++i) {
    if (rows == 1) {
      Values values = loadActivation(x, 0, step, i);
      for (int64_t row = 0; row < plan.rows; ++row)
        sums[row] = multiplyAdd(values, format.toF32(b, words[i][row]), scales[i][row], sums[row]);
      continue;
    }
    SmallVector<Values> weights;
    for (int64_t row = 0; row < plan.rows; ++row)
      weights.push_back(format.toF32(b, words[i][row]));
    for (int64_t result = 0; result < rows; ++result) {
      Values values = loadActivation(x, result, step, i);
      for (int64_t row = 0; row < plan.rows; ++row) {
        Value &sum = sums[result * plan.rows + row];
        sum = multiplyAdd(values, weights[row], scales[i][row], sum);
      }
    }
  }
  return sums;
}

/// Adds over the lanes of a matrix row. Of n values, lane l ends with number l / (lanes / n).
Value DotEmitter::reduce(Values sums) {
  for (int64_t offset = plan.lanes / 2; offset; offset /= 2) {
    if (sums.size() == 1) {
      sums[0] = b.fadd(sums[0], b.shuffleXor(sums[0], offset));
      continue;
    }
    Value upper = b.ne(b.bitAnd(lane, offset), 0);
    size_t half = sums.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      Value kept = b.select(upper, sums[half + i], sums[i]);
      Value given = b.select(upper, sums[i], sums[half + i]);
      sums[i] = b.fadd(kept, b.shuffleXor(given, offset));
    }
    sums.truncate(half);
  }
  return sums.front();
}
