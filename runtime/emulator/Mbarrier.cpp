//===- Mbarrier.cpp - the mbarrier object of shared memory ----------------===//
//
// Bits of the word: 0-21 bytes (two's complement), 22-41 pending, 42-61 expected, 62 parity, 63
// always set, so that memory which nothing initialised is known.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Mbarrier.h"

using namespace planemu;

Mbarrier Mbarrier::read(std::uint64_t word) {
  Mbarrier barrier;
  barrier.bytes = static_cast<std::int32_t>(word << 10) >> 10;
  barrier.pending = word >> 22 & MostArrivals;
  barrier.expected = word >> 42 & MostArrivals;
  barrier.parity = word >> 62 & 1;
  barrier.valid = word >> 63;
  return barrier;
}

std::uint64_t Mbarrier::word() const {
  return (static_cast<std::uint64_t>(bytes) & 0x3fffff) | std::uint64_t(pending) << 22 |
         std::uint64_t(expected) << 42 | std::uint64_t(parity) << 62 | std::uint64_t(valid) << 63;
}

void Mbarrier::settle() {
  if (pending != 0 || bytes != 0)
    return;
  parity = !parity;
  pending = expected;
}

const char *Mbarrier::arrive(std::uint32_t count, bool mayComplete) {
  if (count == 0 || count > pending)
    return "more arrivals than the phase waits for, or none";
  pending -= count;
  if (!mayComplete && pending == 0)
    return "an arrival with .noComplete completes the phase";
  settle();
  return nullptr;
}

const char *Mbarrier::arriveAndDrop(std::uint32_t count, bool mayComplete) {
  if (count > expected)
    return "more arrivals are dropped than a phase starts with";
  expected -= count;
  return arrive(count, mayComplete);
}

const char *Mbarrier::expectBytes(std::uint32_t count) {
  if (count > static_cast<std::uint32_t>(MostBytes) ||
      bytes > MostBytes - static_cast<std::int32_t>(count))
    return "more bytes are expected than an mbarrier can count";
  bytes += static_cast<std::int32_t>(count);
  settle();
  return nullptr;
}

const char *Mbarrier::completeBytes(std::uint32_t count) {
  if (count > static_cast<std::uint32_t>(MostBytes) ||
      bytes < static_cast<std::int32_t>(count) - MostBytes)
    return "more bytes arrive than an mbarrier can count";
  bytes -= static_cast<std::int32_t>(count);
  settle();
  return nullptr;
}
