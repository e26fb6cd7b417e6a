//===- Ops.h - what the importer knows of each op word --------------------===//
//
// Private to lib/Import. The rows are in Ops.def.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_IMPORT_OPS_H
#define PLANC_LIB_IMPORT_OPS_H

#include "lib/Import/Config.h"

#include "dialects/Plan/PlanDialect.h"
#include "mlir/IR/Builders.h"

namespace planc {

/// Tensors of the checkpoint that fill a stretch of a weight's rows.
struct PartSpec {
  /// `{L}` is the prefix of the node's layer, `{e}` counts the experts.
  const char *tensor;
  /// Shape of the tensor (of each expert's tensor).
  const char *shape;
};

enum class WeightKind {
  /// The node's matrix: `precision.weight` says the format; with block scales in a tensor of their
  /// own.
  Matrix,
  /// A table of rows on the host, in the format of the node's result.
  Table,
  /// bf16, as the checkpoint has it.
  Bf16,
  /// bf16, from bf16 or f32.
  ToBf16,
  /// f32, from bf16 or f32.
  ToF32,
};

struct WeightSpec {
  /// Name among the node's weights.
  const char *name;
  WeightKind kind;
  const char *shape;
  std::vector<PartSpec> parts;
  /// Only for these block types or, where the op has several kinds of input, these inputs; empty:
  /// always.
  const char *when = "";
};

struct StateSpec {
  const char *name;
  plan::Access access;
  plan::StateKind kind;
  const char *shape;
  plan::Format format;
};

/// What the attributes of an op may depend on.
struct OpContext {
  const ModelConfig &config;
  llvm::StringRef word;
  llvm::StringRef mode; ///< of the plan's arm
};
using AttributeBuilder = void (*)(mlir::OperationState &state, mlir::Builder &builder,
                                  const OpContext &context);

/// One op word. Lists are separated by commas; alternatives by `|`, and the alternatives of inputs
/// and outputs correspond by position.
struct OpSpec {
  llvm::StringRef word;
  llvm::StringRef mlirName;
  /// Last segments of the edge ids, in the order of the op's operands.
  const char *inputs;
  const char *outputs;
  /// A result that no edge carries: it leaves the program.
  const char *programOutput;
  const char *stepInputs;
  std::vector<WeightSpec> weights;
  std::vector<StateSpec> states;
  /// Variants that the op's formula has, `key=value`.
  const char *points;
  bool mayRunOnHost;
  AttributeBuilder attributes;

  /// Whether the op multiplies by a matrix, i.e. `precision.weight` is not null.
  bool hasMatrix() const;
};

llvm::ArrayRef<OpSpec> opSpecs();
const OpSpec *findOp(llvm::StringRef word);

/// Splits one of the lists above.
llvm::SmallVector<llvm::StringRef> splitList(llvm::StringRef list, char separator = ',');

/// A value that the runtime gives anew each step.
struct StepInputSpec {
  llvm::StringRef name;
  llvm::SmallVector<const char *> shape;
  plan::Format format;
};
const StepInputSpec &findStepInput(llvm::StringRef name);

} // namespace planc

#endif // PLANC_LIB_IMPORT_OPS_H
