//===- Degree.h - how many inputs are multiplied in a kernel ---------------===//
//
// Private to lib/Verify. A kernel of degree n makes numbers as large as the n-th power of its
// inputs; near the end of f32's range these must be the smaller, the higher n is.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_DEGREE_H
#define PLANC_LIB_VERIFY_DEGREE_H

#include "dialects/Plan/PlanOps.h"

namespace planc::verify {

/// The largest degree of all numbers that the kernel's nodes make in its edge inputs, two at least;
/// weights and states are of ordinary size.
int64_t degreeOf(plan::KernelOp kernel);

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_DEGREE_H
