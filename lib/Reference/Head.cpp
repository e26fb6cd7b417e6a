//===- Head.cpp - tokens in, tokens out ------------------------------------===//

#include "lib/Reference/Frame.h"

namespace planc::reference {

Status evaluateNode(plan::EmbedOp op, Frame &frame) {
  Read ids = frame.read(op.getIds());
  Weight table = frame.weight(op.getTable());
  Tensor &out = frame.define(op.getResult(), /*sums=*/false);
  for (int64_t r = 0; r < out.rows(); ++r) {
    if (ids.value[r] < 0 || ids.value[r] >= table.shape[0])
      return nodeError(op, "row {} names token {} of {}", r, ids.value[r], table.shape[0]);
    table.row(int64_t(ids.value[r]), out.exact.data() + r * table.columns);
  }
  return {};
}

Status evaluateNode(plan::ArgmaxOp op, Frame &frame) {
  Read logits = frame.input(op);
  Tensor &out = frame.define(op.getToken(), /*sums=*/false);
  for (int64_t r = 0; r < logits.rows; ++r) {
    const double *l = logits.row(r);
    // A comparison with NaN is false, so NaN never wins; before the first number anything does.
    int64_t best = -1;
    for (int64_t i = 0; i < logits.columns; ++i)
      if (!std::isnan(l[i]) && (best < 0 || l[i] > l[best]))
        best = i;
    out.exact[r] = double(std::max<int64_t>(best, 0));
  }
  return {};
}

} // namespace planc::reference
