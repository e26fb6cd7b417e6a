//===- RandomWeights.cpp - weights that need no checkpoint -----------------===//
//
// A counter-based generator (SplitMix64's finaliser) and integer arithmetic up to the last step, so
// that no machine's library or rounding shows in the bytes. The sum of four uniform numbers stands
// in for a normal one: it has no long tail, which suits weights.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/RandomWeights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

using namespace planc;
using namespace planc::bundle;

std::string RandomKind::text() const {
  std::string what = scales ? "scales" : reduction || dtype == Dtype::e4m3 ? "matrices" : "vectors";
  return reduction ? fmt::format("{} {} of K {}", toString(dtype), what, reduction)
                   : fmt::format("{} {}", toString(dtype), what);
}

RandomKind bundle::randomKind(const Weight &weight, bool scales) {
  if (scales)
    return {Dtype::f32, true, weight.shape.back()};
  Dtype dtype = *dataDtype(weight);
  bool matrix = weight.shape.size() > 1 && dtype != Dtype::e4m3;
  return {dtype, false, matrix ? weight.shape.back() : 0};
}

static uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

/// The sum of the four 16-bit parts: 0 to 262140, mean 131070.
static uint32_t sumOfFour(uint64_t bits) {
  return uint32_t(bits & 0xffff) + uint32_t(bits >> 16 & 0xffff) + uint32_t(bits >> 32 & 0xffff) +
         uint32_t(bits >> 48);
}

/// Standard deviation of that sum: sqrt(4 * 65536^2 / 12).
static constexpr double sumDeviation = 37837.0;
static constexpr double sumMean = 131070.0;

static uint16_t toBf16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

/// The e4m3 byte nearest to a value of at most 448.
static uint8_t toE4m3(double value) {
  double magnitude = std::abs(value);
  uint8_t best = 0;
  double bestDistance = magnitude;
  for (int code = 1; code < 0x7f; ++code) {
    int exponent = code >> 3, mantissa = code & 7;
    double decoded = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
    if (std::abs(decoded - magnitude) < bestDistance) {
      bestDistance = std::abs(decoded - magnitude);
      best = uint8_t(code);
    }
  }
  return value < 0 ? best | 0x80 : best;
}

void bundle::fillRandom(const RandomKind &kind, uint64_t seed, std::span<std::byte> out) {
  assert(out.size() <= randomPeriod);
  // One stream a kind and seed.
  uint64_t stream = mix(mix(seed) ^ mix(uint64_t(kind.dtype) << 1 | uint64_t(kind.scales)) ^
                        mix(uint64_t(kind.reduction) << 8));
  auto normal = [&](uint64_t i) {
    return (double(sumOfFour(mix(stream + i))) - sumMean) / sumDeviation;
  };
  double deviation = kind.reduction ? 1 / std::sqrt(double(kind.reduction)) : 0.1;
  switch (kind.dtype) {
  case Dtype::e4m3: {
    // The high 12 bits of the sum choose the value.
    std::array<std::byte, 4096> table;
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = std::byte(toE4m3((double(i * 64 + 32) - sumMean) / sumDeviation));
    for (uint64_t i = 0; i < out.size(); ++i)
      out[i] = table[sumOfFour(mix(stream + i)) >> 6];
    return;
  }
  case Dtype::bf16:
    for (uint64_t i = 0; i < out.size() / 2; ++i) {
      uint16_t half = toBf16(float(normal(i) * deviation));
      std::memcpy(&out[i * 2], &half, 2);
    }
    return;
  default:
    for (uint64_t i = 0; i < out.size() / 4; ++i) {
      // Scales are positive, and bf16 values as in checkpoints, so that products with e4m3 are
      // exact.
      double value = kind.scales ? deviation * (1 + 0.1 * normal(i)) : normal(i) * deviation;
      uint32_t word = uint32_t(toBf16(float(value))) << 16;
      std::memcpy(&out[i * 4], &word, 4);
    }
    return;
  }
}
