//===- Memory.cpp - allocations, copies and variables ---------------------===//

#include "runtime/emulator/cudart/Runtime.h"
#include "runtime/emulator/cudart/Structs.h"

using namespace planemu;
using namespace planemu::cudart;

namespace {
enum Direction : int { HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Any };
} // namespace

// --- Allocation -------------------------------------------------------------

template <class Allocate>
static cudaError_t allocate(void **memory, std::size_t bytes, Allocate call) {
  if (!memory)
    return keep(cudaErrorInvalidValue);
  *memory = nullptr;
  if (!bytes)
    return keep(useDevice());
  CUdeviceptr address = 0;
  cudaError_t error = onDevice([&] { return call(&address); });
  *memory = reinterpret_cast<void *>(address);
  return error;
}

PLANEMU_RUNTIME cudaMalloc(void **memory, std::size_t bytes) {
  return allocate(memory, bytes, [&](CUdeviceptr *at) { return cuMemAlloc_v2(at, bytes); });
}

PLANEMU_RUNTIME cudaMallocManaged(void **memory, std::size_t bytes, unsigned flags) {
  return allocate(memory, bytes,
                  [&](CUdeviceptr *at) { return cuMemAllocManaged(at, bytes, flags); });
}

PLANEMU_RUNTIME cudaMallocAsync(void **memory, std::size_t bytes, CUstream stream) {
  return allocate(memory, bytes,
                  [&](CUdeviceptr *at) { return cuMemAllocAsync(at, bytes, stream); });
}

PLANEMU_RUNTIME cudaMallocFromPoolAsync(void **memory, std::size_t bytes, CUmemoryPool pool,
                                        CUstream stream) {
  return allocate(memory, bytes, [&](CUdeviceptr *at) {
    return cuMemAllocFromPoolAsync(at, bytes, pool, stream);
  });
}

PLANEMU_RUNTIME cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device) {
  return onDevice([&] { return cuDeviceGetDefaultMemPool(pool, device); });
}

PLANEMU_RUNTIME cudaMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  return onDevice([&] { return cuMemPoolSetAttribute(pool, attribute, value); });
}

PLANEMU_RUNTIME cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
  return onDevice([&] { return cuMemPoolGetAttribute(pool, attribute, value); });
}

PLANEMU_RUNTIME cudaMemPoolTrimTo(CUmemoryPool pool, std::size_t bytes) {
  return onDevice([&] { return cuMemPoolTrimTo(pool, bytes); });
}

PLANEMU_RUNTIME cudaMallocPitch(void **memory, std::size_t *pitch, std::size_t width,
                                std::size_t height) {
  return allocate(memory, width * height,
                  [&](CUdeviceptr *at) { return cuMemAllocPitch_v2(at, pitch, width, height, 4); });
}

PLANEMU_RUNTIME cudaFree(void *memory) {
  return onDevice([&] { return memory ? cuMemFree_v2(pointer(memory)) : CUDA_SUCCESS; });
}

PLANEMU_RUNTIME cudaFreeAsync(void *memory, CUstream stream) {
  return onDevice([&] { return cuMemFreeAsync(pointer(memory), stream); });
}

PLANEMU_RUNTIME cudaHostAlloc(void **memory, std::size_t bytes, unsigned flags) {
  return onDevice([&] { return cuMemHostAlloc(memory, bytes, flags); });
}

PLANEMU_RUNTIME cudaMallocHost(void **memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}

PLANEMU_RUNTIME cudaFreeHost(void *memory) {
  return onDevice([&] { return memory ? cuMemFreeHost(memory) : CUDA_SUCCESS; });
}

PLANEMU_RUNTIME cudaHostRegister(void *memory, std::size_t bytes, unsigned flags) {
  return onDevice([&] { return cuMemHostRegister_v2(memory, bytes, flags); });
}

PLANEMU_RUNTIME cudaHostUnregister(void *memory) {
  return onDevice([&] { return cuMemHostUnregister(memory); });
}

PLANEMU_RUNTIME cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  CUdeviceptr address = 0;
  cudaError_t error = onDevice([&] { return cuMemHostGetDevicePointer_v2(&address, host, flags); });
  if (device)
    *device = reinterpret_cast<void *>(address);
  return error;
}

PLANEMU_RUNTIME cudaHostGetFlags(unsigned *flags, void *host) {
  return onDevice([&] { return cuMemHostGetFlags(flags, host); });
}

PLANEMU_RUNTIME cudaMemGetInfo(std::size_t *free, std::size_t *total) {
  return onDevice([&] { return cuMemGetInfo_v2(free, total); });
}

PLANEMU_RUNTIME cudaMemPrefetchAsync(const void *memory, std::size_t bytes, CUmemLocation where,
                                     unsigned flags, CUstream stream) {
  return onDevice(
      [&] { return cuMemPrefetchAsync_v2(pointer(memory), bytes, where, flags, stream); });
}

PLANEMU_RUNTIME cudaMemAdvise(const void *memory, std::size_t bytes, int advice,
                              CUmemLocation where) {
  return onDevice([&] { return cuMemAdvise_v2(pointer(memory), bytes, advice, where); });
}

PLANEMU_RUNTIME cudaPointerGetAttributes(PointerAttributes *attributes, const void *memory) {
  if (!attributes)
    return keep(cudaErrorInvalidValue);
  *attributes = {};
  attributes->device = -1;
  attributes->hostPointer = const_cast<void *>(memory);
  if (CUresult result = useDevice(); result != CUDA_SUCCESS)
    return keep(result);
  int type = 0, managed = 0, device = 0;
  CUdeviceptr at = pointer(memory);
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS)
    return cudaSuccess; // memory that the device does not know
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
  cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
  attributes->type = managed ? 3 : type;
  attributes->device = device;
  attributes->devicePointer = const_cast<void *>(memory);
  if (type == CU_MEMORYTYPE_DEVICE && !managed)
    attributes->hostPointer = nullptr;
  return cudaSuccess;
}

// --- Copies -----------------------------------------------------------------

static cudaError_t copy(void *to, const void *from, std::size_t bytes, int direction,
                        CUstream stream, bool waits) {
  if (direction < HostToHost || direction > Any)
    return keep(cudaErrorInvalidMemcpyDirection);
  return onDevice([&] {
    if (!bytes)
      return CUDA_SUCCESS;
    switch (direction) {
    case HostToDevice:
      return waits ? cuMemcpyHtoD_v2(pointer(to), from, bytes)
                   : cuMemcpyHtoDAsync_v2(pointer(to), from, bytes, stream);
    case DeviceToHost:
      return waits ? cuMemcpyDtoH_v2(to, pointer(from), bytes)
                   : cuMemcpyDtoHAsync_v2(to, pointer(from), bytes, stream);
    case DeviceToDevice:
      return waits ? cuMemcpyDtoD_v2(pointer(to), pointer(from), bytes)
                   : cuMemcpyDtoDAsync_v2(pointer(to), pointer(from), bytes, stream);
    default:
      return waits ? cuMemcpy(pointer(to), pointer(from), bytes)
                   : cuMemcpyAsync(pointer(to), pointer(from), bytes, stream);
    }
  });
}

PLANEMU_RUNTIME cudaMemcpy(void *to, const void *from, std::size_t bytes, int direction) {
  return copy(to, from, bytes, direction, nullptr, true);
}

PLANEMU_RUNTIME cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, int direction,
                                CUstream stream) {
  return copy(to, from, bytes, direction, stream, false);
}

/// What a copy in two dimensions says of one side.
static CUmemorytype typeOf(int direction, bool source) {
  bool device = source ? direction == DeviceToHost || direction == DeviceToDevice
                       : direction == HostToDevice || direction == DeviceToDevice;
  return direction == Any ? CU_MEMORYTYPE_UNIFIED
         : device         ? CU_MEMORYTYPE_DEVICE
                          : CU_MEMORYTYPE_HOST;
}

static cudaError_t copyRows(void *to, std::size_t toPitch, const void *from, std::size_t fromPitch,
                            std::size_t width, std::size_t height, int direction, CUstream stream,
                            bool waits) {
  if (direction < HostToHost || direction > Any)
    return keep(cudaErrorInvalidMemcpyDirection);
  if (width > toPitch || width > fromPitch)
    return keep(cudaErrorInvalidPitchValue);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = typeOf(direction, true);
  rows.srcHost = from;
  rows.srcDevice = pointer(from);
  rows.srcPitch = fromPitch;
  rows.dstMemoryType = typeOf(direction, false);
  rows.dstHost = to;
  rows.dstDevice = pointer(to);
  rows.dstPitch = toPitch;
  rows.WidthInBytes = width;
  rows.Height = height;
  return onDevice(
      [&] { return waits ? cuMemcpy2DUnaligned_v2(&rows) : cuMemcpy2DAsync_v2(&rows, stream); });
}

PLANEMU_RUNTIME cudaMemcpy2D(void *to, std::size_t toPitch, const void *from, std::size_t fromPitch,
                             std::size_t width, std::size_t height, int direction) {
  return copyRows(to, toPitch, from, fromPitch, width, height, direction, nullptr, true);
}

PLANEMU_RUNTIME cudaMemcpy2DAsync(void *to, std::size_t toPitch, const void *from,
                                  std::size_t fromPitch, std::size_t width, std::size_t height,
                                  int direction, CUstream stream) {
  return copyRows(to, toPitch, from, fromPitch, width, height, direction, stream, false);
}

PLANEMU_RUNTIME cudaMemset(void *memory, int value, std::size_t bytes) {
  return onDevice(
      [&] { return cuMemsetD8_v2(pointer(memory), static_cast<unsigned char>(value), bytes); });
}

PLANEMU_RUNTIME cudaMemsetAsync(void *memory, int value, std::size_t bytes, CUstream stream) {
  return onDevice([&] {
    return cuMemsetD8Async(pointer(memory), static_cast<unsigned char>(value), bytes, stream);
  });
}

PLANEMU_RUNTIME cudaMemset2D(void *memory, std::size_t pitch, int value, std::size_t width,
                             std::size_t height) {
  return onDevice([&] {
    return cuMemsetD2D8_v2(pointer(memory), pitch, static_cast<unsigned char>(value), width,
                           height);
  });
}

PLANEMU_RUNTIME cudaMemset2DAsync(void *memory, std::size_t pitch, int value, std::size_t width,
                                  std::size_t height, CUstream stream) {
  return onDevice([&] {
    return cuMemsetD2D8Async(pointer(memory), pitch, static_cast<unsigned char>(value), width,
                             height, stream);
  });
}

/// There is one device.
PLANEMU_RUNTIME cudaMemcpyPeer(void *to, int toDevice, const void *from, int fromDevice,
                               std::size_t bytes) {
  if (toDevice != 0 || fromDevice != 0)
    return keep(cudaErrorInvalidDevice);
  return copy(to, from, bytes, DeviceToDevice, nullptr, true);
}

PLANEMU_RUNTIME cudaMemcpyPeerAsync(void *to, int toDevice, const void *from, int fromDevice,
                                    std::size_t bytes, CUstream stream) {
  if (toDevice != 0 || fromDevice != 0)
    return keep(cudaErrorInvalidDevice);
  return copy(to, from, bytes, DeviceToDevice, stream, false);
}

// --- Variables --------------------------------------------------------------

PLANEMU_RUNTIME cudaGetSymbolAddress(void **memory, const void *shadow) {
  CUdeviceptr address = 0;
  std::size_t bytes;
  CUresult result = variableOf(shadow, address, bytes);
  if (memory)
    *memory = reinterpret_cast<void *>(address);
  return keep(result);
}

PLANEMU_RUNTIME cudaGetSymbolSize(std::size_t *bytes, const void *shadow) {
  CUdeviceptr address;
  return keep(variableOf(shadow, address, *bytes));
}

/// Where in the variable `bytes` from `offset` on are.
static CUresult placeIn(const void *shadow, std::size_t bytes, std::size_t offset,
                        CUdeviceptr &address) {
  std::size_t size;
  CUresult result = variableOf(shadow, address, size);
  if (result == CUDA_SUCCESS && (offset > size || bytes > size - offset))
    return CUDA_ERROR_INVALID_VALUE;
  address += offset;
  return result;
}

PLANEMU_RUNTIME cudaMemcpyToSymbolAsync(const void *shadow, const void *from, std::size_t bytes,
                                        std::size_t offset, int direction, CUstream stream) {
  CUdeviceptr address;
  if (CUresult result = placeIn(shadow, bytes, offset, address); result != CUDA_SUCCESS)
    return keep(result);
  return copy(reinterpret_cast<void *>(address), from, bytes, direction, stream, false);
}

PLANEMU_RUNTIME cudaMemcpyToSymbol(const void *shadow, const void *from, std::size_t bytes,
                                   std::size_t offset, int direction) {
  CUdeviceptr address;
  if (CUresult result = placeIn(shadow, bytes, offset, address); result != CUDA_SUCCESS)
    return keep(result);
  return copy(reinterpret_cast<void *>(address), from, bytes, direction, nullptr, true);
}

PLANEMU_RUNTIME cudaMemcpyFromSymbolAsync(void *to, const void *shadow, std::size_t bytes,
                                          std::size_t offset, int direction, CUstream stream) {
  CUdeviceptr address;
  if (CUresult result = placeIn(shadow, bytes, offset, address); result != CUDA_SUCCESS)
    return keep(result);
  return copy(to, reinterpret_cast<void *>(address), bytes, direction, stream, false);
}

PLANEMU_RUNTIME cudaMemcpyFromSymbol(void *to, const void *shadow, std::size_t bytes,
                                     std::size_t offset, int direction) {
  CUdeviceptr address;
  if (CUresult result = placeIn(shadow, bytes, offset, address); result != CUDA_SUCCESS)
    return keep(result);
  return copy(to, reinterpret_cast<void *>(address), bytes, direction, nullptr, true);
}
