//===- Device.cpp - the CUDA driver API, as much as one kernel needs -------===//

#include "lib/Verify/Device.h"

#include "include/planemu/planemu.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <utility>

using namespace cudaabi;

namespace planc::verify {

/// X(member, name) for every extension of libplanemu in use.
#define PLANC_VERIFY_EXTENSIONS(X)                                                                 \
  X(planemu_last_error)                                                                            \
  X(planemu_name_range)                                                                            \
  X(planemu_label_launch)                                                                          \
  X(planemu_set_target)                                                                            \
  X(planemu_set_threads)                                                                           \
  X(planemu_set_schedule_seed)                                                                     \
  X(planemu_set_max_steps)                                                                         \
  X(planemu_set_checks)                                                                            \
  X(planemu_finding_count)                                                                         \
  X(planemu_finding)                                                                               \
  X(planemu_clear_findings)

struct Device::Functions {
#define MEMBER(Name, Parameters) CUresult(*Name) Parameters = nullptr;
  PLAN_CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
#define MEMBER(Name) decltype(&::Name) Name = nullptr; // null on a GPU
  PLANC_VERIFY_EXTENSIONS(MEMBER)
#undef MEMBER
  CUresult (*primaryCtxReset)(CUdevice) = nullptr;
};

std::string emulatorPath() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char *folder : {"../lib", "../lib/x86_64-linux-gnu", "../lib64"})
    if (fs::path path = program / folder / "libplanemu.so"; fs::exists(path, error))
      return path;
  return "libplanemu.so";
}

Result<std::unique_ptr<Device>> Device::open(const std::string &library, const std::string &arch) {
  std::string path = library == "emulator" ? emulatorPath()
                     : library == "cuda"   ? "libcuda.so.1"
                                           : library;
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return makeError(ErrorKind::Environment, "cannot load device {}: {}", library, dlerror());
  std::unique_ptr<Device> device(new Device);
  device->cu = std::make_shared<Functions>();
  Functions &cu = *device->cu;
#define RESOLVE(Name, Parameters)                                                                  \
  cu.Name = reinterpret_cast<decltype(cu.Name)>(dlsym(handle, #Name));
  PLAN_CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
#define RESOLVE(Name) cu.Name = reinterpret_cast<decltype(cu.Name)>(dlsym(handle, #Name));
  PLANC_VERIFY_EXTENSIONS(RESOLVE)
#undef RESOLVE
  cu.primaryCtxReset =
      reinterpret_cast<decltype(cu.primaryCtxReset)>(dlsym(handle, "cuDevicePrimaryCtxReset_v2"));
  if (!cu.cuInit || !cu.cuLaunchKernel || !cu.primaryCtxReset)
    return makeError(ErrorKind::Environment, "device {} exports no CUDA driver API", library);
  if (cu.planemu_set_target && cu.planemu_set_target(arch.c_str()) != 0)
    return makeError(ErrorKind::Environment, "the emulator cannot be a {}: {}", arch,
                     cu.planemu_last_error());
  CUdevice number = 0;
  CUcontext context = nullptr;
  device->check(cu.cuInit(0), "cuInit") &&
      device->check(cu.cuDeviceGet(&number, 0), "cuDeviceGet") &&
      device->check(cu.cuDevicePrimaryCtxRetain(&context, number), "cuDevicePrimaryCtxRetain") &&
      device->check(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  if (!device->failed.empty())
    return makeError(ErrorKind::Environment, "{}", device->failed);
  return device;
}

std::string Device::text(CUresult result) const {
  if (const char *detail = cu->planemu_last_error ? cu->planemu_last_error() : nullptr;
      detail && *detail)
    return detail;
  const char *name = nullptr, *message = nullptr;
  cu->cuGetErrorName(result, &name);
  cu->cuGetErrorString(result, &message);
  return std::string(name ? name : "unknown error") + (message ? ": " + std::string(message) : "");
}

bool Device::check(CUresult result, const char *what) {
  if (result != CUDA_SUCCESS && failed.empty())
    failed = std::string(what) + ": " + text(result);
  return result == CUDA_SUCCESS;
}

void Device::reset() {
  failed.clear();
  CUdevice number = 0;
  CUcontext context = nullptr;
  check(cu->cuDeviceGet(&number, 0), "cuDeviceGet") &&
      check(cu->primaryCtxReset(number), "cuDevicePrimaryCtxReset") &&
      check(cu->cuDevicePrimaryCtxRetain(&context, number), "cuDevicePrimaryCtxRetain") &&
      check(cu->cuCtxSetCurrent(context), "cuCtxSetCurrent");
  takeFindings();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// LLVM may read a vector of three as one of four, where the pointer's alignment allows it.
static size_t padded(size_t bytes) { return (bytes + 15) / 16 * 16; }

Device::Buffer::Buffer(Device &device, size_t bytes, const std::string &name)
    : device(&device), bytes(bytes) {
  if (!device.failed.empty() ||
      !device.check(device.cu->cuMemAlloc_v2(&pointer, padded(bytes)), "cuMemAlloc"))
    return;
  if (device.cu->planemu_name_range)
    device.cu->planemu_name_range(pointer, padded(bytes), name.c_str());
}

Device::Buffer::Buffer(Device &device, size_t bytes, Content content, const std::string &name)
    : Buffer(device, bytes, name) {
  if (pointer && content != Content::Unwritten)
    device.check(device.cu->cuMemsetD8_v2(pointer, content == Content::Ones ? 0xFF : 0, bytes),
                 "cuMemsetD8");
}

Device::Buffer::Buffer(Device &device, std::span<const std::byte> content, const std::string &name)
    : Buffer(device, content.size(), name) {
  if (pointer)
    device.check(device.cu->cuMemcpyHtoD_v2(pointer, content.data(), content.size()),
                 "cuMemcpyHtoD");
}

Device::Buffer::Buffer(Buffer &&other) noexcept
    : device(other.device), pointer(std::exchange(other.pointer, 0)), bytes(other.bytes) {}

Device::Buffer::~Buffer() {
  if (pointer)
    device->cu->cuMemFree_v2(pointer);
}

std::vector<std::byte> Device::Buffer::download() const {
  std::vector<std::byte> content(bytes);
  if (pointer)
    device->check(device->cu->cuMemcpyDtoH_v2(content.data(), pointer, bytes), "cuMemcpyDtoH");
  return content;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

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
  if (!failed.empty())
    return failed;
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

//===----------------------------------------------------------------------===//
// The emulator
//===----------------------------------------------------------------------===//

void Device::setChecks(bool on) {
  if (cu->planemu_set_checks)
    cu->planemu_set_checks(on ? PLANEMU_CHECK_MEM | PLANEMU_CHECK_INIT | PLANEMU_CHECK_READS |
                                    PLANEMU_CHECK_RACE | PLANEMU_CHECK_SYNC
                              : 0);
}
void Device::setScheduleSeed(uint64_t seed) {
  if (cu->planemu_set_schedule_seed)
    cu->planemu_set_schedule_seed(seed);
}
void Device::setThreads(unsigned threads) {
  if (cu->planemu_set_threads)
    cu->planemu_set_threads(threads);
}
void Device::setMaxSteps(uint64_t steps) {
  if (cu->planemu_set_max_steps)
    cu->planemu_set_max_steps(steps);
}
void Device::label(const std::string &text) {
  if (cu->planemu_label_launch)
    cu->planemu_label_launch(text.c_str());
}
std::vector<std::string> Device::takeFindings() {
  std::vector<std::string> findings;
  for (size_t i = 0; cu->planemu_finding_count && i < cu->planemu_finding_count(); ++i)
    if (const char *text = cu->planemu_finding(i))
      findings.push_back(text);
  if (cu->planemu_clear_findings)
    cu->planemu_clear_findings();
  return findings;
}

} // namespace planc::verify
