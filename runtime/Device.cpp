//===- Device.cpp - a device and its memory --------------------------------===//
//
// The primary context is shared with whoever else uses the device in this process; planrt retains
// it while a handle lives.
//
//===----------------------------------------------------------------------===//
#include "runtime/Device.h"

#include <charconv>

using namespace planc;
using namespace planrt;
using namespace cudaabi;

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

Result<std::shared_ptr<const Device>> Device::open(const std::string &name,
                                                   const EmulatorSettings &settings, Log listener) {
  int ordinal = 0;
  bool emulator = name == "emulator";
  if (!emulator && name != "cuda") {
    const char *digits = name.data() + 5, *end = name.data() + name.size();
    bool isNumbered = name.starts_with("cuda:") && digits != end && *digits != '-';
    std::from_chars_result read = {};
    if (isNumbered)
      read = std::from_chars(digits, end, ordinal);
    if (!isNumbered || read.ptr != end || read.ec != std::errc())
      return makeError(ErrorKind::Usage,
                       "there is no device \"{:.80}\", expected emulator, cuda or cuda:N", name);
  }
  EmulatorSettings none;
  if (!emulator && (settings.checks != none.checks || settings.counters != none.counters ||
                    settings.scheduleSeed != none.scheduleSeed || settings.target != none.target))
    return makeError(ErrorKind::Usage,
                     "checks, counters, a schedule seed and a target are the emulator's, device {} "
                     "has none of them",
                     name);
  constexpr uint32_t knownChecks = PLANEMU_CHECK_MEM | PLANEMU_CHECK_INIT | PLANEMU_CHECK_RACE |
                                   PLANEMU_CHECK_SYNC | PLANEMU_CHECK_READS;
  if (settings.checks & ~knownChecks)
    return makeError(ErrorKind::Usage, "checks {:#x} are unknown, known are {:#x}",
                     settings.checks & ~knownChecks, knownChecks);
  Result<DriverPtr> driver = emulator ? Driver::emulator() : Driver::cuda();
  if (!driver.ok())
    return driver.takeError();
  std::shared_ptr<Device> device(new Device(*driver));
  device->requested = name;
  device->asked = settings;
  device->listener = std::move(listener);
  if (emulator)
    if (Status status = (*driver)->configure(settings); !status.ok())
      return status.takeError();
  if (Status status = device->init(ordinal); !status.ok())
    return status.takeError();
  return DevicePtr(device);
}

Status Device::init(int ordinal) {
  const Driver &api = *library;
  std::string who = fmt::format("cannot use device {}", requested);
  int count = 0, major = 0, minor = 0;
  for (CUresult result : {api->cuInit(0), api->cuDeviceGetCount(&count)})
    if (result != CUDA_SUCCESS)
      return api.error(result, who);
  if (ordinal >= count)
    return makeError(ErrorKind::Environment, "{}: there are {} devices", who, count);
  if (CUresult result = api->cuDeviceGet(&handle, ordinal); result != CUDA_SUCCESS)
    return api.error(result, who);
  char text[256] = "";
  for (CUresult result :
       {api->cuDeviceGetName(text, sizeof text, handle),
        api->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle),
        api->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle),
        api->cuDevicePrimaryCtxRetain(&context, handle)})
    if (result != CUDA_SUCCESS)
      return api.error(result, who);
  productName = text;
  computeCapability = unsigned(10 * major + minor);
  log("device {}: {}, sm_{}", requested, productName, computeCapability);
  return {};
}

Device::~Device() {
  if (context)
    (*library)->cuDevicePrimaryCtxRelease_v2(handle);
}

Device::Scope::Scope(const Device &device) : device(device) {
  device.driver()->cuCtxGetCurrent(&before);
  if (before != device.context)
    device.driver()->cuCtxSetCurrent(device.context);
}

Device::Scope::~Scope() {
  if (before != device.context)
    device.driver()->cuCtxSetCurrent(before);
}

Status Device::check(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS)
    return {};
  if (Driver::losesContext(result))
    lost = true;
  return library->error(result, what);
}

Status Device::alive() const {
  if (!lost)
    return {};
  return makeError(ErrorKind::DeviceLost, "device {} was lost by an earlier failure", requested);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result<DeviceMemory> DeviceMemory::create(DevicePtr device, uint64_t bytes,
                                          const std::string &what) {
  DeviceMemory memory;
  if (bytes == 0)
    return memory;
  Device::Scope scope(*device);
  CUresult result = device->driver()->cuMemAlloc_v2(&memory.start, bytes);
  if (Status status =
          device->check(result, fmt::format("cannot allocate {} bytes for {}", bytes, what));
      !status.ok())
    return status.takeError();
  device->driver().nameRange(memory.start, bytes, what);
  memory.device = std::move(device);
  memory.bytes = bytes;
  return memory;
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (!device)
    return;
  Device::Scope scope(*device);
  device->driver()->cuMemFree_v2(start);
}

Result<PinnedMemory> PinnedMemory::create(DevicePtr device, uint64_t bytes,
                                          const std::string &what) {
  PinnedMemory memory;
  if (bytes == 0)
    return memory;
  Device::Scope scope(*device);
  void *pointer = nullptr;
  CUresult result = device->driver()->cuMemHostAlloc(&pointer, bytes, 0);
  if (Status status = device->check(
          result, fmt::format("cannot allocate {} bytes of host memory for {}", bytes, what));
      !status.ok())
    return status.takeError();
  memory.device = std::move(device);
  memory.start = static_cast<std::byte *>(pointer);
  memory.size = bytes;
  return memory;
}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(size, other.size);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (!device)
    return;
  Device::Scope scope(*device);
  device->driver()->cuMemFreeHost(start);
}
