//===- Schedule.h - from a plan.kernel to a gpu.module --------------------===//
//
// The door of lib/Schedule. A schedule is one way to turn the content of a kernel into one GPU
// kernel. It says whether it takes a kernel, with the reason when not, and emits it for a target.
// What decides is the content and the declared compute unit, never a name.
//
// Everything here may run on several threads at once, each with an MLIR context of its own.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_SCHEDULE_H
#define PLANC_LIB_SCHEDULE_SCHEDULE_H

#include "dialects/Plan/PlanOps.h"
#include "lib/Numerics/Numerics.h"

namespace planc {

struct Target;
class KernelBuilder;

/// What a kernel is compiled for.
struct ScheduleContext {
  const Target &target;
  int64_t kvBlock; ///< token positions in a block of the paged caches, a power of two
};

/// How a kernel is started, and what it needs besides its operands.
struct LaunchShape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  uint64_t scratchBytes = 0; ///< global memory that holds nothing between launches
  uint64_t counters = 0;     ///< u32 words, zero before and after every launch
  /// Blocks that a multiprocessor should hold: what bounds registers. 0 leaves it to the assembler,
  /// which may spill a few to hold more blocks.
  uint32_t minBlocks = 0;
};

/// Why a schedule does not take a kernel.
struct Refusal {
  std::string reason;
  mlir::Operation *node = nullptr; ///< the member it is about, or null
};

class Schedule {
public:
  virtual ~Schedule() = default;
  virtual llvm::StringRef name() const = 0;

  /// Nothing if the kernel can be emitted for every target. Looks at content and declared compute.
  virtual std::optional<Refusal> refuses(plan::KernelOp kernel) const = 0;

  /// Emits an accepted kernel: fills `shape`, then calls `KernelBuilder::begin` with it, then
  /// builds the body, and notes how its members round (`KernelBuilder::note`). Fails, after an error was reported, only where the target or the context
  /// lacks something.
  virtual mlir::LogicalResult emit(plan::KernelOp kernel, KernelBuilder &builder,
                                   const ScheduleContext &context, LaunchShape &shape) const = 0;
};

/// All schedules, in the order in which they are asked.
llvm::ArrayRef<const Schedule *> allSchedules();

using Refusals = llvm::SmallVector<std::pair<llvm::StringRef, Refusal>>;

/// The first schedule that takes the kernel, or null and why each of them does not.
const Schedule *selectSchedule(plan::KernelOp kernel, Refusals &refusals);

/// Splits the members of a kernel that no schedule takes into sub-groupings, in member order, each
/// of which a schedule takes; greedy, each as long as possible. A member that no schedule takes
/// even alone is a grouping of its own.
llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> nearestGrouping(plan::KernelOp kernel);

/// "sm_121" and the like come later: one gpu.module with one kernel in direct style.
struct EmittedKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entry;        ///< the PTX entry
  llvm::StringRef schedule; ///< its name, lives as long as the process
  LaunchShape shape;
  std::vector<numerics::Node> arithmetic; ///< how each member rounds, the same on all targets
};

/// Selects a schedule and emits. Reports what went wrong at the kernel's location.
mlir::FailureOr<EmittedKernel> emitKernel(plan::KernelOp kernel, const ScheduleContext &context);

/// The dialects that emitted modules use. A context that emits on several threads loads them first.
void registerScheduleDialects(mlir::DialectRegistry &registry);

/// `--plan-emit-kernels{target= kv-block=}`: replaces a module by the gpu.modules of its kernels.
void registerEmitKernelsPass();

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_SCHEDULE_H
