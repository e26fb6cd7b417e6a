//===- Data.cpp - faults that other data makes -------------------------------===//
//
// The kernel is as it was, but the device gets other data than the reference, which is what a
// kernel with the fault would have made of the same.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Liveness.h"
#include "lib/Verify/Mutations.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace mlir;

namespace planc::verify {

namespace {
using DataSites = std::vector<DataSite>;

/// Block scales of a weight: [expert][row of blocks][column of blocks].
struct ScaleGrid {
  BlockArgument weight, ids; // ids: null if there is one matrix
  int64_t rows, columns;

  int64_t blocks() const { return rows * columns; }
  /// The scales of a matrix that the kernel reads.
  float *chosen(std::vector<Input> &inputs) const {
    int64_t expert = 0;
    if (ids) {
      int32_t first = 0;
      std::memcpy(&first, inputs[ids.getArgNumber()].data.data(), sizeof first);
      expert = first;
    }
    return &inputs[weight.getArgNumber()].scales[expert * blocks()];
  }
  std::string text() const { return fmt::format("argument {}", weight.getArgNumber()); }
};
} // namespace

/// The scales of all contractions whose matrix has such.
static std::vector<ScaleGrid> scaleGrids(plan::KernelOp kernel) {
  std::vector<ScaleGrid> grids;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto contraction = dyn_cast<plan::PlanContraction>(op);
    if (!contraction)
      continue;
    auto weight = dyn_cast<BlockArgument>(contraction.getMatrix());
    auto type = cast<plan::WeightType>(contraction.getMatrix().getType());
    Value ids = contraction.getExpertIds();
    if (!weight || type.getFormat() != plan::Format::FP8Block128x128 ||
        (ids && !isa<BlockArgument>(ids)))
      continue;
    SmallVector<int64_t> shape = type.getShape();
    grids.push_back({weight, ids ? cast<BlockArgument>(ids) : BlockArgument(),
                     shape[shape.size() - 2] / 128, shape.back() / 128});
  }
  return grids;
}

/// Replaces element (row, column) by `source(row, column)` of what it was, in a chosen matrix.
static void permute(float *scales, const ScaleGrid &grid,
                    llvm::function_ref<int64_t(int64_t, int64_t)> source) {
  std::vector<float> old(scales, scales + grid.blocks());
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      scales[row * grid.columns + column] = old[source(row, column)];
}

static DataSites findCorruptScale(plan::KernelOp kernel) {
  DataSites sites;
  for (const ScaleGrid &grid : scaleGrids(kernel))
    for (int64_t block : {int64_t(0), grid.blocks() - 1}) {
      sites.push_back({fmt::format("{} block {}", grid.text(), block),
                       [=](std::vector<Input> &inputs) {
                         float &scale = grid.chosen(inputs)[block];
                         scale = std::bit_cast<float>(std::bit_cast<uint32_t>(scale) + 0x10000);
                       },
                       nullptr});
      if (grid.blocks() == 1)
        break;
    }
  return sites;
}

static DataSites findSwappedScales(plan::KernelOp kernel) {
  DataSites sites;
  for (const ScaleGrid &grid : scaleGrids(kernel))
    if (grid.rows > 1 && grid.columns > 1) // else both orders are the same
      sites.push_back({grid.text(),
                       [=](std::vector<Input> &inputs) {
                         permute(grid.chosen(inputs), grid, [&](int64_t row, int64_t column) {
                           int64_t index = column * grid.rows + row;
                           return index % grid.blocks();
                         });
                       },
                       nullptr});
  return sites;
}

static DataSites findCoarseScales(plan::KernelOp kernel) {
  DataSites sites;
  for (const ScaleGrid &grid : scaleGrids(kernel))
    for (bool perRow : {true, false})
      if ((perRow ? grid.columns : grid.rows) > 1) // else it serves one block
        sites.push_back({fmt::format("{}, one a {}", grid.text(), perRow ? "row" : "column"),
                         [=](std::vector<Input> &inputs) {
                           permute(grid.chosen(inputs), grid, [&](int64_t row, int64_t column) {
                             return perRow ? row * grid.columns : column;
                           });
                         },
                         nullptr});
  return sites;
}

//===----------------------------------------------------------------------===//
// Rows of edges
//===----------------------------------------------------------------------===//

static unsigned bytesOf(RankedTensorType type) { return type.getElementTypeBitWidth() / 8; }

/// Gives `change` every row of an edge: its bytes, and how many elements of how many bytes.
static void forEachRow(Input &input, RankedTensorType type,
                       llvm::function_ref<void(std::byte *, int64_t, unsigned)> change) {
  int64_t columns = type.getNumElements() / type.getDimSize(0);
  for (int64_t row = 0; row < type.getDimSize(0); ++row)
    change(&input.data[row * columns * bytesOf(type)], columns, bytesOf(type));
}

/// Which output of the kernel a value is.
static std::optional<unsigned> outputOf(plan::KernelOp kernel, Value value) {
  Operation *yield = kernel.getBody().front().getTerminator();
  for (auto [i, other] : llvm::enumerate(yield->getOperands()))
    if (other == value)
      return unsigned(i);
  return std::nullopt;
}

/// On the mirrored row the last of equals comes first; its index mirrored is what a kernel with the
/// other rule gives.
static DataSites findLastOfEquals(plan::KernelOp kernel) {
  DataSites sites;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    Value indices;
    if (auto topK = dyn_cast<plan::TopKOp>(op))
      indices = topK.getIds();
    else if (auto argmax = dyn_cast<plan::ArgmaxOp>(op))
      indices = argmax.getToken();
    auto logits = indices ? dyn_cast<BlockArgument>(op.getOperand(0)) : BlockArgument();
    std::optional<unsigned> output = indices ? outputOf(kernel, indices) : std::nullopt;
    if (!logits || !output)
      continue;
    auto type = cast<RankedTensorType>(logits.getType());
    if (type.getDimSize(1) < 2) // it has no equal
      continue;
    sites.push_back({op.getName().getStringRef().str(),
                     [=](std::vector<Input> &inputs) {
                       forEachRow(inputs[logits.getArgNumber()], type,
                                  [](std::byte *row, int64_t columns, unsigned bytes) {
                                    for (int64_t i = 0; i < columns / 2; ++i)
                                      std::swap_ranges(row + i * bytes, row + (i + 1) * bytes,
                                                       row + (columns - 1 - i) * bytes);
                                  });
                     },
                     [=](Outcome &outcome) {
                       std::vector<std::byte> &data = outcome.outputs[*output];
                       for (size_t at = 0; at < data.size(); at += sizeof(int32_t)) {
                         int32_t index = 0;
                         std::memcpy(&index, &data[at], sizeof index);
                         index = int32_t(type.getDimSize(1)) - 1 - index;
                         std::memcpy(&data[at], &index, sizeof index);
                       }
                     }});
  }
  return sites;
}

/// A selection of one from one, whatever it is.
static bool isOnlyChoice(BlockArgument argument) {
  auto edge = dyn_cast<RankedTensorType>(argument.getType());
  return edge && edge.getRank() == 2 && edge.getDimSize(1) == 1 &&
         llvm::all_of(argument.getUsers(), llvm::IsaPred<plan::TopKOp, plan::ArgmaxOp>);
}

static DataSites findIgnoredOperand(plan::KernelOp kernel) {
  DataSites sites;
  for (BlockArgument argument : kernel.getBody().front().getArguments()) {
    auto edge = dyn_cast<RankedTensorType>(argument.getType());
    if (isa<plan::StateType>(argument.getType()) ||
        (edge && !isa<FloatType>(edge.getElementType())))
      continue;
    if (!plan::isRead(argument) || isOnlyChoice(argument)) // nothing comes of it
      continue;
    sites.push_back({fmt::format("argument {}", argument.getArgNumber()),
                     [=](std::vector<Input> &inputs) {
                       Input &input = inputs[argument.getArgNumber()];
                       std::fill(input.data.begin(), input.data.end(), std::byte(0));
                     },
                     nullptr});
  }
  return sites;
}

static DataSites findSwappedHalves(plan::KernelOp kernel) {
  DataSites sites;
  for (BlockArgument argument : kernel.getBody().front().getArguments()) {
    if (!llvm::any_of(argument.getUsers(), llvm::IsaPred<plan::SiluMulOp>))
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    sites.push_back({fmt::format("argument {}", argument.getArgNumber()),
                     [=](std::vector<Input> &inputs) {
                       forEachRow(inputs[argument.getArgNumber()], type,
                                  [](std::byte *row, int64_t columns, unsigned bytes) {
                                    int64_t half = columns / 2 * bytes;
                                    std::swap_ranges(row, row + half, row + half);
                                  });
                     },
                     nullptr});
  }
  return sites;
}

static DataSites findNoDecay(plan::KernelOp kernel) {
  DataSites sites;
  for (auto recurrence : kernel.getBody().front().getOps<plan::GdnRecurrenceOp>()) {
    auto decay = dyn_cast<BlockArgument>(recurrence.getDecay());
    if (!decay)
      continue;
    auto type = cast<RankedTensorType>(decay.getType());
    sites.push_back({fmt::format("argument {}", decay.getArgNumber()),
                     [=](std::vector<Input> &inputs) {
                       // 1 as f32 is 1 as bf16 behind two zero bytes.
                       uint32_t one = 0x3f800000;
                       std::vector<std::byte> &data = inputs[decay.getArgNumber()].data;
                       for (size_t at = 0; at < data.size(); at += bytesOf(type))
                         std::memcpy(&data[at],
                                     reinterpret_cast<std::byte *>(&one) + 4 - bytesOf(type),
                                     bytesOf(type));
                     },
                     nullptr});
  }
  return sites;
}

std::vector<DataSite> dataSites(MutationKind kind, plan::KernelOp kernel) {
  switch (kind) {
#define PLANC_DATA_MUTATION(Name, text, likely, description)                                       \
  case MutationKind::Name:                                                                         \
    return find##Name(kernel);
#include "lib/Verify/Mutations.def"
  default:
    return {};
  }
}

} // namespace planc::verify
