//===- Emulator.h - libplanemu through the driver API, for tests ----------===//
//
// Opens the library as planrt does, by dlopen and exported names, and wraps what tests need: load
// PTX, upload, launch, download. Any failure prints and ends the program unless the test asks for
// the result.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_TEST_EMULATOR_H
#define PLANEMU_TEST_EMULATOR_H

#include "runtime/CudaAbi.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace emutest {

using namespace cudaabi;

struct Api {
#define MEMBER(Name, Params) CUresult(*Name) Params = nullptr;
  PLAN_CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
  const char *(*lastError)() = nullptr;
  cudaabi::CUresult (*launchCooperative)(cudaabi::CUfunction, unsigned, unsigned, unsigned,
                                         unsigned, unsigned, unsigned, unsigned, cudaabi::CUstream,
                                         void **) = nullptr;
  void (*setThreads)(unsigned) = nullptr;
  void (*nameRange)(std::uint64_t, std::size_t, const char *) = nullptr;
  void (*labelLaunch)(const char *) = nullptr;
  void (*setMaxSteps)(std::uint64_t) = nullptr;
  void (*setScheduleSeed)(std::uint64_t) = nullptr;
  std::uint64_t (*warpInstructions)() = nullptr;
  int (*setJit)(unsigned) = nullptr;
  void (*setChecks)(unsigned) = nullptr;
  std::size_t (*findingCount)() = nullptr;
  const char *(*finding)(std::size_t) = nullptr;
  void (*setCounters)(int) = nullptr;
  const char *(*counters)() = nullptr;
};

[[noreturn]] inline void die(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

/// The library beside the test's own folder, or the one PLANEMU_LIBRARY names.
inline const Api &api() {
  static const Api loaded = [] {
    Api table;
    const char *named = std::getenv("PLANEMU_LIBRARY");
    std::string path = named ? named : PLANEMU_LIBRARY_PATH;
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      die(dlerror());
    auto find = [&](auto &member, const char *name) {
      member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(library, name));
      if (!member)
        die(std::string("no ") + name);
    };
#define FIND(Name, Params) find(table.Name, #Name);
    PLAN_CUDA_FUNCTIONS(FIND)
#undef FIND
    find(table.lastError, "planemu_last_error");
    find(table.launchCooperative, "cuLaunchCooperativeKernel");
    find(table.setThreads, "planemu_set_threads");
    find(table.nameRange, "planemu_name_range");
    find(table.labelLaunch, "planemu_label_launch");
    find(table.setMaxSteps, "planemu_set_max_steps");
    find(table.setScheduleSeed, "planemu_set_schedule_seed");
    find(table.warpInstructions, "planemu_warp_instructions");
    find(table.setJit, "planemu_set_jit");
    find(table.setChecks, "planemu_set_checks");
    find(table.findingCount, "planemu_finding_count");
    find(table.finding, "planemu_finding");
    find(table.setCounters, "planemu_set_counters");
    find(table.counters, "planemu_counters");
    return table;
  }();
  return loaded;
}

inline std::string nameOf(CUresult result) {
  const char *text = nullptr;
  api().cuGetErrorName(result, &text);
  return text ? text : std::to_string(result);
}

inline void check(CUresult result, const char *what) {
  if (result != CUDA_SUCCESS)
    die(std::string(what) + ": " + nameOf(result) + ": " + api().lastError());
}
#define CU(Name, ...) emutest::check(emutest::api().Name(__VA_ARGS__), #Name)

/// Makes the context current in this thread.
inline void open() {
  CU(cuInit, 0);
  CUcontext context;
  CU(cuDevicePrimaryCtxRetain, &context, 0);
  CU(cuCtxSetCurrent, context);
}

inline CUfunction load(const std::string &ptx, const char *kernel) {
  CUmodule module;
  CU(cuModuleLoadDataEx, &module, ptx.c_str(), 0, nullptr, nullptr);
  CUfunction function;
  CU(cuModuleGetFunction, &function, module, kernel);
  return function;
}

template <class T> CUdeviceptr upload(const std::vector<T> &data) {
  CUdeviceptr address;
  CU(cuMemAlloc_v2, &address, data.size() * sizeof(T));
  CU(cuMemcpyHtoD_v2, address, data.data(), data.size() * sizeof(T));
  return address;
}

/// All bytes downloaded so far, as one number. With EMUTEST_HASH set the program prints it in the
/// end: tests compare it between instruction sets of the host.
struct OutputHash {
  std::uint64_t value = 0xcbf29ce484222325; // FNV-1a
  void add(const void *bytes, std::size_t count) {
    for (std::size_t n = 0; n < count; ++n)
      value = (value ^ static_cast<const unsigned char *>(bytes)[n]) * 0x100000001b3;
  }
  ~OutputHash() {
    if (std::getenv("EMUTEST_HASH"))
      std::printf("outputs: %016llx\n", static_cast<unsigned long long>(value));
  }
};
inline OutputHash outputHash;

/// `anyOrder`: the bytes depend on the order of CTAs, and do not count for the hash.
template <class T>
std::vector<T> download(CUdeviceptr address, std::size_t count, bool anyOrder = false) {
  std::vector<T> data(count);
  CU(cuMemcpyDtoH_v2, data.data(), address, count * sizeof(T));
  if (!anyOrder)
    outputHash.add(data.data(), count * sizeof(T));
  return data;
}

/// Launches with pointers (or other 8-byte values) as parameters and waits; returns what the wait
/// returns.
inline CUresult launch(CUfunction function, unsigned grid, unsigned block,
                       std::vector<std::uint64_t> arguments, unsigned shared = 0) {
  std::vector<void *> pointers;
  for (std::uint64_t &argument : arguments)
    pointers.push_back(&argument);
  CUresult result = api().cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr,
                                         pointers.data(), nullptr);
  return result != CUDA_SUCCESS ? result : api().cuCtxSynchronize();
}

/// The module header of hand-written test kernels.
inline std::string header(const char *target = "sm_121a") {
  return std::string(".version 8.8\n.target ") + target + "\n.address_size 64\n";
}

} // namespace emutest

#endif // PLANEMU_TEST_EMULATOR_H
