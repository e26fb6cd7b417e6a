//===- FuzzPtxRun.cpp - any module through the emulator -------------------===//
//
// Loads the input as a module and launches each of its kernels. Parameters of 8 bytes point into a
// small buffer, others are small numbers. Kernels may fault, never the host: what they reach beyond
// the buffer the emulator must catch.
//
// A first line `//launch CTAS THREADS SHARED CHECKS SEED` says how, so that a mutation of its numbers
// changes that too: CHECKS is a union of planemu_check, 16 counts, 32 is cooperative.
//===----------------------------------------------------------------------===//

#include "include/planemu/planemu.h"
#include "runtime/CudaAbi.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

using namespace cudaabi;

extern "C" {
#define DECLARE(Name, Params) CUresult Name Params;
PLAN_CUDA_FUNCTIONS(DECLARE)
DECLARE(cuModuleGetFunctionCount, (unsigned *count, CUmodule module))
DECLARE(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned count, CUmodule module))
DECLARE(cuFuncGetParamInfo,
        (CUfunction function, std::size_t index, std::size_t *offset, std::size_t *bytes))
DECLARE(cuLaunchCooperativeKernel,
        (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
         unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream,
         void **parameters))
DECLARE(cuDevicePrimaryCtxReset_v2, (CUdevice device))
#undef DECLARE
}

constexpr unsigned BufferBytes = 4096, MostParameterBytes = 4352, MostParameters = 600;

static CUdeviceptr buffer = 0;

static void allocate() {
  if (cuMemAlloc_v2(&buffer, BufferBytes))
    std::abort();
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  CUcontext context;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
    std::abort();
  allocate();
  planemu_set_threads(1);
  planemu_set_max_steps(2000);
  return 0;
}

namespace {
struct Launch {
  unsigned ctas = 2, threads = 48, shared = 1024, checks = 0, seed = 0;
};
} // namespace

static Launch readLaunch(std::string_view text) {
  Launch launch;
  constexpr std::string_view Start = "//launch";
  if (!text.starts_with(Start))
    return launch;
  const char *at = text.data() + Start.size(), *end = text.data() + text.size();
  for (unsigned *number :
       {&launch.ctas, &launch.threads, &launch.shared, &launch.checks, &launch.seed}) {
    while (at != end && *at == ' ')
      ++at;
    auto [next, error] = std::from_chars(at, end, *number);
    if (error != std::errc())
      break;
    at = next;
  }
  // A launch of any size is legal, and takes its time.
  launch.ctas = 1 + (launch.ctas - 1) % 4;
  launch.threads = 1 + (launch.threads - 1) % 160;
  return launch;
}

/// False if the context is lost to a fault.
static bool run(CUfunction function, const Launch &launch) {
  std::vector<std::vector<char>> values;
  std::vector<void *> pointers;
  for (std::size_t index = 0, offset, bytes; index < MostParameters; ++index) {
    if (cuFuncGetParamInfo(function, index, &offset, &bytes) != CUDA_SUCCESS ||
        bytes > MostParameterBytes)
      break;
    std::vector<char> &value = values.emplace_back(std::max<std::size_t>(bytes, 8));
    std::uint64_t word = bytes == 4 ? 5 + index : buffer + 128 * (index % 16);
    for (std::size_t at = 0; at < bytes; at += 8)
      std::memcpy(value.data() + at, &word, std::min<std::size_t>(8, bytes - at));
    pointers.push_back(value.data());
  }
  cuMemsetD8_v2(buffer, 1, BufferBytes);
  CUresult result = launch.checks & 32
                        ? cuLaunchCooperativeKernel(function, launch.ctas, 1, 1, launch.threads, 1,
                                                    1, launch.shared, nullptr, pointers.data())
                        : cuLaunchKernel(function, launch.ctas, 1, 1, launch.threads, 1, 1,
                                         launch.shared, nullptr, pointers.data(), nullptr);
  return result != CUDA_SUCCESS || cuCtxSynchronize() == CUDA_SUCCESS;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  Launch launch = readLaunch(text);
  planemu_set_checks(launch.checks & 15);
  planemu_set_counters((launch.checks & 16) != 0);
  planemu_set_schedule_seed(launch.seed);
  CUmodule module;
  if (cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS)
    return 0;
  unsigned count = 0;
  bool good = true;
  std::vector<CUfunction> functions(32);
  if (cuModuleGetFunctionCount(&count, module) == CUDA_SUCCESS &&
      cuModuleEnumerateFunctions(functions.data(), unsigned(functions.size()), module) ==
          CUDA_SUCCESS)
    for (unsigned n = 0; n < count && n < functions.size() && good; ++n)
      good = run(functions[n], launch);
  planemu_counters();
  for (std::size_t n = 0; n < planemu_finding_count(); ++n)
    planemu_finding(n);
  planemu_clear_findings();
  planemu_clear_counters();
  cuModuleUnload(module);
  // A fault loses the context: without a new one no later input would be loaded.
  if (!good) {
    if (cuDevicePrimaryCtxReset_v2(0))
      std::abort();
    allocate();
  }
  return 0;
}
