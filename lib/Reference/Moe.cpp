//===- Moe.cpp - routing and the combination of experts --------------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Rows.h"

#include <algorithm>
#include <numeric>

namespace planc::reference {

using numerics::rounded;
using numerics::times;
using numerics::Value;

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
    Value largest = logits.at(r * logits.columns + order[0]), total;
    std::vector<Value> powers(chosen);
    for (int64_t s = 0; s < chosen; ++s) {
      Value logit = logits.at(r * logits.columns + order[s]);
      Value difference = rounded({logit.value - largest.value, logit.error + largest.error},
                                 frame.roundings(op, "difference"));
      powers[s] = applied(frame.part(op, "exp"), exponential(difference));
      total = plus(total, powers[s]);
    }
    Value factor =
        applied(frame.part(op, "rcp"), reciprocal(rounded(total, frame.roundings(op, "total"))));
    for (int64_t s = 0; s < chosen; ++s) {
      int64_t e = order[s], o = r * chosen + s;
      ids.exact[o] = double(e);
      // Logits that nobody can observe decide among equals in their own way.
      ids.slack[o] = logits.error && isClose(logits, r, e) ? double(logits.columns) : 0;
      put(weights, o, rounded(times(powers[s], factor), frame.roundings(op, "product")));
    }
  }
  return {};
}

Status evaluateNode(plan::BlendOp op, Frame &frame) {
  Read experts = frame.input(op), weights = frame.read(op.getWeights());
  Read shared = frame.read(op.getShared()), gate = frame.read(op.getGate());
  Tensor &out = frame.define(op.getResult());
  int64_t chosen = weights.columns, columns = experts.columns;
  double roundings = frame.roundings(op, "experts");
  for (int64_t r = 0; r < weights.rows; ++r) {
    Value g = sigmoid(frame, op, gate.at(r));
    for (int64_t j = 0; j < columns; ++j) {
      Value sum;
      double magnitude = 0;
      auto add = [&](Value factor, Value value) {
        Value term = times(factor, value);
        magnitude += std::fabs(term.value);
        sum = plus(sum, term);
      };
      for (int64_t s = 0; s < chosen; ++s)
        add(weights.at(r * chosen + s), experts.at((r * chosen + s) * columns + j));
      int64_t o = r * columns + j;
      add(g, shared.at(o));
      sum.error = rounded({magnitude, sum.error}, roundings).error;
      put(out, o, sum, magnitude);
    }
  }
  return {};
}

} // namespace planc::reference
