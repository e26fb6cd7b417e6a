//===- WeightFormat.h - how a contraction reads a stored weight ------------===//
//
// A format says how many values 16 bytes of a weight hold, how they become numbers in registers,
// and which part of the matrix shares a scale. Contractions ask it and know no format by name; a
// new one is a file here and a row in Formats.def.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_SCHEDULE_FORMATS_WEIGHTFORMAT_H
#define PLANC_LIB_SCHEDULE_FORMATS_WEIGHTFORMAT_H

#include "lib/Schedule/KernelBuilder.h"

namespace planc {

class WeightFormat {
public:
  virtual ~WeightFormat() = default;
  virtual plan::Format format() const = 0;

  /// Values in 16 bytes, in ascending k.
  virtual unsigned codes() const = 0;
  unsigned codeBytes() const { return 16 / codes(); }

  /// Matrix rows and columns that share an f32 scale; 0 if values are unscaled.
  virtual int64_t scaleRows() const { return 0; }
  virtual int64_t scaleDepth() const { return 0; }
  bool scaled() const { return scaleRows() != 0; }

  /// The unscaled values of four words; exact.
  virtual Values toF32(KernelBuilder &b, mlir::ValueRange words) const = 0;

  /// True if every unscaled value is a bf16.
  virtual bool fitsBf16() const = 0;
  /// The same values in pairs, two bf16 a word; only if they fit.
  virtual Values toBf16Pairs(KernelBuilder &b, mlir::ValueRange words) const = 0;
};

/// Null for a format that no contraction reads.
const WeightFormat *lookupWeightFormat(plan::Format format);

} // namespace planc

#endif // PLANC_LIB_SCHEDULE_FORMATS_WEIGHTFORMAT_H
