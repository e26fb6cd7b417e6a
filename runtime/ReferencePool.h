//===- ReferencePool.h - numbered things that are shared --------------------===//
//
// State slots and KV blocks are numbers whose holders are counted. Everything is allocated when the
// pool is made, so that a step allocates nothing.
//
// A holder that is leaving has a copy in the making: it still reads what it holds, so the number
// stays taken, but it will not write it, so of two holders the other may already.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_REFERENCEPOOL_H
#define PLANRT_REFERENCEPOOL_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planrt {

class ReferencePool {
public:
  explicit ReferencePool(int64_t count) : holders(std::size_t(count)), leavers(std::size_t(count)) {
    unused.reserve(std::size_t(count));
    for (int64_t number = count; number-- > 0;)
      unused.push_back(int32_t(number));
  }

  int64_t total() const { return int64_t(holders.size()); }
  int64_t available() const { return int64_t(unused.size()); }
  /// Is there a second holder that stays?
  bool shared(int32_t number) const {
    return holders[std::size_t(number)] - leavers[std::size_t(number)] > 1;
  }

  /// One of those that nobody holds; there must be one.
  int32_t take() {
    int32_t number = unused.back();
    unused.pop_back();
    holders[std::size_t(number)] = 1;
    return number;
  }
  void share(int32_t number) { ++holders[std::size_t(number)]; }
  void release(int32_t number) {
    if (--holders[std::size_t(number)] == 0)
      unused.push_back(number);
  }
  void beginLeaving(int32_t number) { ++leavers[std::size_t(number)]; }
  /// `left`: the holder holds its copy now.
  void endLeaving(int32_t number, bool left) {
    --leavers[std::size_t(number)];
    if (left)
      release(number);
  }

private:
  std::vector<uint32_t> holders, leavers; // by number
  std::vector<int32_t> unused;            // taken from the end
};

} // namespace planrt

#endif // PLANRT_REFERENCEPOOL_H
