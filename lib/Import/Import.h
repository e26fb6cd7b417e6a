//===- Import.h - plans and a config as the plan dialect ------------------===//
//
// The door of lib/Import. A plan (kbp-graph/v1) and a model's config.json are read strictly: all
// errors of a file are reported, each as an MLIR diagnostic whose location is `file#/json/path`.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_IMPORT_IMPORT_H
#define PLANC_LIB_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>

namespace planc {

struct ImportOptions {
  /// Positions in one block of the paged cache.
  int64_t kvBlock = 16;
  /// Longest sequence; nothing: the model's, at most 32768.
  std::optional<int64_t> maxContext;
  /// Takes groups whose contract is `differs`: nothing bounds what they compute.
  bool allowDiffers = false;
};

/// A file's content and how messages call it.
struct ImportSource {
  std::string name;
  std::string text;
};

/// Plans of one model (its arms) as one module: shared weights and states, a graph
/// `@<mode>_n<rows>` per plan, dims still symbolic. The module's `plan.dims` holds the model's
/// dims, `max_context`, `kv_block` and `max_blocks`. Null after errors, which the context's diagnostics got.
mlir::OwningOpRef<mlir::ModuleOp> importPlans(mlir::MLIRContext *context,
                                              llvm::ArrayRef<ImportSource> plans,
                                              const ImportSource &config,
                                              const ImportOptions &options = {});

/// The same from files.
mlir::OwningOpRef<mlir::ModuleOp> importPlanFiles(mlir::MLIRContext *context,
                                                  llvm::ArrayRef<std::string> plans,
                                                  const std::string &config,
                                                  const ImportOptions &options = {});

} // namespace planc

#endif // PLANC_LIB_IMPORT_IMPORT_H
