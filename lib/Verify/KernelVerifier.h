//===- KernelVerifier.h - everything that must hold for one kernel ---------===//
//
// Private to lib/Verify. Runs in a process of its own, which has one emulated device.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_KERNELVERIFIER_H
#define PLANC_LIB_VERIFY_KERNELVERIFIER_H

#include "lib/Verify/KernelRun.h"
#include "lib/Verify/Verify.h"

namespace planc::verify {

/// A kernel and who uses it.
struct Subject {
  plan::KernelOp kernel;
  std::vector<int64_t> groups;
  std::vector<std::string> nodes; // of the first group, in the order of the kernel's operations
};

class KernelVerifier {
public:
  KernelVerifier(const Subject &subject, const Options &options, Device &device, Codegen &codegen);

  Verdict run();

private:
  void verifyClass(InputClass inputClass);
  void verifyChain(const char *where, llvm::ArrayRef<Input> inputs, const Outcome &fused);
  void verifyOrders();
  void verifyTargets();
  void judgeOutcome(const char *where, llvm::ArrayRef<Input> inputs, const Outcome &outcome);
  void fail(std::string where, std::string message);
  /// "plan.linear" is who in the first group: the operation that made it, or the first of its kind.
  std::string nodeName(const std::string &edge, mlir::Operation *maker) const;

  const Subject &subject;
  const Options &options;
  plan::KernelOp kernel;
  Device &device;
  Codegen &codegen;
  const Target &target;
  CompiledKernel compiled;
  Verdict verdict;
};

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_KERNELVERIFIER_H
