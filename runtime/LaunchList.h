//===- LaunchList.h - a program's kernels, ready to be started --------------===//
//
// Every argument of every kernel start is resolved to an address when a step is opened; starting one
// is a call of the driver.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_LAUNCHLIST_H
#define PLANRT_LAUNCHLIST_H

#include "runtime/Session.h"
#include "runtime/StepMemory.h"

namespace planrt {

class LaunchList {
public:
  LaunchList(const planc::bundle::Program &program, const Session &session, const Kernels &kernels,
             const StepMemory &memory);

  /// Starts the kernel of an entry, if it has one. Needs a Scope.
  planc::Status start(size_t entry, cudaabi::CUstream stream) const;
  bool hasKernel(size_t entry) const { return starts[entry].kernel; }
  /// `group 3 "rule" (nodes a, b)`.
  const std::string &label(size_t entry) const { return starts[entry].label; }

private:
  struct Start {
    const Kernels::Loaded *kernel = nullptr;
    std::vector<CUdeviceptr> values;
    std::vector<void *> pointers; // to values
    std::string label;
  };

  const planc::bundle::Program &plan;
  const Device &device;
  std::vector<Start> starts; // by entry
};

} // namespace planrt

#endif // PLANRT_LAUNCHLIST_H
