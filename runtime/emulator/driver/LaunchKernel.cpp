//===- LaunchKernel.cpp - cuLaunchKernel, and running nodes ---------------===//
//
// Checks that a launch is one the device would take, then runs it or records it.
//===----------------------------------------------------------------------===//

#include "planemu/planemu.h"
#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/observe/LaunchObserver.h"

#include <cstring>
#include <new>
#include <optional>

using namespace planemu;

CUresult Driver::execute(const Node &node) {
  if (const auto *kernel = std::get_if<KernelNode>(&node))
    return runKernel(*kernel);
  if (const auto *copy = std::get_if<CopyNode>(&node)) {
    for (auto [device, address] :
         {std::pair(copy->toDevice, copy->to), std::pair(copy->fromDevice, copy->from)})
      if (device && !memory->covers(address, copy->bytes))
        return failWith(CUDA_ERROR_INVALID_VALUE,
                        "copy of " + std::to_string(copy->bytes) +
                            " bytes leaves its allocation; the address is " +
                            memory->describe(address));
    std::memmove(reinterpret_cast<void *>(copy->to), reinterpret_cast<const void *>(copy->from),
                 copy->bytes);
    if (copy->toDevice)
      memory->copied(copy->to, copy->fromDevice ? copy->from : 0, copy->bytes);
    return CUDA_SUCCESS;
  }
  const FillNode &fill = std::get<FillNode>(node);
  if (fill.count > (1ull << 48) || !memory->covers(fill.to, fill.count * fill.width))
    return failWith(CUDA_ERROR_INVALID_VALUE, "fill of " + std::to_string(fill.count) +
                                                  " elements leaves its "
                                                  "allocation; the address is " +
                                                  memory->describe(fill.to));
  memory->wrote(fill.to, fill.count * fill.width);
  if (fill.value == 0)
    memory->zero(fill.to, fill.count * fill.width);
  else if (fill.width == 1)
    std::memset(reinterpret_cast<void *>(fill.to), static_cast<int>(fill.value), fill.count);
  else
    std::fill_n(reinterpret_cast<std::uint32_t *>(fill.to), fill.count, fill.value);
  return CUDA_SUCCESS;
}

static CUresult resultOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::OutOfBounds:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case FaultKind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case FaultKind::PartialWarp:
  case FaultKind::BadOperand:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case FaultKind::Deadlock:
  case FaultKind::Endless:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case FaultKind::BarrierDivergence:
  case FaultKind::Trap:
    break;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

static std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
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
  case FaultKind::BadOperand:
    text += std::string(f.access) + ": operand " + std::to_string(f.address) + " is out of range";
    break;
  case FaultKind::Endless:
    text += "its warp has executed " + std::to_string(f.address) +
            " instructions, more than PLANEMU_MAX_STEPS or planemu_set_max_steps allows, and is in "
            "the loop of line" +
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
  text += ", PTX line " + std::to_string(f.line) + ", CTA " + triple(f.cta) + ", thread " +
          triple(f.thread) + ": " + whatFailed(launch);
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

CUresult Driver::runKernel(const KernelNode &node) {
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
  launch.memory = memory.get();
  launch.ptx = node.module->ptx.get();
  launch.namedRanges = checks & PLANEMU_CHECK_MEM;
  launch.serial = checks != 0;
  std::optional<LaunchObserver> observer;
  if ((checks & ~PLANEMU_CHECK_MEM) || counts) {
    if (races.nearlyFull()) {
      memory->clearRaceCells();
      races.restart();
    }
    races.startLaunch();
    launch.observer = &observer.emplace(launch, checks, counts, findings, races);
  }
  std::uint64_t lent = reinterpret_cast<std::uint64_t>(node.parameters.data());
  memory->lend(lent, node.parameters.size());
  try {
    pool.run(launch);
  } catch (const std::bad_alloc &) {
    memory->takeBack(lent);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!node.parameters.empty())
    memory->takeBack(lent);
  if (counts)
    launchCounters.push_back(countersOf(launch, launchCounters.size(), observer->counters()));
  if (launch.faulted) {
    if (checks)
      addFault(findings, launch);
    sticky = failWith(resultOf(launch.fault.kind), describeFault(launch));
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
      if (reinterpret_cast<std::uintptr_t>(*item) == LaunchParamBufferPointer)
        buffer = item[1];
      else if (reinterpret_cast<std::uintptr_t>(*item) == LaunchParamBufferSize)
        size = *static_cast<const std::size_t *>(item[1]);
      else
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (parameters || !buffer || size != bytes.size())
      return failWith(CUDA_ERROR_INVALID_VALUE,
                      "kernel '" + kernel.name + "' takes " + std::to_string(bytes.size()) +
                          " bytes of parameters, not " + std::to_string(size));
    std::memcpy(bytes.data(), buffer, size);
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

PLANEMU_EXPORT cuLaunchKernel(CUfunction handle, unsigned gridX, unsigned gridY, unsigned gridZ,
                              unsigned blockX, unsigned blockY, unsigned blockZ,
                              unsigned sharedBytes, CUstream stream, void **parameters,
                              void **extra) {
  PLANEMU_ENTER(true);
  std::string label = takeLaunchLabel();
  auto found = driver.functions.find(reinterpret_cast<FunctionHandle *>(handle));
  if (found == driver.functions.end())
    return CUDA_ERROR_INVALID_HANDLE;
  FunctionHandle &function = *found->first;
  const Kernel &kernel = *function.kernel;
  auto refuse = [&](const std::string &why) {
    return failWith(CUDA_ERROR_INVALID_VALUE, "launch of kernel '" + kernel.name + "': " + why);
  };
  if (!gridX || !gridY || !gridZ || gridX > 0x7fffffff || gridY > 65535 || gridZ > 65535)
    return refuse("bad grid");
  if (!blockX || !blockY || !blockZ || blockX > 1024 || blockY > 1024 || blockZ > 64)
    return refuse("bad block");
  std::uint64_t threads = std::uint64_t(blockX) * blockY * blockZ;
  if (threads > kernel.maxThreads)
    return refuse(std::to_string(threads) + " threads a block, at most " +
                  std::to_string(kernel.maxThreads) + " are allowed");
  const std::uint32_t *required = kernel.reqNtid;
  if (required[0] && (blockX != required[0] || blockY != required[1] || blockZ != required[2]))
    return refuse("the block differs from the kernel's .reqntid");
  if (sharedBytes > function.dynamicSharedLimit)
    return refuse(std::to_string(sharedBytes) +
                  " bytes of dynamic shared memory, the limit set for the kernel is " +
                  std::to_string(function.dynamicSharedLimit));
  KernelNode node{driver.modules[found->second],
                  &function,
                  {gridX, gridY, gridZ},
                  {blockX, blockY, blockZ},
                  sharedBytes,
                  {},
                  std::move(label)};
  if (CUresult result = gatherParameters(kernel, parameters, extra, node.parameters);
      result != CUDA_SUCCESS)
    return result;
  return driver.enqueue(stream, std::move(node));
}
