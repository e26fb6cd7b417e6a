//===- KernelRun.h - one kernel, compiled, run and judged ------------------===//
//
// Private to lib/Verify, and open to the kernel tests. A plan.kernel says all that is needed to run
// it by itself: its arguments' types are the memory it takes.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_KERNELRUN_H
#define PLANC_LIB_VERIFY_KERNELRUN_H

#include "lib/Codegen/Codegen.h"
#include "lib/Reference/Compare.h"
#include "lib/Schedule/Schedule.h"
#include "lib/Verify/Device.h"
#include "lib/Verify/Inputs.h"

#include <map>

namespace planc::verify {

/// A kernel ready to be loaded.
struct CompiledKernel {
  LaunchShape shape;
  std::string schedule;
  std::vector<numerics::Node> arithmetic; ///< how its members round, as the schedule said
  KernelImage image;
};

/// Called with what a schedule has emitted, before it is lowered.
using Rewrite = llvm::function_ref<void(EmittedKernel &)>;

/// Schedules a kernel and makes PTX of it.
Result<CompiledKernel> compileKernel(plan::KernelOp kernel, const Target &target, int64_t kvBlock,
                                     Codegen &codegen, Rewrite rewrite = nullptr);

/// What one launch left.
struct Outcome {
  std::vector<std::vector<std::byte>> outputs;       // as the region yields them
  std::map<unsigned, std::vector<std::byte>> states; // pools, by argument
  std::vector<std::string> findings;                 // of the emulator's checks
  std::string fault;                                 // empty: the launch came to its end
};

/// Runs a kernel with scratch and counters of its own; what it does not write of its outputs is NaN.
/// A counter that it does not leave at zero is a fault. `launches` in a row, of which the last one's
/// outputs are taken.
Outcome runKernel(Device &device, const CompiledKernel &compiled, plan::KernelOp kernel,
                  llvm::ArrayRef<Input> inputs, unsigned launches = 1);

/// Holds an outcome of `compiled` without fault against the reference.
Result<reference::Report> judge(plan::KernelOp kernel, const CompiledKernel &compiled,
                                llvm::ArrayRef<Input> inputs, const Outcome &outcome,
                                const reference::Options &options);

/// Runs the kernel's nodes one by one, each as a kernel of its own that reads and stores what edges
/// store. The outcome has the kernel's outputs.
Result<Outcome> runUnfused(Device &device, plan::KernelOp kernel, llvm::ArrayRef<Input> inputs,
                           const Target &target, int64_t kvBlock, Codegen &codegen);

/// Where two outcomes of a kernel first differ, with both values; nothing if they have the same
/// bytes. `nodes` are the names of the kernel's operations, where they are known.
std::optional<std::string> firstDifference(plan::KernelOp kernel, const Outcome &a,
                                           const Outcome &b,
                                           llvm::ArrayRef<std::string> nodes = {});

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_KERNELRUN_H
