//===- Reduce.cpp - sums of squares ------------------------------------------===//

#include "lib/Schedule/Reduce.h"
#include "lib/Schedule/Elementwise.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace planc;

RowLayout RowLayout::make(int64_t length, unsigned vector, unsigned maxThreads) {
  unsigned bits = llvm::Log2_64_Ceil(std::min<int64_t>(std::max<int64_t>(length, vector), 2048));
  RowLayout layout;
  layout.vectorBits = llvm::Log2_32(vector);
  unsigned threadBits = std::min(bits - layout.vectorBits, llvm::Log2_32(maxThreads));
  layout.laneBits = std::min(threadBits, 5u);
  layout.warpBits = threadBits - layout.laneBits;
  layout.extraBits = bits - layout.vectorBits - threadBits;
  return layout;
}

Value RowLayout::column(KernelBuilder &b, Value thread, unsigned block, unsigned chunk) const {
  return b.add(b.mul(thread, vector()),
               int64_t(block) * 2048 + int64_t(chunk) * threads() * vector());
}

namespace {
/// The tree of Reduce.h on the registers of one thread.
class Tree {
public:
  Tree(KernelBuilder &b, RowLayout layout, Values values)
      : b(b), layout(layout), values(std::move(values)) {
    for (unsigned bit = 0; bit < layout.vectorBits; ++bit)
      registerBits.push_back(bit);
    for (unsigned bit = 0; bit < layout.extraBits; ++bit)
      registerBits.push_back(firstExtra() + bit);
  }

  /// Adds the two halves of bit `bit` of e; nothing if it lies beyond the row or in the warps.
  void combine(unsigned bit) {
    if (auto *found = llvm::find(registerBits, bit); found != registerBits.end()) {
      combineRegisters(found - registerBits.begin());
      registerBits.erase(found);
      return;
    }
    if (bit < layout.vectorBits || bit >= layout.vectorBits + layout.laneBits)
      return;
    for (Value &value : values)
      value = b.fadd(value, b.shuffleXor(value, 1u << (bit - layout.vectorBits)));
  }

  Values values;

private:
  unsigned firstExtra() const { return layout.vectorBits + layout.laneBits + layout.warpBits; }

  void combineRegisters(unsigned position) {
    Values sums;
    for (unsigned i = 0; i < values.size(); ++i)
      if (!(i >> position & 1))
        sums.push_back(b.fadd(values[i], values[i | 1u << position]));
    values = std::move(sums);
  }

  KernelBuilder &b;
  RowLayout layout;
  llvm::SmallVector<unsigned> registerBits; ///< of the index into `values`, lowest first
};
} // namespace

/// Step 3 across warps: each virtual warp's sum goes through shared memory, every warp then adds
/// all of them.
static Value sumAcrossWarps(KernelBuilder &b, int64_t length, RowLayout layout, Value thread,
                            ArrayRef<Value> sums) {
  unsigned virtualWarps = unsigned(std::min<int64_t>((length + 63) / 64, 32));
  Value shared = b.staticShared(32 * 4);
  // Within a warp, 64 elements are 2^laneOfSix lanes.
  unsigned lanesPerSum = 64 >> layout.vectorBits;
  assert(layout.vectorBits <= 6 && lanesPerSum <= 32 && "a warp holds whole virtual warps");
  unsigned sumsPerChunk = layout.threads() / lanesPerSum;
  for (auto [chunk, sum] : llvm::enumerate(sums))
    b.ifThen(b.bitAnd(b.eq(b.rem(thread, lanesPerSum), 0), b.lt(thread, layout.threads())), [&] {
      Value index = b.add(b.div(thread, lanesPerSum), int64_t(chunk) * sumsPerChunk);
      b.storeF32(b.at(shared, index, 4), plan::Format::F32, {sum});
    });
  b.barrier();
  Value lane = b.laneId();
  unsigned width = llvm::PowerOf2Ceil(virtualWarps);
  Value index = b.rem(lane, width);
  Value sum = b.loadF32(b.at(shared, index, 4), plan::Format::F32, 1).front();
  if (width != virtualWarps)
    sum = b.select(b.lt(index, virtualWarps), sum, b.f32(0.0f));
  return b.warpSum(sum, width);
}

SmallVector<Values> planc::loadStretch(Evaluator &evaluator, Operation *norm, RowLayout layout,
                                       Value thread, Value row, Value head) {
  KernelBuilder &b = evaluator.builder();
  int64_t length = normLength(norm);
  SmallVector<Values> blocks(RowLayout::blocks(length));
  for (auto [block, values] : llvm::enumerate(blocks))
    for (unsigned chunk = 0; chunk < layout.chunks(); ++chunk) {
      Value offset = layout.column(b, thread, block, chunk);
      Value column = b.add(b.mul(head, length), offset);
      values.append(b.ifValues(
          b.bitAnd(b.lt(offset, length), b.lt(thread, layout.threads())),
          [&] {
            return evaluator.operand(cast<plan::PlanNode>(norm), 0, {row, column, layout.vector()});
          },
          [&] { return Values(layout.vector(), b.f32(0)); }));
    }
  return blocks;
}

Value planc::sumOfSquares(KernelBuilder &b, int64_t length, RowLayout layout, Value thread,
                          ArrayRef<Values> values) {
  // Step 1. With a vector of one element the other half of a pair is in the next lane.
  std::optional<Tree> tree;
  for (const Values &block : values) {
    Values squares;
    for (Value value : block)
      squares.push_back(b.fmul(value, value));
    Tree pairs(b, layout, std::move(squares));
    pairs.combine(0);
    if (tree)
      for (auto [sum, pair] : llvm::zip(tree->values, pairs.values))
        sum = b.fadd(sum, pair);
    else
      tree.emplace(std::move(pairs));
  }
  for (unsigned bit : {5, 4, 3, 2, 1})
    tree->combine(bit);
  if (layout.warpBits)
    return sumAcrossWarps(b, length, layout, thread, tree->values);
  for (unsigned bit : {10, 9, 8, 7, 6})
    tree->combine(bit);
  return tree->values.front();
}

int64_t planc::normLength(Operation *node) {
  auto weightLength = [](Value weight) {
    return cast<plan::WeightType>(weight.getType()).getShape().front();
  };
  return llvm::TypeSwitch<Operation *, int64_t>(node)
      .Case<plan::RmsNormOp, plan::FinalNormOp, plan::QkNormOp, plan::GatedRmsNormOp>(
          [&](auto norm) { return weightLength(norm.getWeight()); })
      .Case([](plan::L2NormOp norm) { return norm.getHeadDim().getConstant().value_or(0); })
      .Default(int64_t(0));
}

/// The tree of Reduce.h.
static numerics::Part orderOf(int64_t length) {
  using enum numerics::LevelKind;
  if (length <= 2048)
    return numerics::sum("squares", {{product, 1}, {tree, uint32_t(length)}});
  return numerics::sum("squares",
                       {{product, 1}, {tree, 2}, {chain, RowLayout::blocks(length)}, {tree, 1024}});
}

Value planc::normScale(KernelBuilder &b, Operation *norm, Value sum) {
  int64_t length = normLength(norm);
  b.note(norm, orderOf(length));
  if (isa<plan::L2NormOp>(norm))
    b.note(norm, numerics::rounding("mean", 1, "+ eps"));
  else if (llvm::isPowerOf2_64(length))
    b.note(norm, numerics::rounding("mean", 2, "* 1/N, + eps"));
  else
    b.note(norm, numerics::rounding("mean", 3, "1/N, * 1/N, + eps"));
  b.note(norm, KernelBuilder::Function::Rsqrt);
  auto eps = norm->getAttrOfType<FloatAttr>("eps").getValue().convertToFloat();
  // l2_norm divides by the root of the sum, the others by that of the mean.
  if (!isa<plan::L2NormOp>(norm))
    sum = b.fmul(sum, b.f32(1.0f / float(length)));
  return b.rsqrt(b.fadd(sum, b.f32(eps)));
}
