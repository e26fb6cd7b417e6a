//===- Counters.h - what launches cost, as a table and against another run --===//
//
// Reads the emulator's counters (runtime/emulator/README.md has the format): one entry a launch,
// with a tree of whole numbers.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_RUN_COUNTERS_H
#define PLANC_LIB_TOOLS_PLAN_RUN_COUNTERS_H

#include "lib/Support/Json.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planrun {

struct LaunchCounters {
  std::string kernel, label;
  std::vector<std::string> keys; // in the file's order: "global.load.bytes"
  std::map<std::string, uint64_t> values;

  uint64_t get(const std::string &key) const;
};

/// `where` is the file, for errors.
planc::Result<std::vector<LaunchCounters>> parseCounters(std::string_view text,
                                                         const std::string &where);
planc::Result<std::vector<LaunchCounters>> readCounters(const std::string &path);

/// One row a kernel, the most warp instructions first.
std::string costTable(const std::vector<LaunchCounters> &launches);

/// Counters that differ. Launches of one kernel and label are compared in their order.
struct CounterDifference {
  std::string kernel;
  std::string label; // of the first of these launches
  std::string key;   // "launches" where the numbers of launches differ
  uint64_t a = 0, b = 0;
  uint64_t launches = 1; // with just this difference
};
std::vector<CounterDifference> compareCounters(const std::vector<LaunchCounters> &a,
                                               const std::vector<LaunchCounters> &b);
std::string differenceTable(const std::vector<CounterDifference> &differences);
planc::Json differenceJson(const std::vector<CounterDifference> &differences);

} // namespace planrun

#endif // PLANC_LIB_TOOLS_PLAN_RUN_COUNTERS_H
