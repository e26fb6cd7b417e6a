//===- Device.cpp - cuInit, devices, and the extensions -------------------===//
//
// Also chooses the host's instruction set, and keeps the messages of planemu_last_error.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <atomic>
#include <charconv>
#include <cstdio>
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

Driver &Driver::get() {
  // Never destroyed: worker threads may outlive static destructors.
  static Driver &driver = *new Driver;
  return driver;
}

std::uintptr_t planemu::newHandle() {
  static std::atomic<std::uintptr_t> last{0x1000};
  return last.fetch_add(16, std::memory_order_relaxed);
}

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

std::string planemu::hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

CUresult planemu::enter(Driver &driver, bool needsContext) {
  if (!driver.initialized())
    return CUDA_ERROR_NOT_INITIALIZED;
  if (inHostFunction())
    return failWith(CUDA_ERROR_NOT_PERMITTED, "a host function may not call the driver");
  if (!needsContext)
    return CUDA_SUCCESS;
  Context *context = Driver::current();
  if (!context)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context->sticky;
}

/// The value of an environment variable; one that is empty counts as not set.
static const char *fromEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

/// Reads a number, if the variable is set; false if it is no number in this range.
template <class T> static bool fromEnvironment(const char *name, T least, T most, T &number) {
  const char *text = fromEnvironment(name);
  if (!text)
    return true;
  const char *end = text + std::strlen(text);
  T value = 0;
  auto [stopped, error] = std::from_chars(text, end, value);
  if (error == std::errc() && stopped == end && value >= least && value <= most) {
    number = value;
    return true;
  }
  failWith(CUDA_ERROR_INVALID_VALUE, std::string(name) + " is '" + text +
                                         "', expected a number from " + std::to_string(least) +
                                         " to " + std::to_string(most));
  return false;
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
  const char *wanted = fromEnvironment("PLANEMU_HOST_ISA");
  const InstructionSet *chosen = nullptr;
  bool named = false;
  std::string run;
  for (const Choice &choice : choices) {
    bool isWanted = wanted && std::strcmp(wanted, choice.set->name) == 0;
    named |= isWanted;
    if (!choice.runs)
      continue;
    run += (run.empty() ? "" : ", ") + std::string(choice.set->name);
    if (!wanted || isWanted)
      chosen = choice.set;
  }
  if (!chosen)
    failWith(CUDA_ERROR_NOT_INITIALIZED,
             "PLANEMU_HOST_ISA is '" + std::string(wanted) + "', " +
                 (named ? "which this host does not run" : "which is no instruction set") +
                 "; possible here are " + run);
  return chosen;
}

/// How PLANEMU_JIT says to use the JIT compiler, if it is set; false if that makes no sense.
static bool readJitMode(unsigned &mode, bool &isSet) {
  const char *text = fromEnvironment("PLANEMU_JIT");
  isSet = text;
  static constexpr struct {
    std::string_view name;
    unsigned value;
  } Modes[] = {{"0", PLANEMU_JIT_OFF}, {"1", PLANEMU_JIT_HOT}, {"always", PLANEMU_JIT_ALWAYS}};
  for (const auto &[name, value] : Modes)
    if (text && name == text) {
      mode = value;
      return true;
    }
  if (text)
    failWith(CUDA_ERROR_INVALID_VALUE,
             "PLANEMU_JIT is '" + std::string(text) + "', expected 0, 1 or always");
  return !text;
}

CUresult Driver::initialize() {
  if (model)
    return CUDA_SUCCESS;
  const char *target = fromEnvironment("PLANEMU_TARGET");
  std::string key = target ? target : chosenTarget.empty() ? "gb10" : chosenTarget;
  const DeviceModel *found = findDeviceModel(key);
  if (!found)
    return failWith(CUDA_ERROR_NO_DEVICE,
                    "PLANEMU_TARGET is '" + key + "', known are " + knownDeviceModels());
  unsigned threads = 0;
  std::uint64_t steps = 0;
  if (!fromEnvironment("PLANEMU_THREADS", 1u, 1024u, threads) ||
      !fromEnvironment("PLANEMU_MAX_STEPS", std::uint64_t(1), ~std::uint64_t(0), steps))
    return CUDA_ERROR_INVALID_VALUE;
  const InstructionSet *set = chooseInstructions();
  if (!set)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (const char *list = fromEnvironment("PLANEMU_CHECKS"))
    if (CUresult result = setChecks(list); result != CUDA_SUCCESS)
      return result;
  if (threads)
    pool.setThreads(threads);
  if (steps) {
    maxSteps = steps;
    maxStepsFromEnvironment = true;
  }
  unsigned mode = jit;
  bool jitIsSet;
  if (!readJitMode(mode, jitIsSet))
    return CUDA_ERROR_INVALID_VALUE;
  instructions = set;
  PLANEMU_TRY(setJit(mode));
  jitFromEnvironment = jitIsSet;
  model = found;
  return CUDA_SUCCESS;
}

// --- Exported ---------------------------------------------------------------

PLANEMU_EXPORT cuInit(unsigned flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  CUresult result = driver.initialize();
  // Only the environment can be wrong here, and most programs do not ask for our message.
  if (result != CUDA_SUCCESS)
    std::fprintf(stderr, "planemu: %s\n", lastMessage().c_str());
  return result;
}

PLANEMU_EXPORT cuDriverGetVersion(int *version) {
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = DriverVersion;
  return CUDA_SUCCESS;
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

/// For functions that answer something about device 0.
#define CHECK_DEVICE(Good)                                                                         \
  PLANEMU_ENTER(false);                                                                            \
  if (!(Good))                                                                                     \
    return CUDA_ERROR_INVALID_VALUE;                                                               \
  if (device != 0)                                                                                 \
  return CUDA_ERROR_INVALID_DEVICE

PLANEMU_EXPORT cuDeviceGetName(char *name, int length, CUdevice device) {
  CHECK_DEVICE(name && length > 0);
  std::snprintf(name, static_cast<std::size_t>(length), "%s", driver.model->name);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  CHECK_DEVICE(uuid);
  // Tells emulated devices apart, nothing else.
  std::memset(uuid->bytes, 0, sizeof(uuid->bytes));
  std::strncpy(uuid->bytes, "planemu", sizeof(uuid->bytes));
  std::snprintf(uuid->bytes + 8, 8, "%s", driver.model->key);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

PLANEMU_EXPORT cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice device) {
  CHECK_DEVICE(bytes);
  *bytes = driver.model->memory;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  CHECK_DEVICE(value);
  if (!deviceAttribute(*driver.model, attribute, *value))
    return failWith(CUDA_ERROR_INVALID_VALUE,
                    "device attribute " + std::to_string(attribute) + " is not known");
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CHECK_DEVICE(major && minor);
  *major = driver.model->sm / 10;
  *minor = driver.model->sm % 10;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetProperties(CUdevprop *properties, CUdevice device) {
  CHECK_DEVICE(properties);
  auto get = [&](int number) {
    int value = 0;
    deviceAttribute(*driver.model, number, value);
    return value;
  };
  enum : int { // the attributes' numbers, to say which is which
#define PLANEMU_ATTRIBUTE(Name, Number, Value) Name = Number,
#include "runtime/emulator/driver/DeviceAttributes.def"
  };
  *properties = {get(MAX_THREADS_PER_BLOCK),
                 {get(MAX_BLOCK_DIM_X), get(MAX_BLOCK_DIM_Y), get(MAX_BLOCK_DIM_Z)},
                 {get(MAX_GRID_DIM_X), get(MAX_GRID_DIM_Y), get(MAX_GRID_DIM_Z)},
                 get(MAX_SHARED_MEMORY_PER_BLOCK),
                 get(TOTAL_CONSTANT_MEMORY),
                 get(WARP_SIZE),
                 get(MAX_PITCH),
                 get(MAX_REGISTERS_PER_BLOCK),
                 get(CLOCK_RATE),
                 get(TEXTURE_ALIGNMENT)};
  return CUDA_SUCCESS;
}

static constexpr char BusId[] = "0000:01:00.0"; // as in DeviceAttributes.def

PLANEMU_EXPORT cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  CHECK_DEVICE(id && length > 0);
  std::snprintf(id, static_cast<std::size_t>(length), "%s", BusId);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
  PLANEMU_ENTER(false);
  if (!device || !id)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  bool read = std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4 ||
              std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) == 3;
  if (!read) {
    domain = 0;
    read = std::sscanf(id, "%x:%x.%x", &bus, &slot, &function) == 3;
  }
  if (!read)
    return CUDA_ERROR_INVALID_VALUE;
  if (domain != 0 || bus != 1 || slot != 0 || function != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

// A device is no peer of itself, and there is no other.

PLANEMU_EXPORT cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  CHECK_DEVICE(can);
  if (peer != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  *can = 0;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice device,
                                       CUdevice peer) {
  CHECK_DEVICE(value && attribute >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
               attribute <= CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED);
  // Equal devices are not a valid pair.
  (void)peer;
  return CUDA_ERROR_INVALID_DEVICE;
}
