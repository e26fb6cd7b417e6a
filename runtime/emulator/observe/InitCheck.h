//===- InitCheck.h - reads of bytes that nobody wrote ---------------------===//
//
// Global memory has a bit a byte in its Shadow, which host copies set too. Shared and local memory
// have a byte a byte here, new with each CTA. The bytes of a cp.async count as in flight until it
// has been waited for (AsyncCopies.h): a wait that is missing or too lax is found although the value
// would be right here.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_INITCHECK_H
#define PLANEMU_OBSERVE_INITCHECK_H

#include "runtime/emulator/observe/AsyncCopies.h"
#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/LaunchObserver.h"
#include "runtime/emulator/observe/Observer.h"

namespace planemu {

class InitCheck {
public:
  explicit InitCheck(LaunchObserver &launch) : launch(launch) {}
  void start(const Warp *warps, unsigned count);
  void access(Warp &warp, const Inst &inst, const Access &access);
  /// The copies `ended` have been waited for, `others` have not.
  void copiesEnd(const AsyncCopies::Copies &ended, const AsyncCopies &others);

private:
  enum State : std::uint8_t { Unwritten, Written, InFlight };

  static bool allWritten(const State *states, std::uint32_t bytes);
  void accessGlobal(Warp &warp, const Inst &inst, const Access &access, unsigned lane,
                    std::uint64_t host, std::uint32_t bytes);
  void accessStates(Warp &warp, const Inst &inst, const Access &access, unsigned lane,
                    std::uint64_t host, State *states, std::uint32_t bytes);

  LaunchObserver &launch;
  std::vector<State> shared;
  std::vector<std::vector<State>> local; // of each warp, lane after lane
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_INITCHECK_H
