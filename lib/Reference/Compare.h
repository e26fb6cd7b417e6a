//===- Compare.h - a device's results against the reference's --------------===//
//
// One launch at a time: the reference evaluates the launch on the device's own inputs, with the
// device's own stored outputs where the region reads them again, and every element must lie within
// the bound that follows from how the kernel rounds (lib/Numerics): it must be a rounding of some
// value inside. Bytes of a state that the launch does not write must be as before.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_COMPARE_H
#define PLANC_LIB_REFERENCE_COMPARE_H

#include "lib/Reference/Reference.h"

#include <memory>
#include <optional>

namespace planc::reference {

/// One launch as a device did it. All memory is borrowed.
struct Observation {
  /// Of the region, in order, as they were before the launch. The pools of states are updated.
  std::span<const Argument> arguments;
  /// What the device stored, in the order of the region's outputs; null: not to be compared.
  std::span<const Argument> outputs;
  /// One per argument: a state's pool after the launch; null for all others and for states that
  /// are not to be compared. May be empty.
  std::span<const Argument> states;
};

struct Mismatch {
  int64_t row = 0, column = 0;
  double device = 0, reference = 0; ///< as stored
  double limit = 0;                 ///< how far from the exact value it may be before it is rounded
};

/// The outcome for one output or one state.
struct EdgeReport {
  std::string edge; ///< the edge's id where it is known, else `node.0`; `node state 5` for a state
  std::string node;
  uint64_t elements = 0;
  double maxAbsError = 0;
  double relativeNorm = 0; ///< |device - reference| / |reference|
  /// The largest part of its bound that an element needs: how far from the exact value is what the
  /// device may have rounded, at least. 1 or less where nothing fails.
  double worstFraction = 0;
  uint64_t failures = 0;
  std::optional<Mismatch> first;
};

struct Report {
  std::vector<EdgeReport> edges;
  bool passed() const;
};

/// `arithmetic`: how the kernel rounds in each member of the region, as its schedule said.
Result<Report> compare(mlir::Operation *region, const Observation &observation,
                       std::span<const numerics::Node> arithmetic, const Options &options = {});

/// `l0.gdn.y: max abs error 0.0078, relative norm 0.0012, 0.3 of the bound`, and what fails`
std::string describe(const EdgeReport &report);

/// A bound plan as a bundle carries it: MLIR text or bytecode.
class BoundPlan {
public:
  static Result<BoundPlan> parse(std::string_view ir);
  BoundPlan(BoundPlan &&) noexcept;
  ~BoundPlan();

  /// What to evaluate for a kernel, a graph or a group of a graph; null if there is none.
  mlir::Operation *kernel(std::string_view symbol) const;
  mlir::Operation *graph(std::string_view symbol) const;
  mlir::Operation *group(std::string_view graph, int64_t id) const;

  /// Edge ids of a group's outputs, in order.
  std::vector<std::string> groupOutputs(std::string_view graph, int64_t id) const;

private:
  struct Impl;
  explicit BoundPlan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_COMPARE_H
