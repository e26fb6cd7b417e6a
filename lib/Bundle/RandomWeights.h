//===- RandomWeights.h - weights that need no checkpoint -------------------===//
//
// For trying a model out at its full size: every operand of one *kind* (element type and magnitude)
// has the same content, one block repeated. So a kind needs one block of memory, however many
// operands map it. Content is a function of the seed and the kind alone, equal on every machine.
//
// Magnitudes keep activations in range: matrices have a standard deviation of 1/sqrt(K), fp8 data
// one of 1 with scales around 1/sqrt(K), vectors one of 0.1; no e4m3 byte is a NaN.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_BUNDLE_RANDOMWEIGHTS_H
#define PLANC_LIB_BUNDLE_RANDOMWEIGHTS_H

#include "lib/Bundle/Manifest.h"
#include "lib/Support/File.h"

#include <compare>

namespace planc::bundle {

struct RandomKind {
  Dtype dtype = Dtype::bf16;
  bool scales = false;
  int64_t reduction = 0; // K of a matrix, 0 for vectors and for fp8 data

  auto operator<=>(const RandomKind &) const = default;
  std::string text() const;
};

/// The kind of a weight's data or of its scales.
RandomKind randomKind(const Weight &weight, bool scales);

/// Byte i of an operand is byte i % randomPeriod of its kind's block.
inline constexpr uint64_t randomPeriod = uint64_t(32) << 20;

/// Fills `out` with the first bytes of the block; at most randomPeriod of them.
void fillRandom(const RandomKind &kind, uint64_t seed, std::span<std::byte> out);

} // namespace planc::bundle

#endif // PLANC_LIB_BUNDLE_RANDOMWEIGHTS_H
