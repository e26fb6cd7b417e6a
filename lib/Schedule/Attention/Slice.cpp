//===- Slice.cpp - attention to one slice of the context ------------------===//
//
// Three passes over 128 positions, with the scores of all heads in shared memory between them:
//
//   scores   s[h][j] = (sum_d q[h][d] * K[j][d]) / sqrt(D). Lanes hold their dims of all queries; a
//   group of lanes reads
//            a run of 4 positions, 16 bytes a lane, and sums over its lanes by exchanges.
//   softmax  m[h] = max_j s[h][j], p[h][j] = exp(s[h][j] - m[h]), l[h] = sum_j p[h][j]; a warp a
//   head, 4 positions a lane. values   o[h][d] = sum_j p[h][j] * V[j][d]. Lanes hold the sums of
//   their dims; groups and warps, which saw different
//            positions, are added up through shared memory in their order.
//
// Positions past the end are read as copies of the last one, which costs no new sector, and weigh
// nothing.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Attention/Emitter.h"
#include "lib/Schedule/Attention/ScatterSum.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plan;

namespace planc {

int64_t AttentionEmitter::blocksInSlice() const {
  return std::max<int64_t>(1, std::min(kSlicePositions, context) / kvBlock);
}

/// The block ids of the slice's positions, read once.
void AttentionEmitter::loadBlocks() {
  int64_t count = blocksInSlice();
  Value thread = b.threadId();
  Value firstBlock =
      kvBlock < kSlicePositions ? b.mul(slice, count) : b.div(slice, kvBlock / kSlicePositions);
  auto load = [&] {
    Value entry = b.add(b.mul(row, parts.blockTableWidth), b.add(firstBlock, thread));
    Value table = b.pointer(parts.attention.getBlockTables());
    b.storeI32(b.at(sharedBlocks, thread, 4), b.loadI32(b.at(table, entry, Format::I32)));
  };
  // A thread a block, and all of them in the table: ids that are of no use do no harm.
  if (count == kAttentionThreads && parts.blockTableWidth % count == 0)
    return load();
  Value inUse = b.lt(b.mul(thread, std::min(kvBlock, kSlicePositions)), valid);
  b.ifThen(b.bitAnd(b.lt(thread, count), inUse), load);
}

/// Where a position of the slice lies in the pools, in positions (i64).
Value AttentionEmitter::slotOf(Value position) {
  Value block = b.i32(0), offset = position;
  if (blocksInSlice() > 1) {
    block = b.div(position, kvBlock);
    offset = b.rem(position, kvBlock);
  } else if (kvBlock > kSlicePositions) {
    offset = b.add(b.rem(b.mul(slice, kSlicePositions), kvBlock), position);
  }
  Value id = b.toI64(b.loadI32(b.at(sharedBlocks, block, 4)));
  return b.add(b.mul(id, kvBlock), b.toI64(offset));
}

/// First head dim of the lane's piece `chunk`; idle pieces read those of the first.
Value AttentionEmitter::pieceDim(int64_t chunk) {
  Value dim = b.mul(b.add(laneInGroup, chunk * parts.lanes), 8);
  if (parts.paddedDim() == parts.headDim)
    return dim;
  return b.select(b.lt(dim, parts.headDim), dim, b.i32(0));
}

Value AttentionEmitter::scoresAt(Value head, Value position) {
  return b.at(sharedScores, b.add(b.mul(head, kScoreStride), position), 4);
}

/// First position of the run of the lane's group in a step.
Value AttentionEmitter::runStart(Value step) {
  Value inStep = b.add(b.mul(warp, parts.groups() * kRun), b.mul(group, kRun));
  return b.add(b.mul(step, parts.stepPositions()), inStep);
}

/// 4 words for each position of the run and each of the lane's pieces, all issued before any is
/// used. `fresh` is the edge that the kernel writes to the pool, if it does.
Values AttentionEmitter::loadRun(Value pool, Value fresh, Value start) {
  pool = b.pointer(pool);
  Value last = b.sub(valid, 1);
  int64_t positionSize = parts.kvHeads * parts.headDim;
  Value headOffset = b.toI64(b.mul(kvHead, parts.headDim));
  Value base, first;
  // A run lies in one block, unless blocks are shorter.
  if (kvBlock >= kRun) {
    first = b.min(start, b.bitAnd(last, -kRun));
    base = b.at(pool, b.add(b.mul(slotOf(first), positionSize), headOffset), Format::BF16);
  }
  Values words;
  for (int64_t i = 0; i < kRun; ++i) {
    Value position, head;
    if (kvBlock >= kRun) {
      Value inRun = i ? b.min(b.i32(i), b.sub(last, first)) : b.i32(0);
      position = b.add(first, inRun);
      head = b.at(base, b.mul(inRun, positionSize), Format::BF16);
    } else {
      position = b.min(b.add(start, i), last);
      head = b.at(pool, b.add(b.mul(slotOf(position), positionSize), headOffset), Format::BF16);
    }
    if (parts.write)
      head = fromWriter(position, fresh, head);
    for (int64_t c = 0; c < parts.chunks; ++c)
      words.append(b.loadWords(b.at(head, pieceDim(c), Format::BF16), 4));
  }
  return words;
}

/// The 8 values of a piece.
static Values widen(KernelBuilder &b, ArrayRef<Value> words) {
  Values values;
  for (Value word : words) {
    values.push_back(b.lowBf16(word));
    values.push_back(b.highBf16(word));
  }
  return values;
}

/// Puts the queries of the CTA's heads into shared memory as f32, laid out like the sums (see
/// storeSums); zeros in idle pieces, which so add nothing to a score.
void AttentionEmitter::stageQueries() {
  auto node = cast<PlanNode>(parts.attention.getOperation());
  int64_t pieces = parts.lanes * parts.chunks, count = parts.heads * pieces;
  for (int64_t first = 0; first < count; first += kAttentionThreads) {
    auto stage = [&] {
      Value unit = b.add(b.threadId(), first);
      Value head = b.div(unit, pieces), piece = b.rem(unit, pieces);
      Value dim = b.mul(piece, 8), inUse = b.lt(dim, parts.headDim);
      bool whole = parts.paddedDim() == parts.headDim;
      Value column = b.mul(b.add(b.mul(tile, parts.heads), head), parts.headDim);
      Values values = eval.operand(
          node, 0, {row, b.add(column, whole ? dim : b.select(inUse, dim, b.i32(0))), 8});
      if (!whole)
        for (Value &value : values)
          value = b.select(inUse, value, b.f32(0));
      Value address = b.at(sharedBuffer, unitOffset(head, piece), 4);
      b.storeF32(address, Format::F32, ArrayRef<Value>(values).take_front(4));
      b.storeF32(b.at(address, b.i32(4 * parts.lanes), 4), Format::F32,
                 ArrayRef<Value>(values).drop_front(4));
    };
    if (first + kAttentionThreads <= count)
      stage();
    else
      b.ifThen(b.lt(b.threadId(), count - first), stage);
  }
}

/// The lane's dims of all queries: [head][piece][8].
Values AttentionEmitter::loadQueries() {
  Values queries;
  for (int64_t h = 0; h < parts.heads; ++h)
    for (int64_t half = 0; half < 2 * parts.chunks; ++half) {
      Value inHead = b.add(b.mul(laneInGroup, 4), half * 4 * parts.lanes);
      Value address = b.at(sharedBuffer, b.add(inHead, h * parts.paddedDim()), 4);
      queries.append(b.loadF32(address, Format::F32, 4));
    }
  return queries;
}

/// Runs that a loop takes at once, so that their loads overlap.
static int64_t runsAtOnce(const AttentionKernel &parts) {
  return parts.steps() % 2 == 0 && parts.chunks == 1 ? 2 : 1;
}

/// Steps that hold a position of the sequence, rounded up to what the loops take at once.
static Value stepsInUse(KernelBuilder &b, const AttentionKernel &parts, Value valid) {
  return b.div(b.add(valid, parts.stepPositions() - 1), parts.stepPositions());
}

void AttentionEmitter::emitScores() {
  Values queries = loadQueries();
  Value scale = b.f32(float(1 / std::sqrt(double(parts.headDim))));
  int64_t pieceWords = 4 * parts.chunks, laneDims = 8 * parts.chunks, runs = runsAtOnce(parts);
  b.forLoop(b.i32(0), stepsInUse(b, parts, valid), b.i32(runs), [&](Value step) {
    Values starts;
    SmallVector<Values> keys;
    for (int64_t r = 0; r < runs; ++r) {
      starts.push_back(runStart(b.add(step, r)));
      keys.push_back(loadRun(parts.attention.getKCache(),
                             parts.write ? parts.write.getK() : Value(), starts.back()));
    }
    for (int64_t r = 0; r < runs; ++r) {
      Values products(parts.heads * kRun);
      for (int64_t i = 0; i < kRun; ++i) {
        Values key = widen(b, ArrayRef<Value>(keys[r]).slice(i * pieceWords, pieceWords));
        for (int64_t h = 0; h < parts.heads; ++h) {
          ArrayRef<Value> query = ArrayRef<Value>(queries).slice(h * laneDims, laneDims);
          Value sum = b.fmul(query[0], key[0]);
          for (int64_t d = 1; d < laneDims; ++d)
            sum = b.fma(query[d], key[d], sum);
          products[h * kRun + i] = sum;
        }
      }
      ScatteredSums scores = scatterSum(b, std::move(products), parts.lanes);
      for (Value &score : scores.sums)
        score = b.fmul(score, scale);
      // Consecutive sums of one head are stored at once.
      int64_t held = scores.sums.size(), width = held % 4 == 0 ? 4 : held % 2 == 0 ? 2 : 1;
      b.ifThen(b.eq(b.bitAnd(lane, scores.duplicateBits), 0), [&] {
        for (int64_t i = 0; i < held; i += width) {
          Value index = b.add(scores.first, i);
          Value position = b.add(starts[r], b.rem(index, kRun));
          b.storeF32(scoresAt(b.div(index, kRun), position), Format::F32,
                     ArrayRef<Value>(scores.sums).slice(i, width));
        }
      });
    }
  });
}

void AttentionEmitter::emitSoftmax() {
  Value minusInfinity = b.f32(-std::numeric_limits<float>::infinity());
  Value position = b.mul(lane, 4);
  for (int64_t first = 0; first < parts.heads; first += kAttentionWarps) {
    Value head = b.add(warp, first);
    auto one = [&] {
      Value address = scoresAt(head, position);
      // A run is written as a whole, or not at all.
      Values scores = b.ifValues(
          b.lt(position, valid), [&] { return b.loadF32(address, Format::F32, 4); },
          [&] { return Values(4, minusInfinity); });
      Values inUse;
      for (int64_t i = 0; i < 4; ++i) {
        inUse.push_back(b.lt(b.add(position, i), valid));
        scores[i] = b.select(inUse[i], scores[i], minusInfinity);
      }
      Value max = b.fmax(b.fmax(scores[0], scores[1]), b.fmax(scores[2], scores[3]));
      max = b.warpMax(max);
      for (int64_t i = 0; i < 4; ++i)
        scores[i] = b.select(inUse[i], b.exp(b.fsub(scores[i], max)), b.f32(0));
      Value sum = b.fadd(b.fadd(scores[0], scores[1]), b.fadd(scores[2], scores[3]));
      sum = b.warpSum(sum);
      b.storeF32(address, Format::F32, scores);
      b.ifThen(b.eq(lane, 0), [&] {
        if (!layout.isLone())
          b.storeF32(stats(0, slice, head, false), Format::F32, {max});
        b.storeF32(stats(0, slice, head, true), Format::F32, {sum});
      });
    };
    if (first + kAttentionWarps <= parts.heads)
      one();
    else
      b.ifThen(b.lt(head, parts.heads), one);
  }
}

void AttentionEmitter::emitValues() {
  int64_t pieceWords = 4 * parts.chunks, laneDims = 8 * parts.chunks, runs = runsAtOnce(parts);
  Values zeros(parts.heads * laneDims, b.f32(0));
  auto body = [&](Value step, ValueRange carried) {
    Values sums(carried), starts;
    SmallVector<Values> values;
    for (int64_t r = 0; r < runs; ++r) {
      starts.push_back(runStart(b.add(step, r)));
      values.push_back(loadRun(parts.attention.getVCache(),
                               parts.write ? parts.write.getV() : Value(), starts.back()));
    }
    for (int64_t r = 0; r < runs; ++r) {
      SmallVector<Values> weights;
      for (int64_t h = 0; h < parts.heads; ++h)
        weights.push_back(b.loadF32(scoresAt(b.i32(h), starts[r]), Format::F32, kRun));
      for (int64_t i = 0; i < kRun; ++i) {
        Values value = widen(b, ArrayRef<Value>(values[r]).slice(i * pieceWords, pieceWords));
        for (int64_t h = 0; h < parts.heads; ++h)
          for (int64_t d = 0; d < laneDims; ++d) {
            Value &sum = sums[h * laneDims + d];
            sum = b.fma(weights[h][i], value[d], sum);
          }
      }
    }
    return sums;
  };
  storeSums(b.forLoop(b.i32(0), stepsInUse(b, parts, valid), b.i32(runs), zeros, body));
}

/// Adds up what the groups of all warps summed and stores the slice's partial result. In shared
/// memory and in scratch a head is [piece][half][lane][4], so that 16-byte accesses of neighbouring
/// lanes are neighbours.
void AttentionEmitter::storeSums(const Values &sums) {
  int64_t dim = parts.paddedDim(), laneDims = 8 * parts.chunks;
  int64_t partCount = kAttentionWarps * parts.groups(), headsAtOnce = parts.headsSummedAtOnce();
  Value part = b.add(b.mul(warp, parts.groups()), group), thread = b.threadId();
  int64_t quads = headsAtOnce * dim / 4, threads = kAttentionThreads;
  for (int64_t first = 0; first < parts.heads; first += headsAtOnce) {
    if (first)
      b.barrier();
    for (int64_t h = 0; h < headsAtOnce; ++h)
      for (int64_t piece = 0; piece < 2 * parts.chunks; ++piece) {
        Value inHead = b.add(b.mul(laneInGroup, 4), piece * 4 * parts.lanes);
        Value index = b.add(b.mul(part, headsAtOnce * dim), b.add(inHead, h * dim));
        b.storeF32(b.at(sharedBuffer, index, 4), Format::F32,
                   ArrayRef<Value>(sums).slice((first + h) * laneDims + piece * 4, 4));
      }
    b.barrier();
    for (int64_t firstQuad = 0; firstQuad < quads; firstQuad += threads) {
      auto one = [&] {
        Value element = b.mul(b.add(thread, firstQuad), 4);
        Values total = b.loadF32(b.at(sharedBuffer, element, 4), Format::F32, 4);
        for (int64_t p = 1; p < partCount; ++p) {
          Value address = b.at(sharedBuffer, b.add(element, p * headsAtOnce * dim), 4);
          for (auto [sum, next] : llvm::zip(total, b.loadF32(address, Format::F32, 4)))
            sum = b.fadd(sum, next);
        }
        b.storeF32(b.at(this->sums(0, slice), b.add(element, first * dim), 4), Format::F32, total);
      };
      if (firstQuad + threads <= quads)
        one();
      else
        b.ifThen(b.lt(thread, quads - firstQuad), one);
    }
  }
}

} // namespace planc
