//===- Write.cpp - attention in the kernel that writes its cache ----------===//
//
// A kernel that stores the rows' new keys and values cannot read them back from the cache: nothing
// orders its CTAs. But what it stores is at hand, as an edge. So each CTA looks up which of its
// positions are written by which row, and reads these from the edge, the same bytes; no position is
// then both read and written. Where one CTA writes all that it reads, a barrier is enough.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Attention/Emitter.h"

using namespace mlir;
using namespace plan;

namespace planc {

/// One CTA for each row and kv head stores the head's key and value: that of the first slice, which
/// always runs, and of the first query heads.
void AttentionEmitter::writeCaches() {
  KvWriteOp write = parts.write;
  int64_t positionSize = parts.kvHeads * parts.headDim, pieces = parts.headDim / 8;
  int64_t tilesPerHead = parts.headTiles() / parts.kvHeads;
  Value slot = b.loadI64(b.at(b.pointer(write.getSlotMapping()), row, Format::I64));
  Value writes = b.bitAnd(b.eq(slice, 0), b.eq(b.rem(tile, tilesPerHead), 0));
  writes = b.bitAnd(writes, b.ge(slot, 0));
  Value thread = b.threadId();
  Value inHead = b.add(b.mul(kvHead, parts.headDim), b.mul(b.rem(thread, pieces), 8));
  auto copy = [&](Value edge, Value pool) {
    Value from = b.at(b.pointer(edge), b.add(b.mul(row, positionSize), inHead), Format::BF16);
    Value index = b.add(b.mul(slot, positionSize), b.toI64(inHead));
    b.storeWords(b.at(b.pointer(pool), index, Format::BF16), b.loadWords(from, 4));
  };
  b.ifThen(b.bitAnd(writes, b.lt(thread, pieces)), [&] { copy(write.getK(), write.getKCache()); });
  Value second = b.bitAnd(b.ge(thread, pieces), b.lt(thread, 2 * pieces));
  b.ifThen(b.bitAnd(writes, second), [&] { copy(write.getV(), write.getVCache()); });
}

bool AttentionEmitter::readsBack() const {
  return layout.isLone() && parts.rows == 1 && parts.headTiles() == parts.kvHeads;
}

/// Thread j asks for position j of the slice.
void AttentionEmitter::findWriters() {
  sharedWriters = b.staticShared(4 * kSlicePositions);
  Value thread = b.threadId();
  b.ifThen(b.lt(thread, valid), [&] {
    Value slot = slotOf(thread);
    Values writer = b.forLoop(
        b.i32(0), b.i32(parts.rows), b.i32(1), {b.i32(-1)}, [&](Value other, ValueRange carried) {
          Value written =
              b.loadI64(b.at(b.pointer(parts.write.getSlotMapping()), other, Format::I64));
          return Values{b.select(b.eq(written, slot), other, carried.front())};
        });
    b.storeI32(b.at(sharedWriters, thread, 4), writer[0]);
  });
}

/// Address of the head of a position: in the edge `fresh` if a row writes it, else `cached`.
Value AttentionEmitter::fromWriter(Value position, Value fresh, Value cached) {
  if (readsBack())
    return cached;
  Value writer = b.loadI32(b.at(sharedWriters, position, 4));
  Value index = b.add(b.mul(writer, parts.kvHeads * parts.headDim), b.mul(kvHead, parts.headDim));
  return b.select(b.ge(writer, 0), b.at(b.pointer(fresh), index, Format::BF16), cached);
}

} // namespace planc
