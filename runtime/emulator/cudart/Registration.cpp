//===- Registration.cpp - kernels and variables by their host addresses ---===//
//
// Before main, a program hands over its images and, for each kernel and device variable, the address
// that host code calls it by (crt/host_runtime.h of the toolkit, clang's CGCUDANV.cpp). An image is
// loaded when something of it is first used, so that programs start without a device.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/cudart/Runtime.h"
#include "runtime/emulator/cudart/Structs.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

using namespace planemu;
using namespace planemu::cudart;

namespace {
/// What __cudaRegisterFatBinary gets.
struct Wrapper {
  int magic, version;
  const void *image;
  void *unused;
};

struct Image {
  const void *data = nullptr;
  CUlibrary library = nullptr;
  std::vector<std::pair<void **, std::string>> managed; // whose addresses the program waits for
  CUresult load() {
    return library ? CUDA_SUCCESS
                   : cuLibraryLoadData(&library, data, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
};

struct Symbol {
  Image *image;
  std::string name;
  CUkernel kernel = nullptr; // once it was asked for
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Image>> images;
  std::unordered_map<const void *, Symbol> kernels, variables;
};

struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  CUstream stream;
};
} // namespace

/// Programs register in constructors and unregister at exit, in any order with ours.
static Registry &registry() {
  static Registry *all = new Registry;
  return *all;
}

static thread_local std::vector<Configuration> configurations;

CUresult cudart::kernelOf(const void *stub, CUkernel &kernel) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.kernels.find(stub);
  if (found == all.kernels.end())
    return static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
  Symbol &symbol = found->second;
  if (!symbol.kernel) {
    if (CUresult result = useDevice(); result != CUDA_SUCCESS)
      return result;
    if (CUresult result = symbol.image->load(); result != CUDA_SUCCESS)
      return result;
    if (CUresult result =
            cuLibraryGetKernel(&symbol.kernel, symbol.image->library, symbol.name.c_str());
        result != CUDA_SUCCESS)
      return result;
  }
  kernel = symbol.kernel;
  return CUDA_SUCCESS;
}

CUresult cudart::functionOf(const void *stub, CUfunction &function) {
  CUkernel kernel;
  if (CUresult result = useDevice(); result != CUDA_SUCCESS)
    return result;
  CUresult result = kernelOf(stub, kernel);
  return result != CUDA_SUCCESS ? result : cuKernelGetFunction(&function, kernel);
}

CUresult cudart::variableOf(const void *shadow, CUdeviceptr &address, std::size_t &bytes) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.variables.find(shadow);
  if (found == all.variables.end())
    return static_cast<CUresult>(cudaErrorInvalidSymbol);
  Image &image = *found->second.image;
  if (CUresult result = useDevice(); result != CUDA_SUCCESS)
    return result;
  if (CUresult result = image.load(); result != CUDA_SUCCESS)
    return result;
  return cuLibraryGetGlobal(&address, &bytes, image.library, found->second.name.c_str());
}

// --- What compilers generate calls of ---------------------------------------

#define PLANEMU_GENERATED(Result) extern "C" __attribute__((visibility("default"))) Result

PLANEMU_GENERATED(void **) __cudaRegisterFatBinary(void *fatbin) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  all.images.push_back(std::make_unique<Image>());
  all.images.back()->data = static_cast<const Wrapper *>(fatbin)->image;
  return reinterpret_cast<void **>(all.images.back().get());
}

PLANEMU_GENERATED(void) __cudaRegisterFatBinaryEnd(void **) {}

PLANEMU_GENERATED(void) __cudaUnregisterFatBinary(void **handle) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto *image = reinterpret_cast<Image *>(handle);
  auto isOfImage = [&](const auto &entry) { return entry.second.image == image; };
  std::erase_if(all.kernels, isOfImage);
  std::erase_if(all.variables, isOfImage);
  if (image->library)
    cuLibraryUnload(image->library);
  std::erase_if(all.images, [&](const auto &other) { return other.get() == image; });
}

PLANEMU_GENERATED(void)
__cudaRegisterFunction(void **handle, const char *stub, char *, const char *name, int, void *,
                       void *, void *, void *, int *) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  all.kernels[stub] = {reinterpret_cast<Image *>(handle), name};
}

PLANEMU_GENERATED(void)
__cudaRegisterVar(void **handle, char *shadow, char *, const char *name, int, std::size_t, int,
                  int) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  all.variables[shadow] = {reinterpret_cast<Image *>(handle), name};
}

/// `shadow` is where the program looks for the address, once it has called __cudaInitModule.
PLANEMU_GENERATED(void)
__cudaRegisterManagedVar(void **handle, void **shadow, char *, const char *name, int, std::size_t,
                         int, int) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto *image = reinterpret_cast<Image *>(handle);
  all.variables[shadow] = {image, name};
  image->managed.push_back({shadow, name});
}

PLANEMU_GENERATED(char) __cudaInitModule(void **handle) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto *image = reinterpret_cast<Image *>(handle);
  if (keep(useDevice()) != cudaSuccess || keep(image->load()) != cudaSuccess)
    return 0;
  for (auto &[shadow, name] : image->managed) {
    CUdeviceptr address;
    std::size_t bytes;
    // Managed variables lie in device memory, as the emulator's is the host's too.
    if (keep(cuLibraryGetGlobal(&address, &bytes, image->library, name.c_str())) != cudaSuccess)
      return 0;
    *shadow = reinterpret_cast<void *>(address);
  }
  image->managed.clear();
  return 1;
}

PLANEMU_GENERATED(unsigned)
__cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

PLANEMU_RUNTIME __cudaPopCallConfiguration(dim3 *grid, dim3 *block, std::size_t *shared,
                                           void *stream) {
  if (configurations.empty())
    return keep(cudaErrorMissingConfiguration);
  const Configuration &top = configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<CUstream *>(stream) = top.stream;
  configurations.pop_back();
  return cudaSuccess;
}

// --- Launches ---------------------------------------------------------------

/// The driver calls sizes that are too large invalid values.
static int launchError(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE ? int(cudaErrorInvalidConfiguration) : int(result);
}

static cudaError_t launch(CUresult found, CUfunction function, dim3 grid, dim3 block,
                          std::size_t shared, CUstream stream, void **arguments, bool cooperative) {
  if (found != CUDA_SUCCESS)
    return keep(found);
  if (shared > ~0u)
    return keep(cudaErrorInvalidConfiguration);
  unsigned bytes = static_cast<unsigned>(shared);
  return keep(launchError(
      cooperative ? cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                                              block.z, bytes, stream, arguments)
                  : cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                   bytes, stream, arguments, nullptr)));
}

PLANEMU_RUNTIME __cudaGetKernel(CUkernel *kernel, const void *stub) {
  return keep(kernelOf(stub, *kernel));
}

PLANEMU_RUNTIME __cudaLaunchKernel(CUkernel kernel, dim3 grid, dim3 block, void **arguments,
                                   std::size_t shared, CUstream stream) {
  CUfunction function = nullptr;
  CUresult result = useDevice();
  if (result == CUDA_SUCCESS)
    result = cuKernelGetFunction(&function, kernel);
  return launch(result, function, grid, block, shared, stream, arguments, false);
}

PLANEMU_RUNTIME cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments,
                                 std::size_t shared, CUstream stream) {
  CUfunction function = nullptr;
  CUresult result = functionOf(stub, function);
  return launch(result, function, grid, block, shared, stream, arguments, false);
}

PLANEMU_RUNTIME cudaLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block,
                                            void **arguments, std::size_t shared, CUstream stream) {
  CUfunction function = nullptr;
  CUresult result = functionOf(stub, function);
  return launch(result, function, grid, block, shared, stream, arguments, true);
}

PLANEMU_RUNTIME cudaLaunchKernelExC(const LaunchConfiguration *config, const void *stub,
                                    void **arguments) {
  if (!config || config->shared > ~0u)
    return keep(cudaErrorInvalidValue);
  CUfunction function;
  if (CUresult result = functionOf(stub, function); result != CUDA_SUCCESS)
    return keep(result);
  CUlaunchConfig driver{};
  driver.gridDimX = config->grid[0];
  driver.gridDimY = config->grid[1];
  driver.gridDimZ = config->grid[2];
  driver.blockDimX = config->block[0];
  driver.blockDimY = config->block[1];
  driver.blockDimZ = config->block[2];
  driver.sharedMemBytes = static_cast<unsigned>(config->shared);
  driver.hStream = config->stream;
  driver.attrs = config->attributes;
  driver.numAttrs = config->attributeCount;
  return keep(launchError(cuLaunchKernelEx(&driver, function, arguments, nullptr)));
}
