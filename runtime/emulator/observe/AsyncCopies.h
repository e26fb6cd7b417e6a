//===- AsyncCopies.h - cp.async that nobody has waited for ----------------===//
//
// A copy is done here when it is issued. To a kernel it is done once the thread that issued it has
// waited for its group, or once anybody has seen the phase of the mbarrier it arrives at to be
// over. The checks ask here which copies a wait ends.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_ASYNCCOPIES_H
#define PLANEMU_OBSERVE_ASYNCCOPIES_H

#include "runtime/emulator/observe/Observer.h"

#include <vector>

namespace planemu {

/// A row of a lane's cp.async, or a piece of a bulk copy, into shared memory.
struct AsyncCopy {
  std::uint32_t lane, group, line;
  std::uint32_t offset, bytes; // in shared memory
  std::uint64_t mbarrier;      // host address of what the copy tells; 0: nothing
  bool bulk;
  bool parity; // of the phase it belongs to
};

class AsyncCopies {
public:
  using Copies = std::vector<AsyncCopy>;

  void start(unsigned warps);
  void issued(const Warp &warp, const Inst &inst, const Access &access);
  void commitGroup(const Warp &warp, std::uint32_t mask);
  void arrive(const Warp &warp, unsigned lane, std::uint64_t mbarrier, bool parity);
  /// The copies that a wait of the lanes `mask` ends, until at most `pending` groups are open.
  Copies wait(const Warp &warp, std::uint32_t mask, std::uint32_t pending);
  /// Those that end with a phase of an mbarrier.
  Copies pass(std::uint64_t mbarrier, bool parity);

  /// Calls visit(copy) for all that are still going on.
  template <class Visit> void forEach(Visit visit) const {
    for (const WarpCopies &warp : warps)
      for (const AsyncCopy &copy : warp.copies)
        visit(copy);
  }

private:
  struct WarpCopies {
    std::uint32_t groups[32] = {}; // committed by each lane
    Copies copies;
  };

  std::vector<WarpCopies> warps;
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_ASYNCCOPIES_H
