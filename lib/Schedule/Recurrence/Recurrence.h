//===- Recurrence.h - what the recurrence schedule knows of a kernel ------===//
//
// Private to lib/Schedule/Recurrence. A kernel is taken apart once, by `matchRecurrence`; what is
// emitted follows from the `RecurrenceKernel` alone.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_RECURRENCE_RECURRENCE_H
#define PLANC_LIB_SCHEDULE_RECURRENCE_RECURRENCE_H

#include "lib/Schedule/Schedule.h"

namespace planc {

/// The members of a kernel around its one recurrence; null where the kernel has none.
struct RecurrenceKernel {
  plan::GdnRecurrenceOp recurrence;
  plan::GdnGatesOp gates;    ///< makes decay or beta or both
  plan::L2NormOp l2Norm;     ///< makes qkv
  plan::GatedRmsNormOp norm; ///< takes the result

  int64_t rows, keyHeads, keyDim, valueHeads, valueDim;

  /// Columns of qkv before the values.
  int64_t valueOffset() const { return 2 * keyHeads * keyDim; }
  int64_t qkvWidth() const { return valueOffset() + valueHeads * valueDim; }
};

/// Fills `parts`, or says why the kernel is not taken.
std::optional<Refusal> matchRecurrence(plan::KernelOp kernel, RecurrenceKernel &parts);

// How a state matrix [Kd][Vd] is spread over threads. A warp owns 8 columns, a 32-byte sector of
// each row: lane 2*i + j holds columns 4*j .. 4*j+3 of the i-th sixteenth of the rows, so that sums
// over rows are four shuffles and no barrier.
inline constexpr int64_t kWarpColumns = 8;
inline constexpr int64_t kRowGroups = 16;
/// Without a norm a CTA owns 32 columns of one head: 128 CTAs for 32 heads of 128 columns.
inline constexpr int64_t kSliceWarps = 4;
/// With a norm a CTA owns a whole head; so many warps at most, which then take several stretches of
/// columns in turn.
inline constexpr int64_t kMaxHeadWarps = 16;
/// Rows of a state that one lane can hold: 4 columns of each, beside as many k and q.
inline constexpr int64_t kMaxLaneRows = 16;

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_RECURRENCE_RECURRENCE_H
