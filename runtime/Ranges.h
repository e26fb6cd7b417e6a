//===- Ranges.h - named ranges for profilers --------------------------------===//
//
// NVTX ranges: a step, and inside it each group as it is started. In a graph that is replayed there
// are no groups to see, only the step. NVTX is headers alone and does nothing unless a profiler
// brings its library; where the headers were not found at build time, ranges do nothing at all.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_RANGES_H
#define PLANRT_RANGES_H

#if PLANRT_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace planrt {

#if PLANRT_HAVE_NVTX

/// From construction to destruction, on the calling thread.
class Range {
public:
  explicit Range(const char *name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range &) = delete;
};

#else

class Range {
public:
  explicit Range(const char *) {}
};

#endif

} // namespace planrt

#endif // PLANRT_RANGES_H
