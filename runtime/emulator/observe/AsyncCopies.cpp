//===- AsyncCopies.cpp - cp.async that nobody has waited for --------------===//

#include "runtime/emulator/observe/AsyncCopies.h"

#include <algorithm>
#include <iterator>

using namespace planemu;

void AsyncCopies::start(unsigned count) { warps.assign(count, {}); }

void AsyncCopies::issued(const Warp &warp, const Inst &inst, const Access &access) {
  const std::uint64_t low = reinterpret_cast<std::uint64_t>(warp.shared);
  WarpCopies &mine = warps[warp.index];
  for (std::uint32_t left = access.mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t host = access.of(lane);
    std::uint32_t bytes = access.sizes ? access.sizes[lane] : access.bytes;
    if (host && bytes && host - low < warp.sharedBytes)
      mine.copies.push_back({lane, mine.groups[lane], inst.line,
                             static_cast<std::uint32_t>(host - low), bytes, access.mbarrier,
                             access.mbarrier != 0, access.parity});
  }
}

void AsyncCopies::commitGroup(const Warp &warp, std::uint32_t mask) {
  for (std::uint32_t left = mask; left; left &= left - 1)
    ++warps[warp.index].groups[__builtin_ctz(left)];
}

void AsyncCopies::arrive(const Warp &warp, unsigned lane, std::uint64_t mbarrier, bool parity) {
  for (AsyncCopy &copy : warps[warp.index].copies)
    if (copy.lane == lane && !copy.mbarrier) {
      copy.mbarrier = mbarrier;
      copy.parity = parity;
    }
}

/// Moves the copies of `from` that `ends` accepts to `ended`.
template <class Ends>
static void take(AsyncCopies::Copies &from, AsyncCopies::Copies &ended, Ends ends) {
  std::copy_if(from.begin(), from.end(), std::back_inserter(ended), ends);
  std::erase_if(from, ends);
}

AsyncCopies::Copies AsyncCopies::wait(const Warp &warp, std::uint32_t mask, std::uint32_t pending) {
  WarpCopies &mine = warps[warp.index];
  Copies ended;
  take(mine.copies, ended, [&](const AsyncCopy &copy) {
    return (mask >> copy.lane & 1) && !copy.bulk &&
           (pending == Observer::All || copy.group + pending < mine.groups[copy.lane]);
  });
  return ended;
}

AsyncCopies::Copies AsyncCopies::pass(std::uint64_t mbarrier, bool parity) {
  Copies ended;
  for (WarpCopies &warp : warps)
    take(warp.copies, ended,
         [&](const AsyncCopy &copy) { return copy.mbarrier == mbarrier && copy.parity == parity; });
  return ended;
}
