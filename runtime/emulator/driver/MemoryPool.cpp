//===- MemoryPool.cpp - stream-ordered allocation -------------------------===//
//
// Memory of a pool is allocated when asked for and given back when the free's turn in its stream
// comes; nothing is kept for reuse, so that a use after a free is seen. Pools count what they gave
// out.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>
#include <cstring>

using namespace planemu;

static void preparePools(Driver &driver) {
  if (driver.defaultPool)
    return;
  driver.defaultPool = std::make_shared<MemoryPool>();
  driver.defaultPool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  driver.defaultPool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  driver.pools.add(driver.defaultPool);
  driver.currentPool = driver.defaultPool;
}

static CUmemoryPool handleOf(const MemoryPool &pool) {
  return reinterpret_cast<CUmemoryPool>(pool.handle);
}

/// For functions about the pools of a device.
#define ENTER_POOLS(Good)                                                                          \
  PLANEMU_ENTER(false);                                                                            \
  if (!(Good))                                                                                     \
    return CUDA_ERROR_INVALID_VALUE;                                                               \
  if (device != 0)                                                                                 \
    return CUDA_ERROR_INVALID_DEVICE;                                                              \
  preparePools(driver)

PLANEMU_EXPORT cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER_POOLS(pool);
  *pool = handleOf(*driver.defaultPool);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER_POOLS(pool);
  *pool = handleOf(*driver.currentPool);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  ENTER_POOLS(true);
  std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
  if (!pool)
    return CUDA_ERROR_INVALID_VALUE;
  driver.currentPool = std::move(pool);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *properties) {
  PLANEMU_ENTER(false);
  if (!handle || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.id != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE || properties->usage)
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "pools cannot be shared with other processes");
  preparePools(driver);
  auto pool = std::make_shared<MemoryPool>();
  pool->properties = *properties;
  *handle = driver.pools.add(std::move(pool));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemPoolDestroy(CUmemoryPool handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
  if (!pool || pool == driver.defaultPool)
    return CUDA_ERROR_INVALID_VALUE;
  if (driver.currentPool == pool)
    driver.currentPool = driver.defaultPool;
  driver.pools.remove(handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemPoolTrimTo(CUmemoryPool handle, std::size_t) {
  PLANEMU_ENTER(false);
  return driver.pools.find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; // nothing is kept
}

PLANEMU_EXPORT cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                     void *value) {
  PLANEMU_ENTER(false);
  std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
  if (!pool || !value)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t wide = 0;
  int narrow = 0;
  switch (attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    std::memcpy(&narrow, value, sizeof(narrow));
    pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = narrow != 0;
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    std::memcpy(&pool->threshold, value, sizeof(pool->threshold));
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    std::memcpy(&wide, value, sizeof(wide));
    if (wide != 0) // a high mark can only be reset
      return CUDA_ERROR_INVALID_VALUE;
    pool->usedHigh = pool->used;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                     void *value) {
  PLANEMU_ENTER(false);
  std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
  if (!pool || !value)
    return CUDA_ERROR_INVALID_VALUE;
  auto put = [&](auto number) {
    std::memcpy(value, &number, sizeof(number));
    return CUDA_SUCCESS;
  };
  switch (attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    return put(
        static_cast<int>(pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES]));
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    return put(pool->threshold);
  case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
  case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    return put(pool->used);
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    return put(pool->usedHigh);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map,
                                  std::size_t count) {
  PLANEMU_ENTER(false);
  if (!driver.pools.find(handle) || (count && !map))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t n = 0; n < count; ++n) {
    if (map[n].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[n].location.id != 0)
      return CUDA_ERROR_INVALID_DEVICE;
    // The device a pool is on always has access.
    if (map[n].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                                  CUmemLocation *location) {
  PLANEMU_ENTER(false);
  if (!driver.pools.find(handle) || !flags || !location)
    return CUDA_ERROR_INVALID_VALUE;
  bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == 0;
  *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

// --- In streams -------------------------------------------------------------------

PLANEMU_EXPORT cuMemAllocFromPoolAsync(CUdeviceptr *address, std::size_t bytes, CUmemoryPool handle,
                                       CUstream streamHandle) {
  PLANEMU_ENTER_CONTEXT;
  if (!address)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream = driver.findStream(streamHandle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  preparePools(driver);
  std::shared_ptr<MemoryPool> pool = handle ? driver.pools.find(handle) : driver.currentPool;
  if (!pool)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t at = 0;
  Context &owner = *stream->context;
  if (stream->capture) {
    if (stream->capture->invalidated)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    PLANEMU_TRY(driver.allocate(owner, bytes, Allocation::Graph, at));
    AllocWork work;
    work.parameters.poolProps = pool->properties;
    work.parameters.bytesize = bytes;
    work.parameters.dptr = at;
    work.memory = std::make_shared<GraphMemory>();
    work.memory->context = stream->context;
    work.memory->address = at;
    PLANEMU_TRY(driver.capture(*stream, std::move(work)));
    *address = at;
    return CUDA_SUCCESS;
  }
  std::uint64_t most = pool->properties.maxSize;
  if (most && bytes > most - std::min(most, pool->used))
    return CUDA_ERROR_OUT_OF_MEMORY;
  PLANEMU_TRY(driver.checkLegacy(*stream));
  PLANEMU_TRY(driver.allocate(owner, bytes, Allocation::Pool, at));
  owner.allocations[at].pool = pool->handle;
  pool->used += bytes;
  pool->usedHigh = std::max(pool->usedHigh, pool->used);
  *address = at;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAllocAsync(CUdeviceptr *address, std::size_t bytes, CUstream stream) {
  return cuMemAllocFromPoolAsync(address, bytes, nullptr, stream);
}

PLANEMU_EXPORT cuMemFreeAsync(CUdeviceptr address, CUstream streamHandle) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(streamHandle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  Context &owner = *stream->context;
  auto found = owner.allocations.find(address);
  if (found == owner.allocations.end() || found->second.freeing)
    return CUDA_ERROR_INVALID_VALUE;
  bool inGraph = found->second.kind == Allocation::Graph;
  if (stream->capture && !inGraph)
    return CUDA_ERROR_INVALID_VALUE; // only memory of the graph can be freed in it
  found->second.freeing = !inGraph;
  return driver.enqueue(*stream, FreeWork{address, inGraph});
}
