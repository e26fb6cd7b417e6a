//===- Verify.cpp - shapes and formats of every node ----------------------===//
//
// A dim is checked where it is known: integers before binding, all of them afterwards. What the
// steps say is checked by --plan-verify-steps, which may look at producers.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"

using namespace mlir;
using namespace plan;

using Size = std::optional<int64_t>;

static Size mul(Size a, Size b) {
  int64_t product;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product))
    return std::nullopt;
  return product;
}

static Size sub(Size a, Size b) { return a && b ? Size(*a - *b) : std::nullopt; }

static Size dim(Value value, unsigned index) { return knownDim(value.getType(), index); }

namespace {
/// Collects the checks of one node; the first that fails is reported.
class Checker {
public:
  explicit Checker(Operation *op) : op(op) {
    auto node = cast<PlanNode>(op);
    PrecisionAttr precision = node.getPrecisionAttr();
    NodeAttr id = node.getNodeAttr();
    if (precision.getOut().size() != op->getNumResults()) {
      fail() << "writes " << op->getNumResults() << " results, but 'out' lists "
             << precision.getOut().size();
      return;
    }
    if (id && id.getEdges() && id.getEdges().size() != op->getNumResults()) {
      fail() << "has " << op->getNumResults() << " results, but names " << id.getEdges().size()
             << " edges";
      return;
    }
    for (auto [result, format] : llvm::zip(op->getResults(), precision.getOut()))
      if (ok && storedFormat(result) != format)
        fail() << "result " << result.getResultNumber() << " is stored as "
               << planSpelling(storedFormat(result)) << ", but 'out' says " << planSpelling(format);
  }

  /// The value has `rank` dims.
  Checker &rank(StringRef name, Value value, unsigned rank) {
    if (ok && numDims(value.getType()) != rank)
      fail() << name << " has " << numDims(value.getType()) << " dims, expected " << rank;
    return *this;
  }

  /// Dim `index` of the value is `expected`, where both are known.
  Checker &size(StringRef name, Value value, unsigned index, Size expected, StringRef why) {
    Size found = dim(value, index);
    if (ok && found && expected && *found != *expected)
      fail() << name << " has " << *found << (index == 0 ? " as its first dim" : " columns")
             << ", expected " << *expected << " (" << why << ")";
    return *this;
  }

  Checker &multiple(StringRef name, Size found, Size divisor, StringRef why) {
    if (ok && found && divisor && (*divisor <= 0 || *found % *divisor != 0))
      fail() << name << " is " << *found << ", expected a multiple of " << *divisor << " (" << why
             << ")";
    return *this;
  }

  Checker &format(StringRef name, Format found, ArrayRef<Format> allowed) {
    if (ok && !llvm::is_contained(allowed, found)) {
      InFlightDiagnostic diag = fail();
      diag << name << " is " << planSpelling(found) << ", expected ";
      llvm::interleave(
          allowed, [&](Format f) { diag << planSpelling(f); }, [&] { diag << " or "; });
    }
    return *this;
  }

  /// A numeric edge: [rows, columns] in bf16 or f32.
  Checker &numeric(StringRef name, Value value) {
    return rank(name, value, 2).format(name, storedFormat(value), {Format::BF16, Format::F32});
  }

  Checker &weight(StringRef name, Value value, unsigned dims, ArrayRef<Format> allowed) {
    return rank(name, value, dims)
        .format(name, cast<WeightType>(value.getType()).getFormat(), allowed);
  }

  Checker &state(StringRef name, Value value, StateKind kind, unsigned dims, Format stored) {
    auto type = cast<StateType>(value.getType());
    if (ok && type.getKind() != kind)
      fail() << name << " is " << stringifyStateKind(type.getKind()) << ", expected "
             << stringifyStateKind(kind);
    return rank(name, value, dims).format(name, type.getFormat(), {stored});
  }

  /// `value` has the rows of `like`.
  Checker &sameRows(StringRef name, Value value, Value like) {
    return size(name, value, 0, dim(like, 0), "the rows of its input");
  }

  operator LogicalResult() const { return success(ok); }

private:
  InFlightDiagnostic fail() {
    ok = false;
    return emitNodeError(op);
  }

  Operation *op;
  bool ok = true;
};
} // namespace

static constexpr Format kNumeric[] = {Format::BF16, Format::F32};
static constexpr Format kMatrix[] = {Format::BF16, Format::F32, Format::FP8Block128x128};

/// A norm over stretches as long as the weight.
static LogicalResult verifyNorm(Operation *op, Value x, Value weight, Value result, bool wholeRow) {
  Size length = dim(weight, 0);
  Checker check(op);
  check.numeric("the input", x)
      .numeric("the result", result)
      .weight("the weight", weight, 1, kNumeric);
  check.sameRows("the result", result, x);
  check.size("the result", result, 1, dim(x, 1), "the columns of its input");
  if (wholeRow)
    return check.size("the weight", weight, 0, dim(x, 1), "the columns of its input");
  return check.multiple("the row length", dim(x, 1), length, "the length of a head");
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getX(), getWeight(), getResult(), true);
}
LogicalResult FinalNormOp::verify() {
  return verifyNorm(*this, getX(), getWeight(), getResult(), true);
}
LogicalResult QkNormOp::verify() {
  return verifyNorm(*this, getX(), getWeight(), getResult(), false);
}

/// Two inputs and a result of one shape.
static LogicalResult verifyElementwise(Operation *op) {
  Checker check(op);
  Value x = op->getOperand(0), other = op->getOperand(1), result = op->getResult(0);
  check.numeric("the first input", x)
      .numeric("the second input", other)
      .numeric("the result", result);
  check.sameRows("the second input", other, x).sameRows("the result", result, x);
  check.size("the second input", other, 1, dim(x, 1), "the columns of the first");
  return check.size("the result", result, 1, dim(x, 1), "the columns of its inputs");
}

LogicalResult ResidualAddOp::verify() { return verifyElementwise(*this); }
LogicalResult SigmoidGateMulOp::verify() { return verifyElementwise(*this); }

LogicalResult SiluMulOp::verify() {
  return Checker(*this)
      .numeric("the input", getX())
      .numeric("the result", getResult())
      .sameRows("the result", getResult(), getX())
      .size("the input", getX(), 1, mul(dim(getResult(), 1), 2), "gate and up");
}

static LogicalResult verifyContraction(Operation *op) {
  auto node = cast<PlanContraction>(op);
  Value x = node.getActivation(), matrix = node.getMatrix(), result = op->getResult(0);
  unsigned outer = node.getExpertIds() ? 1 : 0;
  auto type = cast<WeightType>(matrix.getType());
  Checker check(op);
  check.numeric("the input", x).numeric("the result", result);
  check.weight("the matrix", matrix, 2 + outer, kMatrix);
  check.format("'weight'", cast<PlanNode>(op).getPrecisionAttr().getWeight(), {type.getFormat()});
  check.size("the matrix", matrix, 1 + outer, dim(x, 1), "the columns of its input");
  check.size("the result", result, 1, dim(matrix, outer), "the rows of the matrix");
  if (type.getFormat() == Format::FP8Block128x128) {
    check.multiple("the matrix's row count", dim(matrix, outer), 128, "the scale block");
    check.multiple("the matrix's column count", dim(matrix, outer + 1), 128, "the scale block");
  }
  if (!outer)
    return check.sameRows("the result", result, x);
  Value ids = node.getExpertIds();
  check.rank("the ids", ids, 2).format("the ids", storedFormat(ids), {Format::I32});
  return check.size("the result", result, 0, mul(dim(ids, 0), dim(ids, 1)),
                    "one row per chosen expert");
}

LogicalResult LinearOp::verify() { return verifyContraction(*this); }
LogicalResult RouterOp::verify() { return verifyContraction(*this); }
LogicalResult LmHeadOp::verify() { return verifyContraction(*this); }

LogicalResult ExpertGateUpOp::verify() {
  if (failed(Checker(*this).size("the input", getX(), 0, dim(getIds(), 0), "one row per token")))
    return failure();
  return verifyContraction(*this);
}

LogicalResult ExpertDownOp::verify() {
  if (failed(Checker(*this).size("the input", getX(), 0, dim(getResult(), 0),
                                 "one row per chosen expert")))
    return failure();
  return verifyContraction(*this);
}

LogicalResult TopKOp::verify() {
  Checker check(*this);
  check.numeric("the logits", getLogits()).numeric("the weights", getWeights());
  check.rank("the ids", getIds(), 2).format("the ids", storedFormat(getIds()), {Format::I32});
  check.sameRows("the weights", getWeights(), getLogits());
  check.sameRows("the ids", getIds(), getLogits());
  check.size("the ids", getIds(), 1, dim(getWeights(), 1), "as many as weights");
  Size chosen = dim(getIds(), 1), experts = dim(getLogits(), 1);
  if (succeeded(LogicalResult(check)) && chosen && experts && *chosen > *experts)
    return emitNodeError(*this) << "chooses " << *chosen << " of " << *experts << " experts";
  return check;
}

LogicalResult BlendOp::verify() {
  Checker check(*this);
  check.numeric("the expert rows", getExperts()).numeric("the weights", getWeights());
  check.numeric("the shared row", getShared()).numeric("the gate", getGate());
  check.numeric("the result", getResult());
  check.size("the expert rows", getExperts(), 0, mul(dim(getWeights(), 0), dim(getWeights(), 1)),
             "one row per chosen expert");
  check.sameRows("the shared row", getShared(), getWeights());
  check.sameRows("the gate", getGate(), getWeights())
      .size("the gate", getGate(), 1, 1, "one gate a row");
  check.sameRows("the result", getResult(), getWeights());
  check.size("the shared row", getShared(), 1, dim(getExperts(), 1), "the columns of the experts");
  return check.size("the result", getResult(), 1, dim(getExperts(), 1),
                    "the columns of the experts");
}

LogicalResult GdnGatesOp::verify() {
  Size heads = dim(getDecay(), 1);
  Checker check(*this);
  check.numeric("the input", getBa()).numeric("decay", getDecay()).numeric("beta", getBeta());
  check.weight("A_log", getALog(), 1, kNumeric).weight("dt_bias", getDtBias(), 1, kNumeric);
  check.sameRows("decay", getDecay(), getBa()).sameRows("beta", getBeta(), getBa());
  check.size("the input", getBa(), 1, mul(heads, 2), "b and a of each head");
  check.size("beta", getBeta(), 1, heads, "one a head");
  return check.size("A_log", getALog(), 0, heads, "one a head")
      .size("dt_bias", getDtBias(), 0, heads, "one a head");
}

/// The slots of each row, before and after the step.
static void checkSlots(Checker &check, Value in, Value out, Value rows) {
  for (auto [name, value] : {std::pair("slots_in", in), std::pair("slots_out", out)})
    check.rank(name, value, 1)
        .format(name, storedFormat(value), {Format::I32})
        .sameRows(name, value, rows);
}

LogicalResult Conv1dUpdateOp::verify() {
  Size channels = dim(getResult(), 1);
  Checker check(*this);
  check.numeric("the input", getX()).numeric("the result", getResult());
  check.sameRows("the result", getResult(), getX());
  checkSlots(check, getSlotsIn(), getSlotsOut(), getX());
  check.weight("the weight", getWeight(), 2, kNumeric)
      .size("the weight", getWeight(), 0, channels, "one row a channel");
  check.state("the window", getWindow(), StateKind::Slots, 2, Format::F32);
  check.size("the window", getWindow(), 0, channels, "one row a channel");
  check.size("the window", getWindow(), 1, dim(getWeight(), 1), "the taps");
  Size width = dim(getX(), 1);
  if (succeeded(LogicalResult(check)) && width && channels && *width < *channels)
    return emitNodeError(*this) << "convolves " << *channels << " channels, but its input has "
                                << *width;
  return check;
}

LogicalResult StateSnapshotOp::verify() {
  return Checker(*this)
      .numeric("the input", getAfter())
      .state("the window", getWindow(), StateKind::Slots, 2, Format::F32)
      .size("the window", getWindow(), 0, dim(getAfter(), 1), "one row a channel");
}

LogicalResult L2NormOp::verify() {
  Checker check(*this);
  check.numeric("the input", getX()).numeric("the result", getResult());
  check.sameRows("the result", getResult(), getX());
  check.size("the result", getResult(), 1, dim(getX(), 1), "the columns of its input");
  Size normed = mul(getHeads().getConstant(), getHeadDim().getConstant()), width = dim(getX(), 1);
  if (succeeded(LogicalResult(check)) && normed && width && *normed > *width)
    return emitNodeError(*this) << "norms " << *normed << " columns, but its input has " << *width;
  return check;
}

LogicalResult GdnRecurrenceOp::verify() {
  Checker check(*this);
  check.numeric("qkv", getQkv()).numeric("decay", getDecay()).numeric("beta", getBeta());
  check.numeric("the result", getResult());
  checkSlots(check, getSlotsIn(), getSlotsOut(), getQkv());
  check.state("the state", getState(), StateKind::Slots, 3, Format::F32);
  Size heads = dim(getState(), 0), keyDim = dim(getState(), 1), valueDim = dim(getState(), 2);
  check.sameRows("decay", getDecay(), getQkv())
      .size("decay", getDecay(), 1, heads, "one a value head");
  check.sameRows("beta", getBeta(), getQkv()).size("beta", getBeta(), 1, heads, "one a value head");
  check.sameRows("the result", getResult(), getQkv());
  check.size("the result", getResult(), 1, mul(heads, valueDim), "the value heads");
  // What is left of a row beside the values is q and k, of which each value head reads one head.
  Size qk = sub(dim(getQkv(), 1), mul(heads, valueDim));
  check.multiple("the q and k part of qkv", qk, mul(keyDim, 2), "whole key heads");
  if (succeeded(LogicalResult(check)) && qk && *qk <= 0)
    return emitNodeError(*this) << "qkv has no columns beside the values";
  if (qk && keyDim)
    check.multiple("the number of value heads", heads, *qk / (2 * *keyDim),
                   "the number of key heads");
  return check;
}

LogicalResult GatedRmsNormOp::verify() {
  Checker check(*this);
  check.numeric("the input", getCore())
      .numeric("qkvz", getQkvz())
      .numeric("the result", getResult());
  check.weight("the weight", getWeight(), 1, kNumeric);
  check.sameRows("qkvz", getQkvz(), getCore()).sameRows("the result", getResult(), getCore());
  check.size("the result", getResult(), 1, dim(getCore(), 1), "the columns of its input");
  check.multiple("the row length", dim(getCore(), 1), dim(getWeight(), 0), "the length of a head");
  Size width = dim(getQkvz(), 1), heads = dim(getCore(), 1);
  if (succeeded(LogicalResult(check)) && width && heads && *width < *heads)
    return emitNodeError(*this) << "needs " << *heads << " gates, but qkvz has " << *width
                                << " columns";
  return check;
}

LogicalResult SplitOp::verify() {
  Checker check(*this);
  check.numeric("the input", getX())
      .numeric("the first part", getFirst())
      .numeric("the second part", getSecond());
  for (auto [name, part] :
       {std::pair("the first part", getFirst()), std::pair("the second part", getSecond())}) {
    check.sameRows(name, part, getX());
    check.size("the input", getX(), 1, mul(dim(part, 1), 2), "both parts of each head");
    check.multiple("the part's row length", dim(part, 1), getHeadDim().getConstant(),
                   "the length of a head");
  }
  return check;
}

LogicalResult RopeOp::verify() {
  Checker check(*this);
  Size headDim = getHeadDim().getConstant();
  check.rank("positions", getPositions(), 2)
      .format("positions", storedFormat(getPositions()), {Format::I32});
  check.size("positions", getPositions(), 0, 3, "the three position streams");
  check.size("positions", getPositions(), 1, dim(getQ(), 0), "one a row");
  for (auto [name, in, out] :
       {std::tuple("q", getQ(), getQResult()), std::tuple("k", getK(), getKResult())}) {
    check.numeric(name, in)
        .numeric("a result", out)
        .sameRows(name, in, getQ())
        .sameRows("a result", out, in);
    check.size("a result", out, 1, dim(in, 1), "the columns of its input");
    check.multiple("the row length", dim(in, 1), headDim, "the length of a head");
  }
  if (failed(LogicalResult(check)))
    return failure();
  if (getRotaryDim() <= 0 || getRotaryDim() % 2 || (headDim && getRotaryDim() > *headDim))
    return emitNodeError(*this) << "rotates " << getRotaryDim()
                                << " dims, expected an even number up to the head's";
  return success();
}

/// Key and value cache of one shape, and the heads they hold.
static Size checkCaches(Checker &check, Value k, Value v) {
  check.state("the key cache", k, StateKind::Paged, 2, Format::BF16);
  check.state("the value cache", v, StateKind::Paged, 2, Format::BF16);
  check.size("the value cache", v, 0, dim(k, 0), "the heads of the key cache");
  check.size("the value cache", v, 1, dim(k, 1), "the columns of the key cache");
  return mul(dim(k, 0), dim(k, 1));
}

LogicalResult KvWriteOp::verify() {
  Checker check(*this);
  Size width = checkCaches(check, getKCache(), getVCache());
  check.numeric("k", getK()).numeric("v", getV()).sameRows("v", getV(), getK());
  check.size("k", getK(), 1, width, "a position of the cache")
      .size("v", getV(), 1, width, "a position of the cache");
  return check.rank("slot_mapping", getSlotMapping(), 1)
      .format("slot_mapping", storedFormat(getSlotMapping()), {Format::I64})
      .sameRows("slot_mapping", getSlotMapping(), getK());
}

LogicalResult PagedAttentionOp::verify() {
  Checker check(*this);
  Size width = checkCaches(check, getKCache(), getVCache());
  check.numeric("q", getQ())
      .numeric("k", getK())
      .numeric("v", getV())
      .numeric("the result", getResult());
  check.size("k", getK(), 1, width, "a position of the cache")
      .size("v", getV(), 1, width, "a position of the cache");
  check.multiple("q's row length", dim(getQ(), 1), width, "whole groups of query heads");
  check.sameRows("the result", getResult(), getQ());
  check.size("the result", getResult(), 1, dim(getQ(), 1), "the columns of q");
  check.rank("block_tables", getBlockTables(), 2)
      .format("block_tables", storedFormat(getBlockTables()), {Format::I32})
      .sameRows("block_tables", getBlockTables(), getQ());
  return check.rank("seq_lens", getSeqLens(), 1)
      .format("seq_lens", storedFormat(getSeqLens()), {Format::I32})
      .sameRows("seq_lens", getSeqLens(), getQ());
}

LogicalResult EmbedOp::verify() {
  Checker check(*this);
  check.rank("the ids", getIds(), 1).format("the ids", storedFormat(getIds()), {Format::I32});
  check.numeric("the result", getResult()).sameRows("the result", getResult(), getIds());
  check.weight("the table", getTable(), 2, kNumeric);
  check.format("the table", cast<WeightType>(getTable().getType()).getFormat(),
               {storedFormat(getResult())});
  return check.size("the result", getResult(), 1, dim(getTable(), 1), "the columns of the table");
}

LogicalResult ArgmaxOp::verify() {
  return Checker(*this)
      .numeric("the logits", getLogits())
      .rank("the token", getToken(), 1)
      .format("the token", storedFormat(getToken()), {Format::I32})
      .sameRows("the token", getToken(), getLogits());
}
