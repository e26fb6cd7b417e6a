//===- Content.h - what a contraction kernel has to compute ----------------===//
//
// Takes a kernel's region apart into components that share nothing but inputs, each of them
//
//   activation (stored, or made of norms and element-wise ops)  ->  dots  ->  element-wise epilogue
//   -> stores
//
// and says which node is in the way when the region has no such form. A component is described by
// its *elements*: the columns of what its epilogue makes. An element needs `parts` columns of each
// dot: gate and up, b and a, the two halves of an interleaved head. All schedules of contractions
// work on this description, and differ in how they get the sums.
//
// The only dot whose columns are not the elements' is a *gate*: one column, a factor of a whole row
// (the shared expert's gate in a blend).
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_CONTRACTION_CONTENT_H
#define PLANC_LIB_SCHEDULE_CONTRACTION_CONTENT_H

#include "lib/Schedule/Formats/WeightFormat.h"
#include "lib/Schedule/Schedule.h"

namespace planc::contraction {

/// Rows and columns of an edge.
int64_t rowsOf(Value edge);
int64_t columnsOf(Value edge);

/// True if an element of its results needs one element of each operand, or those that a column map
/// names.
bool isPointwise(mlir::Operation *op);

/// How elements map to the columns of a wide value, one that has `parts` columns an element:
///
///   part 0 of `stretch` elements | part 1 of the same elements | part 0 of the next ones | ...
struct ColumnMap {
  int64_t elements = 0;
  int64_t parts = 1;
  int64_t stretch = 0; ///< divides `elements`; equal to it if the parts are the halves of a row

  bool operator==(const ColumnMap &other) const = default;
  int64_t columns() const { return elements * parts; }
  /// Column of a part of an element.
  Value column(KernelBuilder &b, Value element, int64_t part) const;
  Value column(KernelBuilder &b, Value element, Value part) const;
  /// The other way: element and part of a column.
  std::pair<Value, Value> place(KernelBuilder &b, Value column) const;
};

/// The map of a value with as many columns as elements.
ColumnMap plainColumns(int64_t columns);
/// The map by which an element-wise op reads operand `operand`, if it reads more than one column of
/// it.
std::optional<ColumnMap> pairing(mlir::Operation *op, unsigned operand);

/// One contraction.
struct Dot {
  plan::PlanContraction op;
  const WeightFormat *format = nullptr;
  plan::Format activation = plan::Format::None; ///< as multiplied: bf16 or f32
  int64_t rows = 0, columns = 0, depth = 0;     ///< result rows, matrix rows and columns
  bool gate = false;                            ///< one column, used by all elements of a row

  Value x() const { return const_cast<Dot *>(this)->op.getActivation(); }
  Value result() const { return const_cast<Dot *>(this)->op->getResult(0); }
  Value ids() const { return const_cast<Dot *>(this)->op.getExpertIds(); }
  Value matrix() const { return const_cast<Dot *>(this)->op.getMatrix(); }
  /// Result rows that share an activation row: experts of one token.
  int64_t rowsPerActivation() const { return rows / rowsOf(x()); }
};

/// What a range of CTAs computes.
struct Component {
  /// Norms that activations or outputs read, in member order. Their rows are whole before any dot.
  llvm::SmallVector<mlir::Operation *> norms;
  llvm::SmallVector<Dot> dots;      ///< empty: element-wise alone
  llvm::SmallVector<Value> outputs; ///< yielded values, in the order of the yield
  int64_t rows = 0;                 ///< of the elements
  ColumnMap map;

  bool gathered() const;
  /// Result rows of a dot that one row of elements reads.
  int64_t rowsPerElementRow(const Dot &dot) const { return dot.gate ? 1 : dot.rows / rows; }
};

/// What a schedule can do beyond the common form.
struct Ability {
  /// Why a dot cannot be carried, or "".
  llvm::function_ref<std::string(const Dot &)> judge;
};

/// The components of a kernel, or the refusal.
struct Content {
  llvm::SmallVector<Component> components;
  std::optional<Refusal> refusal;
};

Content analyze(plan::KernelOp kernel, const Ability &ability);

} // namespace planc::contraction

#endif // PLANC_LIB_SCHEDULE_CONTRACTION_CONTENT_H
