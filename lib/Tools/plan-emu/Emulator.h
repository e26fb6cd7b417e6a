//===- Emulator.h - libplanemu, loaded by name ------------------------------===//
//
// The driver functions and extensions that plan-emu calls, and their failures as errors.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_EMU_EMULATOR_H
#define PLANC_LIB_TOOLS_PLAN_EMU_EMULATOR_H

#include "lib/Support/Error.h"

#include "include/planemu/planemu.h"
#include "runtime/CudaAbi.h"

namespace planemutool {

using namespace cudaabi;

/// X(name, (parameters)) for the driver functions that planrt does not need.
#define PLANEMU_MORE_FUNCTIONS(X)                                                                  \
  X(cuModuleGetFunctionCount, (unsigned *count, CUmodule module))                                  \
  X(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned count, CUmodule module))         \
  X(cuFuncGetName, (const char **name, CUfunction function))                                       \
  X(cuFuncGetParamInfo,                                                                            \
    (CUfunction function, std::size_t index, std::size_t *offset, std::size_t *bytes))             \
  X(cuLaunchCooperativeKernel,                                                                     \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,         \
     unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream, void **parameters))

/// X(name) for every extension in use.
#define PLANEMU_EXTENSIONS(X)                                                                      \
  X(planemu_last_error)                                                                            \
  X(planemu_set_threads)                                                                           \
  X(planemu_name_range)                                                                            \
  X(planemu_set_target)                                                                            \
  X(planemu_set_max_steps)                                                                         \
  X(planemu_set_schedule_seed)                                                                     \
  X(planemu_set_checks)                                                                            \
  X(planemu_finding_count)                                                                         \
  X(planemu_finding)                                                                               \
  X(planemu_set_counters)                                                                          \
  X(planemu_counters)                                                                              \
  X(planemu_warp_instructions)

class Emulator {
public:
  /// Beside this program, in the lib folder next to it, then on the loader's path.
  static planc::Result<Emulator> load();

#define PLANEMU_MEMBER(Name, Params) CUresult(*Name) Params = nullptr;
  PLAN_CUDA_FUNCTIONS(PLANEMU_MEMBER)
  PLANEMU_MORE_FUNCTIONS(PLANEMU_MEMBER)
#undef PLANEMU_MEMBER
#define PLANEMU_MEMBER(Name) decltype(&::Name) Name = nullptr;
  PLANEMU_EXTENSIONS(PLANEMU_MEMBER)
#undef PLANEMU_MEMBER

  /// Success, or an error of the call `what`; `where` is the file at fault, if it is one.
  planc::Status check(CUresult result, const std::string &what,
                      const std::string &where = {}) const;

private:
  planc::Status bind(void *library, const std::string &path);
};

} // namespace planemutool

#endif // PLANC_LIB_TOOLS_PLAN_EMU_EMULATOR_H
