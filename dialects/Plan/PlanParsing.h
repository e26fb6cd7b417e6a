//===- PlanParsing.h - parsers shared by attributes and types -------------===//

#ifndef PLAN_PARSING_H
#define PLAN_PARSING_H

#include "dialects/Plan/PlanDialect.h"

namespace plan {

mlir::FailureOr<Format> parseFormat(mlir::AsmParser &parser);
mlir::FailureOr<DimAttr> parseDim(mlir::AsmParser &parser);
/// `d0 x d1 x ...`
mlir::LogicalResult parseDims(mlir::AsmParser &parser, llvm::SmallVectorImpl<DimAttr> &dims);
void printDims(mlir::AsmPrinter &printer, llvm::ArrayRef<DimAttr> dims);

} // namespace plan

#endif // PLAN_PARSING_H
