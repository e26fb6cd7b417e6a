//===- Emit.cpp - one step of the gated delta rule ------------------------===//
//
// Per row and value head, with S the state [Kd][Vd]:
//
//   g = min(max(decay, 1e-6), 1 - 1e-6)
//   u = (v - g * S^T k) * beta         old S
//   S = g * S + k u^T
//   core = S^T q / sqrt(Kd)            new S
//
// Columns of S do not meet, so each warp takes 8 of them, loads them once (every lane up to 16
// pieces of 16 bytes, all in flight at once), sums over the rows by shuffles and writes them back
// once: the least traffic there is. The new state may go to the slot where the old one lies: a warp
// stores only what it loaded itself, afterwards.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Recurrence/Emitter.h"

#include <cmath>

using namespace mlir;
using namespace plan;

namespace planc {

/// Warps of a CTA that owns a whole head: as many as share its columns evenly.
static int64_t headWarps(const RecurrenceKernel &parts) {
  int64_t stretches = parts.valueDim / kWarpColumns, warps = std::min(stretches, kMaxHeadWarps);
  while (stretches % warps)
    --warps;
  return warps;
}

LaunchShape RecurrenceEmitter::shape(const RecurrenceKernel &parts) {
  int64_t warps = parts.norm ? headWarps(parts) : kSliceWarps;
  int64_t slices = parts.norm ? 1 : parts.valueDim / (kSliceWarps * kWarpColumns);
  LaunchShape shape;
  shape.grid = {uint32_t(slices), uint32_t(parts.valueHeads), uint32_t(parts.rows)};
  shape.block = {uint32_t(32 * warps), 1, 1};
  return shape;
}

/// Where the lane's part of the state begins in a slot.
static Value tileAddress(KernelBuilder &b, Value pool, Value slot, Value inSlot, int64_t slotSize) {
  return b.at(pool, b.add(b.mul(b.toI64(slot), slotSize), b.toI64(inSlot)), Format::F32);
}

RecurrenceEmitter::Tile RecurrenceEmitter::loadTile(Value inSlot) {
  int64_t slotSize = parts.valueHeads * parts.keyDim * parts.valueDim;
  Values flat = b.ifValues(
      b.ge(slotIn, 0),
      [&] {
        Value pool = b.pointer(parts.recurrence.getState());
        Value address = tileAddress(b, pool, slotIn, inSlot, slotSize);
        Values all;
        for (int64_t i = 0; i < laneRows; ++i)
          all.append(
              b.loadF32(b.at(address, b.i32(i * parts.valueDim), Format::F32), Format::F32, 4));
        return all;
      },
      [&] { return Values(laneRows * 4, b.f32(0)); });
  Tile tile;
  for (int64_t i = 0; i < laneRows; ++i)
    tile.emplace_back(ArrayRef<Value>(flat).slice(4 * i, 4));
  return tile;
}

void RecurrenceEmitter::storeTile(const Tile &tile, Value inSlot) {
  int64_t slotSize = parts.valueHeads * parts.keyDim * parts.valueDim;
  b.ifThen(b.ge(slotOut, 0), [&] {
    Value pool = b.pointer(parts.recurrence.getState());
    Value address = tileAddress(b, pool, slotOut, inSlot, slotSize);
    for (int64_t i = 0; i < laneRows; ++i)
      b.storeF32(b.at(address, b.i32(i * parts.valueDim), Format::F32), Format::F32, tile[i]);
  });
}

/// sum over all rows of tile[row][c] * vector[row]: the lane's rows in order, then the sixteen
/// lanes of a quad of columns, nearest last.
Values RecurrenceEmitter::sumOverRows(const Tile &tile, const Values &vector) {
  Values sums;
  for (unsigned c = 0; c < 4; ++c) {
    Value sum = b.fmul(tile[0][c], vector[0]);
    for (int64_t i = 1; i < laneRows; ++i)
      sum = b.fma(tile[i][c], vector[i], sum);
    sums.push_back(sum);
  }
  for (unsigned offset = 16; offset > 1; offset /= 2)
    for (Value &sum : sums)
      sum = b.fadd(sum, b.shuffleXor(sum, offset));
  return sums;
}

/// What `step` emits.
static void noteArithmetic(KernelBuilder &b, const RecurrenceKernel &parts) {
  using enum numerics::LevelKind;
  Operation *op = parts.recurrence;
  auto laneRows = uint32_t(parts.keyDim / kRowGroups);
  numerics::Level rows = {fused, laneRows}, lanes = {tree, kRowGroups};
  double unit = 1 / std::sqrt(double(parts.keyDim));
  b.note(op, numerics::sum("read", {rows, lanes}));
  b.note(op, numerics::rounding("difference", 1, "fma"));
  b.note(op, numerics::rounding("beta", 1));
  b.note(op, numerics::rounding("decay", 1));
  b.note(op, numerics::rounding("state", 1, "fma"));
  b.note(op, numerics::sum("core", {rows, lanes, {scale, double(float(unit)) == unit ? 1u : 2u}}));
}

/// The step on the lane's 4 columns from `column` on; gives the core at these.
Values RecurrenceEmitter::step(Value column, const Values &v) {
  Value firstRow = b.add(b.mul(head, parts.keyDim), b.mul(group, laneRows));
  Value inSlot = b.add(b.mul(firstRow, parts.valueDim), column);
  Tile tile = loadTile(inSlot);

  Values u = sumOverRows(tile, k);
  Value minusDecay = b.fneg(decay);
  for (unsigned c = 0; c < 4; ++c)
    u[c] = b.fmul(b.fma(minusDecay, u[c], v[c]), beta);
  for (int64_t i = 0; i < laneRows; ++i)
    for (unsigned c = 0; c < 4; ++c)
      tile[i][c] = b.fma(k[i], u[c], b.fmul(decay, tile[i][c]));
  storeTile(tile, inSlot);

  Values core = sumOverRows(tile, q);
  Value scale = b.f32(float(1 / std::sqrt(double(parts.keyDim))));
  for (Value &value : core)
    value = b.fmul(value, scale);
  return core;
}

/// All that happens to the 4 columns from `column` on.
void RecurrenceEmitter::column(Value column) {
  Values core = step(column, loadValues(column));
  Value result = parts.recurrence.getResult();
  // The sixteen lanes of a quad of columns hold the same sums.
  b.ifThen(b.eq(group, 0), [&] {
    if (b.outputPointer(result)) {
      int64_t width = parts.valueHeads * parts.valueDim;
      Value index = b.add(b.mul(row, width), b.add(b.mul(head, parts.valueDim), column));
      Format format = storedFormat(result);
      b.storeF32(b.at(b.outputPointer(result), index, format), format, core);
    }
    if (parts.norm)
      b.storeF32(b.at(sharedCore, column, Format::F32), Format::F32, core);
  });
}

void RecurrenceEmitter::emit() {
  noteArithmetic(b, parts);
  GdnRecurrenceOp recurrence = parts.recurrence;
  Value slice = b.blockId(0);
  head = b.blockId(1);
  row = b.blockId(2);
  keyHead = b.div(head, parts.valueHeads / parts.keyHeads);
  Value lane = b.laneId(), warp = b.warpId();
  quad = b.rem(lane, 2);
  group = b.div(lane, 2);
  storesHead = b.bitAnd(b.eq(slice, 0), b.eq(warp, 0));
  storesKeyHead = b.bitAnd(storesHead, b.eq(b.rem(head, parts.valueHeads / parts.keyHeads), 0));

  if (parts.l2Norm)
    eval.provideScale(parts.l2Norm, [&](Value, Value) { return headFactor; });
  slotIn = b.loadI32(b.at(b.pointer(recurrence.getSlotsIn()), row, Format::I32));
  slotOut = b.loadI32(b.at(b.pointer(recurrence.getSlotsOut()), row, Format::I32));
  loadGates();
  loadKeys();

  Value first = b.add(b.mul(warp, kWarpColumns), b.mul(quad, 4));
  if (!parts.norm) {
    column(b.add(b.mul(slice, kSliceWarps * kWarpColumns), first));
    return;
  }
  sharedCore = b.staticShared(parts.valueDim * 4);
  int64_t stride = headWarps(parts) * kWarpColumns;
  if (stride == parts.valueDim)
    column(first);
  else
    b.forLoop(b.i32(0), b.i32(parts.valueDim), b.i32(stride),
              [&](Value start) { column(b.add(start, first)); });
  b.barrier();
  emitNorm();
}

} // namespace planc
