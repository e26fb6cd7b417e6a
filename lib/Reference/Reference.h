//===- Reference.h - what a plan computes, on the CPU ----------------------===//
//
// The door of lib/Reference: evaluates groups, kernels and whole graphs of the plan dialect with
// float64 accumulators, rounding exactly where the plan says so (a value is rounded when it is
// stored, and where a step names a narrower format). Written from the definition of the ops; it
// shares nothing with the schedules, which it judges.
//
// Beside each value it says how far a correct device may be from it (`slack`: lib/Numerics applied
// to how the device's kernel rounds, and what its own inputs may be off), so that Compare.h need not
// know any op.
//
// Thread-safe: no state is shared. Results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_REFERENCE_H
#define PLANC_LIB_REFERENCE_REFERENCE_H

#include "lib/Numerics/Numerics.h"
#include "lib/Support/Error.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlir {
class Operation;
} // namespace mlir

namespace planc::reference {

/// How the elements of an edge lie in memory.
enum class Element : uint8_t { BF16, F32, I32, I64 };
unsigned elementBytes(Element element);
std::string_view elementName(Element element);

/// The memory of one argument of a region; borrowed. Only states are written.
struct Argument {
  void *data = nullptr;          ///< edges row-major, weights as stored, states as their pool
  uint64_t bytes = 0;            ///< of `data`
  const float *scales = nullptr; ///< of a weight with block scales
};

/// A value of the plan.
struct Tensor {
  Element element = Element::F32;
  std::vector<int64_t> shape;
  std::vector<double> stored;    ///< in its stored format
  std::vector<double> exact;     ///< before it was rounded to that
  std::vector<double> magnitude; ///< sum of |terms| that made up `exact`
  std::vector<double> slack; ///< a device may be this far from `exact` before it rounds; empty: 0

  int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  int64_t columns() const;
};

/// A result of a node.
struct NodeResult {
  std::string node; ///< id in the plan, or `plan.op` inside a kernel
  unsigned index = 0;
  std::string edge; ///< id in the plan; empty inside a kernel
  Tensor value;
};

/// A stretch of a state's pool that a node wrote.
struct StateWrite {
  std::string node;
  unsigned argument = 0; ///< of the region
  uint64_t element = 0;  ///< first element in the pool
  Tensor value;
};

struct Evaluation {
  std::vector<NodeResult> results; ///< of every node, fused ones too, in order
  std::vector<size_t> outputs;     ///< what the region yields: positions in `results`
  std::vector<StateWrite> states;  ///< in order of the writes

  const Tensor &output(size_t i) const { return results[outputs[i]].value; }
};

struct Options {
  unsigned kvBlock = 16; ///< positions in a block of a paged cache
  unsigned threads = 0;  ///< 0: one per core
};

/// Evaluates a `plan.kernel` or `plan.group` whose dims are bound. `arguments` are those of its
/// region, in order; states are updated in place. `observed` are outputs that a device computed
/// (empty, or one per output; null where unknown): readers inside the region then take the stored
/// value from there, as the device's own readers did. `arithmetic` says how that device rounds in
/// each member of the region; without it no device is judged, and slack means nothing.
Result<Evaluation> evaluate(mlir::Operation *region, std::span<const Argument> arguments,
                            const Options &options = {}, std::span<const Argument> observed = {},
                            std::span<const numerics::Node> arithmetic = {});

/// What a graph takes from outside; asked once per step input, weight and state.
enum class Binding { StepInput, Weight, State };
using Binder = std::function<Result<Argument>(Binding, std::string_view name)>;

/// Called after each node of a graph.
using Observer = std::function<void(const NodeResult &)>;

/// Evaluates one step of a bound `plan.graph`, node by node or group by group as it stands, in the
/// order that its data and states ask for.
Status evaluateGraph(mlir::Operation *graph, const Binder &bind, const Observer &observe,
                     const Options &options = {});

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_REFERENCE_H
