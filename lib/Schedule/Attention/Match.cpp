//===- Match.cpp - which kernels the attention schedule takes -------------===//
//
// One paged attention, alone or with its neighbours of the same rows:
//
//   kv_write ->         nothing orders the CTAs of one kernel start, so that positions which the
//   kernel itself writes are
//                       read from k and v instead (see Write.cpp)
//   element-wise ->     what makes the queries, evaluated where they are loaded
//   element-wise <-     the gate and the like, evaluated on the finished result
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Attention/Attention.h"
#include "lib/Schedule/Elementwise.h"
#include "lib/Schedule/Reduce.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace plan;

namespace planc {

static Refusal refuse(Operation *node, const Twine &reason) { return {reason.str(), node}; }

/// Finds the attention and the write, both at most once.
static std::optional<Refusal> findMembers(KernelOp kernel, AttentionKernel &parts) {
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto attention = dyn_cast<PagedAttentionOp>(op)) {
      if (parts.attention)
        return refuse(&op, "it is a second attention in one kernel");
      parts.attention = attention;
    } else if (auto write = dyn_cast<KvWriteOp>(op)) {
      if (parts.write)
        return refuse(&op, "it is a second write in one kernel");
      parts.write = write;
    }
  }
  if (!parts.attention)
    return refuse(nullptr, "it holds no attention");
  return std::nullopt;
}

/// All other members are evaluated for the 8 columns of a row that a lane finishes.
static std::optional<Refusal> checkElementwise(KernelOp kernel, AttentionKernel &parts) {
  llvm::SmallPtrSet<Operation *, 8> after = {parts.attention};
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (&op == parts.attention || &op == parts.write)
      continue;
    if (maxChunk(&op) < 8 || normLength(&op) || isa<Conv1dUpdateOp>(op))
      return refuse(&op, "it is not element-wise in whole stretches of 8 columns");
    auto reads = [&](Value operand) { return after.contains(operand.getDefiningOp()); };
    if (llvm::any_of(op.getOperands(), reads)) {
      if (!isa<ResidualAddOp, SigmoidGateMulOp>(op))
        return refuse(&op, "it takes other columns of the attention's result than it gives");
      after.insert(&op);
    }
    for (Value result : op.getResults()) {
      bool isStored =
          llvm::any_of(result.getUsers(), [](Operation *user) { return isa<YieldOp>(user); });
      bool isAlike = *knownDim(result.getType(), 0) == parts.rows &&
                     *knownDim(result.getType(), 1) == parts.queryHeads * parts.headDim;
      if (isStored && !isAlike)
        return refuse(&op, "its result has other rows or columns than that of the attention");
    }
  }
  return std::nullopt;
}

/// The positions written must be among those read, and be the bytes that the cache would hold.
static std::optional<Refusal> checkWrite(KvWriteOp write, PagedAttentionOp attention) {
  if (write.getKCache() != attention.getKCache() || write.getVCache() != attention.getVCache())
    return refuse(write, "it writes other caches than the attention reads");
  if (!write->isBeforeInBlock(attention))
    return refuse(write, "it comes after the attention that reads its caches");
  for (Value input : {write.getK(), write.getV()}) {
    if (!isa<BlockArgument>(input))
      return refuse(write, "its input is made in the same kernel, where no other part can read it");
    if (storedFormat(input) != Format::BF16)
      return refuse(write, "its input is not stored in the format of the cache");
  }
  if (!isa<BlockArgument>(write.getSlotMapping()))
    return refuse(write, "its slots are made in the same kernel");
  return std::nullopt;
}

/// How a head is spread over the lanes, and how many heads one CTA serves.
static void chooseTiling(AttentionKernel &parts) {
  int64_t pieces = parts.headDim / 8;
  parts.lanes = std::min<int64_t>(32, llvm::PowerOf2Ceil(pieces));
  parts.chunks = llvm::divideCeil(pieces, parts.lanes);
  // A lane holds its dims of all the heads' queries in f32, later as many sums.
  int64_t shared = parts.queryHeads / parts.kvHeads;
  parts.heads = std::min(shared, std::max<int64_t>(1, 8 / parts.chunks));
  while (shared % parts.heads)
    --parts.heads;
}

std::optional<Refusal> matchAttention(KernelOp kernel, AttentionKernel &parts) {
  if (auto refusal = findMembers(kernel, parts))
    return refusal;
  PagedAttentionOp attention = parts.attention;
  if (kernel.getCompute() != "cuda_core" && kernel.getCompute() != "memory")
    return refuse(nullptr,
                  "it attends on CUDA cores, but the group asks for " + kernel.getCompute());
  for (Value input : {attention.getBlockTables(), attention.getSeqLens()})
    if (!isa<BlockArgument>(input))
      return refuse(attention, "its input is made in the same kernel");
  if (parts.write)
    if (auto refusal = checkWrite(parts.write, attention))
      return refusal;

  SmallVector<int64_t> cache = cast<StateType>(attention.getKCache().getType()).getShape();
  parts.kvHeads = cache[0];
  parts.headDim = cache[1];
  parts.rows = *knownDim(attention.getQ().getType(), 0);
  parts.queryHeads = *knownDim(attention.getQ().getType(), 1) / parts.headDim;
  parts.blockTableWidth = *knownDim(attention.getBlockTables().getType(), 1);
  if (parts.headDim % 32 || parts.headDim > kMaxHeadDim)
    return refuse(attention, "its heads are " + Twine(parts.headDim) +
                                 " long, expected a multiple of 32 up to " + Twine(kMaxHeadDim));
  if (auto refusal = checkElementwise(kernel, parts))
    return refusal;
  parts.yielded.assign(kernel.getBody().front().getTerminator()->operand_begin(),
                       kernel.getBody().front().getTerminator()->operand_end());
  chooseTiling(parts);
  return std::nullopt;
}

} // namespace planc
