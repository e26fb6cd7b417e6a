//===- Timeline.h - when the entries of a launch list ran -------------------===//
//
// Device entries are timed by a pair of events around each, host entries by the host's clock. The
// device's clock is tied to the host's where a run of device entries begins, so slices of the two
// tracks are comparable to within the cost of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_TIMELINE_H
#define PLANRT_TIMELINE_H

#include "runtime/Device.h"

#include <chrono>
#include <vector>

namespace planrt {

class Timeline {
public:
  /// In microseconds since the step began.
  struct Slice {
    bool ran = false, device = false;
    double start = 0, duration = 0;
  };

  /// Events for `entries` entries. Every call needs a Scope.
  static planc::Result<std::unique_ptr<Timeline>> create(DevicePtr device, size_t entries);
  ~Timeline();

  void beginStep();
  void beginHost(size_t entry);
  void endHost(size_t entry);
  planc::Status beginRun(cudaabi::CUstream stream);
  planc::Status beginDevice(size_t entry, cudaabi::CUstream stream);
  planc::Status endDevice(size_t entry, cudaabi::CUstream stream);
  /// The stream has been waited for.
  planc::Status endRun();

  const Slice &slice(size_t entry) const { return slices[entry]; }

private:
  using Clock = std::chrono::steady_clock;
  struct Events {
    cudaabi::CUevent begin = nullptr, end = nullptr;
  };

  Timeline(DevicePtr device, size_t entries)
      : device(std::move(device)), events(entries), slices(entries) {}
  double now() const;
  planc::Status record(cudaabi::CUevent event, cudaabi::CUstream stream);
  planc::Status elapsed(cudaabi::CUevent event, double &microseconds);

  DevicePtr device;
  Clock::time_point origin;
  cudaabi::CUevent runBegin = nullptr;
  double runStart = 0;
  std::vector<Events> events;
  std::vector<Slice> slices;
  std::vector<size_t> recorded; // entries of the run that is under way
};

} // namespace planrt

#endif // PLANRT_TIMELINE_H
