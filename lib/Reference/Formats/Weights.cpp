//===- Weights.cpp - the table of weight formats ---------------------------===//

#include "lib/Reference/Formats/Weights.h"

namespace planc::reference {

static constexpr WeightFormat kFormats[] = {
    {plan::Format::BF16, [](int64_t columns) -> uint64_t { return 2 * columns; }, false,
     decodeRowBF16},
    {plan::Format::F32, [](int64_t columns) -> uint64_t { return 4 * columns; }, false,
     decodeRowF32},
    {plan::Format::FP8Block128x128, [](int64_t columns) -> uint64_t { return columns; }, true,
     decodeRowFP8Block128x128},
};

const WeightFormat *lookupWeightFormat(plan::Format format) {
  for (const WeightFormat &row : kFormats)
    if (row.format == format)
      return &row;
  return nullptr;
}

std::vector<double> Weight::all() const {
  int64_t rows = 1;
  for (int64_t dim : llvm::ArrayRef(shape).drop_back())
    rows *= dim;
  std::vector<double> values(rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    row(r, values.data() + r * columns);
  return values;
}

} // namespace planc::reference
