//===- Merge.cpp - join the slices of a row -------------------------------===//
//
// A partial result i of a head is its maximum m_i, sum of exponentials l_i and unscaled sums
// o_i[d]. Up to 16 of them are one again with M = max m_i, w_i = exp(m_i - M): l = sum l_i * w_i, o
// = sum o_i * w_i, i ascending. The last level gives o / l. A partial result alone has w = 1 and
// stays as it is.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Arrival.h"
#include "lib/Schedule/Attention/Emitter.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace plan;

namespace planc {

/// Where a node keeps the maximum or the sum of a head.
Value AttentionEmitter::stats(unsigned level, Value node, Value head, bool sum) {
  const PartialLayout::Level &at = layout.levels[level];
  Value first = b.mul(b.add(b.mul(row, parts.headTiles()), tile), at.nodes);
  Value index = b.add(b.mul(b.add(first, node), 2 * parts.heads), head);
  return b.at(b.scratch(), b.add(index, at.stats + (sum ? parts.heads : 0)), 4);
}

/// Where a node keeps its unscaled sums.
Value AttentionEmitter::sums(unsigned level, Value node) {
  const PartialLayout::Level &at = layout.levels[level];
  Value first = b.mul(b.add(b.mul(row, parts.headTiles()), tile), at.nodes);
  Value index = b.mul(b.toI64(b.add(first, node)), parts.heads * parts.paddedDim());
  return b.at(b.scratch(), b.add(index, at.sums), 4);
}

/// Where 8 dims of a head begin, in shared memory and in scratch; their second half follows those
/// of the other lanes.
Value AttentionEmitter::unitOffset(Value head, Value piece) {
  Value inHead =
      b.add(b.mul(b.div(piece, parts.lanes), 8 * parts.lanes), b.mul(b.rem(piece, parts.lanes), 4));
  return b.add(b.mul(head, parts.paddedDim()), inHead);
}

/// Waits for nobody: of the CTAs that have a part in a node, the last one goes on.
void AttentionEmitter::merge(unsigned level) {
  if (layout.isLone()) {
    b.barrier(); // between what the slice stored and who reads it
    return mergeNode(level, b.i32(0), b.i32(1));
  }
  int64_t below = 1;
  for (unsigned i = 1; i < level; ++i)
    below *= kMergeWidth;
  Value node = b.div(slice, below * kMergeWidth);
  Value nodesBelow = b.div(b.add(slices, below - 1), below);
  Value children = b.min(b.sub(nodesBelow, b.mul(node, kMergeWidth)), b.i32(kMergeWidth));
  Value counter = b.mul(b.add(b.mul(row, parts.headTiles()), tile), layout.countersPerTile);
  counter = b.add(b.add(counter, layout.levels[level].counters), node);
  // Of a child that is alone a thread reads what it stored itself, or a barrier lies between.
  Values isLast = b.ifValues(
      b.eq(children, 1), [&] { return Values{b.i1(true)}; },
      [&] { return Values{lastCtaArrives(b, counter, children)}; });
  b.ifThen(isLast[0], [&] {
    mergeNode(level, node, children);
    if (level + 1 < layout.levels.size())
      merge(level + 1);
  });
}

/// Fills the shared arrays for the node: a thread a child and head. Children that do not exist
/// weigh nothing.
void AttentionEmitter::weighChildren(unsigned level, Value node, Value children) {
  Value minusInfinity = b.f32(-std::numeric_limits<float>::infinity());
  Value thread = b.threadId();
  Value child = b.div(thread, parts.heads), head = b.rem(thread, parts.heads);
  Value below = b.add(b.mul(node, kMergeWidth), child);
  auto own = [&](Value array) { return b.at(array, thread, 4); };
  auto all = [&](llvm::function_ref<void()> body) {
    int64_t count = kMergeWidth * parts.heads;
    if (count == kAttentionThreads)
      body();
    else
      b.ifThen(b.lt(thread, count), body);
  };
  Values loaded = b.ifValues(
      b.lt(child, children),
      [&] {
        return Values{b.loadF32(stats(level - 1, below, head, false), Format::F32, 1)[0],
                      b.loadF32(stats(level - 1, below, head, true), Format::F32, 1)[0]};
      },
      [&] { return Values{minusInfinity, b.f32(0)}; });
  all([&] { b.storeF32(own(sharedMaxima), Format::F32, {loaded[0]}); });
  b.barrier();
  all([&] {
    Value max = minusInfinity;
    for (int64_t i = 0; i < kMergeWidth; ++i)
      max = b.fmax(
          max, b.loadF32(b.at(sharedMaxima, b.add(head, i * parts.heads), 4), Format::F32, 1)[0]);
    // A sequence without positions has no maximum.
    Value weight =
        b.select(b.eq(loaded[0], minusInfinity), b.f32(0), b.exp(b.fsub(loaded[0], max)));
    b.storeF32(own(sharedWeights), Format::F32, {weight});
    b.storeF32(own(sharedTotals), Format::F32, {b.fmul(loaded[1], weight)});
    if (level + 1 < layout.levels.size())
      b.ifThen(b.eq(child, 0),
               [&] { b.storeF32(stats(level, node, head, false), Format::F32, {max}); });
  });
  b.barrier();
}

/// The sum of exponentials of a node at this level.
Value AttentionEmitter::totalOf(unsigned level, Value head) {
  if (layout.isLone())
    return b.loadF32(stats(0, slice, head, true), Format::F32, 1)[0];
  Value total;
  // A short context has fewer children than fit.
  int64_t most = std::min(kMergeWidth, layout.levels[level - 1].nodes);
  for (int64_t i = 0; i < most; ++i) {
    Value next = b.loadF32(b.at(sharedTotals, b.add(head, i * parts.heads), 4), Format::F32, 1)[0];
    total = total ? b.fadd(total, next) : next;
  }
  return total;
}

void AttentionEmitter::mergeNode(unsigned level, Value node, Value children) {
  if (!layout.isLone())
    weighChildren(level, node, children);
  bool isFinal = level + 1 == layout.levels.size();
  Value thread = b.threadId();
  if (!isFinal)
    b.ifThen(b.lt(thread, parts.heads), [&] {
      b.storeF32(stats(level, node, thread, true), Format::F32, {totalOf(level, thread)});
    });

  // A unit is 8 dims of a head that one lane summed: two 16-byte accesses in each child.
  int64_t pieces = parts.lanes * parts.chunks, count = parts.heads * pieces;
  int64_t threads = kAttentionThreads, perThread = llvm::divideCeil(count, threads);
  Values units, heads, offsets;
  for (int64_t i = 0; i < perThread; ++i) {
    Value unit = b.add(thread, i * threads);
    units.push_back(unit);
    if (count % threads)
      unit = b.min(unit, b.i32(count - 1));
    heads.push_back(b.div(unit, pieces));
    offsets.push_back(unitOffset(heads.back(), b.rem(unit, pieces)));
  }
  auto units8 = [&](Value address, unsigned i) {
    Values values = b.loadF32(b.at(address, offsets[i], 4), Format::F32, 4);
    values.append(b.loadF32(b.at(address, b.add(offsets[i], 4 * parts.lanes), 4), Format::F32, 4));
    return values;
  };
  constexpr int64_t atOnce = 4; // children, whose loads overlap
  Values totals(8 * perThread, b.f32(0));
  if (layout.isLone())
    // Added to zero, as among others: the sign of a zero is the same for every context.
    for (int64_t i = 0; i < perThread; ++i)
      for (auto [d, value] : llvm::enumerate(units8(sums(0, slice), i)))
        totals[8 * i + d] = b.fadd(value, totals[8 * i + d]);
  else
    totals =
        b.forLoop(b.i32(0), children, b.i32(atOnce), totals, [&](Value first, ValueRange carried) {
          Values sums(carried);
          SmallVector<Values> loaded;
          for (int64_t c = 0; c < atOnce; ++c) {
            Value child = b.min(b.add(first, c), b.sub(children, 1));
            Value address = this->sums(level - 1, b.add(b.mul(node, kMergeWidth), child));
            for (int64_t i = 0; i < perThread; ++i)
              loaded.push_back(units8(address, i));
          }
          for (int64_t c = 0; c < atOnce; ++c) {
            Value child = b.add(first, c), exists = b.lt(child, children);
            for (int64_t i = 0; i < perThread; ++i) {
              Value weightIndex = b.add(b.mul(child, parts.heads), heads[i]);
              Value weight = b.loadF32(b.at(sharedWeights, weightIndex, 4), Format::F32, 1)[0];
              for (int64_t d = 0; d < 8; ++d) {
                Value &sum = sums[8 * i + d];
                sum = b.select(exists, b.fma(loaded[c * perThread + i][d], weight, sum), sum);
              }
            }
          }
          return sums;
        });

  for (int64_t i = 0; i < perThread; ++i) {
    ArrayRef<Value> values = ArrayRef<Value>(totals).slice(8 * i, 8);
    auto store = [&] {
      if (!isFinal) {
        Value address = b.at(this->sums(level, node), offsets[i], 4);
        b.storeF32(address, Format::F32, values.take_front(4));
        b.storeF32(b.at(address, b.i32(4 * parts.lanes), 4), Format::F32, values.drop_front(4));
        return;
      }
      Value inverse = b.rcp(totalOf(level, heads[i]));
      Values result;
      for (Value value : values)
        result.push_back(b.select(b.gt(length, 0), b.fmul(value, inverse), b.f32(0)));
      Value dim = b.mul(b.rem(units[i], pieces), 8);
      Value head = b.add(b.mul(tile, parts.heads), heads[i]);
      auto whole = [&] { finish(b.add(b.mul(head, parts.headDim), dim), result); };
      if (parts.paddedDim() == parts.headDim)
        whole();
      else
        b.ifThen(b.lt(dim, parts.headDim), whole);
    };
    if (count % threads)
      b.ifThen(b.lt(units[i], count), store);
    else
      store();
  }
}

/// Stores 8 values of the result, and what other members make of them.
void AttentionEmitter::finish(Value column, const Values &values) {
  eval.provide(parts.attention.getResult(), [&](Chunk) { return values; });
  for (Value yielded : parts.yielded)
    eval.store(yielded, {row, column, 8});
}

} // namespace planc
