//===- Context.cpp - contexts and each thread's stack of them -------------===//
//
// A context owns memory, modules, streams, events and graphs. The primary one keeps its handle when
// it is destroyed and retained again.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstdlib>
#include <utility>

using namespace planemu;

// A destroyed context may still be on the stack of another thread, which then keeps the object.
static thread_local std::vector<std::shared_ptr<Context>> contextStack;

Context *Driver::current() { return contextStack.empty() ? nullptr : contextStack.back().get(); }

/// Null, which pops, if a null context is made current.
void Driver::setCurrent(std::shared_ptr<Context> context) {
  if (!contextStack.empty())
    contextStack.pop_back();
  if (context)
    contextStack.push_back(std::move(context));
}

std::shared_ptr<Context> Driver::shared(Context *context) const {
  return contexts.find(reinterpret_cast<CUcontext>(context->handle));
}

std::uint64_t Driver::usedMemory() const {
  std::uint64_t used = 0;
  for (auto &[handle, context] : contexts)
    if (context->memory)
      used += context->memory->used();
  return used;
}

Context *Driver::ownerOf(std::uint64_t address) const {
  RegionRef region;
  Context *own = current();
  if (own && own->alive && own->memory->find(address, region))
    return own;
  for (auto &[handle, context] : contexts)
    if (context->alive && context->memory->find(address, region))
      return context.get();
  return nullptr;
}

CUresult Driver::createContext(unsigned flags, bool isPrimary, std::shared_ptr<Context> &context) {
  if (isPrimary && primary)
    context = primary; // the handle stays
  else
    context = std::make_shared<Context>();
  context->id = nextId();
  context->primary = isPrimary;
  context->flags = flags;
  context->apiVersion = DriverVersion;
  context->sticky = CUDA_SUCCESS;
  context->memory = std::make_unique<Memory>(model->memory);
  for (auto &[address, range] : hostRanges)
    context->memory->lend(address, range.bytes);
  context->legacy = std::make_shared<Stream>();
  context->legacy->shown = StreamLegacy;
  context->legacy->context = context;
  context->legacy->id = nextId();
  context->legacy->legacy = true;
  context->limits = {{CU_LIMIT_STACK_SIZE, 1024},
                     {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                     {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
                     {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                     {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                     {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128},
                     {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
  context->cacheConfig = CU_FUNC_CACHE_PREFER_NONE;
  context->sharedConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  if (context->handle == 0)
    contexts.add(context);
  if (isPrimary)
    primary = context;
  context->alive = true; // not before: memory may run out on the way here
  observeMemory();
  return CUDA_SUCCESS;
}

void Driver::destroyContext(Context &context) {
  auto owns = [&](auto &object) { return object.context == &context; };
  for (auto &[handle, stream] : streams)
    if (stream->context.get() == &context && stream->capture)
      endCapture(stream->capture);
  for (auto &[handle, library] : libraries)
    library->modules.erase(&context);
  for (auto &[handle, module] : modules)
    if (module->context == &context)
      for (auto &[name, function] : module->functions)
        functions.remove(reinterpret_cast<CUfunction>(function->handle));
  execs.removeIf([&](GraphExec &exec) { return exec.context.get() == &context; });
  modules.removeIf(owns);
  events.removeIf(owns);
  streams.removeIf([&](Stream &stream) { return stream.context.get() == &context; });
  for (auto at = hostRanges.begin(); at != hostRanges.end();) {
    if (at->second.owner != &context) {
      ++at;
      continue;
    }
    for (auto &[handle, other] : contexts)
      if (other->memory)
        other->memory->takeBack(at->first);
    if (!at->second.registered)
      std::free(reinterpret_cast<void *>(at->first));
    at = hostRanges.erase(at);
  }
  for (auto &[address, mapping] : context.mappings)
    if (auto block = blocks.find(mapping.second); block != blocks.end())
      --block->second.mappings;
  // Blocks are memory of the context they were created in, and go with it.
  for (auto at = blocks.begin(); at != blocks.end();)
    at = at->second.owner == &context ? blocks.erase(at) : std::next(at);
  context.mappings.clear();
  context.allocations.clear();
  context.perThread.clear();
  context.legacy.reset();
  context.memory.reset();
  context.gridWorkspace = 0;
  context.sticky = CUDA_SUCCESS;
  context.alive = false;
  if (!context.primary)
    contexts.remove(reinterpret_cast<CUcontext>(context.handle));
}

// --- The primary context ------------------------------------------------------

static bool validFlags(unsigned flags) {
  unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return !(flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) && (schedule & (schedule - 1)) == 0;
}

PLANEMU_EXPORT cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice device) {
  PLANEMU_ENTER(false);
  if (!handle)
    return CUDA_ERROR_INVALID_VALUE;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!driver.primary || !driver.primary->alive) {
    std::shared_ptr<Context> context;
    PLANEMU_TRY(driver.createContext(driver.primaryFlags, true, context));
  }
  ++driver.retained;
  *handle = reinterpret_cast<CUcontext>(driver.primary->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  PLANEMU_ENTER(false);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!driver.retained)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (driver.retained == 1 && driver.primary->alive) {
    driver.drain(lock, *driver.primary);
    driver.destroyContext(*driver.primary);
  }
  --driver.retained;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

PLANEMU_EXPORT cuDevicePrimaryCtxReset_v2(CUdevice device) {
  PLANEMU_ENTER(false);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (driver.primary && driver.primary->alive) {
    driver.drain(lock, *driver.primary);
    driver.destroyContext(*driver.primary);
    // Those who hold it find it empty, as new.
    if (driver.retained) {
      std::shared_ptr<Context> context;
      PLANEMU_TRY(driver.createContext(driver.primaryFlags, true, context));
    }
  }
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}

PLANEMU_EXPORT cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  PLANEMU_ENTER(false);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!validFlags(flags))
    return CUDA_ERROR_INVALID_VALUE;
  driver.primaryFlags = flags;
  if (driver.retained)
    driver.primary->flags = flags;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

PLANEMU_EXPORT cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  PLANEMU_ENTER(false);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = driver.primaryFlags;
  *active = driver.primary && driver.primary->alive;
  return CUDA_SUCCESS;
}

// --- Other contexts -----------------------------------------------------------

static CUresult create(CUcontext *handle, unsigned flags, CUdevice device) {
  PLANEMU_ENTER(false);
  if (!handle || !validFlags(flags))
    return CUDA_ERROR_INVALID_VALUE;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  std::shared_ptr<Context> context;
  PLANEMU_TRY(driver.createContext(flags, false, context));
  *handle = reinterpret_cast<CUcontext>(context->handle);
  contextStack.push_back(std::move(context));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxCreate_v2(CUcontext *handle, unsigned flags, CUdevice device) {
  return create(handle, flags, device);
}
PLANEMU_EXPORT cuCtxCreate_v3(CUcontext *handle, CUexecAffinityParam *affinities, int count,
                              unsigned flags, CUdevice device) {
  if (count < 0 || (count > 0 && !affinities))
    return CUDA_ERROR_INVALID_VALUE;
  if (count > 0)
    return failWith(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "contexts have no affinity here");
  return create(handle, flags, device);
}
PLANEMU_EXPORT cuCtxCreate_v4(CUcontext *handle, CUctxCreateParams *parameters, unsigned flags,
                              CUdevice device) {
  if (!parameters)
    return create(handle, flags, device);
  if (parameters->cigParams)
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "contexts do not share with graphics here");
  return cuCtxCreate_v3(handle, parameters->execAffinityParams, parameters->numExecAffinityParams,
                        flags, device);
}

PLANEMU_EXPORT cuCtxDestroy_v2(CUcontext handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Context> context = driver.contexts.find(handle);
  if (!context || !context->alive)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (context->primary)
    return failWith(CUDA_ERROR_INVALID_CONTEXT,
                    "the primary context is released by cuDevicePrimaryCtxRelease");
  driver.drain(lock, *context);
  driver.destroyContext(*context);
  if (Driver::current() == context.get())
    contextStack.pop_back();
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuCtxDestroy(CUcontext handle) { return cuCtxDestroy_v2(handle); }

// What contexts had before they were pushed and popped: a second reference to the current one, which
// lasts until it is given back.

PLANEMU_EXPORT cuCtxAttach(CUcontext *handle, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!handle || flags)
    return CUDA_ERROR_INVALID_VALUE;
  ++context.attached;
  *handle = reinterpret_cast<CUcontext>(context.handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxDetach(CUcontext handle) {
  {
    PLANEMU_ENTER_CONTEXT;
    if (context.handle != reinterpret_cast<std::uintptr_t>(handle))
      return CUDA_ERROR_INVALID_CONTEXT;
    if (context.attached) {
      --context.attached;
      return CUDA_SUCCESS;
    }
  }
  return cuCtxDestroy_v2(handle);
}

PLANEMU_EXPORT cuCtxPushCurrent_v2(CUcontext handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Context> context = driver.contexts.find(handle);
  if (!context || !context->alive)
    return CUDA_ERROR_INVALID_CONTEXT;
  contextStack.push_back(std::move(context));
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuCtxPushCurrent(CUcontext handle) { return cuCtxPushCurrent_v2(handle); }

PLANEMU_EXPORT cuCtxPopCurrent_v2(CUcontext *handle) {
  PLANEMU_ENTER(false);
  if (contextStack.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (handle)
    *handle = reinterpret_cast<CUcontext>(contextStack.back()->handle);
  contextStack.pop_back();
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuCtxPopCurrent(CUcontext *handle) { return cuCtxPopCurrent_v2(handle); }

PLANEMU_EXPORT cuCtxSetCurrent(CUcontext handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Context> context;
  if (handle) {
    context = driver.contexts.find(handle);
    if (!context || !context->alive)
      return CUDA_ERROR_INVALID_CONTEXT;
  }
  Driver::setCurrent(std::move(context));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetCurrent(CUcontext *handle) {
  PLANEMU_ENTER(false);
  if (!handle)
    return CUDA_ERROR_INVALID_VALUE;
  Context *context = Driver::current();
  *handle = context ? reinterpret_cast<CUcontext>(context->handle) : nullptr;
  return CUDA_SUCCESS;
}

/// For functions that take a context or, with null, the current one.
static CUresult pick(Driver &driver, CUcontext handle, std::shared_ptr<Context> &context) {
  if (handle)
    context = driver.contexts.find(handle);
  else if (Context *own = Driver::current())
    context = driver.shared(own);
  return context && context->alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

PLANEMU_EXPORT cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
  PLANEMU_ENTER(false);
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Context> context;
  PLANEMU_TRY(pick(driver, handle, context));
  *device = 0;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuCtxGetDevice(CUdevice *device) { return cuCtxGetDevice_v2(device, nullptr); }

PLANEMU_EXPORT cuCtxGetFlags(unsigned *flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!flags)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = context.flags;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxSetFlags(unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (!validFlags(flags))
    return CUDA_ERROR_INVALID_VALUE;
  context.flags = flags;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetId(CUcontext handle, unsigned long long *id) {
  PLANEMU_ENTER(false);
  if (!id)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Context> context;
  PLANEMU_TRY(pick(driver, handle, context));
  *id = context->id;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetApiVersion(CUcontext handle, unsigned *version) {
  PLANEMU_ENTER(false);
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Context> context;
  PLANEMU_TRY(pick(driver, handle, context));
  *version = context->apiVersion;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxSynchronize_v2(CUcontext handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Context> context;
  if (!handle) {
    PLANEMU_TRY(enter(driver, true));
    context = driver.shared(Driver::current());
  } else {
    PLANEMU_TRY(pick(driver, handle, context));
  }
  PLANEMU_TRY(driver.checkNoCapture());
  driver.drain(lock, *context);
  return context->alive ? context->sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
PLANEMU_EXPORT cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

PLANEMU_EXPORT cuCtxSetLimit(CUlimit limit, std::size_t value) {
  PLANEMU_ENTER_CONTEXT;
  if (limit < 0 || limit > CU_LIMIT_SHMEM_SIZE)
    return CUDA_ERROR_INVALID_VALUE;
  auto found = context.limits.find(limit);
  // Children of kernels cannot be waited for since CUDA 12, so that their depth is no limit any
  // more.
  if (found == context.limits.end() || limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128)
    return CUDA_ERROR_INVALID_VALUE;
  // A heap that is in use keeps its size.
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && context.heap && value != found->second)
    return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_STACK_SIZE) {
    if (value > 512u << 10)
      return CUDA_ERROR_INVALID_VALUE;
    value = (value + 15) / 16 * 16;
  }
  found->second = value;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetLimit(std::size_t *value, CUlimit limit) {
  PLANEMU_ENTER_CONTEXT;
  if (!value || limit < 0 || limit > CU_LIMIT_SHMEM_SIZE)
    return CUDA_ERROR_INVALID_VALUE;
  auto found = context.limits.find(limit);
  if (found == context.limits.end())
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = found->second;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetCacheConfig(CUfunc_cache *config) {
  PLANEMU_ENTER_CONTEXT;
  if (!config)
    return CUDA_ERROR_INVALID_VALUE;
  *config = context.cacheConfig;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxSetCacheConfig(CUfunc_cache config) {
  PLANEMU_ENTER_CONTEXT;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
    return CUDA_ERROR_INVALID_VALUE;
  context.cacheConfig = config;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetSharedMemConfig(CUsharedconfig *config) {
  PLANEMU_ENTER_CONTEXT;
  if (!config)
    return CUDA_ERROR_INVALID_VALUE;
  *config = context.sharedConfig;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxSetSharedMemConfig(CUsharedconfig config) {
  PLANEMU_ENTER_CONTEXT;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
      config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS; // banks are four bytes wide since Maxwell; the call has no effect
}

PLANEMU_EXPORT cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  PLANEMU_ENTER_CONTEXT;
  if (least)
    *least = LeastPriority;
  if (greatest)
    *greatest = GreatestPriority;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxResetPersistingL2Cache() {
  PLANEMU_ENTER_CONTEXT;
  return CUDA_SUCCESS; // nothing persists
}

// A context is no peer of another one on the same device.

PLANEMU_EXPORT cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Context> other = driver.contexts.find(peer);
  if (!other || !other->alive || other.get() == &context)
    return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

PLANEMU_EXPORT cuCtxDisablePeerAccess(CUcontext peer) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Context> other = driver.contexts.find(peer);
  if (!other || !other->alive)
    return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
