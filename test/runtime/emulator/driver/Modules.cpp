//===- Modules.cpp - planemu-driver-modules FATBIN...: code and functions -===//
//
// PTX, the given fatbins, libraries, attributes of functions, occupancy, cuGetProcAddress.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// A fatbin with kernels `add(a, b, c, n)` and `scale(a, s, n)`: from memory and as a file.
static void fatbin(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  CHECK(image.size() > 64);
  CUmodule module, second;
  OK(cuModuleLoad(&second, path));
  OK(cuModuleLoadData(&module, image.data()));
  unsigned count = 0;
  OK(cuModuleGetFunctionCount(&count, module));
  CHECK(count == 2);
  CUfunction scale;
  OK(cuModuleGetFunction(&scale, module, "scale"));
  std::vector<float> values(40, 3);
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 160));
  OK(cuMemcpyHtoD(a, values.data(), 160));
  float s = 2;
  int n = 39;
  void *parameters[] = {&a, &s, &n};
  OK(cuLaunchKernel(scale, 2, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuMemcpyDtoH(values.data(), a, 160));
  CHECK(values[0] == 6 && values[38] == 6 && values[39] == 3);
  OK(cuMemFree(a));
  OK(cuModuleUnload(module));
  OK(cuModuleUnload(second));

  // Damage never does more than be refused.
  std::uint64_t seed = 88172645463325252ull;
  for (int round = 0; round < 500; ++round) {
    std::string damaged = image;
    for (int times = 1 + round % 3; times; --times) {
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      // Mostly in the headers, which say how long everything is.
      std::size_t at = seed % (round % 2 ? 96 : damaged.size());
      damaged[at] = static_cast<char>(seed >> 32);
    }
    damaged.resize(damaged.size() + 4096); // so that a wrong length stays in this string's memory
    CUresult result = cuModuleLoadData(&module, damaged.data());
    if (result == CUDA_SUCCESS)
      OK(cuModuleUnload(module));
    else
      CHECK(result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
            result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  }
}

static void link() {
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  CUlinkState state;
  OK(cuLinkCreate(2, options, values, &state));
  void *image = nullptr;
  std::size_t bytes = 0;
  EXPECT(cuLinkComplete(state, &image, &bytes), CUDA_ERROR_INVALID_VALUE); // of nothing
  static char bad[] = "nonsense";
  EXPECT(cuLinkAddData(state, CU_JIT_INPUT_PTX, bad, sizeof(bad), "bad", 0, nullptr, nullptr),
         CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(log, ".version"));
  EXPECT(cuLinkAddData(state, CU_JIT_INPUT_OBJECT, bad, 8, "bad", 0, nullptr, nullptr),
         CUDA_ERROR_NOT_SUPPORTED);
  std::string ptx = Kernels;
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size(), "k", 0, nullptr, nullptr));
  OK(cuLinkComplete(state, &image, &bytes));
  CHECK(bytes >= ptx.size());
  CUmodule module;
  CUfunction function;
  OK(cuModuleLoadData(&module, image));
  OK(cuLinkDestroy(state));
  EXPECT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  OK(cuModuleGetFunction(&function, module, "saxpy"));
  OK(cuModuleUnload(module));
}

static void libraries() {
  CUlibrary library;
  OK(cuLibraryLoadData(&library, Kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  OK(cuLibraryGetKernelCount(&count, library));
  CHECK(count == 4);
  CUkernel kernel, all[4];
  OK(cuLibraryEnumerateKernels(all, 4, library));
  OK(cuLibraryGetKernel(&kernel, library, "increment"));
  EXPECT(cuLibraryGetKernel(&kernel, library, "decrement"), CUDA_ERROR_NOT_FOUND);
  const char *name = nullptr;
  OK(cuKernelGetName(&name, kernel));
  CHECK(std::strcmp(name, "increment") == 0);
  CUfunction function;
  OK(cuKernelGetFunction(&function, kernel));
  CUmodule module, of;
  OK(cuLibraryGetModule(&module, library));
  OK(cuFuncGetModule(&of, function));
  CHECK(of == module);
  EXPECT(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
  CUdeviceptr counter;
  std::size_t bytes = 0;
  OK(cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
  CHECK(bytes == 4);
  // A kernel is taken for a function.
  unsigned by = 4, value = 0;
  void *parameters[] = {&counter, &by};
  OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                    nullptr));
  OK(cuMemcpyDtoH(&value, counter, 4));
  CHECK(value == 9);
  std::size_t offset = 9;
  OK(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
  CHECK(offset == 8 && bytes == 4);
  EXPECT(cuKernelGetParamInfo(kernel, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  // In another context it is another function, with its own variables.
  CUcontext other;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  CUfunction there;
  OK(cuKernelGetFunction(&there, kernel));
  CHECK(there != function);
  OK(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  OK(cuMemcpyDtoH(&value, counter, 4));
  CHECK(value == 5);
  OK(cuCtxDestroy(other));
  OK(cuLibraryUnload(library));
  EXPECT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuFuncGetName(&name, function), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
}

static std::size_t twoBytesPerThread(int threads) { return 2 * static_cast<std::size_t>(threads); }

static void occupancy() {
  CUmodule module;
  CUfunction tile, nothing;
  OK(cuModuleLoadData(&module, Kernels));
  OK(cuModuleGetFunction(&tile, module, "tile"));
  OK(cuModuleGetFunction(&nothing, module, "nothing"));
  int value = 0, threads = 0, blocks = 0, perMultiprocessor = 0, multiprocessors = 0;
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, tile));
  CHECK(value == 20000);
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, tile));
  CHECK(value == 256);
  OK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
  OK(cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0));
  OK(cuDeviceGetAttribute(&perMultiprocessor,
                          CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0));
  OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, nothing, 32, 0));
  CHECK(value == blocks);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, nothing, 512, 0));
  CHECK(value == threads / 512);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, tile, 256, 0));
  CHECK(value == perMultiprocessor / (20096 + 1024)); // rounded to 128, and what is reserved
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, tile, 257, 0));
  CHECK(value == 0);
  int grid = 0, block = 0;
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, twoBytesPerThread, 0, 0));
  CHECK(block * (grid / multiprocessors) == threads && grid % multiprocessors == 0);
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, nullptr, 0, 100));
  CHECK(block <= 100 && block > 0);
  std::size_t available = 0;
  OK(cuOccupancyAvailableDynamicSMemPerBlock(&available, nothing, 2, 128));
  CHECK(available == static_cast<std::size_t>(perMultiprocessor) / 2 - 1024);
  // Dynamic shared memory beyond 48 KiB has to be asked for.
  EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 50000, nullptr, nullptr, nullptr),
         CUDA_ERROR_INVALID_VALUE);
  OK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
  OK(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 50000, nullptr, nullptr, nullptr));
  EXPECT(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
         CUDA_ERROR_INVALID_VALUE);
  // A cooperative grid has to fit at once.
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, tile, 256, 0));
  unsigned most = static_cast<unsigned>(value * multiprocessors);
  OK(cuLaunchCooperativeKernel(tile, most, 1, 1, 256, 1, 1, 0, nullptr, nullptr));
  EXPECT(cuLaunchCooperativeKernel(tile, most + 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr),
         CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  OK(cuCtxSynchronize());
  OK(cuModuleUnload(module));
}

static void names() {
  using Alloc = CUresult (*)(CUdeviceptr *, std::size_t);
  void *address = nullptr;
  CUdriverProcAddressQueryResult status;
  OK(cuGetProcAddress("cuMemAlloc", &address, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CUdeviceptr memory;
  OK(reinterpret_cast<Alloc>(address)(&memory, 16));
  OK(cuMemFree(memory));
  // By version, and the variant whose null stream is the thread's own.
  void *v2 = nullptr, *v4 = nullptr, *legacy = nullptr, *perThread = nullptr;
  OK(cuGetProcAddress("cuCtxCreate", &v2, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr));
  OK(cuGetProcAddress("cuCtxCreate", &v4, 13000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr));
  CHECK(v2 != v4);
  OK(cuGetProcAddress("cuLaunchKernel", &legacy, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                      nullptr));
  OK(cuGetProcAddress("cuLaunchKernel", &perThread, 13000,
                      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  CHECK(legacy != perThread);
  OK(cuGetProcAddress("cuLibraryLoadData", &address, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  CHECK(!address && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  OK(cuGetProcAddress("cuNoSuchThing", &address, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  CHECK(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT(cuGetProcAddress("cuInit", &address, 99000, CU_GET_PROC_ADDRESS_DEFAULT, &status),
         CUDA_ERROR_INVALID_VALUE);
  // Every status has a name and a sentence.
  const char *text = nullptr;
  OK(cuGetErrorString(CUDA_ERROR_NOT_READY, &text));
  CHECK(text && std::strlen(text) > 8);
  EXPECT(cuGetErrorName(static_cast<CUresult>(5000), &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

/// A primary context that is reset begins anew, though its handle stays: also what launches keep in it.
static void reset() {
  for (int times = 0; times < 2; ++times) {
    CUmodule module;
    CUfunction tile;
    CUsharedconfig config;
    OK(cuModuleLoadData(&module, Kernels));
    OK(cuModuleGetFunction(&tile, module, "tile"));
    OK(cuCtxGetSharedMemConfig(&config));
    CHECK(config == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK(cuLaunchCooperativeKernel(tile, 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset(0));
  }
}

int main(int argc, char **argv) {
  OK(cuInit(0));
  CUcontext context;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  for (int n = 1; n < argc; ++n)
    fatbin(argv[n]);
  link();
  libraries();
  occupancy();
  names();
  reset();
  return finish("modules");
}
