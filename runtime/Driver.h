//===- Driver.h - the CUDA driver API, found at run time -------------------===//
//
// planrt has one backend: the functions of CudaAbi.h, from libcuda.so.1 for a GPU or from
// libplanemu.so for the emulator. Both are loaded by name, so that planrt needs neither to be
// installed to be linked.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_DRIVER_H
#define PLANRT_DRIVER_H

#include "lib/Support/Error.h"
#include "runtime/CudaAbi.h"

#include <memory>
#include <string>

namespace cudaabi {

/// A pointer to every function, by its exported name.
struct Functions {
#define PLANRT_MEMBER(Name, Params) CUresult(*Name) Params = nullptr;
  PLAN_CUDA_FUNCTIONS(PLANRT_MEMBER)
#undef PLANRT_MEMBER
};

} // namespace cudaabi

namespace planrt {

/// A loaded driver library; it stays loaded, for drivers do not survive being unloaded.
class Driver {
public:
  /// libcuda.so.1.
  static planc::Result<std::shared_ptr<const Driver>> cuda();
  /// libplanemu.so: beside the library (or program) that planrt is in, then on the loader's path.
  static planc::Result<std::shared_ptr<const Driver>> emulator();

  const cudaabi::Functions *operator->() const { return &functions; }

  /// What libplanemu has beside the driver API (include/planemu/planemu.h). All of it serves
  /// messages, or does not change results, and none of it is there on a GPU: these do nothing then.
  void setThreads(unsigned threads) const;
  void nameRange(cudaabi::CUdeviceptr address, size_t bytes, const std::string &name) const;
  /// Labels the next launch of the calling thread.
  void labelLaunch(const std::string &label) const;
  bool labelsLaunches() const { return labelLaunchFunction != nullptr; }

  /// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"
  std::string describe(cudaabi::CUresult result) const;

  /// An error of the call `what`, with the kind that the result has.
  planc::Error error(cudaabi::CUresult result, const std::string &what) const;

  /// After such a result every later call of the context fails too.
  static bool losesContext(cudaabi::CUresult result);

private:
  static planc::Result<std::shared_ptr<const Driver>> bind(void *library, const std::string &name);

  cudaabi::Functions functions;
  const char *(*lastErrorFunction)() = nullptr;
  void (*setThreadsFunction)(unsigned) = nullptr;
  void (*nameRangeFunction)(uint64_t, size_t, const char *) = nullptr;
  void (*labelLaunchFunction)(const char *) = nullptr;
};

} // namespace planrt

#endif // PLANRT_DRIVER_H
