//===- Device.h - the CUDA driver API, as much as one kernel needs ---------===//
//
// Private to lib/Verify, and open to the kernel tests. Loads libplanemu or libcuda and runs one
// kernel at a time. The first call that fails is remembered (`failure`), and calls after it do
// nothing: who runs a kernel asks once, at the end.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_DEVICE_H
#define PLANC_LIB_VERIFY_DEVICE_H

#include "lib/Support/Error.h"
#include "runtime/CudaAbi.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace planc::verify {

/// Where libplanemu lies beside this program; else its name alone, for the loader's path.
std::string emulatorPath();

class Device {
public:
  /// `library`: "emulator", "cuda" or a path. `arch`: what the emulator is to be, "sm_121". One
  /// emulator is there in a process, so the first arch is the only one.
  static Result<std::unique_ptr<Device>> open(const std::string &library, const std::string &arch);

  enum class Content { Zero, Ones, Unwritten };

  /// Memory on the device, freed with the object.
  class Buffer {
  public:
    /// Ones: every bit is set, which is NaN in every format. Unwritten: for the emulator's init
    /// check, who reads it is at fault.
    Buffer(Device &device, size_t bytes, Content content, const std::string &name);
    Buffer(Device &device, std::span<const std::byte> content, const std::string &name);
    Buffer(Buffer &&other) noexcept;
    ~Buffer();

    cudaabi::CUdeviceptr address() const { return pointer; }
    size_t size() const { return bytes; }
    std::vector<std::byte> download() const;

  private:
    Buffer(Device &device, size_t bytes, const std::string &name);

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

  // The emulator's; a GPU has none of them.
  /// All checks or none, for memory that is allocated from now on.
  void setChecks(bool on);
  void setScheduleSeed(uint64_t seed);
  void setThreads(unsigned threads);
  /// Instructions of a warp after which a launch is taken to be endless; 0 for the default.
  void setMaxSteps(uint64_t steps);
  /// Names the next launch in findings.
  void label(const std::string &text);
  /// What the checks have found since the last call.
  std::vector<std::string> takeFindings();

  /// After a fault: a new context. No buffer may be left.
  void reset();
  /// The first call that failed; empty if none has.
  const std::string &failure() const { return failed; }

private:
  struct Functions; // all of the driver's

  Device() = default;
  std::string text(cudaabi::CUresult result) const;
  /// False, and remembered, if the call failed.
  bool check(cudaabi::CUresult result, const char *what);

  std::shared_ptr<Functions> cu;
  std::string failed;
};

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_DEVICE_H
