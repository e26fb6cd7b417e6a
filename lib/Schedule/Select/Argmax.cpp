//===- Argmax.cpp - the largest logit of a row ---------------------------------===//
//
// A row is cut into parts of a fixed length, one CTA each; the last CTA of a row takes the largest
// of their keys. A maximum does not depend on any order.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Select/Keys.h"

using namespace mlir;
using namespace planc;
using namespace planc::select;
using plan::Format;

static constexpr unsigned kThreads = 256;
static constexpr int64_t kPart = 8192;

/// The largest key of the CTA, in the lanes of warp 0.
static Value blockMax(KernelBuilder &b, Keys &keys, Value key) {
  constexpr unsigned warps = kThreads / 32;
  Value shared = b.staticShared(warps * 8), lane = b.laneId();
  key = keys.warpMax(key);
  b.ifThen(b.eq(lane, 0), [&] { b.storeI64(b.at(shared, b.warpId(), 8), key); });
  b.barrier();
  return keys.warpMax(b.loadI64(b.at(shared, b.rem(lane, warps), 8)));
}

/// The largest key among this thread's logits of a part.
static Value scanPart(KernelBuilder &b, Keys &keys, plan::ArgmaxOp node, Value row, Value part) {
  int64_t range = *plan::knownDim(node.getLogits().getType(), 1);
  Format format = plan::storedFormat(node.getLogits());
  unsigned vector = 8;
  while (range % vector)
    vector /= 2;
  Value first = b.mul(part, kPart);
  Value end = b.min(b.add(first, kPart), b.i32(range));
  Value begin = b.add(first, b.mul(b.threadId(), vector));
  Value rowStart = b.mul(b.toI64(row), range);
  return b
      .forLoop(begin, end, b.i32(kThreads * vector), {keys.none()},
               [&](Value column, ValueRange carried) {
                 Value index = b.add(rowStart, b.toI64(column));
                 Value best = carried.front();
                 Value address = b.at(b.pointer(node.getLogits()), index, format);
                 for (auto [i, logit] : llvm::enumerate(b.loadF32(address, format, vector)))
                   best = keys.larger(best, keys.make(logit, b.add(column, i)));
                 return Values{best};
               })
      .front();
}

void select::emitArgmax(KernelBuilder &b, plan::ArgmaxOp node, LaunchShape &shape) {
  int64_t rows = *plan::knownDim(node.getLogits().getType(), 0);
  int64_t range = *plan::knownDim(node.getLogits().getType(), 1);
  unsigned parts = unsigned((range + kPart - 1) / kPart);
  shape.grid = {parts, uint32_t(rows), 1};
  shape.block = {kThreads, 1, 1};
  if (parts > 1) {
    shape.scratchBytes = uint64_t(rows) * parts * 8;
    shape.counters = rows;
  }
  b.begin(shape);
  Keys keys(b, Format::F32, range);
  Value row = b.blockId(1), part = b.blockId(0), isFirst = b.eq(b.threadId(), 0);
  Value best = blockMax(b, keys, scanPart(b, keys, node, row, part));
  auto store = [&](Value key) {
    Value address = b.at(b.outputPointer(node.getToken()), row, Format::I32);
    b.ifThen(isFirst, [&] { b.storeI32(address, keys.indexOf(key)); });
  };
  if (parts == 1)
    return store(best);
  Value mine = b.mul(row, parts);
  b.ifThen(isFirst, [&] { b.storeI64(b.at(b.scratch(), b.add(mine, part), 8), best); });
  b.ifThen(b.lastCtaArrives(row, parts), [&] {
    b.ifThen(b.lt(b.threadId(), 32), [&] {
      Values largest = b.forLoop(b.laneId(), b.i32(parts), b.i32(32), {keys.none()},
                                 [&](Value i, ValueRange carried) {
                                   Value key = b.loadI64(b.at(b.scratch(), b.add(mine, i), 8));
                                   return Values{keys.larger(carried.front(), key)};
                                 });
      store(keys.warpMax(largest.front()));
    });
  });
}
