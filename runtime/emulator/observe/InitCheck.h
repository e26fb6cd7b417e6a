//===- InitCheck.h - reads of bytes that nobody wrote ---------------------===//
//
// Global memory has a bit a byte in its Shadow, which host copies set too. Shared memory has a byte a
// byte here, local memory a bit a bit, new with each CTA. The bytes of a cp.async count as in flight
// until it has been waited for (AsyncCopies.h): a wait that is missing or too lax is found although the
// value would be right here.
//
// What ld loads is followed to where it counts (Undefined.h); other reads count at once.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_INITCHECK_H
#define PLANEMU_OBSERVE_INITCHECK_H

#include "runtime/emulator/observe/AsyncCopies.h"
#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/LaunchObserver.h"
#include "runtime/emulator/observe/Observer.h"
#include "runtime/emulator/observe/Undefined.h"

namespace planemu {

class InitCheck {
public:
  explicit InitCheck(LaunchObserver &launch) : launch(launch) {}
  void start(const Warp *warps, unsigned count);
  /// True if a register of the warp holds something undefined now: executed() and ended() then want
  /// to hear of all that any warp of the CTA does.
  bool access(Warp &warp, const Inst &inst, const Access &access);
  void executed(const Warp &warp, const Inst &inst);
  void ended(const Warp &warp, const Block &block);
  /// The copies `ended` have been waited for, `others` have not.
  void copiesEnd(const AsyncCopies::Copies &ended, const AsyncCopies &others);

private:
  enum State : std::uint8_t { Unwritten, Written, InFlight };
  /// One lane's part of an access.
  struct Row {
    unsigned lane;
    std::uint64_t host;
    std::uint32_t bytes;
  };

  static bool allWritten(const State *states, std::uint32_t bytes);
  const InstFlow &flowOf(const Warp &warp, const Inst &inst) const;
  bool undefinedData(const Warp &warp, const Inst &inst, const Row &row, std::uint8_t *bits,
                     Origin &origin) const;
  void report(const Warp &warp, const Origin &origin) const;
  void loadUndefined(const Warp &warp, const Inst &inst, const Row &row, const std::uint8_t *bits,
                     std::uint32_t first);
  std::uint32_t store(const Warp &warp, const Inst &inst, const Row &row);
  void accessGlobal(Warp &warp, const Inst &inst, AccessKind kind, const Row &row);
  void accessShared(Warp &warp, const Inst &inst, AccessKind kind, const Row &row, State *states);
  void accessLocal(Warp &warp, const Inst &inst, AccessKind kind, const Row &row,
                   std::uint8_t *undefined);

  LaunchObserver &launch;
  std::vector<State> shared;
  std::vector<std::vector<std::uint8_t>> local; // of each warp, lane after lane: undefined bits
  std::vector<Undefined> registers;             // of each warp
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_INITCHECK_H
