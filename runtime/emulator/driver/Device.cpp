//===- Device.cpp - cuInit, devices, the context, errors ------------------===//
//
// Also chooses the host's instruction set, and keeps the messages of planemu_last_error.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace planemu;

namespace planemu {
namespace base {
extern const InstructionSet instructions;
}
#if defined(PLANEMU_HAS_X86_SETS)
namespace v3 {
extern const InstructionSet instructions;
}
namespace v4 {
extern const InstructionSet instructions;
}
#endif
} // namespace planemu

static constexpr std::uint64_t GiB = 1ull << 30;
static constexpr int KiB = 1 << 10, MiB = 1 << 20;

// Sizes: CUDA C++ Programming Guide, "Compute Capabilities"; counts: the vendors' data sheets.
static constexpr DeviceModel Models[] = {
    {"gb10", "Emulated GB10", 121, 48, 99 * KiB, 100 * KiB, 24 * MiB, 1536, true, 120 * GiB},
    {"h200", "Emulated H200", 90, 132, 227 * KiB, 228 * KiB, 50 * MiB, 2048, false, 140 * GiB},
    {"sm_80", "Emulated sm_80 GPU", 80, 108, 163 * KiB, 164 * KiB, 40 * MiB, 2048, false, 80 * GiB},
    {"sm_86", "Emulated sm_86 GPU", 86, 84, 99 * KiB, 100 * KiB, 6 * MiB, 1536, false, 24 * GiB},
    {"sm_87", "Emulated sm_87 GPU", 87, 16, 163 * KiB, 164 * KiB, 4 * MiB, 1536, true, 60 * GiB},
    {"sm_89", "Emulated sm_89 GPU", 89, 142, 99 * KiB, 100 * KiB, 96 * MiB, 1536, false, 48 * GiB},
    {"sm_90", "Emulated sm_90 GPU", 90, 132, 227 * KiB, 228 * KiB, 50 * MiB, 2048, false, 80 * GiB},
    {"sm_100", "Emulated sm_100 GPU", 100, 148, 227 * KiB, 228 * KiB, 126 * MiB, 2048, false,
     180 * GiB},
    {"sm_103", "Emulated sm_103 GPU", 103, 148, 227 * KiB, 228 * KiB, 126 * MiB, 2048, false,
     270 * GiB},
    {"sm_120", "Emulated sm_120 GPU", 120, 170, 99 * KiB, 100 * KiB, 96 * MiB, 1536, false,
     32 * GiB},
    {"sm_121", "Emulated sm_121 GPU", 121, 48, 99 * KiB, 100 * KiB, 24 * MiB, 1536, true,
     120 * GiB},
};

const DeviceModel *planemu::findDeviceModel(const std::string &key) {
  for (const DeviceModel &model : Models)
    if (key == model.key)
      return &model;
  return nullptr;
}

Driver &Driver::get() {
  // Never destroyed: worker threads may outlive static destructors.
  static Driver &driver = *new Driver;
  return driver;
}

static thread_local bool contextIsCurrent = false;
static thread_local std::string launchLabel;

static std::mutex messageMutex;
static std::string message;

CUresult planemu::failWith(CUresult result, std::string text) {
  std::lock_guard lock(messageMutex);
  message = std::move(text);
  return result;
}

std::string planemu::lastMessage() {
  std::lock_guard lock(messageMutex);
  return message;
}

void planemu::setLaunchLabel(std::string label) { launchLabel = std::move(label); }

std::string planemu::takeLaunchLabel() { return std::exchange(launchLabel, {}); }

CUresult planemu::enter(bool context) {
  Driver &driver = Driver::get();
  if (!driver.initialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!context)
    return CUDA_SUCCESS;
  if (!contextIsCurrent)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!driver.retained)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return driver.sticky;
}

/// The widest instruction set that the host has, or the one PLANEMU_HOST_ISA names, by which tests
/// compare them; null if there is no such set here.
static const InstructionSet *chooseInstructions() {
#if defined(PLANEMU_HAS_X86_SETS)
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
            __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
#endif
  struct Choice {
    const InstructionSet *set;
    bool runs;
  };
  const Choice choices[] = {
      {&base::instructions, true},
#if defined(PLANEMU_HAS_X86_SETS)
      {&v3::instructions, v3},
      {&v4::instructions, v4},
#endif
  };
  const char *wanted = std::getenv("PLANEMU_HOST_ISA");
  const InstructionSet *chosen = nullptr;
  bool named = false;
  std::string run;
  for (const Choice &choice : choices) {
    bool isWanted = wanted && *wanted && std::strcmp(wanted, choice.set->name) == 0;
    named |= isWanted;
    if (!choice.runs)
      continue;
    run += (run.empty() ? "" : ", ") + std::string(choice.set->name);
    if (!wanted || !*wanted || isWanted)
      chosen = choice.set;
  }
  if (!chosen)
    failWith(CUDA_ERROR_NOT_INITIALIZED,
             "PLANEMU_HOST_ISA is '" + std::string(wanted) + "', " +
                 (named ? "which this host does not run" : "which is no instruction set") +
                 "; possible here are " + run);
  return chosen;
}

CUresult Driver::initialize() {
  if (model)
    return CUDA_SUCCESS;
  const char *target = std::getenv("PLANEMU_TARGET");
  const DeviceModel *found = findDeviceModel(target && *target ? target : "gb10");
  if (!found) {
    std::string known;
    for (const DeviceModel &row : Models)
      known += std::string(known.empty() ? "" : ", ") + row.key;
    return failWith(CUDA_ERROR_NO_DEVICE,
                    std::string("PLANEMU_TARGET is '") + target + "', known are " + known);
  }
  if (const char *threads = std::getenv("PLANEMU_THREADS"))
    pool.setThreads(static_cast<unsigned>(std::strtoul(threads, nullptr, 10)));
  if (const char *steps = std::getenv("PLANEMU_MAX_STEPS")) {
    char *end = nullptr;
    std::uint64_t number = std::strtoull(steps, &end, 10);
    if (!std::isdigit(static_cast<unsigned char>(*steps)) || *end || !number)
      return failWith(CUDA_ERROR_INVALID_VALUE, std::string("PLANEMU_MAX_STEPS is '") + steps +
                                                    "', expected a number greater than 0");
    maxSteps = number;
    maxStepsFromEnvironment = true;
  }
  const InstructionSet *set = chooseInstructions();
  if (!set)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (const char *list = std::getenv("PLANEMU_CHECKS"))
    if (CUresult result = setChecks(list); result != CUDA_SUCCESS)
      return result;
  instructions = set;
  model = found;
  return CUDA_SUCCESS;
}

void Driver::destroyContext() {
  modules.clear();
  functions.clear();
  streams.clear();
  events.clear();
  graphs.clear();
  execs.clear();
  memory.reset();
  for (auto &[pointer, bytes] : hostAllocations)
    std::free(pointer);
  hostAllocations.clear();
  sticky = CUDA_SUCCESS;
}

// --- Exported ---------------------------------------------------------------

PLANEMU_EXPORT cuInit(unsigned flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  return driver.initialize();
}

PLANEMU_EXPORT cuDriverGetVersion(int *version) {
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGetErrorName(CUresult error, const char **text) {
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
#define PLANEMU_NAME(Name, Value)                                                                  \
  case Name:                                                                                       \
    *text = #Name;                                                                                 \
    return CUDA_SUCCESS;
    PLAN_CUDA_RESULTS(PLANEMU_NAME)
#undef PLANEMU_NAME
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuGetErrorString(CUresult error, const char **text) {
  // The name says as much as a sentence would; what happened is in planemu_last_error.
  return cuGetErrorName(error, text);
}

PLANEMU_EXPORT cuDeviceGetCount(int *count) {
  PLANEMU_ENTER(false);
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  *count = 1;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGet(CUdevice *device, int ordinal) {
  PLANEMU_ENTER(false);
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  if (ordinal != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetName(char *name, int length, CUdevice device) {
  PLANEMU_ENTER(false);
  if (!name || length <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", driver.model->name);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice device) {
  PLANEMU_ENTER(false);
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = driver.model->memory;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  PLANEMU_ENTER(false);
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  const DeviceModel &m = *driver.model;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    *value = 1024;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    *value = 64;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    *value = 0x7fffffff;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    *value = 65535;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    *value = 48 * KiB;
    break;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    *value = 64 * KiB;
    break;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    *value = 32;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    *value = 65536;
    break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    *value = 1000000; // kHz; nominal, nothing is timed by it
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = m.multiprocessors;
    break;
  case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    *value = m.integrated;
    break;
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    *value = 1;
    break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    *value = 1000000;
    break;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = 256;
    break;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    *value = m.l2Bytes;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    *value = m.threadsPerMultiprocessor;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = m.sm / 10;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = m.sm % 10;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    *value = m.sharedPerMultiprocessor;
    break;
  case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    *value = 0; // CTAs of a grid are not resident together
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = m.sharedPerBlockOptin;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    *value = m.threadsPerMultiprocessor == 2048 ? 32 : 24;
    break;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    *value = KiB;
    break;
  default:
    return failWith(CUDA_ERROR_INVALID_VALUE,
                    "device attribute " + std::to_string(attribute) + " is not known");
  }
  return CUDA_SUCCESS;
}

// The one context; its address is the handle.
static CUcontext primaryContext() { return reinterpret_cast<CUcontext>(&Driver::get()); }

PLANEMU_EXPORT cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  PLANEMU_ENTER(false);
  if (!context)
    return CUDA_ERROR_INVALID_VALUE;
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (driver.retained++ == 0) {
    driver.memory = std::make_unique<Memory>(driver.model->memory);
    driver.observeMemory();
  }
  *context = primaryContext();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  PLANEMU_ENTER(false);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!driver.retained)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (--driver.retained == 0)
    driver.destroyContext();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxSetCurrent(CUcontext context) {
  PLANEMU_ENTER(false);
  if (context && (context != primaryContext() || !driver.retained))
    return CUDA_ERROR_INVALID_CONTEXT;
  contextIsCurrent = context != nullptr;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxGetCurrent(CUcontext *context) {
  PLANEMU_ENTER(false);
  if (!context)
    return CUDA_ERROR_INVALID_VALUE;
  *context = contextIsCurrent ? primaryContext() : nullptr;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuCtxSynchronize() {
  PLANEMU_ENTER(true);
  return CUDA_SUCCESS;
}
