//===- Elementwise.cpp - the formulas of element-wise nodes ------------------===//

#include "lib/Schedule/Elementwise.h"
#include "lib/Schedule/Reduce.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace planc;
using plan::Format;

static int64_t columns(Value edge) { return *plan::knownDim(edge.getType(), 1); }

bool planc::isElementwise(Operation *node) { return maxChunk(node) != 0; }

/// The largest of 8, 4, 2, 1 that divides all of `sizes`.
static unsigned chunkOf(std::initializer_list<int64_t> sizes) {
  unsigned chunk = 8;
  for (int64_t size : sizes)
    while (size % chunk)
      chunk /= 2;
  return chunk;
}

unsigned planc::maxChunk(Operation *node) {
  return llvm::TypeSwitch<Operation *, unsigned>(node)
      .Case<plan::ResidualAddOp, plan::SigmoidGateMulOp, plan::SiluMulOp>(
          [](auto op) { return chunkOf({columns(op.getResult())}); })
      .Case([](plan::BlendOp op) { return chunkOf({columns(op.getResult())}); })
      .Case([](plan::GdnGatesOp op) { return chunkOf({columns(op.getDecay())}); })
      .Case<plan::RmsNormOp, plan::FinalNormOp, plan::QkNormOp>(
          [](auto op) { return chunkOf({columns(op.getX()), normLength(op)}); })
      .Case([](plan::L2NormOp op) { return chunkOf({columns(op.getX()), normLength(op)}); })
      .Case([](plan::GatedRmsNormOp op) {
        return chunkOf({columns(op.getCore()), columns(op.getQkvz()), normLength(op)});
      })
      .Case([](plan::SplitOp op) {
        return chunkOf({columns(op.getX()), *op.getHeadDim().getConstant()});
      })
      .Case([](plan::RopeOp op) {
        return chunkOf({columns(op.getQ()), columns(op.getK()), *op.getHeadDim().getConstant(),
                        int64_t(op.getRotaryDim()) / 2});
      })
      .Case([](plan::Conv1dUpdateOp op) {
        // A window of four f32 is one access.
        return *plan::knownDim(op.getWeight().getType(), 1) == 4
                   ? chunkOf({columns(op.getX()), columns(op.getResult())})
                   : 0;
      })
      .Default(0u);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

const Values *Evaluator::lookup(ArrayRef<Entry> entries, Value value, Chunk chunk) {
  for (const Entry &entry : entries) {
    if (entry.value != value || entry.chunk.row != chunk.row ||
        entry.chunk.column != chunk.column || entry.chunk.count != chunk.count)
      continue;
    for (Block *block = b.raw().getInsertionBlock(); block;
         block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
      if (block == entry.block)
        return &entry.held;
  }
  return nullptr;
}

Values Evaluator::held(Value value, Chunk chunk) {
  if (const Values *known = lookup(memo, value, chunk))
    return *known;
  Values result;
  if (auto source = sources.find(value); source != sources.end())
    result = source->second(chunk);
  else if (isa<BlockArgument>(value)) {
    Format format = plan::storedFormat(value);
    Value index = b.add(b.mul(chunk.row, columns(value)), chunk.column);
    result = b.loadF32(b.at(b.pointer(value), index, format), format, chunk.count);
  } else
    result = compute(value, chunk);
  memo.push_back({value, chunk, b.raw().getInsertionBlock(), result});
  return result;
}

Values Evaluator::stored(Value value, Chunk chunk) {
  Values values = held(value, chunk);
  return isa<BlockArgument>(value) ? values : b.rounded(plan::storedFormat(value), values);
}

Values Evaluator::operand(plan::PlanNode node, unsigned index, Chunk chunk) {
  Value value = node->getOperand(index);
  return plan::readsHeld(node, index) ? held(value, chunk) : stored(value, chunk);
}

Values Evaluator::weight(Value weight, Value index, unsigned count) {
  Format format = cast<plan::WeightType>(weight.getType()).getFormat();
  return b.loadF32(b.at(b.pointer(weight), index, format), format, count);
}

void Evaluator::store(Value yielded, Chunk chunk) {
  Format format = plan::storedFormat(yielded);
  Value index = b.add(b.mul(chunk.row, columns(yielded)), chunk.column);
  b.storeF32(b.at(b.outputPointer(yielded), index, format), format, held(yielded, chunk));
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

Values Evaluator::compute(Value value, Chunk chunk) {
  Operation *node = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  /// Applies a formula of two operands element by element.
  auto both = [&](Values x, Values y, llvm::function_ref<Value(Value, Value)> formula) {
    Values result;
    for (auto [a, c] : llvm::zip(x, y))
      result.push_back(formula(a, c));
    return result;
  };
  return llvm::TypeSwitch<Operation *, Values>(node)
      .Case([&](plan::ResidualAddOp op) {
        b.note(op, numerics::rounding("add", 1));
        return both(operand(op, 0, chunk), operand(op, 1, chunk),
                    [&](Value x, Value update) { return b.fadd(x, update); });
      })
      .Case([&](plan::SigmoidGateMulOp op) {
        b.note(op, KernelBuilder::Function::Sigmoid);
        b.note(op, numerics::rounding("product", 1));
        return both(operand(op, 0, chunk), operand(op, 1, chunk),
                    [&](Value x, Value gate) { return b.fmul(x, b.sigmoid(gate)); });
      })
      .Case([&](plan::SiluMulOp op) {
        b.note(op, KernelBuilder::Function::Sigmoid);
        b.note(op, numerics::rounding("product", 2, "gate * sigmoid, * up"));
        Chunk up = {chunk.row, b.add(chunk.column, columns(value)), chunk.count};
        return both(operand(op, 0, chunk), operand(op, 0, up),
                    [&](Value gate, Value up) { return b.fmul(b.silu(gate), up); });
      })
      .Case([&](plan::SplitOp op) {
        // Column h*D + i is column h*2D + i of the input, or D further.
        int64_t headDim = *op.getHeadDim().getConstant();
        Value head = b.div(chunk.column, headDim);
        Value column = b.add(chunk.column, b.mul(b.add(head, index), headDim));
        return operand(op, 0, {chunk.row, column, chunk.count});
      })
      .Case([&](plan::BlendOp op) { return blend(op, chunk); })
      .Case([&](plan::GdnGatesOp op) { return gates(op, index, chunk); })
      .Case([&](plan::RopeOp op) { return rope(op, index, chunk); })
      .Case([&](plan::Conv1dUpdateOp op) { return conv(op, chunk); })
      .Default([&](Operation *op) { return norm(op, chunk); });
}

Values Evaluator::blend(plan::BlendOp op, Chunk chunk) {
  int64_t slots = columns(op.getWeights());
  b.note(op, numerics::sum("experts", {{numerics::LevelKind::fused, uint32_t(slots + 1)}}));
  b.note(op, KernelBuilder::Function::Sigmoid);
  Values result;
  for (int64_t slot = 0; slot < slots; ++slot) {
    Value factor = operand(op, 1, {chunk.row, b.i32(slot), 1}).front();
    Values expert =
        operand(op, 0, {b.add(b.mul(chunk.row, slots), slot), chunk.column, chunk.count});
    for (auto [i, value] : llvm::enumerate(expert))
      if (slot == 0)
        result.push_back(b.fmul(factor, value));
      else
        result[i] = b.fma(factor, value, result[i]);
  }
  Value gate = b.sigmoid(operand(op, 3, {chunk.row, b.i32(0), 1}).front());
  for (auto [i, value] : llvm::enumerate(operand(op, 2, chunk)))
    result[i] = b.fma(gate, value, result[i]);
  return result;
}

Values Evaluator::gates(plan::GdnGatesOp op, unsigned index, Chunk chunk) {
  using enum KernelBuilder::Function;
  b.note(op, Sigmoid);
  b.note(op, numerics::rounding("add", 1));
  b.note(op, Exp);
  b.note(op, Log1p);
  b.note(op, numerics::rounding("product", 1));
  b.note(op, Exp, "decay");
  Values result;
  if (index == 1) {
    for (Value value : operand(op, 0, chunk))
      result.push_back(b.sigmoid(value));
    return result;
  }
  int64_t heads = columns(op.getDecay());
  Values a = operand(op, 0, {chunk.row, b.add(chunk.column, heads), chunk.count});
  Values aLog = weight(op.getALog(), chunk.column, chunk.count);
  Values bias = weight(op.getDtBias(), chunk.column, chunk.count);
  Value limit = b.f32(20.0f);
  for (unsigned i = 0; i < chunk.count; ++i) {
    Value rate = b.exp(b.fmin(aLog[i], limit));
    Value step = b.log1p(b.exp(b.fmin(b.fadd(a[i], bias[i]), limit)));
    result.push_back(b.expNegative(b.fneg(b.fmul(rate, step))));
  }
  return result;
}

Values Evaluator::normWeights(Operation *op, Chunk chunk) {
  if (isa<plan::L2NormOp>(op))
    return {};
  if (const Values *known = lookup(weights, op->getResult(0), chunk))
    return *known;
  Values result =
      weight(op->getOperands().back(), b.rem(chunk.column, normLength(op)), chunk.count);
  weights.push_back({op->getResult(0), chunk, b.raw().getInsertionBlock(), result});
  return result;
}

Values Evaluator::norm(Operation *op, Chunk chunk) {
  auto node = cast<plan::PlanNode>(op);
  int64_t length = normLength(op);
  Value scale = scales.at(op)(chunk.row, b.div(chunk.column, length));
  // The product takes the stored value even where the squares were of the held one.
  Values values = stored(op->getOperand(0), chunk), result;
  if (auto l2 = dyn_cast<plan::L2NormOp>(op)) {
    b.note(op, numerics::rounding("scale", 1, "x * r"));
    Value normed = b.lt(chunk.column, *l2.getHeads().getConstant() * length);
    for (Value value : values)
      result.push_back(b.select(normed, b.fmul(value, scale), value));
    return result;
  }
  auto gated = dyn_cast<plan::GatedRmsNormOp>(op);
  b.note(op, gated ? numerics::rounding("scale", 5, "x * r, offset + w, gate * sigmoid, 2 products")
                   : numerics::rounding("scale", 3, "x * r, offset + w, their product"));
  auto offset = b.f32(op->getAttrOfType<FloatAttr>("offset").getValue().convertToFloat());
  for (auto [value, factor] : llvm::zip(values, normWeights(op, chunk)))
    result.push_back(b.fmul(b.fmul(value, scale), b.fadd(offset, factor)));
  if (!gated)
    return result;
  b.note(op, KernelBuilder::Function::Sigmoid);
  // The gates are the last columns of their row.
  int64_t skipped = columns(gated.getQkvz()) - columns(gated.getCore());
  Values gates = operand(node, 1, {chunk.row, b.add(chunk.column, skipped), chunk.count});
  for (auto [value, gate] : llvm::zip(result, gates))
    value = b.fmul(value, b.silu(gate));
  return result;
}
