//===- Match.cpp - which kernels the recurrence schedule takes ------------===//
//
// One gated delta rule and, around it, what concerns a single head of the same row:
//
//   gdn_gates -> [decay, beta]   two scalars a head, computed by every warp that needs them
//   l2_norm   -> [qkv]           q and k of the key head, normed by every warp that needs them
//   gated_rms_norm <- [result]   needs a whole head, so one CTA then owns one
//
// The convolution before l2_norm is not taken: a key head's channels serve several value heads, and
// no CTA may advance a window that others still read.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Recurrence/Recurrence.h"

using namespace mlir;
using namespace plan;

namespace planc {

static Refusal refuse(Operation *node, const Twine &reason) { return {reason.str(), node}; }

/// Sorts the members; each kind at most once.
static std::optional<Refusal> sortMembers(KernelOp kernel, RecurrenceKernel &parts) {
  auto take = [](auto &place, Operation &op) {
    using Op = std::decay_t<decltype(place)>;
    if (!isa<Op>(op) || place)
      return false;
    place = cast<Op>(op);
    return true;
  };
  Operation *second = nullptr, *foreign = nullptr;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (take(parts.recurrence, op) || take(parts.gates, op) || take(parts.l2Norm, op) ||
        take(parts.norm, op))
      continue;
    (isa<GdnRecurrenceOp>(op) ? second : foreign) = &op;
  }
  if (!parts.recurrence)
    return refuse(nullptr, "it holds no recurrence");
  if (second)
    return refuse(second, "it holds two recurrences");
  if (isa_and_nonnull<Conv1dUpdateOp>(foreign))
    return refuse(foreign, "several value heads read the window of one key channel, so no part of "
                           "the kernel may update it");
  if (foreign)
    return refuse(foreign, "it is no part of a recurrence");
  return std::nullopt;
}

/// Every member must hang on the recurrence by a whole value, and take the rest from outside.
static std::optional<Refusal> checkWiring(RecurrenceKernel &parts) {
  GdnRecurrenceOp recurrence = parts.recurrence;
  auto isStored = [](Value value) { return isa<BlockArgument>(value); };
  Value decay = recurrence.getDecay(), beta = recurrence.getBeta();
  if (parts.gates) {
    if (decay != parts.gates.getDecay() && beta != parts.gates.getBeta())
      return refuse(parts.gates, "its gates are not those of the recurrence");
    if (!isStored(parts.gates.getBa()))
      return refuse(parts.gates, "its input is made in the same kernel");
  }
  if (!isStored(decay) && !(parts.gates && decay == parts.gates.getDecay()))
    return refuse(recurrence, "its decay is made in the same kernel, but not by gdn_gates");
  if (!isStored(beta) && !(parts.gates && beta == parts.gates.getBeta()))
    return refuse(recurrence, "its beta is made in the same kernel, but not by gdn_gates");
  if (L2NormOp l2Norm = parts.l2Norm) {
    if (recurrence.getQkv() != l2Norm.getResult())
      return refuse(l2Norm, "its result is not the qkv of the recurrence");
    if (!isStored(l2Norm.getX()))
      return refuse(l2Norm, "its input is made in the same kernel");
    if (l2Norm.getHeadDim().getConstant() != parts.keyDim ||
        l2Norm.getHeads().getConstant() != 2 * parts.keyHeads)
      return refuse(l2Norm, "its heads are not the q and k heads of the recurrence");
  } else if (!isStored(recurrence.getQkv())) {
    return refuse(recurrence, "its qkv is made in the same kernel, but not by l2_norm");
  }
  if (GatedRmsNormOp norm = parts.norm) {
    if (norm.getCore() != recurrence.getResult())
      return refuse(norm, "it norms something else than the result of the recurrence");
    if (!isStored(norm.getQkvz()))
      return refuse(norm, "its gates are made in the same kernel");
    if (*knownDim(norm.getWeight().getType(), 0) != parts.valueDim)
      return refuse(norm, "its stretches are not the value heads of the recurrence");
  }
  return std::nullopt;
}

std::optional<Refusal> matchRecurrence(KernelOp kernel, RecurrenceKernel &parts) {
  if (auto refusal = sortMembers(kernel, parts))
    return refusal;
  GdnRecurrenceOp recurrence = parts.recurrence;
  if (kernel.getCompute() != "cuda_core" && kernel.getCompute() != "memory")
    return refuse(nullptr,
                  "a recurrence runs on CUDA cores, but the group asks for " + kernel.getCompute());
  SmallVector<int64_t> state = cast<StateType>(recurrence.getState().getType()).getShape();
  parts.valueHeads = state[0];
  parts.keyDim = state[1];
  parts.valueDim = state[2];
  parts.rows = *knownDim(recurrence.getQkv().getType(), 0);
  int64_t width = *knownDim(recurrence.getQkv().getType(), 1);
  parts.keyHeads = (width - parts.valueHeads * parts.valueDim) / (2 * parts.keyDim);
  if (parts.keyDim % 32 || parts.valueDim % 32)
    return refuse(recurrence, "its heads are " + Twine(parts.keyDim) + " and " +
                                  Twine(parts.valueDim) + " long, expected multiples of 32");
  if (parts.keyDim > kRowGroups * kMaxLaneRows)
    return refuse(recurrence, "its key heads are " + Twine(parts.keyDim) +
                                  " long; a state of at most " + Twine(kRowGroups * kMaxLaneRows) +
                                  " rows fits the registers");
  // One warp sums over a head, 32 elements a lane.
  if (parts.norm && parts.valueDim > 1024)
    return refuse(parts.norm, "its heads are longer than 1024");
  return checkWiring(parts);
}

} // namespace planc
