//===- PlanTypes.cpp - edges, weights and states --------------------------===//

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Plan/PlanParsing.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plan;

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
}

/// `d0 x d1, format>`
static LogicalResult parseDimsAndFormat(AsmParser &parser, SmallVectorImpl<DimAttr> &dims,
                                        Format &format) {
  if (failed(parseDims(parser, dims)) || parser.parseComma())
    return failure();
  FailureOr<Format> parsed = parseFormat(parser);
  if (failed(parsed) || parser.parseGreater())
    return failure();
  format = *parsed;
  return success();
}

static void printDimsAndFormat(AsmPrinter &printer, ArrayRef<DimAttr> dims, Format format) {
  printDims(printer, dims);
  printer << ", " << stringifyFormat(format) << '>';
}

Type EdgeType::parse(AsmParser &parser) {
  SmallVector<DimAttr> dims;
  Format format;
  if (parser.parseLess() || failed(parseDimsAndFormat(parser, dims, format)))
    return {};
  return get(parser.getContext(), dims, format);
}

void EdgeType::print(AsmPrinter &printer) const {
  printer << '<';
  printDimsAndFormat(printer, getDims(), getFormat());
}

Type WeightType::parse(AsmParser &parser) {
  SmallVector<DimAttr> dims;
  Format format;
  if (parser.parseLess() || failed(parseDimsAndFormat(parser, dims, format)))
    return {};
  return get(parser.getContext(), dims, format);
}

void WeightType::print(AsmPrinter &printer) const {
  printer << '<';
  printDimsAndFormat(printer, getDims(), getFormat());
}

Type StateType::parse(AsmParser &parser) {
  SmallVector<DimAttr> dims;
  Format format;
  StringRef word;
  auto loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&word))
    return {};
  std::optional<StateKind> kind = symbolizeStateKind(word);
  if (!kind) {
    parser.emitError(loc) << "expected 'slots' or 'paged', found '" << word << "'";
    return {};
  }
  if (parser.parseComma() || failed(parseDimsAndFormat(parser, dims, format)))
    return {};
  return get(parser.getContext(), *kind, dims, format);
}

void StateType::print(AsmPrinter &printer) const {
  printer << '<' << stringifyStateKind(getKind()) << ", ";
  printDimsAndFormat(printer, getDims(), getFormat());
}

static SmallVector<int64_t> shapeOf(ArrayRef<DimAttr> dims) {
  return llvm::map_to_vector(
      dims, [](DimAttr dim) { return dim.getConstant().value_or(ShapedType::kDynamic); });
}

SmallVector<int64_t> WeightType::getShape() const { return shapeOf(getDims()); }
SmallVector<int64_t> StateType::getShape() const { return shapeOf(getDims()); }
