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

#include "include/planemu/planemu.h"

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

/// X(name) for every extension of libplanemu in use.
#define PLANRT_EXTENSIONS(X)                                                                       \
  X(planemu_last_error)                                                                            \
  X(planemu_set_threads)                                                                           \
  X(planemu_name_range)                                                                            \
  X(planemu_label_launch)                                                                          \
  X(planemu_set_target)                                                                            \
  X(planemu_set_interrupt)                                                                         \
  X(planemu_set_schedule_seed)                                                                     \
  X(planemu_set_checks)                                                                            \
  X(planemu_finding_count)                                                                         \
  X(planemu_finding)                                                                               \
  X(planemu_clear_findings)                                                                        \
  X(planemu_set_counters)                                                                          \
  X(planemu_counters)                                                                              \
  X(planemu_clear_counters)

namespace planrt {

/// What the emulator can do beside running kernels; the initial values ask for none of it.
struct EmulatorSettings {
  uint32_t threads = 0; // 0: its own choice
  uint64_t scheduleSeed = 0;
  std::string target;  // empty: its own choice
  uint32_t checks = 0; // union of planemu_check
  bool counters = false;
};

/// A loaded driver library; it stays loaded, for drivers do not survive being unloaded.
class Driver {
public:
  /// libcuda.so.1.
  static planc::Result<std::shared_ptr<const Driver>> cuda();
  /// libplanemu.so: beside the library (or program) that planrt is in, then on the loader's path.
  static planc::Result<std::shared_ptr<const Driver>> emulator();

  const cudaabi::Functions *operator->() const { return &functions; }

  /// What libplanemu has beside the driver API (include/planemu/planemu.h). It serves messages or
  /// does not change results, and none of it is there on a GPU: these do nothing then.
  void nameRange(cudaabi::CUdeviceptr address, size_t bytes, const std::string &name) const;
  /// Labels the next launch of the calling thread.
  void labelLaunch(const std::string &label) const;
  /// Asked before every node of the calling thread's graph launches: nonzero ends them there. Null:
  /// nothing is asked.
  void setInterrupt(int (*asked)(void *user), void *user) const;
  bool labelsLaunches() const { return extensions.planemu_label_launch != nullptr; }

  /// Sets the emulator up; before cuInit, since afterwards it is too late for a target. Fails for a
  /// target it does not know, and where the library is too old for what is asked for.
  planc::Status configure(const EmulatorSettings &settings) const;
  /// What the checks have found, and the counters' JSON text; pointers live until the thread's next
  /// call.
  size_t findingCount() const;
  const char *finding(size_t index) const;
  const char *counters() const;

  /// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"
  std::string describe(cudaabi::CUresult result) const;

  /// An error of the call `what`, with the kind that the result has.
  planc::Error error(cudaabi::CUresult result, std::string_view what) const;

  /// After such a result every later call of the context fails too.
  static bool losesContext(cudaabi::CUresult result);

private:
  static planc::Result<std::shared_ptr<const Driver>> bind(void *library, const std::string &name);

  cudaabi::Functions functions;
  std::string name;
  /// Null where the library does not have them.
  struct Extensions {
#define PLANRT_MEMBER(Name) decltype(&::Name) Name = nullptr;
    PLANRT_EXTENSIONS(PLANRT_MEMBER)
#undef PLANRT_MEMBER
  } extensions;
};

} // namespace planrt

#endif // PLANRT_DRIVER_H
