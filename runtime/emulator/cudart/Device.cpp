//===- Device.cpp - devices, kernels' attributes and errors ---------------===//

#include "runtime/emulator/cudart/Runtime.h"
#include "runtime/emulator/cudart/Structs.h"

#include <mutex>
#include <type_traits>

using namespace planemu;
using namespace planemu::cudart;

enum : int {
#define PLANEMU_ATTRIBUTE(Name, Number, Value) CU_DEVICE_ATTRIBUTE_##Name = Number,
#include "runtime/emulator/driver/DeviceAttributes.def"
};

static thread_local int lastError = cudaSuccess;
static std::mutex primaryMutex;
static CUcontext primary = nullptr;

cudaError_t cudart::keep(int error) {
  if (error != cudaSuccess && error != cudaErrorNotReady)
    lastError = error;
  return static_cast<cudaError_t>(error);
}

CUresult cudart::useDevice() {
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current)
    return CUDA_SUCCESS;
  std::lock_guard lock(primaryMutex);
  if (!primary) {
    if (CUresult result = cuInit(0); result != CUDA_SUCCESS)
      return result;
    if (CUresult result = cuDevicePrimaryCtxRetain(&primary, 0); result != CUDA_SUCCESS)
      return result;
  }
  return cuCtxSetCurrent(primary);
}

// --- Errors -----------------------------------------------------------------

PLANEMU_RUNTIME cudaGetLastError() {
  int error = lastError;
  lastError = cudaSuccess;
  return static_cast<cudaError_t>(error);
}

PLANEMU_RUNTIME cudaPeekAtLastError() { return static_cast<cudaError_t>(lastError); }

extern "C" __attribute__((visibility("default"))) const char *cudaGetErrorName(int error) {
  switch (error) {
#define PLANEMU_RUNTIME_ERROR(Name, Value, Text)                                                   \
  case Value:                                                                                      \
    return #Name;
#include "runtime/emulator/cudart/Errors.def"
  }
  return "unrecognized error code";
}

extern "C" __attribute__((visibility("default"))) const char *cudaGetErrorString(int error) {
  const char *text = nullptr;
  switch (error) {
#define PLANEMU_RUNTIME_ERROR(Name, Value, Text)                                                   \
  case Value:                                                                                      \
    text = Text;                                                                                   \
    break;
#include "runtime/emulator/cudart/Errors.def"
  }
  if (!text)
    cuGetErrorString(static_cast<CUresult>(error), &text);
  return text ? text : cudaGetErrorName(error);
}

// --- Devices ----------------------------------------------------------------

PLANEMU_RUNTIME cudaGetDeviceCount(int *count) {
  CUresult result = cuInit(0);
  return keep(result != CUDA_SUCCESS ? result : cuDeviceGetCount(count));
}

PLANEMU_RUNTIME cudaGetDevice(int *device) {
  if (!device)
    return keep(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

PLANEMU_RUNTIME cudaSetDevice(int device) {
  return device != 0 ? keep(cudaErrorInvalidDevice) : keep(useDevice());
}

PLANEMU_RUNTIME cudaSetDeviceFlags(unsigned flags) {
  CUresult result = cuInit(0);
  return keep(result != CUDA_SUCCESS ? result : cuDevicePrimaryCtxSetFlags_v2(0, flags));
}

PLANEMU_RUNTIME cudaDeviceSynchronize() {
  return onDevice([] { return cuCtxSynchronize(); });
}

PLANEMU_RUNTIME cudaDeviceReset() {
  std::lock_guard lock(primaryMutex);
  if (!primary)
    return cudaSuccess;
  primary = nullptr;
  cuCtxSetCurrent(nullptr);
  return keep(cuDevicePrimaryCtxReset_v2(0));
}

PLANEMU_RUNTIME cudaDeviceGetAttribute(int *value, int attribute, int device) {
  CUresult result = cuInit(0);
  return keep(result != CUDA_SUCCESS ? result : cuDeviceGetAttribute(value, attribute, device));
}

PLANEMU_RUNTIME cudaDeviceGetLimit(std::size_t *value, int limit) {
  return onDevice([&] { return cuCtxGetLimit(value, limit); });
}

PLANEMU_RUNTIME cudaDeviceSetLimit(int limit, std::size_t value) {
  return onDevice([&] { return cuCtxSetLimit(limit, value); });
}

PLANEMU_RUNTIME cudaDeviceSetCacheConfig(int config) {
  return onDevice([&] { return cuCtxSetCacheConfig(config); });
}

PLANEMU_RUNTIME cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return onDevice([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

PLANEMU_RUNTIME cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  CUresult result = cuInit(0);
  return keep(result != CUDA_SUCCESS ? result : cuDeviceCanAccessPeer(can, device, peer));
}

PLANEMU_RUNTIME cudaDriverGetVersion(int *version) { return keep(cuDriverGetVersion(version)); }

PLANEMU_RUNTIME cudaRuntimeGetVersion(int *version) {
  if (!version)
    return keep(cudaErrorInvalidValue);
  *version = 13000; // of the declarations
  return cudaSuccess;
}

PLANEMU_RUNTIME cudaGetDeviceProperties(DeviceProperties *properties, int device) {
  CUresult result = cuInit(0);
  if (result != CUDA_SUCCESS || !properties)
    return keep(result != CUDA_SUCCESS ? int(result) : int(cudaErrorInvalidValue));
  DeviceProperties all{};
  result = cuDeviceGetName(all.name, sizeof(all.name), device);
  if (result != CUDA_SUCCESS)
    return keep(result);
  cuDeviceGetUuid_v2(&all.uuid, device);
  cuDeviceTotalMem_v2(&all.globalMemory, device);
  auto get = [&](auto &member, int attribute) {
    int value = 0;
    cuDeviceGetAttribute(&value, attribute, device);
    member = static_cast<std::remove_reference_t<decltype(member)>>(value);
  };
#define PLANEMU_PROPERTY(Member, Attribute) get(all.Member, CU_DEVICE_ATTRIBUTE_##Attribute);
  PLANEMU_PROPERTY(sharedPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)
  PLANEMU_PROPERTY(registersPerBlock, MAX_REGISTERS_PER_BLOCK)
  PLANEMU_PROPERTY(warpSize, WARP_SIZE)
  PLANEMU_PROPERTY(mostPitch, MAX_PITCH)
  PLANEMU_PROPERTY(threadsPerBlock, MAX_THREADS_PER_BLOCK)
  PLANEMU_PROPERTY(blockSize[0], MAX_BLOCK_DIM_X)
  PLANEMU_PROPERTY(blockSize[1], MAX_BLOCK_DIM_Y)
  PLANEMU_PROPERTY(blockSize[2], MAX_BLOCK_DIM_Z)
  PLANEMU_PROPERTY(gridSize[0], MAX_GRID_DIM_X)
  PLANEMU_PROPERTY(gridSize[1], MAX_GRID_DIM_Y)
  PLANEMU_PROPERTY(gridSize[2], MAX_GRID_DIM_Z)
  PLANEMU_PROPERTY(constantMemory, TOTAL_CONSTANT_MEMORY)
  PLANEMU_PROPERTY(major, COMPUTE_CAPABILITY_MAJOR)
  PLANEMU_PROPERTY(minor, COMPUTE_CAPABILITY_MINOR)
  PLANEMU_PROPERTY(multiprocessors, MULTIPROCESSOR_COUNT)
  PLANEMU_PROPERTY(integrated, INTEGRATED)
  PLANEMU_PROPERTY(mapsHostMemory, CAN_MAP_HOST_MEMORY)
  PLANEMU_PROPERTY(concurrentKernels, CONCURRENT_KERNELS)
  PLANEMU_PROPERTY(pciBus, PCI_BUS_ID)
  PLANEMU_PROPERTY(pciDevice, PCI_DEVICE_ID)
  PLANEMU_PROPERTY(pciDomain, PCI_DOMAIN_ID)
  PLANEMU_PROPERTY(asyncEngines, ASYNC_ENGINE_COUNT)
  PLANEMU_PROPERTY(unifiedAddressing, UNIFIED_ADDRESSING)
  PLANEMU_PROPERTY(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)
  PLANEMU_PROPERTY(l2Bytes, L2_CACHE_SIZE)
  PLANEMU_PROPERTY(threadsPerMultiprocessor, MAX_THREADS_PER_MULTIPROCESSOR)
  PLANEMU_PROPERTY(streamPriorities, STREAM_PRIORITIES_SUPPORTED)
  PLANEMU_PROPERTY(cachesGlobalInL1, GLOBAL_L1_CACHE_SUPPORTED)
  PLANEMU_PROPERTY(cachesLocalInL1, LOCAL_L1_CACHE_SUPPORTED)
  PLANEMU_PROPERTY(sharedPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
  PLANEMU_PROPERTY(registersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)
  PLANEMU_PROPERTY(managedMemory, MANAGED_MEMORY)
  PLANEMU_PROPERTY(pageableAccess, PAGEABLE_MEMORY_ACCESS)
  PLANEMU_PROPERTY(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)
  PLANEMU_PROPERTY(cooperativeLaunch, COOPERATIVE_LAUNCH)
  PLANEMU_PROPERTY(sharedPerBlockOptIn, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
  PLANEMU_PROPERTY(blocksPerMultiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR)
  PLANEMU_PROPERTY(reservedSharedPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
  PLANEMU_PROPERTY(hostRegister, HOST_REGISTER_SUPPORTED)
  PLANEMU_PROPERTY(memoryPools, MEMORY_POOLS_SUPPORTED)
  PLANEMU_PROPERTY(clusterLaunch, CLUSTER_LAUNCH)
  PLANEMU_PROPERTY(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)
#undef PLANEMU_PROPERTY
  *properties = all;
  return cudaSuccess;
}

PLANEMU_RUNTIME cudaDeviceGetPCIBusId(char *text, int bytes, int device) {
  CUresult result = cuInit(0);
  return keep(result != CUDA_SUCCESS ? result : cuDeviceGetPCIBusId(text, bytes, device));
}

PLANEMU_RUNTIME cudaProfilerStart() {
  return onDevice([] { return cuProfilerStart(); });
}

PLANEMU_RUNTIME cudaProfilerStop() {
  return onDevice([] { return cuProfilerStop(); });
}

/// A version of the driver's whose functions the program knows.
PLANEMU_RUNTIME cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                 unsigned version, unsigned long long flags,
                                                 int *status) {
  int ignored;
  return keep(cuGetProcAddress_v2(symbol, function, static_cast<int>(version), flags,
                                  status ? status : &ignored));
}

// --- Kernels ----------------------------------------------------------------

PLANEMU_RUNTIME cudaFuncGetAttributes(FunctionAttributes *attributes, const void *stub) {
  if (!attributes)
    return keep(cudaErrorInvalidValue);
  CUfunction function;
  if (CUresult result = functionOf(stub, function); result != CUDA_SUCCESS)
    return keep(result);
  FunctionAttributes all{};
  auto get = [&](auto &member, int attribute) {
    int value = 0;
    cuFuncGetAttribute(&value, attribute, function);
    member = static_cast<std::remove_reference_t<decltype(member)>>(value);
  };
  get(all.sharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  get(all.constantBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  get(all.localBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  get(all.maxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  get(all.registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
  get(all.ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  get(all.binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  get(all.maxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  get(all.carveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  *attributes = all;
  return cudaSuccess;
}

/// Attributes have the driver's numbers.
PLANEMU_RUNTIME cudaFuncSetAttribute(const void *stub, int attribute, int value) {
  CUfunction function;
  CUresult result = functionOf(stub, function);
  return keep(result != CUDA_SUCCESS ? result : cuFuncSetAttribute(function, attribute, value));
}

PLANEMU_RUNTIME cudaFuncSetCacheConfig(const void *stub, int config) {
  CUfunction function;
  CUresult result = functionOf(stub, function);
  return keep(result != CUDA_SUCCESS ? result : cuFuncSetCacheConfig(function, config));
}

PLANEMU_RUNTIME cudaFuncGetName(const char **name, const void *stub) {
  CUfunction function;
  CUresult result = functionOf(stub, function);
  return keep(result != CUDA_SUCCESS ? result : cuFuncGetName(name, function));
}

PLANEMU_RUNTIME cudaGetFuncBySymbol(CUfunction *function, const void *stub) {
  return keep(functionOf(stub, *function));
}

PLANEMU_RUNTIME
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *stub, int threads,
                                                       std::size_t shared, unsigned flags) {
  CUfunction function;
  CUresult result = functionOf(stub, function);
  return keep(result != CUDA_SUCCESS ? result
                                     : cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                                           blocks, function, threads, shared, flags));
}

PLANEMU_RUNTIME cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *stub,
                                                              int threads, std::size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}

PLANEMU_RUNTIME cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t *bytes, const void *stub,
                                                          int blocks, int threads) {
  CUfunction function;
  CUresult result = functionOf(stub, function);
  return keep(result != CUDA_SUCCESS
                  ? result
                  : cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads));
}
