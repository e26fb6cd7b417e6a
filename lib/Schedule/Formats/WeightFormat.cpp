//===- WeightFormat.cpp - the table of weight formats ----------------------===//

#include "lib/Schedule/Formats/WeightFormat.h"

using namespace planc;

namespace planc {
#define PLANC_WEIGHT_FORMAT(function) const WeightFormat &function();
#include "lib/Schedule/Formats/Formats.def"
} // namespace planc

const WeightFormat *planc::lookupWeightFormat(plan::Format format) {
#define PLANC_WEIGHT_FORMAT(function)                                                              \
  if (function().format() == format)                                                               \
    return &function();
#include "lib/Schedule/Formats/Formats.def"
  return nullptr;
}
