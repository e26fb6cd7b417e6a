//===- RaceCheck.h - conflicting accesses that nothing orders -------------===//
//
// Two accesses to a byte by different threads, one of them a write, must be ordered: else their
// result is chance on a GPU, whatever order they have here. Order comes from (PTX ISA, "Memory
// Consistency Model"):
//
//   program order          of one thread; what its cp.async write is written when it waits for them
//   bar.warp.sync          between the lanes that take part; so do the barriers below
//   bar, barrier           everything before the arrival of a warp, before everything after the
//                          passing of another
//   release and acquire    a fence (or .release) and then a strong write, atomic or not, by a warp;
//                          a strong read, atomic or not, of the same word by another and then a
//                          fence (or .acquire). Between CTAs both fences and both accesses need
//                          gpu scope or wider; membar.gl and fence.acq_rel.gpu have it, volatile
//                          and relaxed.gpu accesses too
//
// A fence covers what its warp knows when it executes it: what it did itself, and what barriers and
// acquisitions before it made known. So both ways of handing over the work of a CTA are clean:
// "barrier; thread 0: fence, atomic" and "all threads: fence; barrier; thread 0: atomic" (the
// second is what many kernels do and what fences do on every GPU; read to the letter the model asks
// for the first). Likewise on the other side: "atomic, fence; barrier" and "atomic; barrier; fence
// in every reader".
//
// Between the lanes of a warp the same holds lane by lane. A release to another warp counts for its
// whole warp: that lanes were not brought together before it is not seen.
//
// Shuffles and votes order nothing. Two writes of one value to a word of shared memory do not conflict:
// compilers let every warp store what all have computed. In global memory they do. Two strong accesses of sufficient scope do not conflict;
// operations on an mbarrier are strong, and so is a read of the word that an atom.cas of the same
// kernel compares, by the same register (the usual start of a loop around one). Lanes
// that store different values to one word in one instruction do conflict.
//
// An access after a read whose thread has told of it by a relaxed store alone counts as unordered, though
// a write can often not be seen by such a read (values do not come out of thin air): algorithms that
// compact an array in place, as CUB's selection does, are reported.
//
// The unit of time is a warp's clock, which its barriers and fences advance. A word remembers its
// last write and the last reads of two warps (RaceCell): what is reported is a race, though not
// every race of a kernel is seen.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_RACECHECK_H
#define PLANEMU_OBSERVE_RACECHECK_H

#include "runtime/emulator/observe/AsyncCopies.h"
#include "runtime/emulator/observe/Findings.h"
#include "runtime/emulator/observe/LaunchObserver.h"
#include "runtime/emulator/observe/RaceHistory.h"

namespace planemu {

class RaceCheck {
public:
  explicit RaceCheck(LaunchObserver &launch) : launch(launch), history(launch.races()) {}
  void start(const Warp *warps, unsigned count);
  void access(Warp &warp, const Inst &inst, const Access &access);
  void fence(Warp &warp, std::uint32_t mask, Scope scope);
  void syncLanes(Warp &warp, std::uint32_t mask);
  void arrive(const Warp &warp, unsigned id);
  void pass(const Warp &warp, unsigned id);
  /// A warp has waited for copies of its own.
  void copiesEnd(const Warp &warp, const AsyncCopies::Copies &ended);
  void complete(unsigned id) { barriers[id] = {}; }

private:
  /// What a warp, or a barrier for those who pass it, knows.
  struct View {
    std::shared_ptr<const Clocks> own;     // of this CTA's warps
    KnowledgePtr others;                   // of other CTAs
    KnowledgePtr fencedGpu, fencedCta;     // what a strong write releases
    KnowledgePtr observedGpu, observedCta; // what the next fence acquires
    void join(const View &other);
  };
  /// Between a fence and a strong access of a lane; few warps have any.
  struct LaneMessages {
    LaneRow fenced[32] = {}, observed[32] = {};
    std::uint32_t hasFenced = 0, hasObserved = 0; // lanes
  };
  struct WarpState {
    View view;
    std::uint32_t clock = 1;
    LaneRow sees[32] = {};      // what each lane knows of the others
    std::uint32_t allSee = 0;   // ids below are before all lanes
    std::uint32_t syncedAt = 0; // when any of this last changed
    std::uint32_t learntAt = 0; // it knows nothing of what other warps did since this id
    std::unique_ptr<LaneMessages> messages;
    struct Recent {
      std::uint32_t line = 0, id = 0, clock = 0;
    };
    Recent recent[64]; // records to use again, by Inst::cache
  };
  /// How the access `id` stands to the one that is being looked at.
  struct Relation {
    std::uint32_t id = 0;
    bool sameWarp = false;
    bool before = false; // if it is another warp's
  };
  /// The access that is being looked at.
  struct Now {
    Warp *warp;
    const Inst *inst;
    WarpState *state;
    const Access *access;
    std::uint32_t id, first; // first: ids below are over
    Scope scope;
    mutable Relation relations[8]; // by id: those found so far
  };

  Relation relate(const Now &now, std::uint32_t id) const;
  const Relation &relationTo(const Now &now, std::uint32_t id) const;
  std::uint32_t recordOf(Warp &warp, const Inst &inst, const Access &access, WarpState &state);
  bool ordered(const Now &now, std::uint32_t id, unsigned lane, bool mixed,
               unsigned currentLane) const;
  void word(const Now &now, RaceCell &cell, unsigned lane, std::uint32_t bytes, std::uint64_t host,
            unsigned words);
  bool storesTheSame(const Now &now, const RaceCell &cell, unsigned lane, std::uint32_t bytes,
                     std::uint64_t host) const;
  bool storesWhatIsThere(const Now &now, unsigned lane, std::uint64_t host,
                         std::size_t count) const;
  void read(const Now &now, RaceCell &cell, unsigned lane, std::uint32_t bytes);
  bool readsQuietly(const Now &now, RaceCell &cell, unsigned lane, std::uint32_t bytes);
  void row(const Now &now, RaceCells cells, std::uint64_t first, std::uint64_t count, unsigned lane,
           std::uint64_t host);
  void report(const Now &now, const char *message, unsigned lane, std::uint64_t host,
              std::uint32_t bytes, std::uint32_t id, unsigned otherLane);
  void synchronise(const Now &now, unsigned lane, std::uint64_t host, bool isShared);
  void synchroniseLane(const Now &now, unsigned lane, SyncVariable &variable, bool reads,
                       bool writes);
  void acquireLanes(WarpState &state, std::uint32_t mask);
  void releaseLanes(WarpState &state, std::uint32_t mask);
  KnowledgePtr ownPart(const KnowledgePtr &known) const;
  void acquire(WarpState &state, Scope scope);
  void release(WarpState &state, std::uint64_t cta, unsigned warp, Scope scope);
  void advance(WarpState &state, unsigned warp);

  LaunchObserver &launch;
  RaceHistory &history;
  std::uint64_t cta = 0;
  std::uint32_t firstHere = 0; // ids below are of CTAs that used this shared memory before
  std::vector<RaceCell> sharedQuads, sharedWords;
  std::unordered_map<std::uint64_t, SyncVariable> sharedVariables;
  std::vector<WarpState> warps;
  View barriers[17]; // the last one is the cluster's
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_RACECHECK_H
