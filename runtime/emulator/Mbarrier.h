//===- Mbarrier.h - the mbarrier object of shared memory ------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". The object is 64
// opaque bits: a phase of which only the parity counts, the arrivals the phase still waits for, how
// many each phase starts with, and the bytes of asynchronous copies it still waits for. A token, the
// state that an arrival returns, is the object as it was before.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_MBARRIER_H
#define PLANEMU_MBARRIER_H

#include <cstdint>

namespace planemu {

struct Mbarrier {
  static constexpr std::uint32_t MostArrivals = (1u << 20) - 1;
  static constexpr std::int32_t MostBytes = (1 << 20) - 1;

  std::uint32_t pending = 0, expected = 0;
  std::int32_t bytes = 0;
  bool parity = false; // of the current phase
  bool valid = false;  // false: nothing has initialised it

  static Mbarrier read(std::uint64_t word);
  std::uint64_t word() const;

  /// Each takes part in the current phase and starts the next one if that completes it. Null, or
  /// what is wrong.
  const char *arrive(std::uint32_t count, bool mayComplete = true);
  const char *arriveAndDrop(std::uint32_t count, bool mayComplete = true);
  const char *expectBytes(std::uint32_t count);
  const char *completeBytes(std::uint32_t count);

  /// True if the phase of `phaseParity` is over. That is the current phase or the one before.
  bool isOver(bool phaseParity) const { return parity != phaseParity; }

private:
  void settle();
};

} // namespace planemu

#endif // PLANEMU_MBARRIER_H
