//===- Norm.cpp - norms, residual adds and gates over rows -----------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Rows.h"

namespace planc::reference {

using numerics::rounded;
using numerics::times;
using numerics::Value;

Value inverseRms(Frame &frame, mlir::Operation *norm, Read x, int64_t begin, int64_t count,
                 double divisor, double eps) {
  Value sum;
  for (int64_t i = begin; i < begin + count; ++i)
    sum = plus(sum, times(x.at(i), x.at(i)));
  // All terms are positive: what is lost of each is lost of the sum. Squares may underflow.
  sum = rounded(sum, frame.roundings(norm, "squares"));
  sum.error += frame.judging ? double(count) * numerics::kUnderflow : 0;
  Value mean =
      rounded({sum.value / divisor + eps, sum.error / divisor}, frame.roundings(norm, "mean"));
  return applied(frame.part(norm, "rsqrt"), inverseRoot(mean));
}

Value sigmoid(const Frame &frame, mlir::Operation *op, Value x) {
  return applied(frame.part(op, "sigmoid"), logistic(x));
}

/// Norms over stretches of `length`. The squares are of `squared`, what is scaled is `scaled`: they
/// differ where a reader in the producer's group takes the value before it was rounded.
static void normRows(Frame &frame, mlir::Operation *op, Read squared, Read scaled,
                     const Weight &weight, double offset, double eps, Tensor &out) {
  std::vector<double> w = weight.all();
  int64_t length = w.size();
  double roundings = frame.roundings(op, "scale");
  for (int64_t begin = 0; begin < scaled.rows * scaled.columns; begin += length) {
    Value scale = inverseRms(frame, op, squared, begin, length, double(length), eps);
    for (int64_t i = 0; i < length; ++i) {
      Value normed = rounded(times(scaled.at(begin + i), scale), roundings ? 1 : 0);
      put(out, begin + i, rounded(times(normed, {offset + w[i], 0}), std::max(0.0, roundings - 1)));
    }
  }
}

template <class Op> static Status evaluateNorm(Op op, Frame &frame) {
  normRows(frame, op, frame.input(op), frame.read(op.getX()), frame.weight(op.getWeight()),
           op.getOffset().convertToDouble(), op.getEps().convertToDouble(),
           frame.define(op.getResult()));
  return {};
}

Status evaluateNode(plan::RmsNormOp op, Frame &frame) { return evaluateNorm(op, frame); }
Status evaluateNode(plan::FinalNormOp op, Frame &frame) { return evaluateNorm(op, frame); }
Status evaluateNode(plan::QkNormOp op, Frame &frame) { return evaluateNorm(op, frame); }

Status evaluateNode(plan::ResidualAddOp op, Frame &frame) {
  Read x = frame.input(op), update = frame.read(op.getUpdate());
  Tensor &out = frame.define(op.getResult());
  double roundings = frame.roundings(op, "add");
  for (int64_t i = 0; i < x.rows * x.columns; ++i)
    put(out, i, rounded(plus(x.at(i), update.at(i)), roundings),
        std::fabs(x.value[i]) + std::fabs(update.value[i]));
  return {};
}

Status evaluateNode(plan::SiluMulOp op, Frame &frame) {
  Read x = frame.input(op);
  Tensor &out = frame.define(op.getResult());
  int64_t half = x.columns / 2;
  double roundings = frame.roundings(op, "product");
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t i = 0; i < half; ++i) {
      int64_t g = r * x.columns + i, u = g + half;
      Value gate = rounded(silu(frame, op, x.at(g)), roundings ? 1 : 0);
      put(out, r * half + i, rounded(times(gate, x.at(u)), std::max(0.0, roundings - 1)));
    }
  return {};
}

Status evaluateNode(plan::SigmoidGateMulOp op, Frame &frame) {
  Read x = frame.input(op), gate = frame.read(op.getGate());
  Tensor &out = frame.define(op.getResult());
  double roundings = frame.roundings(op, "product");
  for (int64_t i = 0; i < x.rows * x.columns; ++i)
    put(out, i, rounded(times(x.at(i), sigmoid(frame, op, gate.at(i))), roundings));
  return {};
}

} // namespace planc::reference
