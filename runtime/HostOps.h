//===- HostOps.h - ops that run on the calling thread -----------------------===//
//
// The plan puts the embedding and the sampling on the host.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_HOSTOPS_H
#define PLANRT_HOSTOPS_H

#include "runtime/Weights.h"

namespace planrt {

/// Copies the rows of the table that the token ids name, one after the other.
planc::Status embed(const Weights &weights, const std::string &table,
                    std::span<const int32_t> tokenIds, std::span<std::byte> out);

/// For every row that `out` has an element for, the lowest index of its maximum. NaN orders below
/// every number; a row of NaN gives 0.
void argmax(const planc::bundle::Buffer &logits, std::span<const std::byte> bytes,
            std::span<int32_t> out);

/// One row of a bf16 or f32 buffer as floats.
void widenRow(const planc::bundle::Buffer &buffer, std::span<const std::byte> bytes,
              std::span<float> out);

} // namespace planrt

#endif // PLANRT_HOSTOPS_H
