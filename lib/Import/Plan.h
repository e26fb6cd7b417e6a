//===- Plan.h - a plan file as checked records ----------------------------===//
//
// Private to lib/Import. Reading has three steps: Read.cpp checks each element by itself, Check.cpp
// checks what elements say of each other and resolves which edge is which operand, Build.cpp makes
// the IR. A step runs only if the one before found nothing wrong.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_IMPORT_PLAN_H
#define PLANC_LIB_IMPORT_PLAN_H

#include "lib/Import/Ops.h"

#include "mlir/IR/BuiltinOps.h"

namespace planc {

struct LayerEntry {
  const JsonValue *json;
  std::string kind;
  std::vector<std::string> blocks;
};

/// All rows of one edge id.
struct EdgeEntry {
  const JsonValue *json; // the first row
  std::string id;
  int64_t from;
  plan::Format format;
  plan::DimAttr rows, dim;
  bool fused;
  std::vector<std::pair<int64_t, const JsonValue *>> readers;

  /// Last segment of the id: what the value is to its writer and readers.
  llvm::StringRef segment() const { return llvm::StringRef(id).rsplit('.').second; }
};

struct NodeEntry {
  const JsonValue *json;
  const OpSpec *spec = nullptr;
  std::string id, block, blockType, kind;
  int64_t order = -1, layer = -1, group = -1;
  plan::Format weight = plan::Format::None, act = plan::Format::None;
  llvm::SmallVector<plan::Format> out;
  llvm::SmallVector<plan::StepAttr> steps;
  std::string compute, numerics;
  plan::Where where = plan::Where::Device;
  mlir::DictionaryAttr labels;
  /// In the order of the op's operands and results; a program output has none. Filled by checkPlan.
  llvm::SmallVector<const EdgeEntry *> inputs, outputs;

  /// `node "l0.gdn.add" (group 8, layer 0): `
  std::string who() const;
};

struct PlanContents {
  std::string mode;
  int64_t rows = 0;
  std::vector<LayerEntry> layers;
  std::vector<NodeEntry> nodes;
  std::vector<EdgeEntry> edges;
  std::vector<plan::GroupInfoAttr> groups;
  mlir::DictionaryAttr labels;
};

/// Each element by itself.
PlanContents readPlan(Problems &problems, const JsonValue &root, bool allowDiffers);

/// What elements say of each other and of the config; fills in the nodes' operands.
void checkPlan(Problems &problems, PlanContents &plan, const ModelConfig &config,
               llvm::StringRef configFile, const JsonValue &configRoot);

/// Adds the plan's graph, and those of its weights and states that are not there yet, to `module`.
/// Returns failure after an error.
mlir::LogicalResult buildPlan(Problems &problems, const PlanContents &plan,
                              const ModelConfig &config, mlir::ModuleOp module);

} // namespace planc

#endif // PLANC_LIB_IMPORT_PLAN_H
