//===- LaunchObserver.h - what the observers of a launch share ------------===//

#ifndef PLANEMU_OBSERVE_LAUNCHOBSERVER_H
#define PLANEMU_OBSERVE_LAUNCHOBSERVER_H

#include "runtime/emulator/Memory.h"
#include "runtime/emulator/observe/Counters.h"
#include "runtime/emulator/observe/Shadow.h"

#include <mutex>
#include <optional>
#include <vector>

namespace planemu {

class Findings;
class RaceHistory;

class LaunchObserver {
public:
  /// `checks`: of planemu_check.
  LaunchObserver(const Launch &launch, unsigned checks, bool counts, Findings &findings,
                 RaceHistory &races)
      : launch(launch), checks(checks), allFindings(findings), allRaces(races),
        shadows(launch.kernel->cacheEntries) {
    if (counts)
      total.emplace(launch);
  }

  bool has(unsigned check) const { return checks & check; }
  Findings &findings() { return allFindings; }
  RaceHistory &races() { return allRaces; }

  /// Null if nothing is counted, else new counters of one observer.
  std::unique_ptr<Counters> makeCounters() const {
    return total ? std::make_unique<Counters>(launch) : nullptr;
  }
  void addCounters(const Counters &counters) {
    std::lock_guard lock(mutex);
    total->add(counters);
  }
  const Counters &counters() const { return *total; }

  /// The shadow of a global address; like resolving an address, an instruction remembers the last.
  const ShadowRef &shadowOf(const Inst &inst, std::uint64_t host) {
    ShadowRef &last = shadows[inst.cache];
    if (host - last.low >= last.bytes)
      last = launch.memory->shadowOf(host);
    return last;
  }

private:
  const Launch &launch;
  unsigned checks;
  Findings &allFindings;
  RaceHistory &allRaces;
  std::vector<ShadowRef> shadows;
  std::mutex mutex;
  std::optional<Counters> total;
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_LAUNCHOBSERVER_H
