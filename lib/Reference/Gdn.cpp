//===- Gdn.cpp - the gated delta rule and what surrounds it ----------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Rows.h"

#include <algorithm>

namespace planc::reference {

using numerics::exponential;
using numerics::rounded;
using numerics::times;
using numerics::Value;

Status evaluateNode(plan::GdnGatesOp op, Frame &frame) {
  Read ba = frame.input(op);
  std::vector<double> aLog = frame.weight(op.getALog()).all();
  std::vector<double> dtBias = frame.weight(op.getDtBias()).all();
  Tensor &decay = frame.define(op.getDecay()), &beta = frame.define(op.getBeta());
  int64_t heads = decay.columns();
  for (int64_t r = 0; r < ba.rows; ++r)
    for (int64_t h = 0; h < heads; ++h) {
      int64_t b = r * ba.columns + h, a = b + heads, o = r * heads + h;
      put(beta, o, sigmoid(frame, op, ba.at(b)));
      const numerics::Part &exp = frame.part(op, "exp");
      Value rate = applied(exp, exponential({std::min(aLog[h], 20.0), 0}));
      Value t = rounded(plus(ba.at(a), {dtBias[h], 0}), frame.roundings(op, "add"));
      t = atMost(t, 20);
      Value step = applied(frame.part(op, "log1p"), logOnePlus(applied(exp, exponential(t))));
      Value exponent = rounded(times(rate, step), frame.roundings(op, "product"));
      exponent.value = -exponent.value;
      put(decay, o, applied(frame.part(op, "decay"), exponential(exponent)));
    }
  return {};
}

namespace {
/// Slots of a row; -1 stands for zeros and for nowhere.
struct Slots {
  int64_t in, out;
};
} // namespace

static Result<Slots> rowSlots(mlir::Operation *op, Frame &frame, const Pool &pool, mlir::Value in,
                              mlir::Value out, int64_t row) {
  Slots slots{int64_t(frame.read(in).value[row]), int64_t(frame.read(out).value[row])};
  for (auto [slot, what] : {std::pair(slots.in, "reads slot"), {slots.out, "writes slot"}})
    if (slot >= 0)
      if (Status status = frame.checkEntry(op, pool, slot, what); !status.ok())
        return status.takeError();
  return slots;
}

/// A state's entry to be written.
static Tensor stateValue(const Pool &pool, bool sums) {
  Tensor value;
  value.shape.assign(pool.shape.begin(), pool.shape.end());
  value.exact.resize(pool.entry);
  if (sums)
    value.slack.resize(pool.entry);
  return value;
}

Status evaluateNode(plan::Conv1dUpdateOp op, Frame &frame) {
  Read x = frame.input(op);
  Pool pool = frame.pool(op.getWindow());
  std::vector<double> w = frame.weight(op.getWeight()).all();
  Tensor &out = frame.define(op.getResult());
  int64_t channels = out.columns(), taps = pool.shape[1];
  for (int64_t r = 0; r < x.rows; ++r) {
    Result<Slots> slots = rowSlots(op, frame, pool, op.getSlotsIn(), op.getSlotsOut(), r);
    if (!slots.ok())
      return slots.takeError();
    const float *before = slots->in >= 0 ? pool.f32(slots->in) : nullptr;
    Tensor after = stateValue(pool, x.error != nullptr);
    for (int64_t c = 0; c < channels; ++c) {
      double *window = after.exact.data() + c * taps;
      for (int64_t j = 0; j + 1 < taps; ++j)
        window[j] = before ? before[c * taps + j + 1] : 0;
      window[taps - 1] = x.row(r)[c];
      double sum = 0, magnitude = 0, inputError = x.errorAt(r * x.columns + c);
      for (int64_t j = 0; j < taps; ++j) {
        sum += window[j] * w[c * taps + j];
        magnitude += std::fabs(window[j] * w[c * taps + j]);
      }
      if (x.error)
        after.slack[c * taps + taps - 1] = inputError;
      double moved = inputError * std::fabs(w[c * taps + taps - 1]);
      Value x{sum, rounded({magnitude, moved}, frame.roundings(op, "window")).error};
      put(out, r * channels + c, rounded(silu(frame, op, x), frame.roundings(op, "product")));
    }
    if (slots->out >= 0)
      frame.writeState(op, pool, slots->out, std::move(after));
  }
  return {};
}

Status evaluateNode(plan::StateSnapshotOp op, Frame &frame) {
  if (int64_t rows = frame.read(op.getAfter()).rows; rows != 1 && !op.getApart())
    return nodeError(op, "snapshots {} rows; which of them share a sequence is not said", rows);
  return {};
}

Status evaluateNode(plan::L2NormOp op, Frame &frame) {
  Read x = frame.input(op);
  Tensor &out = frame.define(op.getResult());
  int64_t length = *op.getHeadDim().getConstant(), heads = *op.getHeads().getConstant();
  double eps = op.getEps().convertToDouble();
  for (int64_t r = 0; r < x.rows; ++r) {
    int64_t begin = r * x.columns;
    for (int64_t h = 0; h < heads; ++h, begin += length) {
      Value scale = inverseRms(frame, op, x, begin, length, 1, eps);
      for (int64_t i = begin; i < begin + length; ++i)
        put(out, i, rounded(times(x.at(i), scale), frame.roundings(op, "scale")));
    }
    for (int64_t i = begin; i < (r + 1) * x.columns; ++i) {
      out.exact[i] = x.value[i];
      out.magnitude[i] = std::fabs(x.value[i]);
      out.slack[i] = x.errorAt(i);
    }
  }
  return {};
}

namespace {
/// One value head of one row: everything it reads.
struct Head {
  int64_t keyDim, valueDim;
  const double *q, *k, *v;
  const double *qError, *kError, *vError; // null: none
  double decay, decayError, beta, betaError;
  const float *state; // null: zeros
};

/// How a device rounds in the delta rule.
struct HeadRoundings {
  HeadRoundings(const Frame &frame, plan::GdnRecurrenceOp op)
      : read(frame.roundings(op, "read")), difference(frame.roundings(op, "difference")),
        beta(frame.roundings(op, "beta")), decay(frame.roundings(op, "decay")),
        state(frame.roundings(op, "state")), core(frame.roundings(op, "core")) {}
  double read, difference, beta, decay, state, core;
};
} // namespace

/// The delta rule for one head; `state` and `core` receive the new state and the output, with
/// their slack.
static void deltaRule(const Head &head, const HeadRoundings &roundings, double *state,
                      double *stateSlack, double *core, double *coreMagnitude, double *coreSlack) {
  // The f32 nearest to 1e-6 and 1 - 1e-6.
  constexpr double kLowest = 1e-6f, kHighest = 0x1.ffffdep-1;
  int64_t keys = head.keyDim, values = head.valueDim;
  Value g{std::min(std::max(head.decay, kLowest), kHighest), head.decayError};
  auto at = [](const double *value, const double *error, int64_t i) {
    return Value{value[i], error ? error[i] : 0};
  };
  std::vector<Value> read(values), u(values);
  std::vector<double> readMagnitude(values);
  if (head.state)
    for (int64_t i = 0; i < keys; ++i) {
      Value k = at(head.k, head.kError, i);
      for (int64_t j = 0; j < values; ++j) {
        Value term = times({head.state[i * values + j], 0}, k);
        read[j] = plus(read[j], term);
        readMagnitude[j] += std::fabs(term.value);
      }
    }
  for (int64_t j = 0; j < values; ++j) {
    read[j].error = rounded({readMagnitude[j], read[j].error}, roundings.read).error;
    Value taken = times(g, read[j]), v = at(head.v, head.vError, j);
    Value difference =
        rounded({v.value - taken.value, v.error + taken.error}, roundings.difference);
    u[j] = rounded(times(difference, {head.beta, head.betaError}), roundings.beta);
  }
  double unit = 1 / std::sqrt(double(keys));
  std::vector<Value> sum(values);
  std::fill(coreMagnitude, coreMagnitude + values, 0);
  for (int64_t i = 0; i < keys; ++i) {
    Value k = at(head.k, head.kError, i), q = at(head.q, head.qError, i);
    for (int64_t j = 0; j < values; ++j) {
      int64_t o = i * values + j;
      Value old = rounded(times(g, {head.state ? head.state[o] : 0, 0}), roundings.decay);
      Value next = rounded(plus(old, times(k, u[j])), roundings.state);
      state[o] = next.value;
      stateSlack[o] = next.error;
      Value term = times(next, q);
      sum[j] = plus(sum[j], term);
      coreMagnitude[j] += std::fabs(term.value);
    }
  }
  for (int64_t j = 0; j < values; ++j) {
    core[j] = sum[j].value * unit;
    coreSlack[j] = rounded({coreMagnitude[j], sum[j].error}, roundings.core).error * unit;
    coreMagnitude[j] *= unit;
  }
}

Status evaluateNode(plan::GdnRecurrenceOp op, Frame &frame) {
  Read qkv = frame.input(op), decay = frame.read(op.getDecay()), beta = frame.read(op.getBeta());
  Pool pool = frame.pool(op.getState());
  int64_t heads = pool.shape[0], keyDim = pool.shape[1], valueDim = pool.shape[2];
  int64_t keyHeads = (qkv.columns - heads * valueDim) / (2 * keyDim);
  Tensor &out = frame.define(op.getResult());
  for (int64_t r = 0; r < qkv.rows; ++r) {
    Result<Slots> slots = rowSlots(op, frame, pool, op.getSlotsIn(), op.getSlotsOut(), r);
    if (!slots.ok())
      return slots.takeError();
    Tensor after = stateValue(pool, /*sums=*/true);
    HeadRoundings roundings(frame, op);
    parallelFor(frame.options, heads, 4 * keyDim * valueDim, [&](int64_t begin, int64_t end) {
      for (int64_t h = begin; h < end; ++h) {
        int64_t keyHead = h / (heads / keyHeads), entry = h * keyDim * valueDim;
        int64_t q = keyHead * keyDim, k = (keyHeads + keyHead) * keyDim;
        int64_t v = 2 * keyHeads * keyDim + h * valueDim, o = (r * heads + h) * valueDim;
        const double *row = qkv.row(r), *error = qkv.rowError(r);
        Head head{keyDim,
                  valueDim,
                  row + q,
                  row + k,
                  row + v,
                  error ? error + q : nullptr,
                  error ? error + k : nullptr,
                  error ? error + v : nullptr,
                  decay.value[r * heads + h],
                  decay.errorAt(r * heads + h),
                  beta.value[r * heads + h],
                  beta.errorAt(r * heads + h),
                  slots->in >= 0 ? pool.f32(slots->in) + entry : nullptr};
        deltaRule(head, roundings, &after.exact[entry], &after.slack[entry], &out.exact[o],
                  &out.magnitude[o], &out.slack[o]);
      }
    });
    if (slots->out >= 0)
      frame.writeState(op, pool, slots->out, std::move(after));
  }
  return {};
}

Status evaluateNode(plan::GatedRmsNormOp op, Frame &frame) {
  Read core = frame.input(op), qkvz = frame.read(op.getQkvz());
  std::vector<double> w = frame.weight(op.getWeight()).all();
  Tensor &out = frame.define(op.getResult());
  int64_t length = w.size(), skipped = qkvz.columns - core.columns;
  double eps = op.getEps().convertToDouble(), offset = op.getOffset().convertToDouble();
  double roundings = frame.roundings(op, "scale"), first = roundings ? 1 : 0;
  for (int64_t r = 0; r < core.rows; ++r)
    for (int64_t begin = 0; begin < core.columns; begin += length) {
      Value scale =
          inverseRms(frame, op, core, r * core.columns + begin, length, double(length), eps);
      for (int64_t i = 0; i < length; ++i) {
        int64_t z = r * qkvz.columns + skipped + begin + i, o = r * core.columns + begin + i;
        Value gate = rounded(silu(frame, op, qkvz.at(z)), first);
        Value normed = rounded(times(core.at(o), scale), first);
        normed = rounded(times(normed, {offset + w[i], 0}), 2 * first);
        put(out, o, rounded(times(normed, gate), std::max(0.0, roundings - 4)));
      }
    }
  return {};
}

} // namespace planc::reference
