//===- Arrival.h - the last CTA of a number that is data ------------------===//

#ifndef PLANC_LIB_SCHEDULE_ARRIVAL_H
#define PLANC_LIB_SCHEDULE_ARRIVAL_H

#include "lib/Schedule/KernelBuilder.h"

namespace planc {

/// As `KernelBuilder::lastCtaArrives`, where only the running kernel knows how many CTAs come; at
/// least one does.
Value lastCtaArrives(KernelBuilder &b, Value counterIndex, Value expected);

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_ARRIVAL_H
