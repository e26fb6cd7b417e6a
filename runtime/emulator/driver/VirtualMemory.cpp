//===- VirtualMemory.cpp - address ranges, blocks, mappings ---------------===//
//
// Memory does the mapping; here are the counts of references: a block lives while a handle or a
// mapping does.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/driver/MemoryResult.h"

using namespace planemu;

static CUresult checkProperties(const CUmemAllocationProp *properties) {
  if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return properties->location.type == CU_MEM_LOCATION_TYPE_INVALID ? CUDA_ERROR_INVALID_VALUE
                                                                     : CUDA_ERROR_NOT_SUPPORTED;
  if (properties->location.id != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "blocks cannot be shared with other processes");
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemGetAllocationGranularity(std::size_t *granularity,
                                             const CUmemAllocationProp *properties,
                                             CUmemAllocationGranularity_flags option) {
  PLANEMU_ENTER(false);
  if (!granularity || option < CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
      option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(checkProperties(properties));
  *granularity = Memory::Granularity;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAddressReserve(CUdeviceptr *address, std::size_t bytes, std::size_t alignment,
                                   CUdeviceptr, unsigned long long flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!address || flags)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t at = 0;
  PLANEMU_TRY(resultOf(context.memory->reserve(bytes, alignment, at)));
  *address = at;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  PLANEMU_ENTER_CONTEXT;
  return resultOf(context.memory->unreserve(address, bytes));
}

PLANEMU_EXPORT cuMemCreate(CUmemGenericAllocationHandle *handle, std::size_t bytes,
                           const CUmemAllocationProp *properties, unsigned long long flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!handle || flags)
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(checkProperties(properties));
  if (bytes > driver.model->memory - driver.usedMemory())
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t created = 0;
  PLANEMU_TRY(resultOf(context.memory->createBlock(bytes, created)));
  // Handles of several contexts must differ.
  MemoryBlock block;
  block.properties = *properties;
  block.bytes = bytes;
  block.owner = &context;
  block.inMemory = created;
  *handle = newHandle();
  driver.blocks[*handle] = block;
  return CUDA_SUCCESS;
}

void Driver::releaseBlock(CUmemGenericAllocationHandle handle) {
  auto found = blocks.find(handle);
  if (found == blocks.end() || found->second.references || found->second.mappings)
    return;
  if (found->second.owner->alive)
    found->second.owner->memory->releaseBlock(found->second.inMemory);
  blocks.erase(found);
}

PLANEMU_EXPORT cuMemRelease(CUmemGenericAllocationHandle handle) {
  PLANEMU_ENTER(false);
  auto found = driver.blocks.find(handle);
  if (found == driver.blocks.end() || !found->second.references)
    return CUDA_ERROR_INVALID_VALUE;
  --found->second.references;
  driver.releaseBlock(handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                        CUmemGenericAllocationHandle handle, unsigned long long flags) {
  PLANEMU_ENTER_CONTEXT;
  auto found = driver.blocks.find(handle);
  if (flags || found == driver.blocks.end() || !found->second.references)
    return CUDA_ERROR_INVALID_VALUE;
  if (found->second.owner != &context)
    return failWith(CUDA_ERROR_INVALID_VALUE, "the block belongs to another context");
  PLANEMU_TRY(resultOf(context.memory->map(address, bytes, offset, found->second.inMemory)));
  context.mappings[address] = {bytes, handle};
  ++found->second.mappings;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  PLANEMU_ENTER_CONTEXT;
  driver.drain(lock, context);
  PLANEMU_TRY(resultOf(context.memory->unmap(address, bytes)));
  auto first = context.mappings.lower_bound(address);
  auto last = context.mappings.lower_bound(address + bytes);
  std::vector<CUmemGenericAllocationHandle> unmapped;
  for (auto at = first; at != last; ++at)
    unmapped.push_back(at->second.second);
  context.mappings.erase(first, last);
  for (CUmemGenericAllocationHandle handle : unmapped) {
    --driver.blocks[handle].mappings;
    driver.releaseBlock(handle);
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemSetAccess(CUdeviceptr address, std::size_t bytes,
                              const CUmemAccessDesc *descriptions, std::size_t count) {
  PLANEMU_ENTER_CONTEXT;
  if (!descriptions || count != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (descriptions->location.type != CU_MEM_LOCATION_TYPE_DEVICE || descriptions->location.id != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (descriptions->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "mapped memory is read and written, or neither");
  if (descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
      descriptions->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  return resultOf(context.memory->setAccess(
      address, bytes, descriptions->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

/// The mapping that holds the address.
static auto findMapping(Context &context, std::uint64_t address) {
  auto found = context.mappings.upper_bound(address);
  if (found == context.mappings.begin() ||
      address - std::prev(found)->first >= std::prev(found)->second.first)
    return context.mappings.end();
  return std::prev(found);
}

PLANEMU_EXPORT cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                              CUdeviceptr address) {
  PLANEMU_ENTER_CONTEXT;
  if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (location->id != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (findMapping(context, address) == context.mappings.end())
    return CUDA_ERROR_INVALID_VALUE;
  RegionRef region;
  *flags = context.memory->find(address, region) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  PLANEMU_ENTER_CONTEXT;
  auto found = findMapping(context, reinterpret_cast<std::uint64_t>(address));
  if (!handle || found == context.mappings.end())
    return CUDA_ERROR_INVALID_VALUE;
  *handle = found->second.second;
  ++driver.blocks[*handle].references;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                      CUmemGenericAllocationHandle handle) {
  PLANEMU_ENTER(false);
  auto found = driver.blocks.find(handle);
  if (!properties || found == driver.blocks.end() || !found->second.references)
    return CUDA_ERROR_INVALID_VALUE;
  *properties = found->second.properties;
  return CUDA_SUCCESS;
}
