//===- Attention.cpp - heads, rope, the paged cache and attention ----------===//

#include "lib/Reference/Formats/Scalar.h"
#include "lib/Reference/Frame.h"
#include "lib/Reference/Rows.h"

#include <algorithm>

namespace planc::reference {

Status evaluateNode(plan::SplitOp op, Frame &frame) {
  Read x = frame.input(op);
  int64_t length = *op.getHeadDim().getConstant();
  for (mlir::Value part : {op.getFirst(), op.getSecond()}) {
    int64_t skipped = part == op.getFirst() ? 0 : length;
    Tensor &out = frame.define(part);
    for (int64_t o = 0; o < int64_t(out.exact.size()); ++o) {
      int64_t from = o / length * 2 * length + skipped + o % length;
      out.exact[o] = x.value[from];
      out.magnitude[o] = std::fabs(x.value[from]);
      out.slack[o] = x.errorAt(from);
    }
  }
  return {};
}

Status evaluateNode(plan::RopeOp op, Frame &frame) {
  Read positions = frame.read(op.getPositions());
  int64_t length = *op.getHeadDim().getConstant(), half = op.getRotaryDim() / 2;
  std::vector<double> frequency(half);
  for (int64_t i = 0; i < half; ++i)
    frequency[i] = f32(std::pow(op.getTheta().convertToDouble(), -2.0 * i / op.getRotaryDim()));
  bool interleaved = !op.getSections().empty();
  const numerics::Part &sinCos = frame.part(op, "sincos");
  double product = frame.roundings(op, "product"), add = frame.roundings(op, "add");
  for (auto [in, result] :
       {std::pair(frame.input(op), op.getQResult()), {frame.read(op.getK()), op.getKResult()}}) {
    Tensor &out = frame.define(result);
    for (int64_t r = 0; r < in.rows; ++r)
      for (int64_t head = r * in.columns; head < (r + 1) * in.columns; head += length) {
        for (int64_t i = 0; i < half; ++i) {
          // The two f32 roundings of the angle belong to the definition.
          double position = f32(positions.row(interleaved ? i % 3 : 0)[r]);
          double angle = f32(position * frequency[i]);
          numerics::Value c = applied(sinCos, {std::cos(angle), 0});
          numerics::Value s = applied(sinCos, {std::sin(angle), 0});
          auto rotate = [&](int64_t at, int64_t other, double sign) {
            numerics::Value own = numerics::times(in.at(at), c);
            numerics::Value partner = rounded(numerics::times(in.at(other), s), product);
            partner.value *= sign;
            put(out, at, rounded(plus(own, partner), add),
                std::fabs(own.value) + std::fabs(partner.value));
          };
          rotate(head + i, head + i + half, -1);
          rotate(head + i + half, head + i, 1);
        }
        for (int64_t at = head + 2 * half; at < head + length; ++at) {
          out.exact[at] = in.value[at];
          out.magnitude[at] = std::fabs(in.value[at]);
          out.slack[at] = in.errorAt(at);
        }
      }
  }
  return {};
}

Status evaluateNode(plan::KvWriteOp op, Frame &frame) {
  Read slots = frame.read(op.getSlotMapping());
  for (auto [in, state] :
       {std::pair(frame.input(op), op.getKCache()), {frame.read(op.getV()), op.getVCache()}}) {
    Pool pool = frame.pool(state);
    for (int64_t r = 0; r < in.rows; ++r) {
      int64_t slot = int64_t(slots.value[r]);
      if (slot < 0)
        continue;
      if (Status status = frame.checkEntry(op, pool, slot, "writes position"); !status.ok())
        return status;
      Tensor value;
      value.shape.assign(pool.shape.begin(), pool.shape.end());
      value.exact.assign(in.row(r), in.row(r) + pool.entry);
      if (in.error)
        value.slack.assign(in.rowError(r), in.rowError(r) + pool.entry);
      frame.writeState(op, pool, slot, std::move(value));
    }
  }
  return {};
}

namespace {
/// What one query head attends to.
struct Attention {
  const double *query;
  const double *queryError; // null: none
  int64_t length;           // of a head
  std::vector<const uint16_t *> keys, values;
};

/// How a device rounds in it; units of 2^-24 for the number of positions.
struct AttentionRoundings {
  AttentionRoundings(const Frame &frame, plan::PagedAttentionOp op, int64_t count)
      : judging(frame.judging), scores(frame.roundings(op, "scores")),
        difference(frame.roundings(op, "difference")),
        // Once in the slice, and where slices are merged, level by level.
        exp(frame.roundings(op, "exp") * (1 + numerics::merges(frame.part(op, "weights"), count))),
        weights(numerics::roundings(frame.part(op, "weights"), count)),
        values(numerics::roundings(frame.part(op, "values"), count)),
        quotient(frame.roundings(op, "rcp") + frame.roundings(op, "product")) {}
  bool judging;
  double scores, difference, exp, weights, values, quotient;
};
} // namespace

/// Weights w_j that are off by e_j move sum w_j V_j / sum w_j by sum e_j (V_j - out) / sum (w_j +
/// e_j), and no weights above zero move it out of the range of the V_j; then the two sums and the
/// quotient round.
static void boundQuotient(const Attention &a, const AttentionRoundings &roundings,
                          const std::vector<double> &weight, const std::vector<double> &error,
                          double total, const double *out, const double *magnitude, double *slack) {
  double off = 0, worst = 0;
  std::vector<double> farthest(a.length), largest(a.length);
  for (size_t j = 0; j < weight.size(); ++j) {
    off += error[j] / total;
    worst = std::max(worst, weight[j] > 0 ? error[j] / weight[j] : 0);
    for (int64_t d = 0; d < a.length; ++d) {
      double value = bf16ToFloat(a.values[j][d]), away = std::fabs(value - out[d]);
      slack[d] += error[j] / total * away;
      farthest[d] = std::max(farthest[d], away);
      largest[d] = std::max(largest[d], std::fabs(value));
    }
  }
  double room = off < 1 ? 1 - off : 0, sums = numerics::gamma(roundings.values);
  for (int64_t d = 0; d < a.length; ++d) {
    // fmin: of a bound that is no number, the other one.
    numerics::Value result{out[d], std::fmin(slack[d] / room, farthest[d])};
    result.error += sums * std::fmin(magnitude[d] * (1 + worst) / room, largest[d]) +
                    roundings.values * numerics::kUnderflow;
    slack[d] = rounded(result, roundings.weights + roundings.quotient).error;
  }
}

static void attend(const Attention &a, const AttentionRoundings &roundings, double *out,
                   double *magnitude, double *slack) {
  int64_t count = a.keys.size();
  double unit = 1 / std::sqrt(double(a.length));
  std::vector<double> score(count), error(count);
  for (int64_t j = 0; j < count; ++j) {
    double sum = 0, terms = 0, moved = 0;
    for (int64_t d = 0; d < a.length; ++d) {
      double key = bf16ToFloat(a.keys[j][d]);
      sum += a.query[d] * key;
      terms += std::fabs(a.query[d] * key);
      moved += a.queryError ? a.queryError[d] * std::fabs(key) : 0;
    }
    score[j] = sum * unit;
    error[j] = (moved + numerics::gamma(roundings.scores) * (terms + moved)) * unit;
  }
  double largest = count ? *std::max_element(score.begin(), score.end()) : 0, total = 0;
  double largestError = count ? *std::max_element(error.begin(), error.end()) : 0;
  for (int64_t j = 0; j < count; ++j) {
    // How far a weight may be off. The maximum's own error cancels: it is one f32 number, by whose
    // power all weights are divided. The differences to the maxima of slices add up to this one.
    double difference = largest - score[j];
    double moved =
        error[j] + numerics::gamma(roundings.difference) * (difference + error[j] + largestError);
    numerics::Value weight = rounded(numerics::exponential({-difference, moved}), roundings.exp);
    score[j] = weight.value;
    error[j] = weight.error;
    total += score[j];
  }
  std::fill(out, out + a.length, 0);
  std::fill(magnitude, magnitude + a.length, 0);
  std::fill(slack, slack + a.length, 0);
  for (int64_t j = 0; j < count; ++j)
    for (int64_t d = 0; d < a.length; ++d) {
      double term = score[j] / total * bf16ToFloat(a.values[j][d]);
      out[d] += term;
      magnitude[d] += std::fabs(term);
    }
  if (roundings.judging)
    boundQuotient(a, roundings, score, error, total, out, magnitude, slack);
}

Status evaluateNode(plan::PagedAttentionOp op, Frame &frame) {
  Read q = frame.input(op), tables = frame.read(op.getBlockTables());
  Read lengths = frame.read(op.getSeqLens());
  Pool keys = frame.pool(op.getKCache()), values = frame.pool(op.getVCache());
  int64_t kvHeads = keys.shape[0], length = keys.shape[1], block = frame.options.kvBlock;
  int64_t heads = q.columns / length;
  Tensor &out = frame.define(op.getResult());
  for (int64_t r = 0; r < q.rows; ++r) {
    int64_t count = int64_t(lengths.value[r]);
    if (count < 0 || count > tables.columns * block)
      return nodeError(op, "row {} attends to {} positions, but its block table holds {}", r, count,
                       tables.columns * block);
    std::vector<int64_t> positions(count);
    for (int64_t j = 0; j < count; ++j) {
      positions[j] = int64_t(tables.row(r)[j / block]) * block + j % block;
      for (const Pool &pool : {keys, values})
        if (Status status = frame.checkEntry(op, pool, positions[j], "reads position");
            !status.ok())
          return status;
    }
    AttentionRoundings roundings(frame, op, count);
    parallelFor(frame.options, heads, 4 * count * length, [&](int64_t begin, int64_t end) {
      for (int64_t h = begin; h < end; ++h) {
        int64_t kvHead = h / (heads / kvHeads), at = h * length, o = r * q.columns + at;
        Attention attention{q.row(r) + at, q.error ? q.rowError(r) + at : nullptr, length, {}, {}};
        for (int64_t position : positions) {
          attention.keys.push_back(keys.bf16(position) + kvHead * length);
          attention.values.push_back(values.bf16(position) + kvHead * length);
        }
        attend(attention, roundings, &out.exact[o], &out.magnitude[o], &out.slack[o]);
      }
    });
  }
  return {};
}

} // namespace planc::reference
