//===- Hash.cpp - checksums and digests -----------------------------------===//
//
// The one place that includes the header-only xxHash.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace planc;

uint64_t planc::xxh3(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string planc::xxh3Hex(ByteView bytes) { return fmt::format("{:016x}", xxh3(bytes)); }

std::string planc::digest(std::string_view text) { return "xxh3:" + xxh3Hex(asBytes(text)); }
