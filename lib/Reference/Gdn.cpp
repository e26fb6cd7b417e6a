//===- Gdn.cpp - the gated delta rule and what surrounds it ----------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Limits.h"
#include "lib/Reference/Rows.h"

#include <algorithm>

namespace planc::reference {

Status evaluateNode(plan::GdnGatesOp op, Frame &frame) {
  Read ba = frame.input(op);
  std::vector<double> aLog = frame.weight(op.getALog()).all();
  std::vector<double> dtBias = frame.weight(op.getDtBias()).all();
  Tensor &decay = frame.define(op.getDecay()), &beta = frame.define(op.getBeta());
  int64_t heads = decay.columns();
  for (int64_t r = 0; r < ba.rows; ++r)
    for (int64_t h = 0; h < heads; ++h) {
      int64_t b = r * ba.columns + h, a = b + heads, o = r * heads + h;
      Gate gate = sigmoid(ba.value[b], ba.errorAt(b));
      beta.exact[o] = beta.magnitude[o] = gate.value;
      beta.slack[o] = gate.error;

      double rate = std::exp(std::min(aLog[h], 20.0));
      double t = std::min(ba.value[a] + dtBias[h], 20.0);
      double d = std::exp(-rate * std::log1p(std::exp(t)));
      decay.exact[o] = decay.magnitude[o] = d;
      decay.slack[o] = kDecay + d * rate * logistic(t) * ba.errorAt(a);
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
      double error = taps * 0x1p-24 * magnitude + inputError * std::fabs(w[c * taps + taps - 1]);
      Gate gate = silu(sum, error);
      int64_t o = r * channels + c;
      out.exact[o] = gate.value;
      out.magnitude[o] = magnitude * logistic(sum);
      out.slack[o] = gate.error + kElementwise * out.magnitude[o];
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
      Scale scale =
          inverseRms(x.value + begin, x.error ? x.error + begin : nullptr, length, 1, eps);
      for (int64_t i = begin; i < begin + length; ++i) {
        out.exact[i] = x.value[i] * scale.value;
        out.magnitude[i] = std::fabs(out.exact[i]);
        out.slack[i] = (kElementwise + scale.relativeError) * out.magnitude[i] +
                       x.errorAt(i) * scale.value + kTiny;
      }
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
} // namespace

/// The delta rule for one head; `state` and `core` receive the new state and the output, with
/// their slack.
static void deltaRule(const Head &head, double *state, double *stateSlack, double *core,
                      double *coreMagnitude, double *coreSlack) {
  constexpr double kLowest = 1e-6, kHighest = 1 - 1e-6;
  int64_t keys = head.keyDim, values = head.valueDim;
  double g = std::min(std::max(head.decay, kLowest), kHighest);
  auto errorOf = [](const double *error, int64_t i) { return error ? error[i] : 0; };
  std::vector<double> read(values), readMagnitude(values), readError(values);
  if (head.state)
    for (int64_t i = 0; i < keys; ++i)
      for (int64_t j = 0; j < values; ++j) {
        double s = head.state[i * values + j], term = s * head.k[i];
        read[j] += term;
        readMagnitude[j] += std::fabs(term);
        readError[j] += std::fabs(s) * errorOf(head.kError, i);
      }
  // u and how far a device's may be from it.
  std::vector<double> u(values), uError(values);
  for (int64_t j = 0; j < values; ++j) {
    double difference = head.v[j] - g * read[j];
    double error = kDot * (std::fabs(head.v[j]) + g * readMagnitude[j]) + g * readError[j] +
                   head.decayError * std::fabs(read[j]) + errorOf(head.vError, j);
    u[j] = difference * head.beta;
    uError[j] = error * head.beta + std::fabs(difference) * head.betaError;
  }
  double unit = 1 / std::sqrt(double(keys));
  std::fill(core, core + values, 0);
  std::fill(coreMagnitude, coreMagnitude + values, 0);
  std::fill(coreSlack, coreSlack + values, 0);
  for (int64_t i = 0; i < keys; ++i) {
    double largest = 0;
    for (int64_t j = 0; j < values; ++j) {
      double old = head.state ? head.state[i * values + j] : 0;
      double next = g * old + head.k[i] * u[j];
      int64_t o = i * values + j;
      state[o] = next;
      stateSlack[o] = std::fabs(head.k[i]) * uError[j] + std::fabs(u[j]) * errorOf(head.kError, i) +
                      head.decayError * std::fabs(old) +
                      0x1p-23 * (std::fabs(g * old) + std::fabs(head.k[i] * u[j]));
      largest = std::max(largest, std::fabs(next));
      core[j] += next * head.q[i] * unit;
      coreMagnitude[j] += std::fabs(next * head.q[i]) * unit;
      coreSlack[j] +=
          (stateSlack[o] * std::fabs(head.q[i]) + std::fabs(next) * errorOf(head.qError, i)) * unit;
    }
    for (int64_t j = 0; j < values; ++j)
      stateSlack[i * values + j] += kState * largest + kTiny;
  }
  double largest = 0;
  for (int64_t j = 0; j < values; ++j)
    largest = std::max(largest, std::fabs(core[j]));
  for (int64_t j = 0; j < values; ++j)
    coreSlack[j] += kState * largest + kDot * coreMagnitude[j] + kTiny;
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
        deltaRule(head, &after.exact[entry], &after.slack[entry], &out.exact[o], &out.magnitude[o],
                  &out.slack[o]);
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
  for (int64_t r = 0; r < core.rows; ++r)
    for (int64_t begin = 0; begin < core.columns; begin += length) {
      const double *x = core.row(r) + begin;
      const double *error = core.error ? core.rowError(r) + begin : nullptr;
      Scale scale = inverseRms(x, error, length, double(length), eps);
      for (int64_t i = 0; i < length; ++i) {
        int64_t z = r * qkvz.columns + skipped + begin + i, o = r * core.columns + begin + i;
        Gate gate = silu(qkvz.value[z], qkvz.errorAt(z));
        double factor = scale.value * (offset + w[i]), normed = x[i] * factor;
        out.exact[o] = normed * gate.value;
        out.magnitude[o] =
            std::fabs(x[i] * scale.value * gate.value) * (std::fabs(offset) + std::fabs(w[i]));
        out.slack[o] = kElementwise * out.magnitude[o] +
                       scale.relativeError * std::fabs(out.exact[o]) +
                       (error ? error[i] : 0) * std::fabs(factor * gate.value) +
                       std::fabs(normed) * gate.error + kTiny;
      }
    }
  return {};
}

} // namespace planc::reference
