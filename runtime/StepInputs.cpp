//===- StepInputs.cpp - what a step tells its kernels -----------------------===//
//
// See StepInputs.h. Part of every step, so it allocates nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/StepInputs.h"

using namespace planc;
using namespace planrt;

StepInputs::StepInputs(const StepMemory &memory, uint32_t rows, const bundle::Model &model)
    : programRows(rows), blockSize(model.kv_block), tableWidth(size_t(model.blocksPerSequence())) {
  auto find = [&]<class T>(const char *name, std::span<T> &out) {
    if (const StepMemory::Value *value = memory.input(name))
      out = {reinterpret_cast<T *>(value->block.data()), value->bytes / sizeof(T)};
  };
  find("token_ids", tokenIds);
  find("positions", positions);
  find("seq_lens", seqLens);
  find("slots_in", slotsIn);
  find("slots_out", slotsOut);
  find("block_tables", tables);
  find("slot_mapping", slotMapping);
}

void StepInputs::fill(std::span<const Row> rows, const Session &session) {
  auto set = []<class T>(std::span<T> values, size_t index, T value) {
    if (!values.empty())
      values[index] = value;
  };
  for (size_t r = 0; r < programRows; ++r) {
    bool idle = r >= rows.size();
    Row row = idle ? Row() : rows[r];
    set(tokenIds, r, row.token);
    for (size_t axis = 0; axis < 3; ++axis) // text: t, h and w are all the token's index
      set(positions, axis * programRows + r, int32_t(row.position));
    set(seqLens, r, idle ? 0 : int32_t(row.position + 1));
    set(slotsIn, r, row.slotIn);
    set(slotsOut, r, row.slotOut);
    int32_t block = idle ? -1 : session.lastBlock(row);
    set(slotMapping, r,
        block < 0 ? int64_t(-1) : int64_t(block) * blockSize + row.position % blockSize);
    if (tables.empty())
      continue;
    std::span<int32_t> table = tables.subspan(r * tableWidth, tableWidth);
    if (idle)
      std::fill(table.begin(), table.end(), 0);
    else
      session.fillTable(row, table);
  }
}
