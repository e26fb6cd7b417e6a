//===- Weights.cpp - weights and states of a manifest -----------------------===//
//
// A weight's parts follow each other along the rows, once for the data and once for the scales.
// With one tensor per expert, each expert is a slab of its own: offsets count inside the first, and
// the stride leads from one to the next.
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ManifestBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using planc::bundle::Dtype;

planc::bundle::Dtype planc::dtypeOf(Type elementType) {
  if (elementType.isBF16())
    return Dtype::bf16;
  if (elementType.isF32())
    return Dtype::f32;
  if (elementType.isInteger(32))
    return Dtype::i32;
  assert(elementType.isInteger(64) && "edges have one of these types");
  return Dtype::i64;
}

planc::bundle::Dtype planc::dtypeOf(plan::Format format) {
  switch (format) {
  case plan::Format::BF16:
    return Dtype::bf16;
  case plan::Format::F32:
    return Dtype::f32;
  case plan::Format::I32:
    return Dtype::i32;
  case plan::Format::I64:
    return Dtype::i64;
  case plan::Format::E4M3:
  case plan::Format::FP8Block128x128:
    return Dtype::e4m3;
  case plan::Format::None:
    break;
  }
  llvm_unreachable("nothing is stored as none");
}

bool planc::hasScales(plan::Format format) { return format == plan::Format::FP8Block128x128; }

static uint64_t countOf(ArrayRef<int64_t> shape) {
  return llvm::product_of(llvm::map_range(shape, [](int64_t extent) { return uint64_t(extent); }));
}

/// One f32 per 128 x 128 block of each matrix.
static planc::bundle::Shape scaleShape(ArrayRef<int64_t> shape) {
  planc::bundle::Shape scales(shape.begin(), shape.end());
  for (int64_t &extent : MutableArrayRef(scales).take_back(2))
    extent /= 128;
  return scales;
}

planc::bundle::Weight planc::describeWeight(plan::WeightOp weight, StringRef node) {
  auto type = weight.getType();
  SmallVector<int64_t> shape = type.getShape();
  Dtype dtype = dtypeOf(type.getFormat());

  bundle::Weight result;
  result.name = weight.getSymName().str();
  result.node = node.str();
  result.format = plan::planSpelling(type.getFormat()).str();
  result.layout = "row_major";
  result.shape.assign(shape.begin(), shape.end());
  result.bytes = countOf(shape) * byteSize(dtype);
  if (hasScales(type.getFormat())) {
    result.scale_shape = scaleShape(shape);
    result.scale_bytes = countOf(result.scale_shape) * byteSize(Dtype::f32);
  }
  result.host = weight.getHost();

  uint64_t end[2] = {0, 0}; // of the data and of the scales so far, in their slab
  for (auto part : weight.getParts().getAsRange<plan::PartAttr>()) {
    bundle::Part described;
    bool scales = part.getScales(), perExpert = part.getTensor().getValue().contains("{e}");
    for (plan::DimAttr dim : part.getShape())
      described.shape.push_back(*dim.getConstant());
    for (auto accepted : part.getAccepts().getAsRange<StringAttr>())
      described.dtypes.push_back(accepted.str());
    described.target = scales ? "scales" : "data";
    described.offset = end[scales];
    described.pattern = part.getTensor().str();
    if (perExpert) {
      uint64_t total = scales ? result.scale_bytes : result.bytes;
      described.strides = {total / shape.front()};
      described.pattern.replace(described.pattern.find("{e}"), 3,
                                "{e:0.." + std::to_string(shape.front() - 1) + "}");
    }
    end[scales] += countOf(described.shape) * byteSize(scales ? Dtype::f32 : dtype);
    result.parts.push_back(std::move(described));
  }
  return result;
}

planc::bundle::State planc::describeState(plan::StateOp state, int64_t layer, int64_t kvBlock) {
  auto type = state.getType();
  bundle::State result;
  result.name = state.getSymName().str();
  result.layer = layer;
  result.kind = plan::stringifyStateKind(type.getKind()).str();
  result.dtype = dtypeOf(type.getFormat());
  if (type.getKind() == plan::StateKind::Paged)
    result.shape.push_back(kvBlock);
  llvm::append_range(result.shape, type.getShape());
  result.bytes = countOf(result.shape) * byteSize(result.dtype);
  return result;
}
