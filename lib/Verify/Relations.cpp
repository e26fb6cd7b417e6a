//===- Relations.cpp - what inputs are to each other ------------------------===//

#include "lib/Verify/Relations.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

using namespace mlir;

namespace planc::verify {

namespace {
class Relations {
public:
  Relations(plan::KernelOp kernel, int64_t kvBlock, std::vector<Input> &inputs)
      : body(kernel.getBody().front()), kvBlock(kvBlock), inputs(inputs) {}

  void steepenScores();
  void endTables();
  void emptyPools();

private:
  template <class T> std::span<T> dataOf(Value argument) {
    std::vector<std::byte> &data = inputs[cast<BlockArgument>(argument).getArgNumber()].data;
    return {reinterpret_cast<T *>(data.data()), data.size() / sizeof(T)};
  }
  /// Calls `body` with every position that a row reads, and its place in the pools.
  void
  forEachPosition(plan::PagedAttentionOp attention,
                  llvm::function_ref<void(int64_t position, int64_t length, int64_t entry)> body);
  std::set<int64_t> entriesRead(BlockArgument pool);

  Block &body;
  int64_t kvBlock;
  std::vector<Input> &inputs;
};
} // namespace

void Relations::forEachPosition(
    plan::PagedAttentionOp attention,
    llvm::function_ref<void(int64_t position, int64_t length, int64_t entry)> body) {
  std::span<int32_t> tables = dataOf<int32_t>(attention.getBlockTables());
  std::span<int32_t> lengths = dataOf<int32_t>(attention.getSeqLens());
  size_t width = tables.size() / lengths.size();
  for (size_t row = 0; row < lengths.size(); ++row)
    for (int64_t i = 0; i < lengths[row]; ++i)
      body(i, lengths[row], tables[row * width + i / kvBlock] * kvBlock + i % kvBlock);
}

/// The first dim of a head decides: keys have 8 there in the first half of the sequence and -8 in
/// the second. The last query head of each key is so large there that the scores of the halves are
/// 3200 / sqrt(D) apart, far more than an exponential bears; for the others it is zero, so that all
/// positions count.
void Relations::steepenScores() {
  constexpr uint16_t eight = 0x4100, minusEight = 0xC100, twoHundred = 0x4348; // bf16
  for (auto attention : body.getOps<plan::PagedAttentionOp>()) {
    if (!isa<BlockArgument>(attention.getQ()))
      continue;
    ArrayRef<plan::DimAttr> dims = cast<plan::StateType>(attention.getKCache().getType()).getDims();
    int64_t kvHeads = *dims[0].getConstant(), headDim = *dims[1].getConstant();
    std::span<uint16_t> queries = dataOf<uint16_t>(attention.getQ());
    std::span<uint16_t> keys = dataOf<uint16_t>(attention.getKCache());
    int64_t heads = cast<RankedTensorType>(attention.getQ().getType()).getDimSize(1) / headDim;
    for (size_t i = 0; i < queries.size() / headDim; ++i) {
      int64_t shared = heads / kvHeads, inShared = int64_t(i) % shared;
      bool isSteep = shared > 1 ? inShared + 1 == shared : i % 2 == 1;
      queries[i * headDim] = isSteep ? twoHundred : 0;
    }
    forEachPosition(attention, [&](int64_t position, int64_t length, int64_t entry) {
      for (int64_t head = 0; head < kvHeads; ++head)
        keys[(entry * kvHeads + head) * headDim] = position < length / 2 ? eight : minusEight;
    });
  }
}

void Relations::endTables() {
  for (auto attention : body.getOps<plan::PagedAttentionOp>()) {
    std::span<int32_t> tables = dataOf<int32_t>(attention.getBlockTables());
    std::span<int32_t> lengths = dataOf<int32_t>(attention.getSeqLens());
    size_t width = tables.size() / lengths.size();
    for (size_t row = 0; row < lengths.size(); ++row)
      for (size_t i = (lengths[row] + kvBlock - 1) / kvBlock; i < width; ++i)
        tables[row * width + i] = std::numeric_limits<int32_t>::max();
  }
}

/// Slots, or positions of a cache, that are read as they are before the launch.
std::set<int64_t> Relations::entriesRead(BlockArgument pool) {
  std::set<int64_t> entries;
  for (Operation *user : pool.getUsers()) {
    Value slots;
    if (auto conv = dyn_cast<plan::Conv1dUpdateOp>(user))
      slots = conv.getSlotsIn();
    else if (auto recurrence = dyn_cast<plan::GdnRecurrenceOp>(user))
      slots = recurrence.getSlotsIn();
    else if (auto attention = dyn_cast<plan::PagedAttentionOp>(user))
      forEachPosition(attention, [&](int64_t, int64_t, int64_t entry) { entries.insert(entry); });
    if (slots)
      for (int32_t slot : dataOf<int32_t>(slots))
        entries.insert(slot);
  }
  for (Operation *user : pool.getUsers())
    if (auto write = dyn_cast<plan::KvWriteOp>(user))
      for (int64_t slot : dataOf<int64_t>(write.getSlotMapping()))
        entries.erase(slot);
  return entries;
}

void Relations::emptyPools() {
  for (BlockArgument pool : body.getArguments()) {
    auto type = dyn_cast<plan::StateType>(pool.getType());
    if (!type)
      continue;
    size_t bytes = type.getFormat() == plan::Format::BF16 ? 2 : 4;
    for (int64_t extent : type.getShape())
      bytes *= size_t(extent);
    std::set<int64_t> read = entriesRead(pool);
    std::vector<std::byte> &data = inputs[pool.getArgNumber()].data;
    for (size_t entry = 0; entry < data.size() / bytes; ++entry)
      if (!read.contains(int64_t(entry))) // all bits set are a NaN
        std::fill_n(data.begin() + long(entry * bytes), bytes, std::byte(0xFF));
  }
}

void relateInputs(plan::KernelOp kernel, InputClass inputClass, int64_t kvBlock,
                  std::vector<Input> &inputs) {
  Relations relations(kernel, kvBlock, inputs);
  if (inputClass == InputClass::FullContext)
    relations.steepenScores();
  relations.endTables();
  relations.emptyPools();
}

} // namespace planc::verify
