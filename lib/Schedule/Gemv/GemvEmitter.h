//===- GemvEmitter.h - the code of a gemv's tile ---------------------------===//

#ifndef PLANC_LIB_SCHEDULE_GEMV_GEMVEMITTER_H
#define PLANC_LIB_SCHEDULE_GEMV_GEMVEMITTER_H

#include "lib/Schedule/Gemv/GemvPlan.h"

namespace planc::gemv {

/// Makes the activation rows of a dot's tile, in f32, in shared memory. True if threads read what
/// others make.
bool emitActivation(KernelBuilder &b, const contraction::Component &component,
                    const contraction::Dot &dot, const DotPlan &plan,
                    const contraction::NormFactors &norms, const contraction::Tile &tile);

/// Leaves the sums of a dot's tile in shared memory.
void emitDot(KernelBuilder &b, const contraction::Component &component, const contraction::Dot &dot,
             const DotPlan &plan, const contraction::Tile &tile);

} // namespace planc::gemv

#endif // PLANC_LIB_SCHEDULE_GEMV_GEMVEMITTER_H
