//===- Moe.cpp - routing and the combination of experts --------------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Limits.h"
#include "lib/Reference/Rows.h"

#include <algorithm>
#include <numeric>

namespace planc::reference {

/// Larger first; NaN below every number; ties in the order of the index.
static bool ranksBefore(const double *values, int64_t a, int64_t b) {
  bool aNan = std::isnan(values[a]), bNan = std::isnan(values[b]);
  if (aNan != bNan)
    return bNan;
  if (!aNan && values[a] != values[b])
    return values[a] > values[b];
  return a < b;
}

/// True if a device, whose logits may be off by their errors, may rank another expert here.
static bool isClose(Read logits, int64_t row, int64_t chosen) {
  int64_t begin = row * logits.columns, own = begin + chosen;
  for (int64_t i = begin; i < begin + logits.columns; ++i)
    if (i != own &&
        std::fabs(logits.value[i] - logits.value[own]) <= logits.errorAt(i) + logits.errorAt(own))
      return true;
  return false;
}

Status evaluateNode(plan::TopKOp op, Frame &frame) {
  Read logits = frame.input(op);
  Tensor &weights = frame.define(op.getWeights());
  Tensor &ids = frame.define(op.getIds());
  int64_t chosen = weights.columns();
  std::vector<int64_t> order(logits.columns);
  for (int64_t r = 0; r < logits.rows; ++r) {
    const double *l = logits.row(r);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + chosen, order.end(),
                      [&](int64_t a, int64_t b) { return ranksBefore(l, a, b); });
    // The softmax over all experts, renormalised over the chosen, is the softmax over the chosen.
    double largest = l[order[0]], total = 0;
    for (int64_t s = 0; s < chosen; ++s)
      total += std::exp(l[order[s]] - largest);
    for (int64_t s = 0; s < chosen; ++s) {
      int64_t e = order[s], o = r * chosen + s;
      double difference = l[e] - largest, w = std::exp(difference) / total;
      ids.exact[o] = double(e);
      // Logits that nobody can observe decide among equals in their own way.
      ids.slack[o] = logits.error && isClose(logits, r, e) ? double(logits.columns) : 0;
      weights.exact[o] = weights.magnitude[o] = w;
      double error =
          logits.errorAt(r * logits.columns + e) + logits.errorAt(r * logits.columns + order[0]);
      weights.slack[o] = w * (expError(difference) + 2 * error) + kTiny;
    }
  }
  return {};
}

Status evaluateNode(plan::BlendOp op, Frame &frame) {
  Read experts = frame.input(op), weights = frame.read(op.getWeights());
  Read shared = frame.read(op.getShared()), gate = frame.read(op.getGate());
  Tensor &out = frame.define(op.getResult());
  int64_t chosen = weights.columns, columns = experts.columns;
  for (int64_t r = 0; r < weights.rows; ++r) {
    Gate g = sigmoid(gate.value[r], gate.errorAt(r));
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0, magnitude = 0, error = 0;
      auto add = [&](double factor, double factorError, double value, double valueError) {
        sum += factor * value;
        magnitude += std::fabs(factor * value);
        error += std::fabs(factor) * valueError + factorError * (std::fabs(value) + valueError);
      };
      for (int64_t s = 0; s < chosen; ++s) {
        int64_t w = r * chosen + s, e = w * columns + j;
        add(weights.value[w], weights.errorAt(w), experts.value[e], experts.errorAt(e));
      }
      int64_t o = r * columns + j;
      add(g.value, g.error, shared.value[o], shared.errorAt(o));
      out.exact[o] = sum;
      out.magnitude[o] = magnitude;
      out.slack[o] = kElementwise * magnitude + error + kTiny;
    }
  }
  return {};
}

} // namespace planc::reference
