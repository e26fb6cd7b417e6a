//===- MainLoop.h - the sums of an mma contraction -------------------------===//

#ifndef PLANC_LIB_SCHEDULE_MMA_MAINLOOP_H
#define PLANC_LIB_SCHEDULE_MMA_MAINLOOP_H

#include "lib/Schedule/Mma/MmaPlan.h"

namespace planc::mma {

/// Leaves the sums of a dot's tile in shared memory.
void emitDot(KernelBuilder &b, const contraction::Component &component, const contraction::Dot &dot,
             const DotPlan &plan, const contraction::NormFactors &norms,
             const contraction::Tile &tile);

} // namespace planc::mma

#endif // PLANC_LIB_SCHEDULE_MMA_MAINLOOP_H
