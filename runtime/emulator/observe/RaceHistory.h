//===- RaceHistory.h - accesses and synchronisation of one launch ---------===//
//
// What race checks of all CTAs of a launch share: records of accesses, which shadow cells name by
// id, and what each synchronising word has been told (release) for others to learn (acquire).
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_RACEHISTORY_H
#define PLANEMU_OBSERVE_RACEHISTORY_H

#include "runtime/emulator/observe/Observer.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

namespace planemu {

/// A vector clock of one CTA: of each warp, the last of its steps that is known to be over.
using Clocks = std::vector<std::uint32_t>;

/// What somebody knows of several CTAs. Immutable once shared.
struct Knowledge {
  std::map<std::uint64_t, std::shared_ptr<const Clocks>> of; // by linear CTA
};
using KnowledgePtr = std::shared_ptr<const Knowledge>;

KnowledgePtr join(const KnowledgePtr &a, const KnowledgePtr &b);
std::shared_ptr<const Clocks> join(const std::shared_ptr<const Clocks> &a,
                                   const std::shared_ptr<const Clocks> &b);

/// One execution of a memory instruction by a warp (or several in a row between which nothing
/// synchronises).
struct AccessRecord {
  std::uint64_t cta;
  std::uint32_t clock; // of the warp
  std::uint32_t line;
  std::uint8_t warp;
  Scope scope;
  AccessKind kind;
};

/// What one lane knows of each lane of its warp: accesses with ids below are before it.
using LaneRow = std::array<std::uint32_t, 32>;

inline void join(LaneRow &into, const LaneRow &other) {
  for (unsigned lane = 0; lane < 32; ++lane)
    into[lane] = std::max(into[lane], other[lane]);
}

/// What the word of a synchronising variable carries. `cta` holds releases of CTA scope, which only
/// their own CTA may learn.
struct SyncVariable {
  KnowledgePtr gpu, cta;
  std::map<std::pair<std::uint64_t, unsigned>, LaneRow> lanes; // by CTA and warp, for its lanes
};

class RaceHistory {
public:
  /// A launch starts: everything before has happened.
  void startLaunch() {
    firstId += static_cast<std::uint32_t>(records.size());
    records.clear();
    variables.clear();
  }
  /// True if ids are about to wrap: the caller clears all cells and calls restart.
  bool nearlyFull() const { return firstId > 3u << 30; }
  void restart() { firstId = 1; }

  std::uint32_t add(const AccessRecord &record) {
    records.push_back(record);
    return firstId + static_cast<std::uint32_t>(records.size()) - 1;
  }
  /// The id that the next record will get.
  std::uint32_t next() const { return firstId + static_cast<std::uint32_t>(records.size()); }
  /// Ids below are of earlier launches.
  std::uint32_t first() const { return firstId; }
  const AccessRecord &operator[](std::uint32_t id) const { return records[id - firstId]; }

  /// By host address; of global memory.
  std::unordered_map<std::uint64_t, SyncVariable> variables;

private:
  std::uint32_t firstId = 1;
  std::vector<AccessRecord> records;
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_RACEHISTORY_H
