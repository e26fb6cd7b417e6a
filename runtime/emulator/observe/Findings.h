//===- Findings.h - what the checks found ---------------------------------===//
//
// A finding is kept once for each combination of check, message, kernel, label and PTX lines;
// further ones of the same kind are counted. The order is the order in which they were found.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_FINDINGS_H
#define PLANEMU_OBSERVE_FINDINGS_H

#include "runtime/emulator/Machine.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace planemu {

/// A thread at an instruction.
struct Site {
  std::uint32_t line;
  std::uint64_t cta; // linear
  unsigned warp, lane;
};

Site siteOf(const Warp &warp, const Inst &inst, unsigned lane);

class Findings {
public:
  /// `check`: "init" and the like; `message`: what is wrong, without numbers, so that equal faults
  /// are equal; `where`: the bytes concerned, may be empty.
  void add(const Launch &launch, const char *check, const std::string &message, const Site &site,
           const std::string &where = {}, const Site *other = nullptr,
           const char *otherDoes = nullptr);

  std::size_t size() const;
  /// Empty if there is no such finding.
  std::string text(std::size_t index) const;
  void clear();
  /// Findings are also printed on stderr, from now on.
  void print() { prints = true; }

  /// More distinct ones are not kept: a kernel that is wrong everywhere says so soon.
  static constexpr std::size_t Most = 256;

private:
  struct Finding {
    std::string text;
    std::uint64_t count;
  };
  mutable std::mutex mutex;
  bool prints = false;
  std::vector<Finding> findings;
  std::map<std::string, std::size_t> known;
};

/// "name + offset" of a host address in global, shared or local memory of `warp`.
std::string describeBytes(const Warp &warp, std::uint64_t host, std::uint32_t bytes);

} // namespace planemu

#endif // PLANEMU_OBSERVE_FINDINGS_H
