//===- Linear.cpp - contractions with fixed and with gathered matrices -----===//
//
// `y[r, j] = sum_k x[r, k] * w[j, k] * scale`. Scales are folded into the weights as they are
// decoded: with bf16-valued scales every product is exact either way.
//
//===----------------------------------------------------------------------===//

#include "lib/Reference/Formats/Scalar.h"
#include "lib/Reference/Frame.h"

namespace planc::reference {

namespace {
struct Sum {
  double exact = 0, magnitude = 0, error = 0;
};
} // namespace

/// Eight running sums, so that the compiler may use vectors without reordering anything.
static Sum dot(const double *x, const double *error, const double *w, int64_t count) {
  constexpr int64_t kLanes = 8;
  double exact[kLanes] = {}, magnitude[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= count; k += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      double term = x[k + lane] * w[k + lane];
      exact[lane] += term;
      magnitude[lane] += std::fabs(term);
    }
  for (; k < count; ++k) {
    exact[0] += x[k] * w[k];
    magnitude[0] += std::fabs(x[k] * w[k]);
  }
  Sum sum;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    sum.exact += exact[lane];
    sum.magnitude += magnitude[lane];
  }
  if (!error)
    return sum;
  double moved[kLanes] = {};
  for (k = 0; k + kLanes <= count; k += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      moved[lane] += error[k + lane] * std::fabs(w[k + lane]);
  for (; k < count; ++k)
    moved[0] += error[k] * std::fabs(w[k]);
  for (double part : moved)
    sum.error += part;
  return sum;
}

/// The activation as the `act` step has it multiplied.
static Read roundActivation(plan::StepsAttr steps, Read x, std::vector<double> &value,
                            std::vector<double> &error) {
  plan::StepAttr act = steps.find(plan::StepKind::Act);
  if (!act || act.getFirst() != plan::Format::BF16)
    return x;
  int64_t count = x.rows * x.columns;
  value.resize(count);
  for (int64_t i = 0; i < count; ++i)
    value[i] = bf(x.value[i]);
  if (x.error) {
    error.resize(count);
    for (int64_t i = 0; i < count; ++i)
      error[i] =
          std::max(bf(x.value[i] + x.error[i]) - value[i], value[i] - bf(x.value[i] - x.error[i]));
  }
  return {value.data(), x.error ? error.data() : nullptr, x.rows, x.columns};
}

/// What all products of a row may lose where f32 is subnormal. Block scales come after that: a code
/// that is not zero is 2^-9 at least, so a scale is at most 2^9 of the largest weight.
static double underflowOf(const Weight &weight, const std::vector<double> &row) {
  double factor = 1;
  if (weight.format->hasScales)
    for (double w : row)
      factor = std::max(factor, 0x1p9 * std::fabs(w));
  return double(row.size()) * numerics::kUnderflow * factor;
}

static Status contract(plan::PlanContraction op, Frame &frame) {
  auto node = llvm::cast<plan::PlanNode>(op.getOperation());
  plan::StepsAttr steps = node.getStepsAttr();
  plan::StepAttr sum = steps.find(plan::StepKind::Accumulate);
  if (sum && sum.getFirst() != plan::Format::F32)
    return nodeError(op, "accumulates in {}, the reference expects f32",
                     plan::planSpelling(sum.getFirst()).str());
  std::vector<double> value, error;
  Read x = roundActivation(steps, frame.input(node), value, error);
  Weight weight = frame.weight(op.getMatrix());
  int64_t outputs = weight.shape[weight.shape.size() - 2], columns = weight.columns;
  plan::StepAttr operand = steps.find(plan::StepKind::Weight);
  bool narrow = operand && operand.getSecond() == plan::Format::BF16 &&
                weight.format->format == plan::Format::F32;
  // Float64 sums here are off by some 2^-53 of their own.
  double unit = numerics::gamma(frame.roundings(op, "dot")) + columns * 0x1p-53;

  mlir::Value ids = op.getExpertIds();
  Read expert = ids ? frame.read(ids) : Read();
  Tensor &out = frame.define(op->getResult(0));
  int64_t rows = out.rows();
  if (ids)
    for (int64_t r = 0; r < rows; ++r)
      if (expert.value[r] < 0 || expert.value[r] >= weight.shape[0])
        return nodeError(op, "row {} names expert {} of {}", r, expert.value[r], weight.shape[0]);

  // One decoded row serves all rows of x that share the matrix.
  auto run = [&](int64_t firstRow, int64_t endRow, int64_t matrix) {
    int64_t share = ids && x.rows != rows ? rows / x.rows : 1;
    parallelFor(frame.options, outputs, columns * (1 + endRow - firstRow),
                [&](int64_t begin, int64_t end) {
                  std::vector<double> w(columns);
                  for (int64_t j = begin; j < end; ++j) {
                    weight.row(matrix * outputs + j, w.data());
                    double underflow = underflowOf(weight, w);
                    if (narrow)
                      for (double &element : w)
                        element = bf(element);
                    for (int64_t r = firstRow; r < endRow; ++r) {
                      Sum sum = dot(x.row(r / share), x.rowError(r / share), w.data(), columns);
                      int64_t o = r * outputs + j;
                      out.exact[o] = sum.exact;
                      out.magnitude[o] = sum.magnitude;
                      out.slack[o] = sum.error + unit * (sum.magnitude + sum.error) + underflow;
                    }
                  }
                });
  };
  if (!ids)
    run(0, rows, 0);
  for (int64_t r = 0; ids && r < rows; ++r)
    run(r, r + 1, int64_t(expert.value[r]));
  return {};
}

static plan::PlanContraction contraction(mlir::Operation *op) {
  return llvm::cast<plan::PlanContraction>(op);
}

Status evaluateNode(plan::LinearOp op, Frame &frame) { return contract(contraction(op), frame); }
Status evaluateNode(plan::RouterOp op, Frame &frame) { return contract(contraction(op), frame); }
Status evaluateNode(plan::LmHeadOp op, Frame &frame) { return contract(contraction(op), frame); }
Status evaluateNode(plan::ExpertGateUpOp op, Frame &frame) {
  return contract(contraction(op), frame);
}
Status evaluateNode(plan::ExpertDownOp op, Frame &frame) {
  return contract(contraction(op), frame);
}

} // namespace planc::reference
