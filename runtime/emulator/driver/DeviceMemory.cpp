//===- DeviceMemory.cpp - allocation, virtual memory, copies, fills -------===//
//
// The driver's face of Memory. Copies and fills are nodes, so that they run or are captured the
// same way.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstdlib>
#include <cstring>

using namespace planemu;

static CUresult resultOf(Memory::Result result) {
  switch (result) {
  case Memory::Result::Ok:
    return CUDA_SUCCESS;
  case Memory::Result::Invalid:
    return CUDA_ERROR_INVALID_VALUE;
  case Memory::Result::OutOfMemory:
    return CUDA_ERROR_OUT_OF_MEMORY;
  case Memory::Result::System:
    break;
  }
  return CUDA_ERROR_OPERATING_SYSTEM;
}

PLANEMU_EXPORT cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  PLANEMU_ENTER(true);
  if (!free || !total)
    return CUDA_ERROR_INVALID_VALUE;
  *total = driver.memory->total();
  *free = *total - driver.memory->used();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAlloc_v2(CUdeviceptr *address, std::size_t bytes) {
  PLANEMU_ENTER(true);
  if (!address)
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = driver.checkNoCapture(); result != CUDA_SUCCESS)
    return result;
  std::uint64_t at = 0;
  CUresult result = resultOf(driver.memory->allocate(bytes, at));
  if (result == CUDA_SUCCESS)
    *address = at;
  return result;
}

PLANEMU_EXPORT cuMemFree_v2(CUdeviceptr address) {
  PLANEMU_ENTER(true);
  if (!address)
    return CUDA_SUCCESS;
  return resultOf(driver.memory->free(address));
}

PLANEMU_EXPORT cuMemHostAlloc(void **pointer, std::size_t bytes, unsigned flags) {
  PLANEMU_ENTER(true);
  if (!pointer || !bytes ||
      (flags & ~(MemHostAllocPortable | MemHostAllocDeviceMap | MemHostAllocWriteCombined)))
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (1ull << 46))
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *at = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!at)
    return CUDA_ERROR_OUT_OF_MEMORY;
  // Pinned memory is valid on the device at the same address.
  driver.memory->lend(reinterpret_cast<std::uint64_t>(at), bytes);
  driver.hostAllocations[at] = bytes;
  *pointer = at;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemFreeHost(void *pointer) {
  PLANEMU_ENTER(true);
  auto found = driver.hostAllocations.find(pointer);
  if (found == driver.hostAllocations.end())
    return CUDA_ERROR_INVALID_VALUE;
  driver.memory->takeBack(reinterpret_cast<std::uint64_t>(pointer));
  driver.hostAllocations.erase(found);
  std::free(pointer);
  return CUDA_SUCCESS;
}

// --- Virtual memory ---------------------------------------------------------

PLANEMU_EXPORT cuMemGetAllocationGranularity(std::size_t *granularity,
                                             const CUmemAllocationProp *properties,
                                             CUmemAllocationGranularity_flags option) {
  PLANEMU_ENTER(true);
  if (!granularity || !properties || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
    return CUDA_ERROR_INVALID_VALUE;
  *granularity = Memory::Granularity;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAddressReserve(CUdeviceptr *address, std::size_t bytes, std::size_t alignment,
                                   CUdeviceptr, unsigned long long flags) {
  PLANEMU_ENTER(true);
  if (!address || flags)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t at = 0;
  CUresult result = resultOf(driver.memory->reserve(bytes, alignment, at));
  if (result == CUDA_SUCCESS)
    *address = at;
  return result;
}

PLANEMU_EXPORT cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  PLANEMU_ENTER(true);
  return resultOf(driver.memory->unreserve(address, bytes));
}

PLANEMU_EXPORT cuMemCreate(CUmemGenericAllocationHandle *handle, std::size_t bytes,
                           const CUmemAllocationProp *properties, unsigned long long flags) {
  PLANEMU_ENTER(true);
  if (!handle || !properties || flags || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t created = 0;
  CUresult result = resultOf(driver.memory->createBlock(bytes, created));
  if (result == CUDA_SUCCESS)
    *handle = created;
  return result;
}

PLANEMU_EXPORT cuMemRelease(CUmemGenericAllocationHandle handle) {
  PLANEMU_ENTER(true);
  return resultOf(driver.memory->releaseBlock(handle));
}

PLANEMU_EXPORT cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                        CUmemGenericAllocationHandle handle, unsigned long long flags) {
  PLANEMU_ENTER(true);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  return resultOf(driver.memory->map(address, bytes, offset, handle));
}

PLANEMU_EXPORT cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  PLANEMU_ENTER(true);
  return resultOf(driver.memory->unmap(address, bytes));
}

PLANEMU_EXPORT cuMemSetAccess(CUdeviceptr address, std::size_t bytes,
                              const CUmemAccessDesc *descriptions, std::size_t count) {
  PLANEMU_ENTER(true);
  if (!descriptions || count != 1 || descriptions->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      descriptions->location.id != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
      descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  return resultOf(driver.memory->setAccess(
      address, bytes, descriptions->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

// --- Copies and fills -------------------------------------------------------

static std::uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

static CUresult copy(CUstream stream, bool async, CopyNode node) {
  PLANEMU_ENTER(true);
  if (!async)
    if (CUresult result = driver.checkNoCapture(); result != CUDA_SUCCESS)
      return result;
  if (node.bytes == 0)
    return CUDA_SUCCESS;
  if (!node.to || !node.from)
    return CUDA_ERROR_INVALID_VALUE;
  return driver.enqueue(stream, node);
}

static CUresult fill(CUstream stream, bool async, FillNode node) {
  PLANEMU_ENTER(true);
  if (!async)
    if (CUresult result = driver.checkNoCapture(); result != CUDA_SUCCESS)
      return result;
  if (node.count == 0)
    return CUDA_SUCCESS;
  if (node.to % node.width)
    return CUDA_ERROR_INVALID_VALUE;
  return driver.enqueue(stream, node);
}

PLANEMU_EXPORT cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, std::size_t bytes) {
  return copy(nullptr, false, {to, addressOf(from), bytes, true, false});
}
PLANEMU_EXPORT cuMemcpyDtoH_v2(void *to, CUdeviceptr from, std::size_t bytes) {
  return copy(nullptr, false, {addressOf(to), from, bytes, false, true});
}
PLANEMU_EXPORT cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy(nullptr, false, {to, from, bytes, true, true});
}
PLANEMU_EXPORT cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, std::size_t bytes,
                                    CUstream stream) {
  return copy(stream, true, {to, addressOf(from), bytes, true, false});
}
PLANEMU_EXPORT cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  return copy(stream, true, {addressOf(to), from, bytes, false, true});
}
PLANEMU_EXPORT cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  return copy(stream, true, {to, from, bytes, true, true});
}
PLANEMU_EXPORT cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fill(nullptr, false, {to, count, value, 1});
}
PLANEMU_EXPORT cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return fill(nullptr, false, {to, count, value, 4});
}
PLANEMU_EXPORT cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                               CUstream stream) {
  return fill(stream, true, {to, count, value, 1});
}
PLANEMU_EXPORT cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count,
                                CUstream stream) {
  return fill(stream, true, {to, count, value, 4});
}
