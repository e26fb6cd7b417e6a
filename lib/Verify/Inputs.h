//===- Inputs.h - data for a kernel that says nothing about itself ---------===//
//
// Private to lib/Verify, and open to the kernel tests. What an argument may hold follows from how
// the kernel's nodes use it: expert ids lie in range, block tables name distinct blocks, fp8 codes
// are no NaN, a decay lies below 1. Within that, a class says what is hard about the data.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_INPUTS_H
#define PLANC_LIB_VERIFY_INPUTS_H

#include "dialects/Plan/PlanOps.h"

#include <random>
#include <vector>

namespace planc::verify {

enum class InputClass {
#define PLANC_INPUT_CLASS(Name, text, description) Name,
#include "lib/Verify/InputClasses.def"
};

/// "near_overflow".
const char *inputClassName(InputClass inputClass);
std::optional<InputClass> lookupInputClass(llvm::StringRef name);

/// The classes that differ for this kernel: those of values if it has any that may take them, those
/// of lengths, slots, routing and clamps where its nodes have such.
llvm::SmallVector<InputClass> inputClasses(plan::KernelOp kernel);

/// One argument's memory.
struct Input {
  std::vector<std::byte> data;
  std::vector<float> scales; ///< of a weight with block scales
};

/// One input per argument of the region; the same for the same seed.
std::vector<Input> makeInputs(plan::KernelOp kernel, uint64_t seed, InputClass inputClass,
                              int64_t kvBlock);

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_INPUTS_H
