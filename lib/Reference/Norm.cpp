//===- Norm.cpp - norms, residual adds and gates over rows -----------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Limits.h"
#include "lib/Reference/Rows.h"

namespace planc::reference {

Scale inverseRms(const double *x, const double *error, int64_t count, double divisor, double eps) {
  double sum = 0, drift = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += x[i] * x[i];
    if (error)
      drift += (2 * std::fabs(x[i]) + error[i]) * error[i];
  }
  double mean = sum / divisor + eps;
  return {1 / std::sqrt(mean), drift / divisor / mean / 2};
}

/// Norms over stretches of `length`. The squares are of `squared`, what is scaled is `scaled`: they
/// differ where a reader in the producer's group takes the value before it was rounded.
static void normRows(Frame &frame, Read squared, Read scaled, const Weight &weight, double offset,
                     double eps, Tensor &out) {
  std::vector<double> w = weight.all();
  int64_t length = w.size();
  for (int64_t begin = 0; begin < scaled.rows * scaled.columns; begin += length) {
    Scale scale = inverseRms(squared.value + begin, squared.error ? squared.error + begin : nullptr,
                             length, double(length), eps);
    for (int64_t i = 0; i < length; ++i) {
      double factor = scale.value * (offset + w[i]);
      double y = scaled.value[begin + i] * factor;
      out.exact[begin + i] = y;
      out.magnitude[begin + i] =
          std::fabs(scaled.value[begin + i] * scale.value) * (std::fabs(offset) + std::fabs(w[i]));
      out.slack[begin + i] = kElementwise * out.magnitude[begin + i] +
                             scale.relativeError * std::fabs(y) +
                             scaled.errorAt(begin + i) * std::fabs(factor) + kTiny;
    }
  }
}

template <class Op> static Status evaluateNorm(Op op, Frame &frame) {
  normRows(frame, frame.input(op), frame.read(op.getX()), frame.weight(op.getWeight()),
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
  for (int64_t i = 0; i < x.rows * x.columns; ++i) {
    out.exact[i] = x.value[i] + update.value[i];
    out.magnitude[i] = std::fabs(x.value[i]) + std::fabs(update.value[i]);
    out.slack[i] = kElementwise * out.magnitude[i] + x.errorAt(i) + update.errorAt(i);
  }
  return {};
}

Status evaluateNode(plan::SiluMulOp op, Frame &frame) {
  Read x = frame.input(op);
  Tensor &out = frame.define(op.getResult());
  int64_t half = x.columns / 2;
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t i = 0; i < half; ++i) {
      int64_t g = r * x.columns + i, u = g + half, o = r * half + i;
      Gate gate = silu(x.value[g], x.errorAt(g));
      out.exact[o] = gate.value * x.value[u];
      out.magnitude[o] = std::fabs(out.exact[o]);
      out.slack[o] = gate.error * (std::fabs(x.value[u]) + x.errorAt(u)) +
                     std::fabs(gate.value) * x.errorAt(u) + kElementwise * out.magnitude[o] + kTiny;
    }
  return {};
}

Status evaluateNode(plan::SigmoidGateMulOp op, Frame &frame) {
  Read x = frame.input(op), gate = frame.read(op.getGate());
  Tensor &out = frame.define(op.getResult());
  for (int64_t i = 0; i < x.rows * x.columns; ++i) {
    Gate s = sigmoid(gate.value[i], gate.errorAt(i));
    out.exact[i] = x.value[i] * s.value;
    out.magnitude[i] = std::fabs(out.exact[i]);
    out.slack[i] = s.error * (std::fabs(x.value[i]) + x.errorAt(i)) + s.value * x.errorAt(i) +
                   kElementwise * out.magnitude[i] + kTiny;
  }
  return {};
}

} // namespace planc::reference
