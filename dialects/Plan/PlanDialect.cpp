//===- PlanDialect.cpp - registration and formats -------------------------===//

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Plan/PlanOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"

void PlanDialect::initialize() {
  registerAttrs();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

llvm::StringRef plan::planSpelling(Format format) {
  // The plan separates a format's family and its parameters by a slash, which is no MLIR keyword.
  return format == Format::FP8Block128x128 ? "fp8/block128x128" : stringifyFormat(format);
}

std::optional<Format> plan::formatFromPlan(llvm::StringRef spelling) {
  if (spelling == planSpelling(Format::FP8Block128x128))
    return Format::FP8Block128x128;
  std::optional<Format> format = symbolizeFormat(spelling);
  return format == Format::FP8Block128x128 ? std::nullopt : format;
}

Type plan::elementType(MLIRContext *context, Format format) {
  switch (format) {
  case Format::BF16:
    return BFloat16Type::get(context);
  case Format::F32:
    return Float32Type::get(context);
  case Format::I32:
    return IntegerType::get(context, 32);
  case Format::I64:
    return IntegerType::get(context, 64);
  case Format::None:
  case Format::E4M3:
  case Format::FP8Block128x128:
    return {};
  }
  return {};
}

std::optional<Format> plan::formatOf(Type type) {
  if (type.isBF16())
    return Format::BF16;
  if (type.isF32())
    return Format::F32;
  if (type.isInteger(32))
    return Format::I32;
  if (type.isInteger(64))
    return Format::I64;
  return std::nullopt;
}

Format plan::storedFormat(Value edge) {
  if (auto type = dyn_cast<EdgeType>(edge.getType()))
    return type.getFormat();
  if (auto type = dyn_cast<RankedTensorType>(edge.getType()))
    return formatOf(type.getElementType()).value_or(Format::None);
  return Format::None;
}

static ArrayRef<DimAttr> symbolicDims(Type type) {
  return llvm::TypeSwitch<Type, ArrayRef<DimAttr>>(type)
      .Case<EdgeType, WeightType, StateType>([](auto t) { return t.getDims(); })
      .Default([](Type) { return ArrayRef<DimAttr>(); });
}

unsigned plan::numDims(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getRank();
  return symbolicDims(type).size();
}

std::optional<int64_t> plan::knownDim(Type type, unsigned index) {
  if (index >= numDims(type))
    return std::nullopt;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    int64_t size = tensor.getDimSize(index);
    return size == ShapedType::kDynamic ? std::nullopt : std::optional(size);
  }
  return symbolicDims(type)[index].getConstant();
}
