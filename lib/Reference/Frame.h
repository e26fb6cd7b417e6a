//===- Frame.h - the values of a region while it is evaluated --------------===//
//
// Private to lib/Reference. What an op's evaluation sees: its operands as memory or as values, a
// place for its results, and the options.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_FRAME_H
#define PLANC_LIB_REFERENCE_FRAME_H

#include "dialects/Plan/PlanOps.h"
#include "lib/Numerics/Bound.h"
#include "lib/Reference/Formats/Weights.h"
#include "lib/Reference/Reference.h"

#include <deque>

namespace planc::reference {

/// A value as a node reads it: [rows, columns], and how far a device's own may be off.
struct Read {
  const double *value = nullptr;
  const double *error = nullptr; ///< null: not at all
  int64_t rows = 0, columns = 0;

  numerics::Value at(int64_t i) const { return {value[i], errorAt(i)}; }
  const double *row(int64_t r) const { return value + r * columns; }
  const double *rowError(int64_t r) const { return error ? error + r * columns : nullptr; }
  double errorAt(int64_t i) const { return error ? error[i] : 0; }
};

/// A state's pool: entries of `entry` elements, by slot or by token position.
struct Pool {
  std::byte *data = nullptr; // borrowed
  Element element = Element::F32;
  int64_t entry = 0;
  int64_t entries = 0;
  unsigned argument = 0;
  llvm::SmallVector<int64_t> shape; ///< of an entry

  const float *f32(int64_t index) const {
    return reinterpret_cast<const float *>(data) + index * entry;
  }
  const uint16_t *bf16(int64_t index) const {
    return reinterpret_cast<const uint16_t *>(data) + index * entry;
  }
};

class Frame {
public:
  explicit Frame(const Options &options);

  const Options &options;
  /// Values will be held against a device's: nodes hear how far their inputs may be off.
  bool judging = false;

  /// Of the members of `body`, in order: how a device carries them out. Says what does not fit.
  Status judge(mlir::Block &body, std::span<const numerics::Node> arithmetic);
  /// A part of a node's arithmetic; one without roundings if no device is judged.
  const numerics::Part &part(mlir::Operation *op, std::string_view name) const;
  double roundings(mlir::Operation *op, std::string_view name) const {
    return numerics::roundings(part(op, name));
  }

  /// Gives `value` (an argument of the region or what a structure op stands for) its memory.
  Status bind(mlir::Value value, const Argument &argument, unsigned index);
  /// Makes `alias` another name of `value`.
  void alias(mlir::Value alias, mlir::Value value) { slots[alias] = slots.lookup(value); }

  /// As stored, whatever the element.
  Read read(mlir::Value value) const;
  /// Before it was rounded, where that is known.
  Read readHeld(mlir::Value value) const;
  /// The first input of a node, in the precision that its `act` asks for.
  Read input(plan::PlanNode node) const;

  Weight weight(mlir::Value value) const;
  Pool pool(mlir::Value value) const;

  /// The result to fill: `exact`, and with `sums` also `magnitude` and `slack`.
  Tensor &define(mlir::Value result, bool sums = true);
  /// Rounds the results of a node; `observed` may hold a device's own.
  Status store(mlir::Operation *op, llvm::function_ref<const Argument *(mlir::Value)> observed);

  /// Where a node writes entry `index` of `pool`, checked.
  Status checkEntry(mlir::Operation *op, const Pool &pool, int64_t index, const char *what) const;
  /// Stores `value.exact` into entry `index` of the pool and keeps it for comparison.
  void writeState(mlir::Operation *op, const Pool &pool, int64_t index, Tensor value);

  /// The result of `value`'s node, null for what came from outside.
  const NodeResult *resultOf(mlir::Value value) const;

  std::deque<NodeResult> results;
  std::deque<StateWrite> states;

private:
  struct Slot {
    Argument argument;
    unsigned index = 0;
    Tensor *tensor = nullptr;
    const NodeResult *result = nullptr;
    std::vector<double> *storedError = nullptr; // null: as a device has it
  };
  std::deque<Tensor> inputs;
  std::deque<std::vector<double>> errors;
  llvm::DenseMap<mlir::Value, Slot> slots;
  llvm::DenseMap<mlir::Operation *, const numerics::Node *> nodes;
};

/// Calls `body(begin, end)` on parts of [0, count), on several threads if `work` (operations per
/// item) makes it worth it. What is computed must not depend on the partition.
void parallelFor(const Options &options, int64_t count, int64_t work,
                 llvm::function_ref<void(int64_t, int64_t)> body);

/// An error that begins with who the node is.
template <class... Args>
Error nodeError(mlir::Operation *op, fmt::format_string<Args...> text, Args &&...args) {
  return {plan::describe(op) + ": " + fmt::format(text, std::forward<Args>(args)...),
          ErrorKind::Input};
}

#define PLAN_REFERENCE_OP(Op) Status evaluateNode(plan::Op op, Frame &frame);
#include "lib/Reference/Ops.def"

/// Evaluates one node and stores its results.
Status evaluateAndStore(mlir::Operation *op, Frame &frame,
                        llvm::function_ref<const Argument *(mlir::Value)> observed);

/// Reads `argument` as elements of a tensor type; shape and elements are the type's.
Result<Tensor> decode(mlir::Type type, const Argument &argument);

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_FRAME_H
