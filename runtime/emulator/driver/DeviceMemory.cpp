//===- DeviceMemory.cpp - allocations, and what pointers tell -------------===//
//
// Device and managed memory, page-locked host memory, queries by address. Copies are in Copy.cpp,
// pools in MemoryPool.cpp, virtual memory in VirtualMemory.cpp.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/driver/MemoryResult.h"

#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

using namespace planemu;

CUresult Driver::allocate(Context &context, std::uint64_t bytes, Allocation::Kind kind,
                          std::uint64_t &address) {
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > model->memory - usedMemory())
    return CUDA_ERROR_OUT_OF_MEMORY;
  PLANEMU_TRY(resultOf(context.memory->allocate(bytes, address)));
  if (kind == Allocation::Managed)
    context.memory->wrote(address, bytes); // the host writes it unseen
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.kind = kind;
  allocation.id = nextId();
  context.allocations[address] = allocation;
  return CUDA_SUCCESS;
}

CUresult Driver::free(Context &context, std::uint64_t address) {
  auto found = context.allocations.find(address);
  if (found == context.allocations.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (found->second.kind == Allocation::Graph)
    return CUDA_SUCCESS; // the graph keeps the memory
  if (auto pool = pools.find(reinterpret_cast<CUmemoryPool>(found->second.pool)))
    pool->used -= found->second.bytes;
  context.allocations.erase(found);
  return resultOf(context.memory->free(address));
}

// --- Device memory --------------------------------------------------------------

PLANEMU_EXPORT cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  PLANEMU_ENTER_CONTEXT;
  if (!free || !total)
    return CUDA_ERROR_INVALID_VALUE;
  *total = driver.model->memory;
  *free = *total - driver.usedMemory();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAlloc_v2(CUdeviceptr *address, std::size_t bytes) {
  PLANEMU_ENTER_CONTEXT;
  if (!address)
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(driver.checkNoCapture());
  std::uint64_t at = 0;
  PLANEMU_TRY(driver.allocate(context, bytes, Allocation::Device, at));
  *address = at;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAllocPitch_v2(CUdeviceptr *address, std::size_t *pitch, std::size_t width,
                                  std::size_t height, unsigned elementBytes) {
  PLANEMU_ENTER_CONTEXT;
  constexpr std::size_t Align = 512; // what rows start at on a device
  if (!address || !pitch || !width || !height ||
      (elementBytes != 4 && elementBytes != 8 && elementBytes != 16))
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(driver.checkNoCapture());
  std::size_t row = 0, bytes = 0;
  if (__builtin_add_overflow(width, Align - 1, &row) ||
      __builtin_mul_overflow(row / Align * Align, height, &bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t at = 0;
  PLANEMU_TRY(driver.allocate(context, bytes, Allocation::Device, at));
  *address = at;
  *pitch = row / Align * Align;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAllocManaged(CUdeviceptr *address, std::size_t bytes, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!address || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(driver.checkNoCapture());
  std::uint64_t at = 0;
  PLANEMU_TRY(driver.allocate(context, bytes, Allocation::Managed, at));
  *address = at;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemFree_v2(CUdeviceptr address) {
  PLANEMU_ENTER_CONTEXT;
  if (!address)
    return CUDA_SUCCESS;
  driver.drain(lock, context); // work in flight may still use it
  if (!context.alive)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return driver.free(context, address);
}

// --- Host memory ----------------------------------------------------------------
//
// Page-locked memory is valid on the device, in every context, at the host's address.

static void publish(Driver &driver, Context &owner, std::uint64_t address, std::uint64_t bytes,
                    unsigned flags, bool registered) {
  driver.hostRanges[address] = {bytes, flags, registered, &owner, driver.nextId()};
  for (auto &[handle, context] : driver.contexts)
    if (context->alive)
      context->memory->lend(address, bytes);
}

static void withdraw(Driver &driver, std::uint64_t address) {
  driver.hostRanges.erase(address);
  for (auto &[handle, context] : driver.contexts)
    if (context->alive)
      context->memory->takeBack(address);
}

/// The range that holds the address.
static std::map<std::uint64_t, HostRange>::iterator findHost(Driver &driver,
                                                             std::uint64_t address) {
  auto range = driver.hostRanges.upper_bound(address);
  if (range == driver.hostRanges.begin())
    return driver.hostRanges.end();
  --range;
  return address - range->first < range->second.bytes ? range : driver.hostRanges.end();
}

static std::uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

PLANEMU_EXPORT cuMemHostAlloc(void **pointer, std::size_t bytes, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!pointer || !bytes ||
      (flags & ~(MemHostAllocPortable | MemHostAllocDeviceMap | MemHostAllocWriteCombined)))
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(driver.checkNoCapture());
  if (bytes > (1ull << 46))
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *at = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!at)
    return CUDA_ERROR_OUT_OF_MEMORY;
  publish(driver, context, addressOf(at), bytes, flags, false);
  *pointer = at;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuMemAllocHost_v2(void **pointer, std::size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

PLANEMU_EXPORT cuMemFreeHost(void *pointer) {
  PLANEMU_ENTER_CONTEXT;
  driver.drain(lock, context);
  auto found = driver.hostRanges.find(addressOf(pointer));
  if (found == driver.hostRanges.end() || found->second.registered)
    return CUDA_ERROR_INVALID_VALUE;
  withdraw(driver, addressOf(pointer));
  std::free(pointer);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemHostRegister_v2(void *pointer, std::size_t bytes, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  constexpr unsigned Known = MemHostRegisterPortable | MemHostRegisterDeviceMap |
                             MemHostRegisterIoMemory | MemHostRegisterReadOnly;
  std::uint64_t address = addressOf(pointer), end = 0;
  if (!pointer || !bytes || (flags & ~Known) || __builtin_add_overflow(address, bytes, &end))
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & MemHostRegisterIoMemory)
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "memory of other devices cannot be registered");
  auto following = driver.hostRanges.lower_bound(address);
  if ((following != driver.hostRanges.end() && following->first < end) ||
      findHost(driver, address) != driver.hostRanges.end())
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  // All of it must be the program's memory.
  std::uint64_t first = address & ~4095ull;
  unsigned char resident[4096];
  for (std::uint64_t at = first; at < end; at += sizeof(resident) * 4096)
    if (mincore(reinterpret_cast<void *>(at),
                std::min<std::uint64_t>(end - at, sizeof(resident) * 4096), resident) != 0)
      return CUDA_ERROR_INVALID_VALUE;
  publish(driver, context, address, bytes, flags, true);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuMemHostRegister(void *pointer, std::size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(pointer, bytes, flags);
}

PLANEMU_EXPORT cuMemHostUnregister(void *pointer) {
  PLANEMU_ENTER_CONTEXT;
  if (!pointer)
    return CUDA_ERROR_INVALID_VALUE;
  driver.drain(lock, context);
  auto found = driver.hostRanges.find(addressOf(pointer));
  if (found == driver.hostRanges.end())
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (!found->second.registered)
    return CUDA_ERROR_INVALID_VALUE;
  withdraw(driver, addressOf(pointer));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!address || flags || findHost(driver, addressOf(pointer)) == driver.hostRanges.end())
    return CUDA_ERROR_INVALID_VALUE;
  *address = addressOf(pointer);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemHostGetFlags(unsigned *flags, void *pointer) {
  PLANEMU_ENTER_CONTEXT;
  auto found = findHost(driver, addressOf(pointer));
  if (!flags || found == driver.hostRanges.end() || found->second.registered)
    return CUDA_ERROR_INVALID_VALUE;
  // With unified addressing all of it is mapped.
  *flags = found->second.flags | MemHostAllocDeviceMap;
  return CUDA_SUCCESS;
}

// --- Managed memory: hints ----------------------------------------------------------
//
// Host and device share all memory, so that there is nothing to move. Wrong hints are still errors.

static CUresult checkManaged(Context &context, std::uint64_t address, std::uint64_t bytes) {
  auto found = context.allocations.upper_bound(address);
  if (bytes == 0 || found == context.allocations.begin())
    return CUDA_ERROR_INVALID_VALUE;
  --found;
  std::uint64_t offset = address - found->first;
  bool inside = found->second.kind == Allocation::Managed && offset <= found->second.bytes &&
                bytes <= found->second.bytes - offset;
  return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult checkLocation(const CUmemLocation &location) {
  switch (location.type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    return location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// Before CUDA 12 a location was a device, or -1 for the host.
static CUmemLocation oldLocation(CUdevice device) {
  return device == -1 ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                      : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}

PLANEMU_EXPORT cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                                     unsigned flags, CUstream handle) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(checkLocation(location));
  PLANEMU_TRY(checkManaged(context, address, bytes));
  if (stream->capture) {
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice device,
                                  CUstream stream) {
  return cuMemPrefetchAsync_v2(address, bytes, oldLocation(device), 0, stream);
}

PLANEMU_EXPORT cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                              CUmemLocation location) {
  PLANEMU_ENTER_CONTEXT;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    PLANEMU_TRY(checkLocation(location));
  return checkManaged(context, address, bytes);
}
PLANEMU_EXPORT cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                           CUdevice device) {
  return cuMemAdvise_v2(address, bytes, advice, oldLocation(device));
}

PLANEMU_EXPORT cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, std::size_t bytes,
                                      unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  auto found = context.allocations.find(address);
  bool good = found != context.allocations.end() && found->second.kind == Allocation::Managed &&
              (bytes == 0 || bytes == found->second.bytes);
  bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
               (flags == CU_MEM_ATTACH_SINGLE && !stream->legacy);
  return good && known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// --- Pointers -----------------------------------------------------------------------

namespace {
/// What a pointer points into.
struct Target {
  Context *context = nullptr; // null: nothing known
  std::uint64_t base = 0, bytes = 0, id = 0;
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  const Allocation *allocation = nullptr;
  bool mapping = false;
};
} // namespace

static Target look(Driver &driver, std::uint64_t address) {
  if (auto range = findHost(driver, address); range != driver.hostRanges.end())
    return {range->second.owner, range->first, range->second.bytes, range->second.id,
            CU_MEMORYTYPE_HOST};
  for (auto &[handle, context] : driver.contexts) {
    auto inside = [&](auto &map, auto bytes) {
      auto found = map.upper_bound(address);
      if (found == map.begin() || address - std::prev(found)->first >= bytes(*std::prev(found)))
        return map.end();
      return std::prev(found);
    };
    auto found = inside(context->allocations, [](auto &entry) { return entry.second.bytes; });
    if (found != context->allocations.end())
      return {context.get(),    found->first,         found->second.bytes,
              found->second.id, CU_MEMORYTYPE_DEVICE, &found->second};
    auto mapping = inside(context->mappings, [](auto &entry) { return entry.second.first; });
    if (mapping != context->mappings.end())
      return {context.get(),
              mapping->first,
              mapping->second.first,
              mapping->second.second,
              CU_MEMORYTYPE_DEVICE,
              nullptr,
              true};
  }
  return {};
}

PLANEMU_EXPORT cuMemGetAddressRange_v2(CUdeviceptr *base, std::size_t *bytes, CUdeviceptr address) {
  PLANEMU_ENTER_CONTEXT;
  Target target = look(driver, address);
  if (!target.context || target.context != &context)
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = target.base;
  if (bytes)
    *bytes = target.bytes;
  return CUDA_SUCCESS;
}

/// Writes the value in its own width; false if there is no such attribute.
static bool pointerAttribute(const Target &target, std::uint64_t address,
                             CUpointer_attribute attribute, void *out) {
  auto put = [&](auto value) {
    std::memcpy(out, &value, sizeof(value));
    return true;
  };
  bool known = target.context, device = known && target.type == CU_MEMORYTYPE_DEVICE;
  bool managed = target.allocation && target.allocation->kind == Allocation::Managed;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return put(known ? target.context->handle : 0);
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return put(known ? target.type : 0);
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    return put(known ? address : std::uint64_t(0));
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    return put(known && (!device || managed) ? address : std::uint64_t(0));
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    return put(0u);
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
  case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    return put(static_cast<unsigned long long>(target.id));
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    return put(managed ? 1u : 0u);
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return put(known ? 0 : -2); // CU_DEVICE_INVALID
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
  case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    return put(target.base);
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
  case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    return put(static_cast<std::size_t>(target.bytes));
  case CU_POINTER_ATTRIBUTE_MAPPED:
    return put(known ? 1u : 0u);
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    return put(std::uint64_t(0));
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    return put(known ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return put(target.allocation ? target.allocation->pool : std::uintptr_t(0));
  }
  return false;
}

PLANEMU_EXPORT cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                     CUdeviceptr address) {
  PLANEMU_ENTER(false);
  if (!data)
    return CUDA_ERROR_INVALID_VALUE;
  Target target = look(driver, address);
  if (!target.context)
    return CUDA_ERROR_INVALID_VALUE;
  return pointerAttribute(target, address, attribute, data) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data,
                                      CUdeviceptr address) {
  PLANEMU_ENTER(false);
  if (!count || !attributes || !data)
    return CUDA_ERROR_INVALID_VALUE;
  // A pointer that is not known is no error here; its answers say so.
  Target target = look(driver, address);
  for (unsigned n = 0; n < count; ++n)
    if (!data[n] || !pointerAttribute(target, address, attributes[n], data[n]))
      return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
