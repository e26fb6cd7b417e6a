//===- LaunchKernel.cpp - launches, and running work ----------------------===//
//
// Checks that a launch is one the device would take, then runs it or records it.
//===----------------------------------------------------------------------===//

#include "planemu/planemu.h"
#include "runtime/emulator/SourceLine.h"
#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/observe/LaunchObserver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

using namespace planemu;

CUresult Driver::execute(Context &context, const Work &work) {
  if (context.sticky != CUDA_SUCCESS)
    return context.sticky;
  if (const auto *kernel = std::get_if<KernelWork>(&work))
    return runKernel(context, *kernel);
  if (const auto *copy = std::get_if<CopyWork>(&work))
    return runCopy(context, *copy);
  if (const auto *fill = std::get_if<FillWork>(&work))
    return runFill(context, *fill);
  if (const auto *record = std::get_if<RecordWork>(&work))
    record->event->time = std::chrono::steady_clock::now();
  else if (const auto *release = std::get_if<FreeWork>(&work); release && !release->inGraph)
    return free(context, release->address);
  return CUDA_SUCCESS; // what is left has no effect of its own
}

static CUresult resultOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::OutOfBounds:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case FaultKind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case FaultKind::PartialWarp:
  case FaultKind::BadOperand:
  case FaultKind::Misuse:
  case FaultKind::Mbarrier:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case FaultKind::Deadlock:
  case FaultKind::Endless:
  case FaultKind::Circles:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case FaultKind::Assert:
    return CUDA_ERROR_ASSERT;
  case FaultKind::BarrierDivergence:
  case FaultKind::Trap:
    break;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

/// What stands in lines `first` to `last`: their start and the last one.
static std::string linesText(const PtxModule &ptx, std::uint32_t first, std::uint32_t last) {
  constexpr std::uint32_t Most = 5;
  std::string text;
  for (std::uint32_t line = first; line <= last; ++line) {
    if (line == first + Most && line < last) {
      text += " ...";
      line = last;
    }
    text += (line == first ? "" : " ") + std::string(lineText(ptx, line));
  }
  return quoted(text);
}

/// What went wrong, without where.
static std::string whatFailed(const Launch &launch) {
  const Fault &f = launch.fault;
  std::string text;
  switch (f.kind) {
  case FaultKind::OutOfBounds: {
    text += std::string(f.access) + " of " + std::to_string(f.bytes) + " bytes at " +
            hex(f.address) + ": ";
    bool isShared = std::strstr(f.access, "shared") || std::strstr(f.access, "matrix") ||
                    std::strstr(f.access, "destination");
    if (isShared || (f.address & WindowMask) == SharedWindow)
      text += "shared memory has " +
              std::to_string(launch.kernel->staticShared + launch.dynamicShared) + " bytes";
    else if (std::strstr(f.access, "local") || (f.address & WindowMask) == LocalWindow)
      text += "local memory has " + std::to_string(launch.kernel->localBytes) + " bytes";
    else
      text += launch.memory->describe(f.address);
    break;
  }
  case FaultKind::Misaligned:
    text += std::string(f.access) + " of " + std::to_string(f.bytes) + " bytes at " +
            hex(f.address) + ": the address is not a multiple of the size";
    break;
  case FaultKind::PartialWarp:
    text += std::string(f.access) + " needs all 32 lanes of the warp, some do not execute it";
    break;
  case FaultKind::BarrierDivergence:
    text += "threads of one warp wait at different barriers";
    break;
  case FaultKind::Deadlock:
    text += "waits forever: the other threads it waits for have exited or wait elsewhere";
    break;
  case FaultKind::Trap:
    text += "trap";
    break;
  case FaultKind::Assert:
    text += "an assertion failed";
    break;
  case FaultKind::BadOperand:
    text += std::string(f.access) + ": operand " + std::to_string(f.address) + " is out of range";
    break;
  case FaultKind::Misuse:
    text += f.access + (f.bytes ? ": " + hex(f.address) : "");
    break;
  case FaultKind::Mbarrier:
    text += "the mbarrier at " + hex(f.address) + " of shared memory: " + f.access;
    break;
  case FaultKind::Endless:
  case FaultKind::Circles:
    text += f.kind == FaultKind::Circles
                ? "waits forever: no thread of the launch sees anything new; it is"
                : "its warp has executed " + std::to_string(f.address) +
                      " instructions, more than PLANEMU_MAX_STEPS or planemu_set_max_steps allows, "
                      "and is";
    text += " in the loop of line" +
            (f.bytes == f.line ? " " : "s " + std::to_string(f.bytes) + " to ") +
            std::to_string(f.line);
    return text + ", " + linesText(*launch.ptx, f.bytes, f.line);
  }
  return text;
}

std::string planemu::describeFault(const Launch &launch) {
  const Fault &f = launch.fault;
  auto triple = [](const std::uint32_t *v) {
    return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) +
           ")";
  };
  std::string text = "kernel '" + launch.kernel->name + "'";
  if (!launch.label.empty())
    text += " (" + launch.label + ")";
  text += ", PTX line " + std::to_string(f.line) + sourceOf(*launch.ptx, f.line) + ", CTA " +
          triple(f.cta) + ", thread " + triple(f.thread) + ": " + whatFailed(launch);
  std::string_view written = lineText(*launch.ptx, f.line);
  if (f.kind != FaultKind::Endless && !written.empty())
    text += ", in " + quoted(written);
  return text;
}

/// A fault is also a finding of the check that looks for its like.
static void addFault(Findings &findings, const Launch &launch) {
  const Fault &f = launch.fault;
  bool ofMemory = f.kind == FaultKind::OutOfBounds || f.kind == FaultKind::Misaligned;
  std::uint32_t thread =
      f.thread[0] + launch.block[0] * (f.thread[1] + launch.block[1] * f.thread[2]);
  findings.add(launch, ofMemory ? "mem" : "sync", whatFailed(launch),
               {f.line, f.linearCta, thread / 32, thread % 32});
}

/// What planemu_counters says of one launch.
static std::string countersOf(const Launch &launch, std::size_t index, const Counters &counters) {
  auto triple = [](const std::uint32_t *v) {
    return "[" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) +
           "]";
  };
  return "{\"index\":" + std::to_string(index) + ",\"kernel\":" + jsonString(launch.kernel->name) +
         ",\"label\":" + jsonString(launch.label) + ",\"grid\":" + triple(launch.grid) +
         ",\"block\":" + triple(launch.block) + ",\"counters\":" + counters.json() + "}";
}

/// Memory where the CTAs of a cooperative launch meet: its size and a word that counts arrivals. It is
/// allocated as a kernel's own would be, so the checks see what it orders.
static CUresult prepareWorkspace(Context &context, std::uint64_t &address) {
  constexpr std::uint32_t Bytes = 8;
  Memory &memory = *context.memory;
  address = context.gridWorkspace;
  if (!address) {
    if (memory.allocate(Bytes, address) != Memory::Result::Ok)
      return failWith(CUDA_ERROR_OUT_OF_MEMORY,
                      "no memory for the barrier of a cooperative launch");
    context.gridWorkspace = address;
    memory.name(address, Bytes, "the grid's barrier");
  }
  std::memcpy(reinterpret_cast<void *>(address), &Bytes, sizeof(Bytes));
  std::memset(reinterpret_cast<char *>(address) + sizeof(Bytes), 0, Bytes - sizeof(Bytes));
  memory.wrote(address, Bytes);
  return CUDA_SUCCESS;
}

/// The context's heap, whose memory is allocated when a kernel first needs it.
static CUresult prepareHeap(Context &context, DeviceHeap *&heap) {
  if (!context.heap) {
    std::uint64_t address, bytes = context.limits.at(CU_LIMIT_MALLOC_HEAP_SIZE);
    if (context.memory->allocate(bytes, address) != Memory::Result::Ok)
      return failWith(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the heap of kernels");
    context.heap = std::make_unique<DeviceHeap>(address, bytes);
  }
  heap = context.heap.get();
  return CUDA_SUCCESS;
}

CUresult Driver::runKernel(Context &context, const KernelWork &node) {
  Memory &memory = *context.memory;
  Launch launch;
  launch.kernel = node.function->kernel.get();
  std::copy(node.grid, node.grid + 3, launch.grid);
  std::copy(node.block, node.block + 3, launch.block);
  launch.dynamicShared = node.dynamicShared;
  launch.parameters = node.parameters.data();
  launch.ctas = std::uint64_t(node.grid[0]) * node.grid[1] * node.grid[2];
  launch.label = node.label;
  launch.maxSteps = maxSteps ? maxSteps : DefaultMaxSteps;
  launch.seed = scheduleSeed;
  if (jit != PLANEMU_JIT_OFF) {
    std::unique_ptr<Tier> &tier = node.function->tier;
    if (!tier)
      tier = std::make_unique<Tier>(*launch.kernel, *compiler, instructions->name);
    tier->setThreshold(jit == PLANEMU_JIT_ALWAYS ? Tier::Always : Tier::Hot);
    launch.tier = tier.get();
  }
  launch.cooperative = node.cooperative;
  launch.memory = &memory;
  if (launch.cooperative)
    PLANEMU_TRY(prepareWorkspace(context, launch.workspace));
  if (launch.kernel->allocates)
    PLANEMU_TRY(prepareHeap(context, launch.heap));
  launch.ptx = node.module->ptx.get();
  launch.namedRanges = checks & PLANEMU_CHECK_MEM;
  // One thread where the order of CTAs shows: in reports, in counts of how long they wait for each
  // other, in sums of floats.
  launch.serial =
      checks != 0 || (counts && launch.kernel->strongAccesses) || launch.kernel->orderedCtas;
  std::optional<LaunchObserver> observer;
  if ((checks & ~PLANEMU_CHECK_MEM) || counts) {
    if (races.nearlyFull()) {
      for (auto &[handle, other] : contexts)
        if (other->alive)
          other->memory->clearRaceCells();
      races.restart();
    }
    races.startLaunch();
    launch.observer = &observer.emplace(launch, checks, counts, findings, races);
  }
  std::uint64_t lent = reinterpret_cast<std::uint64_t>(node.parameters.data());
  memory.lend(lent, node.parameters.size());
  try {
    pool.run(launch);
  } catch (const std::bad_alloc &) {
    memory.takeBack(lent);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!node.parameters.empty())
    memory.takeBack(lent);
  if (launch.tier)
    if (std::string failure = launch.tier->failure(); !failure.empty())
      return failWith(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, failure);
  // Of CTAs after one that failed it is open whether they ran.
  for (auto &[linear, text] : launch.output)
    if (!launch.faulted || linear <= launch.fault.linearCta)
      context.output += text;
  if (launch.faulted && launch.fault.kind == FaultKind::Assert)
    std::fputs(launch.assertion.c_str(), stderr);
  if (counts)
    launchCounters.push_back(countersOf(launch, launchCounters.size(), observer->counters()));
  if (launch.faulted) {
    if (checks)
      addFault(findings, launch);
    context.sticky = failWith(resultOf(launch.fault.kind), describeFault(launch));
    context.print(); // no call after this one gets as far as to wait
  }
  return CUDA_SUCCESS;
}

/// Collects the parameters' bytes from kernelParams or from the buffer in extra.
static CUresult gatherParameters(const Kernel &kernel, void **parameters, void **extra,
                                 std::vector<std::uint8_t> &bytes) {
  bytes.resize(kernel.parameterBytes);
  if (extra) {
    const void *buffer = nullptr;
    std::size_t size = 0;
    for (void **item = extra; reinterpret_cast<std::uintptr_t>(*item) != LaunchParamEnd;
         item += 2) {
      if (!item[1])
        return CUDA_ERROR_INVALID_VALUE;
      if (reinterpret_cast<std::uintptr_t>(*item) == LaunchParamBufferPointer)
        buffer = item[1];
      else if (reinterpret_cast<std::uintptr_t>(*item) == LaunchParamBufferSize)
        size = *static_cast<const std::size_t *>(item[1]);
      else
        return CUDA_ERROR_INVALID_VALUE;
    }
    // The buffer may be longer: a struct of the parameters is padded at its end.
    if (parameters || !buffer || size < bytes.size())
      return failWith(CUDA_ERROR_INVALID_VALUE,
                      "kernel '" + kernel.name + "' takes " + std::to_string(bytes.size()) +
                          " bytes of parameters, not " + std::to_string(size));
    std::memcpy(bytes.data(), buffer, bytes.size());
    return CUDA_SUCCESS;
  }
  if (!parameters && !kernel.parameters.empty())
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t n = 0; n < kernel.parameters.size(); ++n) {
    if (!parameters[n])
      return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(bytes.data() + kernel.parameters[n].offset, parameters[n],
                kernel.parameters[n].bytes);
  }
  return CUDA_SUCCESS;
}

CUresult planemu::prepareLaunch(Driver &driver, CUfunction handle, const LaunchShape &shape,
                                void **parameters, void **extra, KernelWork &work) {
  std::shared_ptr<FunctionHandle> function = findFunction(driver, handle);
  if (!function)
    return CUDA_ERROR_INVALID_HANDLE;
  const Kernel &kernel = *function->kernel;
  auto refuse = [&](const std::string &why, CUresult result = CUDA_ERROR_INVALID_VALUE) {
    return failWith(result, "launch of kernel '" + kernel.name + "': " + why);
  };
  const unsigned *grid = shape.grid, *block = shape.block;
  auto extents = [](const unsigned *of) {
    return std::to_string(of[0]) + " x " + std::to_string(of[1]) + " x " + std::to_string(of[2]);
  };
  if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 ||
      grid[2] > 65535)
    return refuse("a grid of " + extents(grid) +
                  " CTAs, expected 1 to 2147483647 by 1 to 65535 by 1 to 65535");
  if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 || block[2] > 64)
    return refuse("a block of " + extents(block) +
                  " threads, expected 1 to 1024 by 1 to 1024 by 1 to 64");
  std::uint64_t threads = std::uint64_t(block[0]) * block[1] * block[2];
  if (threads > kernel.maxThreads)
    return refuse(std::to_string(threads) + " threads a block, at most " +
                  std::to_string(kernel.maxThreads) + " are allowed");
  const std::uint32_t *required = kernel.reqNtid;
  if (required[0] &&
      (block[0] != required[0] || block[1] != required[1] || block[2] != required[2]))
    return refuse("the block differs from the kernel's .reqntid");
  if (shape.shared > function->dynamicSharedLimit)
    return refuse(std::to_string(shape.shared) +
                  " bytes of dynamic shared memory, the limit set for the kernel is " +
                  std::to_string(function->dynamicSharedLimit));
  if (shape.cooperative) {
    std::uint64_t most =
        std::uint64_t(residentBlocks(*driver.model, *function, static_cast<unsigned>(threads),
                                     shape.shared)) *
        static_cast<std::uint64_t>(driver.model->multiprocessors);
    std::uint64_t asked = std::uint64_t(grid[0]) * grid[1] * grid[2];
    if (asked > most)
      return refuse("a cooperative launch of " + std::to_string(asked) + " blocks, " +
                        std::to_string(most) + " fit on the device at once",
                    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  }
  work.module = driver.modules.find(reinterpret_cast<CUmodule>(function->module->handle));
  work.function = function;
  std::copy(grid, grid + 3, work.grid);
  std::copy(block, block + 3, work.block);
  work.dynamicShared = shape.shared;
  work.cooperative = shape.cooperative;
  return gatherParameters(kernel, parameters, extra, work.parameters);
}

static CUresult launchIn(CUstream streamHandle, CUfunction handle, const LaunchShape &shape,
                         void **parameters, void **extra) {
  PLANEMU_ENTER_CONTEXT;
  KernelWork work;
  work.label = takeLaunchLabel();
  std::shared_ptr<Stream> stream = driver.findStream(streamHandle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  PLANEMU_TRY(prepareLaunch(driver, handle, shape, parameters, extra, work));
  if (work.module->context != stream->context.get())
    return failWith(CUDA_ERROR_INVALID_HANDLE,
                    "launch of kernel '" + work.function->name +
                        "': the stream belongs to another context than the kernel");
  return driver.enqueue(*stream, std::move(work));
}

PLANEMU_EXPORT cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                              unsigned blockX, unsigned blockY, unsigned blockZ,
                              unsigned sharedBytes, CUstream stream, void **parameters,
                              void **extra) {
  return launchIn(stream, function,
                  {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, false}, parameters,
                  extra);
}

PLANEMU_EXPORT cuLaunchCooperativeKernel(CUfunction function, unsigned gridX, unsigned gridY,
                                         unsigned gridZ, unsigned blockX, unsigned blockY,
                                         unsigned blockZ, unsigned sharedBytes, CUstream stream,
                                         void **parameters) {
  return launchIn(stream, function,
                  {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, true}, parameters,
                  nullptr);
}

/// Attributes that have no effect here are taken; those that would have one are refused.
static CUresult readAttributes(const CUlaunchConfig &config, LaunchShape &shape) {
  if (config.numAttrs && !config.attrs)
    return CUDA_ERROR_INVALID_VALUE;
  auto cluster = [](const auto &dim) {
    return dim.x == 1 && dim.y == 1 && dim.z == 1
               ? CUDA_SUCCESS
               : failWith(dim.x && dim.y && dim.z ? CUDA_ERROR_NOT_SUPPORTED
                                                  : CUDA_ERROR_INVALID_VALUE,
                          "clusters of " + std::to_string(dim.x) + " x " + std::to_string(dim.y) +
                              " x " + std::to_string(dim.z) + " blocks; only 1 x 1 x 1 runs");
  };
  for (unsigned n = 0; n < config.numAttrs; ++n) {
    const CUlaunchAttribute &attribute = config.attrs[n];
    switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      shape.cooperative = attribute.value.cooperative != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      PLANEMU_TRY(cluster(attribute.value.clusterDim));
      break;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    // The launch may begin early; here it begins when its turn comes.
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    // Hints about caches, waiting and scheduling.
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      break;
    default:
      return failWith(CUDA_ERROR_NOT_SUPPORTED,
                      "launch attribute " + std::to_string(attribute.id) + " is not emulated");
    }
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                void **parameters, void **extra) {
  if (!config)
    return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes,
                    false};
  PLANEMU_TRY(readAttributes(*config, shape));
  return launchIn(config->hStream, function, shape, parameters, extra);
}
