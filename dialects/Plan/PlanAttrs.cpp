//===- PlanAttrs.cpp - attributes: parsing, printing, dim expressions -----===//

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Plan/PlanParsing.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plan;

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

void PlanDialect::registerAttrs() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Dim
//===----------------------------------------------------------------------===//

DimAttr DimAttr::get(MLIRContext *context, int64_t value) {
  return get(context, llvm::StringRef(std::to_string(value)));
}

static bool isInteger(StringRef factor) {
  return !factor.empty() && llvm::all_of(factor, llvm::isDigit);
}

static bool isName(StringRef factor) {
  return !factor.empty() && (llvm::isAlpha(factor[0]) || factor[0] == '_') &&
         llvm::all_of(factor, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Calls `onFactor` on each factor of each term and `onTerm` after each term.
static bool walkExpr(StringRef expr, llvm::function_ref<bool(StringRef)> onFactor,
                     llvm::function_ref<bool()> onTerm) {
  SmallVector<StringRef> terms, factors;
  expr.split(terms, '+');
  for (StringRef term : terms) {
    factors.clear();
    term.split(factors, '*');
    if (!llvm::all_of(factors, onFactor) || !onTerm())
      return false;
  }
  return true;
}

bool DimAttr::isValid(StringRef expr) {
  return walkExpr(expr, [](StringRef f) { return isInteger(f) || isName(f); }, [] { return true; });
}

LogicalResult DimAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef expr) {
  if (isValid(expr))
    return success();
  return emitError() << "'" << expr << "' is not a sum of products of names and integers";
}

std::optional<int64_t> DimAttr::evaluate(DictionaryAttr dims) const {
  int64_t sum = 0, product = 1;
  auto onFactor = [&](StringRef factor) {
    int64_t value;
    if (isInteger(factor)) {
      if (factor.getAsInteger(10, value))
        return false;
    } else {
      auto attr = dims ? dims.getAs<IntegerAttr>(factor) : IntegerAttr();
      if (!attr)
        return false;
      value = attr.getInt();
    }
    return !__builtin_mul_overflow(product, value, &product);
  };
  auto onTerm = [&] {
    bool fits = !__builtin_add_overflow(sum, product, &sum);
    product = 1;
    return fits;
  };
  return walkExpr(getExpr(), onFactor, onTerm) ? std::optional(sum) : std::nullopt;
}

std::optional<int64_t> DimAttr::getConstant() const { return evaluate(DictionaryAttr()); }

SmallVector<StringRef> DimAttr::getNames() const {
  SmallVector<StringRef> names;
  walkExpr(
      getExpr(),
      [&](StringRef factor) {
        if (!isInteger(factor) && !llvm::is_contained(names, factor))
          names.push_back(factor);
        return true;
      },
      [] { return true; });
  return names;
}

FailureOr<DimAttr> plan::parseDim(AsmParser &parser) {
  std::string expr;
  bool more = false;
  do {
    int64_t integer;
    OptionalParseResult isInt = parser.parseOptionalInteger(integer);
    if (isInt.has_value()) {
      if (failed(*isInt))
        return failure();
      expr += std::to_string(integer);
    } else {
      StringRef name;
      if (parser.parseKeyword(&name))
        return failure();
      expr += name;
    }
    more = true;
    if (succeeded(parser.parseOptionalStar()))
      expr += '*';
    else if (succeeded(parser.parseOptionalPlus()))
      expr += '+';
    else
      more = false;
  } while (more);
  auto loc = parser.getCurrentLocation();
  auto dim = DimAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                 StringRef(expr));
  if (!dim)
    return failure();
  return dim;
}

LogicalResult plan::parseDims(AsmParser &parser, SmallVectorImpl<DimAttr> &dims) {
  do {
    FailureOr<DimAttr> dim = parseDim(parser);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
  } while (succeeded(parser.parseOptionalKeyword("x")));
  return success();
}

void plan::printDims(AsmPrinter &printer, ArrayRef<DimAttr> dims) {
  llvm::interleave(
      dims, printer.getStream(), [&](DimAttr dim) { printer << dim.getExpr(); }, " x ");
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void DimAttr::print(AsmPrinter &printer) const { printer << '<' << getExpr() << '>'; }

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

FailureOr<Format> plan::parseFormat(AsmParser &parser) {
  StringRef word;
  auto loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Format> format = symbolizeFormat(word);
  if (!format)
    return parser.emitError(loc) << "'" << word << "' is not a format";
  return *format;
}

Attribute PrecisionAttr::parse(AsmParser &parser, Type) {
  Format weight = Format::None, act = Format::None;
  SmallVector<Format> out;
  auto parseField = [&]() -> ParseResult {
    StringRef field;
    auto loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&field) || parser.parseEqual())
      return failure();
    if (field == "out")
      return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        FailureOr<Format> format = parseFormat(parser);
        if (failed(format))
          return failure();
        out.push_back(*format);
        return success();
      });
    if (field != "weight" && field != "act")
      return parser.emitError(loc) << "expected 'weight', 'act' or 'out', found '" << field << "'";
    FailureOr<Format> format = parseFormat(parser);
    if (failed(format))
      return failure();
    (field == "weight" ? weight : act) = *format;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  return get(parser.getContext(), weight, act, out);
}

void PrecisionAttr::print(AsmPrinter &printer) const {
  SmallVector<std::string> fields;
  if (getWeight() != Format::None)
    fields.push_back(("weight = " + stringifyFormat(getWeight())).str());
  if (getAct() != Format::None)
    fields.push_back(("act = " + stringifyFormat(getAct())).str());
  if (!getOut().empty())
    fields.push_back(
        "out = [" +
        llvm::join(llvm::map_range(getOut(), [](Format f) { return stringifyFormat(f); }), ", ") +
        "]");
  printer << '<' << llvm::join(fields, ", ") << '>';
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult StepAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StepKind kind,
                               Format first, Format second) {
  bool pair = kind == StepKind::Weight || kind == StepKind::Mma;
  if (pair == (second != Format::None))
    return success();
  return emitError() << "step '" << stringifyStepKind(kind) << "' takes "
                     << (pair ? "two formats" : "one format");
}

static FailureOr<StepAttr> parseStep(AsmParser &parser) {
  StringRef word;
  auto loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<StepKind> kind = symbolizeStepKind(word);
  if (!kind)
    return parser.emitError(loc) << "'" << word << "' is not a step";
  FailureOr<Format> first = parseFormat(parser), second = Format::None;
  if (failed(first))
    return failure();
  if (*kind == StepKind::Weight ? succeeded(parser.parseOptionalArrow())
                                : succeeded(parser.parseOptionalStar()))
    second = parseFormat(parser);
  if (failed(second))
    return failure();
  auto step = StepAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                   *kind, *first, *second);
  if (!step)
    return failure();
  return step;
}

static void printStep(AsmPrinter &printer, StepAttr step) {
  printer << stringifyStepKind(step.getKind()) << ' ' << stringifyFormat(step.getFirst());
  if (step.getSecond() != Format::None)
    printer << (step.getKind() == StepKind::Weight ? " -> " : " * ")
            << stringifyFormat(step.getSecond());
}

Attribute StepAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<StepAttr> step = parseStep(parser);
  if (failed(step) || parser.parseGreater())
    return {};
  return *step;
}

void StepAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printStep(printer, *this);
  printer << '>';
}

Attribute StepsAttr::parse(AsmParser &parser, Type) {
  SmallVector<StepAttr> steps;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<StepAttr> step = parseStep(parser);
    if (failed(step))
      return failure();
    steps.push_back(*step);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne))
    return {};
  return get(parser.getContext(), steps);
}

void StepsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getSteps(), printer, [&](StepAttr step) { printStep(printer, step); });
  printer << '>';
}

StepAttr StepsAttr::find(StepKind kind) const {
  for (StepAttr step : getSteps())
    if (step.getKind() == kind)
      return step;
  return {};
}

//===----------------------------------------------------------------------===//
// Node
//===----------------------------------------------------------------------===//

bool NodeAttr::isFused(unsigned result) const {
  ArrayAttr flags = getFused();
  return flags && result < flags.size() && cast<BoolAttr>(flags[result]).getValue();
}

StringRef NodeAttr::getEdge(unsigned result) const {
  ArrayAttr ids = getEdges();
  return ids && result < ids.size() ? cast<StringAttr>(ids[result]).getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Part
//===----------------------------------------------------------------------===//

// `<"tensor", [d0 x d1], ["BF16"], scales, convert = f32>`
Attribute PartAttr::parse(AsmParser &parser, Type) {
  StringAttr tensor;
  SmallVector<DimAttr> shape;
  ArrayAttr accepts;
  bool scales = false;
  Format convert = Format::None;
  if (parser.parseLess() || parser.parseAttribute(tensor) || parser.parseComma() ||
      parser.parseLSquare() || failed(parseDims(parser, shape)) || parser.parseRSquare() ||
      parser.parseComma() || parser.parseAttribute(accepts))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("scales"))) {
      scales = true;
    } else {
      if (parser.parseKeyword("convert") || parser.parseEqual())
        return {};
      FailureOr<Format> format = parseFormat(parser);
      if (failed(format))
        return {};
      convert = *format;
    }
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), tensor, shape, accepts, scales, convert);
}

void PartAttr::print(AsmPrinter &printer) const {
  printer << '<' << getTensor() << ", [";
  printDims(printer, getShape());
  printer << "], " << getAccepts();
  if (getScales())
    printer << ", scales";
  if (getConvert() != Format::None)
    printer << ", convert = " << stringifyFormat(getConvert());
  printer << '>';
}
