//===- Shadow.cpp - what the checks know about device memory --------------===//

#include "runtime/emulator/observe/Shadow.h"

#include <cstring>

#include <sys/mman.h>

using namespace planemu;

static void *reserve(std::uint64_t bytes) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

static std::uint64_t bitBytes(std::uint64_t bytes) { return bytes / 8 + 8; }
static std::uint64_t quadCount(std::uint64_t bytes) { return bytes / 16 + 2; }
/// Quads, then words.
static std::uint64_t cellBytes(std::uint64_t bytes) {
  return 5 * quadCount(bytes) * sizeof(RaceCell);
}

Shadow::Shadow(std::uint64_t bytes, bool tracksWrites) : bytes(bytes) {
  if (tracksWrites)
    bits = static_cast<std::uint8_t *>(reserve(bitBytes(bytes)));
}

Shadow::~Shadow() {
  if (bits)
    munmap(bits, bitBytes(bytes));
  if (raceCells)
    munmap(raceCells.quads, cellBytes(bytes));
}

RaceCells Shadow::cells() {
  if (!raceCells)
    if (auto *quads = static_cast<RaceCell *>(reserve(cellBytes(bytes))))
      raceCells = {quads, quads + quadCount(bytes)};
  return raceCells;
}

void Shadow::clearCells() {
  if (raceCells)
    madvise(raceCells.quads, cellBytes(bytes), MADV_DONTNEED);
}

void Shadow::renew(std::uint64_t first, std::uint64_t count) {
  if (bits)
    std::memset(bits + first / 8, 0, count / 8);
  if (raceCells)
    std::memset(static_cast<void *>(raceCells.quads + first / 16), 0,
                count / 16 * sizeof(RaceCell));
}

void WrittenBits::mark(std::uint64_t first, std::uint64_t count) {
  std::uint64_t end = first + count;
  for (; first < end && first % 8; ++first)
    bits[first / 8] |= static_cast<std::uint8_t>(1u << (first % 8));
  if (first >= end)
    return;
  std::memset(bits + first / 8, 0xff, (end - first) / 8);
  for (first = end & ~7ull; first < end; ++first)
    bits[first / 8] |= static_cast<std::uint8_t>(1u << (first % 8));
}

void WrittenBits::copy(std::uint64_t first, std::uint64_t count, WrittenBits from,
                       std::uint64_t fromFirst) {
  if (!from)
    return mark(first, count);
  for (std::uint64_t n = 0; n < count; ++n) {
    std::uint8_t bit = static_cast<std::uint8_t>(1u << ((first + n) % 8));
    std::uint8_t &byte = bits[(first + n) / 8];
    byte = from.get(fromFirst + n) ? byte | bit : byte & static_cast<std::uint8_t>(~bit);
  }
}

std::uint64_t WrittenBits::firstUnwritten(std::uint64_t first, std::uint64_t count) const {
  std::uint64_t at = 0;
  while (at < count && (first + at) % 8 && get(first + at))
    ++at;
  if ((first + at) % 8 == 0) {
    for (std::uint64_t word; count - at >= 64; at += 64) {
      std::memcpy(&word, bits + (first + at) / 8, 8);
      if (word != ~0ull)
        break;
    }
    while (count - at >= 8 && bits[(first + at) / 8] == 0xff)
      at += 8;
  }
  while (at < count && get(first + at))
    ++at;
  return at;
}
