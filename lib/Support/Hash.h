//===- Hash.h - checksums and digests -------------------------------------===//
//
// XXH3, 64 bits: for detecting damage and telling inputs apart, not against an adversary.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_HASH_H
#define PLANC_LIB_SUPPORT_HASH_H

#include "lib/Support/File.h"

namespace planc {

uint64_t xxh3(ByteView bytes);

/// 16 hex digits.
std::string xxh3Hex(ByteView bytes);

/// "xxh3:" and 16 hex digits, as provenance names an input.
std::string digest(std::string_view text);

} // namespace planc

#endif // PLANC_LIB_SUPPORT_HASH_H
