//===- HostOps.cpp - ops that run on the calling thread ---------------------===//
//
// See HostOps.h; the tie rules are the plan's.
//
//===----------------------------------------------------------------------===//
#include "runtime/HostOps.h"

#include <cmath>
#include <cstring>

using namespace planc;
using namespace planrt;

Status planrt::embed(const Weights &weights, const std::string &table,
                     std::span<const int32_t> tokenIds, std::span<std::byte> out) {
  size_t rowBytes = out.size() / tokenIds.size();
  for (size_t row = 0; row < tokenIds.size(); ++row)
    if (Status status = weights.read(table, false, uint64_t(tokenIds[row]) * rowBytes,
                                     out.subspan(row * rowBytes, rowBytes));
        !status.ok())
      return status;
  return {};
}

static float element(bundle::Dtype dtype, std::span<const std::byte> bytes, size_t i) {
  uint32_t word = 0;
  if (dtype == bundle::Dtype::bf16) {
    uint16_t half;
    std::memcpy(&half, &bytes[i * 2], 2);
    word = uint32_t(half) << 16;
  } else {
    std::memcpy(&word, &bytes[i * 4], 4);
  }
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

void planrt::argmax(const bundle::Buffer &logits, std::span<const std::byte> bytes,
                    std::span<int32_t> out) {
  size_t rowBytes = bytes.size() / size_t(logits.rows);
  for (size_t row = 0; row < out.size(); ++row) {
    std::span<const std::byte> values = bytes.subspan(row * rowBytes, rowBytes);
    int32_t best = 0;
    float bestValue = NAN;
    for (int64_t i = 0; i < logits.dim; ++i) {
      float value = element(logits.dtype, values, size_t(i));
      if (!std::isnan(value) && (std::isnan(bestValue) || value > bestValue)) {
        best = int32_t(i);
        bestValue = value;
      }
    }
    out[row] = best;
  }
}

void planrt::widenRow(const bundle::Buffer &buffer, std::span<const std::byte> bytes,
                      std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = element(buffer.dtype, bytes, i);
}
