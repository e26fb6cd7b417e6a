//===- ScatterSum.cpp - many sums over the lanes of a group ---------------===//

#include "lib/Schedule/Attention/ScatterSum.h"

namespace planc {

ScatteredSums scatterSum(KernelBuilder &b, Values values, unsigned lanes) {
  ScatteredSums result;
  Value lane = b.laneId();
  unsigned count = values.size(), splitBits = 0, offset = lanes / 2;
  // Lanes with the bit keep the upper half of the values and give the lower one to their partner.
  for (; offset && values.size() % 2 == 0; offset /= 2) {
    Value keepsUpper = b.ne(b.bitAnd(lane, offset), 0);
    unsigned half = values.size() / 2;
    for (unsigned i = 0; i < half; ++i) {
      Value kept = b.select(keepsUpper, values[i + half], values[i]);
      Value given = b.select(keepsUpper, values[i], values[i + half]);
      values[i] = b.fadd(kept, b.shuffleXor(given, offset));
    }
    values.resize(half);
    splitBits |= offset;
  }
  // What cannot be halved any more is summed by all.
  for (; offset; offset /= 2) {
    for (Value &value : values)
      value = b.fadd(value, b.shuffleXor(value, offset));
    result.duplicateBits |= offset;
  }
  // The exchange over lane distance lanes / 2^i chose between values count / 2^i apart.
  result.first = b.div(b.mul(b.bitAnd(lane, splitBits), count), lanes);
  result.sums = std::move(values);
  return result;
}

} // namespace planc
