//===- Inputs.h - data for a kernel that says nothing about itself ---------===//
//
// What an argument may hold follows from how the kernel's nodes use it: expert ids lie in range,
// block tables name distinct blocks, fp8 codes are no NaN, a decay lies below 1 (and, for some
// heads, so close to it that the recurrence clamps it).
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_INPUTS_H
#define PLANC_LIB_VERIFY_INPUTS_H

#include "dialects/Plan/PlanOps.h"

#include <random>
#include <vector>

namespace planc::verify {

enum class InputClass { Gaussian, Outliers, Zeros, Equal, Specials };

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
