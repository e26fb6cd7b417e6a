//===- FuzzRunner.cpp - any module through the emulator -------------------===//
//
// Loads the input as a module and launches each of its kernels: two CTAs of 48 threads, every
// parameter filled with the address of a small buffer, a small limit of steps. Kernels may fault,
// never the host: what they reach beyond the buffer the emulator must catch.
//===----------------------------------------------------------------------===//

#include "include/planemu/planemu.h"
#include "runtime/CudaAbi.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

using namespace cudaabi;

extern "C" {
#define DECLARE(Name, Params) CUresult Name Params;
PLAN_CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
}

constexpr unsigned BufferBytes = 4096, ParameterBytes = 4352;

static CUdeviceptr buffer = 0;

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  CUcontext context;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuMemAlloc_v2(&buffer, BufferBytes))
    std::abort();
  planemu_set_threads(1);
  planemu_set_max_steps(20000);
  return 0;
}

/// The words that follow `.entry`.
static std::vector<std::string> kernelNames(std::string_view text) {
  std::vector<std::string> names;
  constexpr std::string_view Entry = ".entry";
  for (std::size_t at = text.find(Entry); at != text.npos; at = text.find(Entry, at)) {
    at = text.find_first_not_of(" \t\r\n", at + Entry.size());
    if (at == text.npos)
      break;
    std::size_t end = text.find_first_of(" \t\r\n(){};,", at);
    names.emplace_back(text.substr(at, end == text.npos ? end : end - at));
  }
  return names;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  CUmodule module;
  if (cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS)
    return 0;
  // Each parameter begins somewhere in this block, all of whose words point into the buffer.
  std::vector<CUdeviceptr> block(ParameterBytes / sizeof(CUdeviceptr), buffer + 256);
  std::vector<void *> parameters(512, block.data());
  for (const std::string &name : kernelNames(text)) {
    CUfunction function;
    if (cuModuleGetFunction(&function, module, name.c_str()) != CUDA_SUCCESS)
      continue;
    cuMemsetD8_v2(buffer, 1, BufferBytes);
    if (cuLaunchKernel(function, 2, 1, 1, 48, 1, 1, 256, nullptr, parameters.data(), nullptr) ==
        CUDA_SUCCESS)
      cuCtxSynchronize();
  }
  cuModuleUnload(module);
  return 0;
}
