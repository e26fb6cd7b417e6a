//===- ElementwiseState.cpp - conv windows, caches, rope ---------------------===//
//
// The element-wise nodes that read what changes from step to step: slots of states, positions.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Elementwise.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <cmath>

using namespace mlir;
using namespace planc;
using plan::Format;

static int64_t columns(Value edge) { return *plan::knownDim(edge.getType(), 1); }

//===----------------------------------------------------------------------===//
// conv1d_update
//===----------------------------------------------------------------------===//

/// Taps of a window; one f32 each, together one access.
static constexpr unsigned kTaps = 4;

/// Address of a channel's window in a slot. A pool may be large: 64-bit.
static Value windowAt(KernelBuilder &b, plan::Conv1dUpdateOp op, Value slot, Value channel) {
  int64_t channels = columns(op.getResult());
  Value index = b.add(b.mul(b.toI64(slot), channels), b.toI64(channel));
  return b.at(b.pointer(op.getWindow()), index, kTaps * 4);
}

/// A window as one access: of a plain load LLVM would leave out the oldest entry and make two of
/// the rest.
static Values loadWindow(KernelBuilder &b, Value address) {
  SmallVector<Type> types(kTaps, b.raw().getF32Type());
  auto load =
      NVVM::InlinePtxOp::create(b.raw(), b.raw().getUnknownLoc(), types, ValueRange{address},
                                ValueRange(), "ld.global.v4.b32 {$0, $1, $2, $3}, [$4];", Value());
  return Values(load.getResults());
}

static Value slotOf(KernelBuilder &b, Value slots, Value row) {
  return b.loadI32(b.at(b.pointer(slots), row, Format::I32));
}

Values Evaluator::window(plan::Conv1dUpdateOp op, Chunk chunk) {
  if (const Values *known = lookup(windows, op.getResult(), chunk))
    return *known;
  Value slot = slotOf(b, op.getSlotsIn(), chunk.row);
  Value filled = b.ge(slot, 0);
  Values inputs = operand(op, 0, chunk), result;
  for (unsigned i = 0; i < chunk.count; ++i) {
    Value before = windowAt(b, op, slot, b.add(chunk.column, i));
    Values old = b.ifValues(
        filled, [&] { return loadWindow(b, before); }, [&] { return Values(kTaps, b.f32(0.0f)); });
    result.append(old.begin() + 1, old.end());
    result.push_back(inputs[i]);
  }
  windows.push_back({op.getResult(), chunk, b.raw().getInsertionBlock(), result});
  return result;
}

Values Evaluator::conv(plan::Conv1dUpdateOp op, Chunk chunk) {
  b.note(op, numerics::sum("window", {{numerics::LevelKind::fused, kTaps}}));
  b.note(op, KernelBuilder::Function::Sigmoid);
  b.note(op, numerics::rounding("product", 1, "sum * sigmoid"));
  Values entries = window(op, chunk), result;
  for (unsigned i = 0; i < chunk.count; ++i) {
    Values taps = weight(op.getWeight(), b.mul(b.add(chunk.column, i), kTaps), kTaps);
    Value sum = b.fmul(entries[i * kTaps], taps[0]);
    for (unsigned tap = 1; tap < kTaps; ++tap)
      sum = b.fma(entries[i * kTaps + tap], taps[tap], sum);
    result.push_back(b.silu(sum));
  }
  return result;
}

void Evaluator::writeWindow(plan::Conv1dUpdateOp op, Chunk chunk) {
  Values entries = window(op, chunk);
  Value slot = slotOf(b, op.getSlotsOut(), chunk.row);
  b.ifThen(b.ge(slot, 0), [&] {
    for (unsigned i = 0; i < chunk.count; ++i)
      b.storeF32(windowAt(b, op, slot, b.add(chunk.column, i)), Format::F32,
                 ValueRange(entries).slice(i * kTaps, kTaps));
  });
}

//===----------------------------------------------------------------------===//
// kv_write
//===----------------------------------------------------------------------===//

void Evaluator::writeCache(plan::KvWriteOp op, unsigned cache, Chunk chunk) {
  Value source = op->getOperand(cache), pool = op->getOperand(3 + cache);
  Value slot = b.loadI64(b.at(b.pointer(op.getSlotMapping()), chunk.row, Format::I64));
  Values values = stored(source, chunk);
  b.ifThen(b.ge(slot, 0), [&] {
    // [block][offset][heads * D]: block * block size + offset is the slot itself.
    Value index = b.add(b.mul(slot, columns(source)), b.toI64(chunk.column));
    b.storeF32(b.at(b.pointer(pool), index, Format::BF16), Format::BF16, values);
  });
}

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

/// The value of `table[base + element]`, where `base` is a multiple of `count` known only at run
/// time: a tree of selects over the bits of base / count.
static Value lookupTable(KernelBuilder &b, ArrayRef<float> table, Value base, unsigned element,
                         unsigned count) {
  Values candidates;
  for (unsigned first = 0; first < table.size(); first += count)
    candidates.push_back(b.f32(table[first + element]));
  Value index = b.div(base, count);
  for (unsigned bit = 0; candidates.size() > 1; ++bit) {
    Value isOdd = b.ne(b.bitAnd(index, int64_t(1) << bit), 0);
    Values kept;
    for (unsigned i = 0; i < candidates.size(); i += 2)
      kept.push_back(i + 1 < candidates.size() ? b.select(isOdd, candidates[i + 1], candidates[i])
                                               : candidates[i]);
    candidates = std::move(kept);
  }
  return candidates.front();
}

/// The positions of the three streams for the pairs from `base` on: entry j serves the pairs base +
/// j, base + j + 3, ..
static Values streamPositions(KernelBuilder &b, plan::RopeOp op, Value row, Value base) {
  int64_t rows = *plan::knownDim(op.getPositions().getType(), 1);
  auto position = [&](unsigned stream) {
    Value index = b.add(row, int64_t(stream) * rows);
    return b.toF32(b.loadI32(b.at(b.pointer(op.getPositions()), index, Format::I32)));
  };
  if (op.getSections().empty())
    return Values(3, position(0));
  Value streams[] = {position(0), position(1), position(2)};
  Value shift = b.rem(base, 3);
  Value isOne = b.eq(shift, 1), isTwo = b.eq(shift, 2);
  Values result;
  for (unsigned j = 0; j < 3; ++j)
    result.push_back(
        b.select(isOne, streams[(j + 1) % 3], b.select(isTwo, streams[(j + 2) % 3], streams[j])));
  return result;
}

Values Evaluator::rope(plan::RopeOp op, unsigned index, Chunk chunk) {
  int64_t headDim = *op.getHeadDim().getConstant(), rotary = op.getRotaryDim(), half = rotary / 2;
  SmallVector<float> frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(
        float(std::pow(op.getTheta().convertToDouble(), -2.0 * double(i) / double(rotary))));

  b.note(op, KernelBuilder::Function::SinCos);
  b.note(op, numerics::rounding("product", 1, "partner * sin"));
  b.note(op, numerics::rounding("add", 1, "fma with own * cos"));
  Values own = operand(op, index, chunk);
  Value offset = b.rem(chunk.column, headDim);
  auto rotate = [&] {
    Value isFirst = b.lt(offset, half);
    Value base = b.select(isFirst, offset, b.sub(offset, half));
    Value partnerColumn = b.select(isFirst, b.add(chunk.column, half), b.sub(chunk.column, half));
    Values partner = operand(op, index, {chunk.row, partnerColumn, chunk.count});
    Values positions = streamPositions(b, op, chunk.row, base);
    // y_i = x_i*c - x_{i+half}*s in the first half, x_{i+half}*c + x_i*s in the second.
    Value sign = b.select(isFirst, b.f32(-1.0f), b.f32(1.0f));
    Values result;
    for (unsigned j = 0; j < chunk.count; ++j) {
      Value frequency = lookupTable(b, frequencies, base, j, chunk.count);
      auto [sine, cosine] = b.sinCos(b.fmul(positions[j % 3], frequency));
      result.push_back(b.fma(own[j], cosine, b.fmul(partner[j], b.fmul(sign, sine))));
    }
    return result;
  };
  if (rotary == headDim)
    return rotate();
  return b.ifValues(b.lt(offset, rotary), rotate, [&] { return own; });
}
