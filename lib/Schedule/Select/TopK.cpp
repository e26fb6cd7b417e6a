//===- TopK.cpp - routing: one warp per row -----------------------------------===//
//
// All keys of a row are in the registers of one warp. Each rank is a maximum over lanes, after
// which its key is struck out; lane r keeps rank r, and the warp's softmax is over what the lanes
// keep. No barrier, no shared memory.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Select/Keys.h"

using namespace mlir;
using namespace planc;
using namespace planc::select;
using plan::Format;

static int64_t columns(Value edge) { return *plan::knownDim(edge.getType(), 1); }

/// The row's keys that this lane holds; `none` beyond the last expert.
static Values loadKeys(KernelBuilder &b, Keys &keys, plan::TopKOp node, Value row, Value lane) {
  int64_t experts = columns(node.getLogits());
  Format format = plan::storedFormat(node.getLogits());
  unsigned vector = 8;
  while (experts % vector)
    vector /= 2;
  Values result;
  for (int64_t first = 0; first < experts; first += 32 * vector) {
    Value expert = b.add(b.mul(lane, vector), first);
    Value index = b.add(b.mul(row, experts), expert);
    auto load = [&] {
      Values chunk;
      Value address = b.at(b.pointer(node.getLogits()), index, format);
      for (auto [i, logit] : llvm::enumerate(b.loadF32(address, format, vector)))
        chunk.push_back(keys.make(logit, b.add(expert, i)));
      return chunk;
    };
    bool whole = first + 32 * vector <= experts;
    result.append(whole ? load() : b.ifValues(b.lt(expert, experts), load, [&] {
      return Values(vector, keys.none());
    }));
  }
  return result;
}

void select::emitTopK(KernelBuilder &b, plan::TopKOp node, LaunchShape &shape) {
  int64_t experts = columns(node.getLogits()), chosen = columns(node.getIds());
  shape.grid = {uint32_t(*plan::knownDim(node.getIds().getType(), 0)), 1, 1};
  shape.block = {32, 1, 1};
  b.begin(shape);
  Keys keys(b, plan::storedFormat(node.getLogits()), experts);
  Value row = b.blockId(), lane = b.laneId();
  Values held = loadKeys(b, keys, node, row, lane);

  // Ranks 32*i + lane, one round per 32 ranks.
  Values ranked;
  for (int64_t first = 0; first < chosen; first += 32) {
    Values state = held;
    state.push_back(keys.none());
    state = b.forLoop(b.i32(0), b.i32(std::min<int64_t>(chosen - first, 32)), b.i32(1), state,
                      [&](Value rank, ValueRange carried) {
                        Value best = carried.front();
                        for (Value key : carried.drop_front().drop_back())
                          best = keys.larger(best, key);
                        best = keys.warpMax(best);
                        Values next;
                        for (Value key : carried.drop_back())
                          next.push_back(b.select(b.eq(key, best), keys.none(), key));
                        next.push_back(b.select(b.eq(lane, rank), best, carried.back()));
                        return next;
                      });
    ranked.push_back(state.pop_back_val());
    held = state;
  }

  using enum numerics::LevelKind;
  b.note(node, numerics::rounding("difference", 1));
  b.note(node, KernelBuilder::Function::Exp);
  b.note(node, numerics::sum("total", {{chain, uint32_t(ranked.size())},
                                       {tree, uint32_t(std::min<int64_t>(chosen, 32))}}));
  b.note(node, KernelBuilder::Function::Rcp);
  b.note(node, numerics::rounding("product", 1));

  // e^(l - max) over the chosen; rank 0 has the maximum.
  Value top = b.shuffleIndex(keys.logitOf(ranked.front()), b.i32(0));
  Values weights;
  Value sum;
  for (auto [round, key] : llvm::enumerate(ranked)) {
    Value isRank = b.lt(b.add(lane, int64_t(round) * 32), chosen);
    Value power = b.expNegative(b.fsub(keys.logitOf(key), top));
    weights.push_back(b.select(isRank, power, b.f32(0.0f)));
    sum = sum ? b.fadd(sum, weights.back()) : weights.back();
  }
  // Of one rank there is nothing to add.
  Value factor = b.rcp(chosen == 1 ? sum : b.warpSum(sum));
  for (auto [round, key] : llvm::enumerate(ranked)) {
    Value rank = b.add(lane, int64_t(round) * 32);
    b.ifThen(b.lt(rank, chosen), [&] {
      Value index = b.add(b.mul(row, chosen), rank);
      Format format = plan::storedFormat(node.getWeights());
      if (Value pointer = b.outputPointer(node.getWeights()))
        b.storeF32(b.at(pointer, index, format), format, {b.fmul(weights[round], factor)});
      if (Value pointer = b.outputPointer(node.getIds()))
        b.storeI32(b.at(pointer, index, Format::I32), keys.indexOf(key));
    });
  }
}
