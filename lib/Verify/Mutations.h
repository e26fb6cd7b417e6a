//===- Mutations.h - faults to be planted in a kernel ----------------------===//
//
// Private to lib/Verify, and open to its tests. Where a fault fits is found from the structure of
// the IR, never from a name, and the same way each time: a place is known by its number.
//
// A mutation is left out only where something proves that it changes nothing: the finder of its
// kind checks and says what (a granularity of which there is one block, an operand that only
// orders), and whoever tries it sees that the PTX or the data stay the same.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_MUTATIONS_H
#define PLANC_LIB_VERIFY_MUTATIONS_H

#include "lib/Verify/KernelRun.h"

#include <functional>

namespace planc::verify {

enum class MutationKind {
#define PLANC_MUTATION(stage, Name, text, likely, description) Name,
#include "lib/Verify/Mutations.def"
};

enum class MutationStage { Plan, Gpu, Data };

/// "missing_eps".
const char *mutationName(MutationKind kind);
MutationStage mutationStage(MutationKind kind);
/// The class of inputs on which it most likely shows.
InputClass likelyClass(MutationKind kind);

/// One fault in one place.
struct Mutation {
  MutationKind kind;
  unsigned site;     ///< number of the place among those of its kind in the kernel
  std::string where; ///< "plan.rms_norm #1", "gpu.barrier #3"
};

/// All faults that fit a kernel, in the order of the table. Fails where the kernel has no schedule.
Result<std::vector<Mutation>> mutationsOf(plan::KernelOp kernel, const ScheduleContext &context);

/// A place in IR. `plant` changes the IR in which the place was found, once.
struct Site {
  std::string where;
  std::function<void()> plant;
};
using Sites = std::vector<Site>;

/// A copy of a kernel that may be changed.
struct PlanCopy {
  explicit PlanCopy(plan::KernelOp kernel, int64_t kvBlock);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  plan::KernelOp kernel;
  int64_t kvBlock; ///< that it is compiled for
};

/// The places of a kind of the Plan stage.
Sites planSites(MutationKind kind, PlanCopy &copy);

/// The places of a kind of the Gpu stage.
Sites gpuSites(MutationKind kind, plan::KernelOp kernel, EmittedKernel &emitted);

/// What the device gets instead of the inputs, and what is then to be done to its results to have
/// those of the faulty kernel.
struct DataSite {
  std::string where;
  std::function<void(std::vector<Input> &)> corrupt;
  std::function<void(Outcome &)> restore; ///< may be null
};

/// The places of a kind of the Data stage.
std::vector<DataSite> dataSites(MutationKind kind, plan::KernelOp kernel);

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_MUTATIONS_H
