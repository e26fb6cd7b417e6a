//===- Device.h - the CUDA driver API, as much as a kernel test needs ------===//
//
// Loads libplanemu (beside the executable, in ../lib) or libcuda and runs one kernel at a time.
// Every failure ends the process with exit code 3: a test has nothing to do without a device.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_TEST_KERNELS_DEVICE_H
#define PLANC_TEST_KERNELS_DEVICE_H

#include "runtime/CudaAbi.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kerneltest {

class Device {
public:
  /// `library`: "emulator", "cuda" or a path. `arch`: what the emulator is to be, e.g. "sm_121".
  Device(const std::string &library, const std::string &arch);

  /// Memory on the device, freed with the object.
  class Buffer {
  public:
    Buffer(Device &device, size_t bytes, unsigned char fill);
    Buffer(Device &device, std::span<const std::byte> content);
    Buffer(Buffer &&other) noexcept;
    ~Buffer();

    cudaabi::CUdeviceptr address() const { return pointer; }
    size_t size() const { return bytes; }
    std::vector<std::byte> download() const;
    void upload(std::span<const std::byte> content) const;

  private:
    Device *device;
    cudaabi::CUdeviceptr pointer = 0;
    size_t bytes;
  };

  /// Loads PTX text; the function lives as long as the device. Empty `error` on success.
  cudaabi::CUfunction load(const std::string &ptx, const std::string &entry, std::string &error);

  /// Starts a kernel and waits for it. Returns what went wrong, empty if nothing.
  std::string launch(cudaabi::CUfunction function, std::array<uint32_t, 3> grid,
                     std::array<uint32_t, 3> block, uint32_t sharedBytes,
                     std::span<const cudaabi::CUdeviceptr> parameters);

private:
  friend class Buffer;
  struct Functions; // all of the driver's

  std::string text(cudaabi::CUresult result) const;
  void check(cudaabi::CUresult result, const char *what) const;

  std::shared_ptr<Functions> cu;
};

} // namespace kerneltest

#endif // PLANC_TEST_KERNELS_DEVICE_H
