//===- Decompress.cpp - the compressions that fatbins use -----------------===//

#include "runtime/emulator/driver/Decompress.h"

#include <limits>

#include <lz4.h>
#include <zstd.h>

bool planemu::decompressLz4(std::string_view in, std::string &out) {
  constexpr std::size_t Most = std::numeric_limits<int>::max();
  if (in.size() > Most || out.size() > Most)
    return false;
  int size = static_cast<int>(out.size());
  return LZ4_decompress_safe(in.data(), out.data(), static_cast<int>(in.size()), size) == size;
}

bool planemu::decompressZstd(std::string_view in, std::string &out) {
  return ZSTD_decompress(out.data(), out.size(), in.data(), in.size()) == out.size();
}
