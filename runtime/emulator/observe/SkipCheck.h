//===- SkipCheck.h - threads that go past a barrier and exit --------------===//
//
// Exited threads do not count at barriers and in member masks, so that threads without work may return
// early. Here a thread has not returned early, though: others of its block, or of its warp, wait for it
// at a barrier or a .sync instruction, and it does the work behind that, without having come to it, and
// exits. GPUs let the others go on then; what they wait for has not happened.
//
// Work is a store, an atomic or the like; behind is what can be reached without a loop's back edge.
// Barriers with a count of threads say themselves who comes, and are left out.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_SKIPCHECK_H
#define PLANEMU_OBSERVE_SKIPCHECK_H

#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/LaunchObserver.h"

#include <unordered_map>
#include <vector>

namespace planemu {

class SkipCheck {
public:
  explicit SkipCheck(LaunchObserver &launch) : launch(launch) {}
  void start(const Warp *warps, unsigned count);
  /// `warp` has executed `block`, whose ending the lanes `taken` take.
  void ended(const Warp &warp, const Block &block, std::uint32_t taken);
  /// The live lanes of `warp` have come to barriers, where they are parked.
  void arrive(const Warp &warp);
  /// These lanes execute a .sync instruction.
  void comes(const Warp &warp, std::uint32_t lanes) { states[warp.index].past &= ~lanes; }

private:
  bool works(const Kernel &kernel, const Block &block);
  bool leadsTo(const Kernel &kernel, std::uint32_t from, std::uint32_t to);
  void waits(const Warp &warp, const Block &block, std::uint32_t exiting, const Warp &waiter,
             const Fragment &place, std::uint32_t named, bool atBarrier);

  LaunchObserver &launch;
  const Warp *warps = nullptr;
  unsigned count = 0;
  struct WarpState {
    std::uint32_t past = 0;         // lanes that did work behind a place where others wait
    std::vector<bool> worked, came; // blocks: with work, with barriers at their ends
    Site exit{};                    // of its last lane
  };
  std::vector<WarpState> states;
  std::vector<std::uint8_t> effects; // of each block: 1 it has none, 2 it has
  std::unordered_map<std::uint32_t, std::vector<bool>> behind; // by block
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_SKIPCHECK_H
