//===- Device.cpp - the CUDA driver API, as much as a kernel test needs ----===//

#include "Device.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <utility>

using namespace cudaabi;

namespace kerneltest {

namespace {
[[noreturn]] void giveUp(const std::string &why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(3);
}
} // namespace

struct Device::Functions {
#define MEMBER(Name, Parameters) CUresult(*Name) Parameters = nullptr;
  PLAN_CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
  const char *(*lastError)() = nullptr; // the emulator's own; null on a GPU
};

Device::Device(const std::string &library, const std::string &arch)
    : cu(std::make_shared<Functions>()) {
  std::string path = library == "cuda" ? "libcuda.so.1" : library;
  if (library == "emulator") {
    path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/libplanemu.so";
    setenv("PLANEMU_TARGET", arch.c_str(), 0);
  }
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    giveUp(dlerror());
#define RESOLVE(Name, Parameters)                                                                  \
  cu->Name = reinterpret_cast<decltype(cu->Name)>(dlsym(handle, #Name));
  PLAN_CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
  cu->lastError = reinterpret_cast<const char *(*)()>(dlsym(handle, "planemu_last_error"));
  if (!cu->cuInit || !cu->cuLaunchKernel)
    giveUp(path + ": exports no CUDA driver API");
  check(cu->cuInit(0), "cuInit");
  CUdevice device;
  CUcontext context;
  check(cu->cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cu->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cu->cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

std::string Device::text(CUresult result) const {
  if (const char *detail = cu->lastError ? cu->lastError() : nullptr; detail && *detail)
    return detail;
  const char *name = nullptr, *message = nullptr;
  cu->cuGetErrorName(result, &name);
  cu->cuGetErrorString(result, &message);
  return std::string(name ? name : "unknown error") + (message ? ": " + std::string(message) : "");
}

void Device::check(CUresult result, const char *what) const {
  if (result != CUDA_SUCCESS)
    giveUp(std::string(what) + ": " + text(result));
}

/// LLVM may read a vector of three as one of four, where the pointer's alignment allows it.
static size_t padded(size_t bytes) { return (bytes + 15) / 16 * 16; }

Device::Buffer::Buffer(Device &device, size_t bytes, unsigned char fill)
    : device(&device), bytes(bytes) {
  device.check(device.cu->cuMemAlloc_v2(&pointer, padded(bytes)), "cuMemAlloc");
  device.check(device.cu->cuMemsetD8_v2(pointer, fill, bytes), "cuMemsetD8");
}

Device::Buffer::Buffer(Device &device, std::span<const std::byte> content)
    : device(&device), bytes(content.size()) {
  device.check(device.cu->cuMemAlloc_v2(&pointer, padded(bytes)), "cuMemAlloc");
  upload(content);
}

Device::Buffer::Buffer(Buffer &&other) noexcept
    : device(other.device), pointer(std::exchange(other.pointer, 0)), bytes(other.bytes) {}

Device::Buffer::~Buffer() {
  if (pointer)
    device->cu->cuMemFree_v2(pointer);
}

std::vector<std::byte> Device::Buffer::download() const {
  std::vector<std::byte> content(bytes);
  device->check(device->cu->cuMemcpyDtoH_v2(content.data(), pointer, bytes), "cuMemcpyDtoH");
  return content;
}

void Device::Buffer::upload(std::span<const std::byte> content) const {
  device->check(device->cu->cuMemcpyHtoD_v2(pointer, content.data(), content.size()),
                "cuMemcpyHtoD");
}

CUfunction Device::load(const std::string &ptx, const std::string &entry, std::string &error) {
  CUmodule module;
  std::vector<char> log(8192);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  CUresult result = cu->cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values);
  CUfunction function = nullptr;
  if (result == CUDA_SUCCESS)
    result = cu->cuModuleGetFunction(&function, module, entry.c_str());
  if (result != CUDA_SUCCESS)
    error = text(result) + (log[0] ? "\n" + std::string(log.data()) : "");
  return function;
}

std::string Device::launch(CUfunction function, std::array<uint32_t, 3> grid,
                           std::array<uint32_t, 3> block, uint32_t sharedBytes,
                           std::span<const CUdeviceptr> parameters) {
  // More than the default needs to be asked for.
  if (sharedBytes > 48 * 1024)
    if (CUresult result = cu->cuFuncSetAttribute(
            function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(sharedBytes)))
      return "cuFuncSetAttribute: " + text(result);
  std::vector<CUdeviceptr> values(parameters.begin(), parameters.end());
  std::vector<void *> pointers;
  for (CUdeviceptr &value : values)
    pointers.push_back(&value);
  CUresult result = cu->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                       block[2], sharedBytes, nullptr, pointers.data(), nullptr);
  if (result == CUDA_SUCCESS)
    result = cu->cuCtxSynchronize();
  return result == CUDA_SUCCESS ? "" : text(result);
}

} // namespace kerneltest
