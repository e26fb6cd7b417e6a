//===- Device.h - a device and its memory ----------------------------------===//
//
// The primary context of one GPU (or of the emulator), and the owners of what is allocated in it.
// Everything that touches the device does so inside a `Device::Scope`, which makes the context
// current for the calling thread; so any thread may use any device.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_DEVICE_H
#define PLANRT_DEVICE_H

#include "lib/Support/File.h"
#include "runtime/Driver.h"

#include <atomic>
#include <functional>

namespace planrt {

using cudaabi::CUdeviceptr;
using cudaabi::CUresult;
using DriverPtr = std::shared_ptr<const Driver>;
/// Takes a line about what has been chosen; may be null.
using Log = std::function<void(const std::string &line)>;

class Device {
public:
  /// `name` is "emulator", "cuda" or "cuda:N"; a GPU takes no settings but threads, which it ignores.
  static planc::Result<std::shared_ptr<const Device>>
  open(const std::string &name, const EmulatorSettings &settings = {}, Log listener = nullptr);
  ~Device();

  /// Makes the context current, and puts back at the end which one was.
  class Scope {
  public:
    explicit Scope(const Device &device);
    ~Scope();

  private:
    const Device &device;
    cudaabi::CUcontext before = nullptr;
  };

  const Driver &driver() const { return *library; }
  const std::string &name() const { return requested; }
  /// What the driver calls the device.
  const std::string &product() const { return productName; }
  /// 10 * major + minor of the compute capability: 121 for sm_121.
  unsigned sm() const { return computeCapability; }
  int ordinal() const { return handle; }

  /// What the emulator was asked for.
  const EmulatorSettings &settings() const { return asked; }

  /// Success, or an error of the call `what`; remembers a lost context.
  planc::Status check(CUresult result, std::string_view what) const;
  /// The error of every call after the context was lost.
  planc::Status alive() const;

  template <class... Args> void log(fmt::format_string<Args...> text, Args &&...args) const {
    if (listener)
      listener(fmt::format(text, std::forward<Args>(args)...));
  }

private:
  explicit Device(DriverPtr library) : library(std::move(library)) {}
  planc::Status init(int ordinal);

  DriverPtr library;
  std::string requested;
  std::string productName;
  EmulatorSettings asked;
  Log listener;
  unsigned computeCapability = 0;
  cudaabi::CUdevice handle = 0;
  cudaabi::CUcontext context = nullptr;
  mutable std::atomic<bool> lost = false;
};

using DevicePtr = std::shared_ptr<const Device>;

/// An allocation in device memory. Calls other than create() need a Scope.
class DeviceMemory {
public:
  DeviceMemory() = default;
  static planc::Result<DeviceMemory> create(DevicePtr device, uint64_t bytes,
                                            const std::string &what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  CUdeviceptr address() const { return start; }
  uint64_t size() const { return bytes; }

private:
  DevicePtr device;
  CUdeviceptr start = 0;
  uint64_t bytes = 0;
};

/// Page-locked host memory, which the device copies from and to without a detour.
class PinnedMemory {
public:
  PinnedMemory() = default;
  static planc::Result<PinnedMemory> create(DevicePtr device, uint64_t bytes,
                                            const std::string &what);
  PinnedMemory(PinnedMemory &&other) noexcept { *this = std::move(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  std::span<std::byte> bytes() const { return {start, size}; }

private:
  DevicePtr device;
  std::byte *start = nullptr;
  uint64_t size = 0;
};

} // namespace planrt

#endif // PLANRT_DEVICE_H
