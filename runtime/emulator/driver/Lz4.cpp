//===- Lz4.cpp - decoder of LZ4 blocks ------------------------------------===//
//
// A block is a list of sequences: a token with two lengths, literal bytes, and a match given by its
// distance back. The last sequence has literals only.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Decompress.h"

#include <cstddef>

bool planemu::decompressLz4(std::string_view in, std::string &out) {
  std::size_t from = 0, to = 0;
  auto byte = [&]() -> unsigned { return static_cast<unsigned char>(in[from++]); };
  // A length of 15 goes on in bytes that are added up, until one is not 255.
  auto extend = [&](std::size_t &length) {
    for (unsigned more = 255; more == 255; length += more) {
      if (from >= in.size() || length > out.size())
        return false;
      more = byte();
    }
    return true;
  };
  while (from < in.size()) {
    unsigned token = byte();
    std::size_t literals = token >> 4;
    if (literals == 15 && !extend(literals))
      return false;
    if (literals > in.size() - from || literals > out.size() - to)
      return false;
    in.copy(out.data() + to, literals, from);
    from += literals;
    to += literals;
    if (from == in.size())
      return to == out.size();
    if (in.size() - from < 2)
      return false;
    std::size_t distance = byte();
    distance |= byte() << 8;
    std::size_t match = token & 15;
    if (match == 15 && !extend(match))
      return false;
    match += 4;
    if (distance == 0 || distance > to || match > out.size() - to)
      return false;
    for (; match; --match, ++to) // may overlap itself
      out[to] = out[to - distance];
  }
  return false;
}
