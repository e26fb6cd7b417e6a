//===- Mutator.h - plants faults in one kernel and sees whether they show --===//
//
// Private to lib/Verify. Runs in a process of its own, which has one emulated device.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_MUTATOR_H
#define PLANC_LIB_VERIFY_MUTATOR_H

#include "lib/Verify/Mutations.h"
#include "lib/Verify/Verify.h"

namespace planc::verify {

/// What became of a mutation.
struct Trial {
  enum class End {
    Caught,
    Survived,
    NoFault, ///< provably: the same code or data, or a kernel that no schedule takes
    Broken,  ///< it could not be tried
  } end;
  std::string how; ///< by which class and what, or why
};

class Mutator {
public:
  Mutator(plan::KernelOp kernel, const Options &options, Device &device, Codegen &codegen)
      : kernel(kernel), options(options), device(device), codegen(codegen) {}

  Trial attempt(const Mutation &mutation);

private:
  /// A class of inputs, and what the kernel's contract compares with.
  struct Case {
    InputClass inputClass;
    std::vector<Input> inputs;
    std::optional<Outcome> unfused; // of a bit_identical kernel
  };

  Result<CompiledKernel> compile(const Mutation &mutation, std::optional<Trial> &early);
  const CompiledKernel *unmutated(std::string &why);
  Case &caseOf(InputClass inputClass);
  Trial hold(const CompiledKernel &compiled, const DataSite *data, InputClass likely);
  /// What is wrong with an outcome; nothing if all is as it should be.
  std::optional<std::string> objection(Case &given, const Outcome &outcome);

  plan::KernelOp kernel;
  const Options &options;
  Device &device;
  Codegen &codegen;
  std::optional<CompiledKernel> original;
  std::vector<std::unique_ptr<Case>> cases; // the latest last
};

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_MUTATOR_H
