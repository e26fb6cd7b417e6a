//===- InitCheck.h - reads of bytes that nobody wrote ---------------------===//
//
// Global memory has a bit a byte in its Shadow, which host copies set too. Shared and local memory
// have a byte a byte here, new with each CTA. A cp.async copies at issue, but its bytes count as in
// flight until the thread that issued it has waited, or until anybody has seen the phase of the
// mbarrier it arrives at to be over: a wait that is missing or too lax is found
// although the value would be right here.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_INITCHECK_H
#define PLANEMU_OBSERVE_INITCHECK_H

#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/LaunchObserver.h"
#include "runtime/emulator/observe/Observer.h"

namespace planemu {

class InitCheck {
public:
  explicit InitCheck(LaunchObserver &launch) : launch(launch) {}
  void start(const Warp *warps, unsigned count);
  void access(Warp &warp, const Inst &inst, const Access &access);
  void commitGroup(Warp &warp, std::uint32_t mask);
  void waitGroups(Warp &warp, std::uint32_t mask, std::uint32_t pending);
  void copiesArrive(Warp &warp, unsigned lane, std::uint64_t host, bool parity);
  void passMbarrier(std::uint64_t host, bool parity);

private:
  enum State : std::uint8_t { Unwritten, Written, InFlight };

  /// A row of a lane's cp.async, or a piece of a bulk copy, that has not been waited for.
  struct Copy {
    std::uint32_t lane, group, offset, bytes;
    bool bulk;
    std::uint64_t mbarrier; // host address of what the copy tells; 0: nothing
    bool parity;            // of the phase it belongs to
  };
  struct WarpCopies {
    std::uint32_t groups[32]; // committed by each lane
    std::vector<Copy> copies;
  };

  static bool allWritten(const State *states, std::uint32_t bytes);
  void markCopies();
  template <class Waited> void endCopies(WarpCopies &from, Waited waited);
  void accessGlobal(Warp &warp, const Inst &inst, const Access &access, unsigned lane,
                    std::uint64_t host, std::uint32_t bytes);
  void accessStates(Warp &warp, const Inst &inst, const Access &access, unsigned lane,
                    std::uint64_t host, State *states, std::uint32_t bytes);

  LaunchObserver &launch;
  std::vector<State> shared;
  std::vector<std::vector<State>> local; // of each warp, lane after lane
  std::vector<WarpCopies> async;
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_INITCHECK_H
