//===- ScatterSum.h - many sums over the lanes of a group -----------------===//
//
// Private to lib/Schedule/Attention. Summing n values over the lanes of a group one by one takes n
// * log2(lanes) shuffles and leaves every lane with all sums. Here each exchange halves what a lane
// still adds up: about n shuffles, and each lane ends with its share of the sums.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_ATTENTION_SCATTERSUM_H
#define PLANC_LIB_SCHEDULE_ATTENTION_SCATTERSUM_H

#include "lib/Schedule/KernelBuilder.h"

namespace planc {

/// Sums of consecutive values, `first` on.
struct ScatteredSums {
  Values sums;
  Value first;
  /// Lane bits in which lanes hold the same sums.
  unsigned duplicateBits = 0;
};

/// Sums each value over the lanes that differ in the bits of `lanes - 1`, the farthest first. All
/// lanes of the warp call it; each group of lanes has its own sums.
ScatteredSums scatterSum(KernelBuilder &b, Values values, unsigned lanes);

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_ATTENTION_SCATTERSUM_H
