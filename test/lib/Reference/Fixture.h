//===- Fixture.h - a checkpoint's tensors as a plan's weight operands ------===//

#ifndef PLANC_TEST_LIB_REFERENCE_FIXTURE_H
#define PLANC_TEST_LIB_REFERENCE_FIXTURE_H

#include "dialects/Plan/PlanOps.h"
#include "lib/Reference/Reference.h"
#include "lib/Support/Safetensors.h"

namespace planc::reference {

/// A weight's bytes as kernels see them.
struct LoadedWeight {
  Bytes data;
  std::vector<float> scales;

  Argument argument() {
    return {data.data(), data.size(), scales.empty() ? nullptr : scales.data()};
  }
};

/// Places the parts of a weight below each other, one expert after the other.
Result<LoadedWeight> loadWeight(plan::WeightOp weight, const SafetensorsFile &file);

} // namespace planc::reference

#endif // PLANC_TEST_LIB_REFERENCE_FIXTURE_H
