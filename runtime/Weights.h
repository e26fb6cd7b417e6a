//===- Weights.h - a bundle's weights on a device --------------------------===//
//
// One allocation a weight (two with scales), filled from a checkpoint or at random. What only host
// ops read, the embedding table, stays in host memory.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_WEIGHTS_H
#define PLANRT_WEIGHTS_H

#include "lib/Bundle/Container.h"
#include "runtime/Device.h"

#include <deque>
#include <map>

namespace planrt {

using BundlePtr = std::shared_ptr<const planc::bundle::Bundle>;

/// An address range that maps one block of physical memory again and again.
class AliasedMemory {
public:
  AliasedMemory() = default;
  AliasedMemory(AliasedMemory &&other) noexcept { *this = std::move(other); }
  AliasedMemory &operator=(AliasedMemory &&other) noexcept;
  ~AliasedMemory();

  /// `block` is a handle of cuMemCreate of `blockBytes`. Needs a Scope.
  static planc::Result<AliasedMemory> create(DevicePtr device, uint64_t bytes,
                                             cudaabi::CUmemGenericAllocationHandle block,
                                             uint64_t blockBytes, uint64_t granularity);

  CUdeviceptr address() const { return start; }

private:
  planc::Status map(uint64_t bytes, cudaabi::CUmemGenericAllocationHandle block,
                    uint64_t blockBytes);

  DevicePtr device;
  CUdeviceptr start = 0;
  uint64_t reserved = 0;
  uint64_t mapped = 0;
  uint64_t step = 0;
};

/// Hears of every chunk that has been uploaded; false ends it. May be null.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

class Weights {
public:
  static planc::Result<std::shared_ptr<const Weights>>
  open(BundlePtr bundle, DevicePtr device, const std::string &path, const Progress &progress);
  static planc::Result<std::shared_ptr<const Weights>>
  random(BundlePtr bundle, DevicePtr device, uint64_t seed, const Progress &progress);

  const BundlePtr &bundle() const { return owner; }
  const DevicePtr &device() const { return home; }

  /// Device address of a weight's data or scales.
  CUdeviceptr address(const std::string &name, bool scales) const;
  /// Copies bytes of an operand to the host, from wherever it is.
  planc::Status read(const std::string &name, bool scales, uint64_t offset,
                     std::span<std::byte> out) const;

  uint64_t deviceBytes() const { return onDevice; }
  uint64_t hostBytes() const { return onHost; }
  uint64_t unread() const { return unreadTensors; }

  /// `weight "x"` or `weight "x" scales`: what its memory is called.
  static std::string describeOperand(const std::string &name, bool scales);

private:
  struct Operand {
    const planc::bundle::Weight *weight = nullptr;
    CUdeviceptr data = 0, scales = 0;
    /// For weights of the host; shorter than the operand where its content repeats.
    std::shared_ptr<const planc::Bytes> host;
  };
  class Uploader;

  Weights(BundlePtr bundle, DevicePtr device);
  /// Refuses a device that has no image of some program.
  planc::Status checkDevice() const;
  planc::Status allocate();
  planc::Status upload(const std::string &path, const Progress &progress);
  planc::Status fill(uint64_t seed, const Progress &progress);
  /// Asks the listener whether to go on.
  static planc::Status report(const Progress &progress, uint64_t done, uint64_t total);

  BundlePtr owner;
  DevicePtr home;
  std::map<std::string, Operand, std::less<>> operands;
  std::deque<DeviceMemory> memory;
  std::deque<AliasedMemory> aliases;
  uint64_t onDevice = 0, onHost = 0, unreadTensors = 0;
};

using WeightsPtr = std::shared_ptr<const Weights>;

} // namespace planrt

#endif // PLANRT_WEIGHTS_H
