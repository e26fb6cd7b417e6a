//===- Weights.h - rows of weights in any stored format --------------------===//
//
// Private to lib/Reference. A format is one file here and one row in Weights.cpp. Weights stay
// where they are; a row is decoded when it is needed.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_REFERENCE_FORMATS_WEIGHTS_H
#define PLANC_LIB_REFERENCE_FORMATS_WEIGHTS_H

#include "dialects/Plan/PlanDialect.h"
#include "lib/Reference/Reference.h"

namespace planc::reference {

struct Weight;

struct WeightFormat {
  plan::Format format;
  /// Bytes of a row of `columns` values.
  uint64_t (*rowBytes)(int64_t columns);
  bool hasScales;
  /// Row `row` of all (experts below each other), scales applied.
  void (*decodeRow)(const Weight &weight, int64_t row, double *out);
};

/// Null if the reference cannot read it.
const WeightFormat *lookupWeightFormat(plan::Format format);

/// A weight in memory, its outer dims flattened into rows.
struct Weight {
  const WeightFormat *format = nullptr;
  const std::byte *data = nullptr; // borrowed
  const float *scales = nullptr;   // borrowed
  llvm::SmallVector<int64_t> shape;
  int64_t columns = 0;

  void row(int64_t index, double *out) const { format->decodeRow(*this, index, out); }
  /// All values, for the short vectors of norms and gates.
  std::vector<double> all() const;
};

void decodeRowBF16(const Weight &weight, int64_t row, double *out);
void decodeRowF32(const Weight &weight, int64_t row, double *out);
void decodeRowFP8Block128x128(const Weight &weight, int64_t row, double *out);

} // namespace planc::reference

#endif // PLANC_LIB_REFERENCE_FORMATS_WEIGHTS_H
