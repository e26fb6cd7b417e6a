//===- Observer.h - what looks on while a CTA runs ------------------------===//
//
// Checks and counters do not change what a kernel computes, and cost nothing while they are off:
// instructions and the worker call an Observer only if the warp has one. An Observer belongs to one
// resident CTA; it hands what it is told to the checks that are on, each of which lives in a file
// of its own here, and all that outlives a CTA is in LaunchObserver.
//
// With any check on, the CTAs of a launch run on one host thread, so checks need no locks and their
// reports do not depend on chance.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_OBSERVER_H
#define PLANEMU_OBSERVE_OBSERVER_H

#include "runtime/emulator/Machine.h"

#include <memory>

namespace planemu {

class AsyncCopies;
class Counters;
class Findings;
class InitCheck;
class LaunchObserver;
class RaceCheck;
class SkipCheck;

enum class AccessKind : std::uint8_t { Load, Store, Atomic, AsyncLoad, AsyncStore };

/// How far an access or a fence orders: weak accesses order nothing.
enum class Scope : std::uint8_t { Weak, Cta, Gpu };

inline Scope scopeOf(const Inst &inst) {
  return inst.flags & Inst::ScopeGpu   ? Scope::Gpu
         : inst.flags & Inst::ScopeCta ? Scope::Cta
                                       : Scope::Weak;
}

/// One memory instruction of a warp, its addresses resolved.
struct Access {
  AccessKind kind;
  std::uint32_t mask;         // lanes whose addresses are valid
  std::uint32_t bytes;        // of one lane's row
  std::uint64_t whole;        // host address of lane 0's row if rows follow each other, or 0
  const std::uint64_t *host;  // else the address of each lane's row
  const char *data = nullptr; // rows to store, one after the other, if they are known
  const std::uint32_t *sizes = nullptr; // bytes of each lane that count, if fewer than a row
  std::uint64_t mbarrier = 0;           // of a bulk copy: host address of what it tells when done
  bool parity = false;                  // of the phase that waits for it

  std::uint64_t of(unsigned lane) const {
    return whole ? whole + std::uint64_t(lane) * bytes : host[lane];
  }
};

class Observer {
public:
  explicit Observer(LaunchObserver &launch);
  ~Observer();

  // --- From the worker ----------------------------------------------------

  /// A CTA starts; its warps are set up.
  void start(const Warp *warps, unsigned count);
  /// All live threads of `warp` have arrived at barrier `id`.
  void arrive(const Warp &warp, unsigned id);
  /// `warp`, which arrived at barrier `id`, may go on: everybody has arrived.
  void pass(const Warp &warp, unsigned id);
  /// Barrier `id` is complete and can be used again.
  void complete(unsigned id);

  // --- From the interpreter -----------------------------------------------

  /// True if executed() wants to hear of `inst`.
  bool hears(const Inst &inst) const {
    return counters || follows || (checksMembers && (inst.flags & Inst::Sync));
  }

  /// `inst` is about to run, all members of its mask that will come being there.
  void executed(Warp &warp, const Inst &inst);
  /// The ending of `block` is executed by `warp`, and the lanes `taken` do not go on to the next.
  void ended(const Warp &warp, const Block &block, std::uint32_t taken);

  // --- From instructions, before memory changes ---------------------------

  bool seesMemory() const { return counters || init || race; }
  void access(Warp &warp, const Inst &inst, const Access &access);
  void fence(Warp &warp, const Inst &inst, std::uint32_t mask);
  /// bar.warp.sync among the lanes of `mask`.
  void syncLanes(Warp &warp, std::uint32_t mask);
  void commitGroup(Warp &warp, std::uint32_t mask);
  /// Waits until at most `pending` of the committed groups are open; All: until nothing is.
  void waitGroups(Warp &warp, std::uint32_t mask, std::uint32_t pending);
  static constexpr std::uint32_t All = ~0u;
  /// What `lane` has copied arrives at the mbarrier at `host`, in its phase `parity`.
  void copiesArrive(Warp &warp, unsigned lane, std::uint64_t host, bool parity);
  /// Somebody has seen that the phase `parity` of the mbarrier at `host` is over.
  void passMbarrier(std::uint64_t host, bool parity);
  /// barrier.cluster, as arrive() and pass() know it.
  static constexpr unsigned Cluster = 16;
  /// `lane` reads a register of lane `from`, which is not in `mask`.
  void readsAbsentLane(Warp &warp, const Inst &inst, unsigned lane, unsigned from);

private:
  void checkMembers(Warp &warp, const Inst &inst);

  LaunchObserver &launch;
  bool checksMembers;
  bool follows = false; // some warp has values that the initcheck follows
  std::unique_ptr<Counters> counters;
  std::unique_ptr<AsyncCopies> copies; // if a check wants to know
  std::unique_ptr<InitCheck> init;
  std::unique_ptr<RaceCheck> race;
  std::unique_ptr<SkipCheck> skips;
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_OBSERVER_H
