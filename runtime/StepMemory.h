//===- StepMemory.h - where the values of a step are ------------------------===//
//
// Three layouts. Shared: stored edges lie in one workspace and take turns, as the bundle has placed
// them. Unshared: in one workspace too, but no two have a byte in common. Apart: every edge, step
// input, scratch and counter is an allocation of its own, so that the emulator's checks see every
// overrun of one and every read of what this step has not written.
//
// The *block* is what every step copies to the device: step inputs, and edges that the host writes.
// In pinned memory it is one range; on the device it is one too, unless things are apart.
//
//===----------------------------------------------------------------------===//
#ifndef PLANRT_STEPMEMORY_H
#define PLANRT_STEPMEMORY_H

#include "runtime/Kernels.h"

namespace planrt {

class StepMemory {
public:
  enum class Layout { Shared, Unshared, Apart };

  static planc::Result<std::unique_ptr<StepMemory>> create(DevicePtr device,
                                                           const planc::bundle::Program &program,
                                                           const Kernels &kernels, Layout layout);

  /// A stored edge or a step input.
  struct Value {
    CUdeviceptr address = 0;
    uint64_t bytes = 0;
    std::span<std::byte> block;    // its part of the block, if it is one
    std::span<std::byte> readBack; // where the host reads it, if it does
  };
  /// Null if there is none of that name.
  const Value *edge(std::string_view name) const;
  const Value *input(std::string_view name) const;

  /// Of an entry of the launch list that takes them.
  CUdeviceptr scratch(size_t launch) const { return working[launch].scratch; }
  CUdeviceptr counters(size_t launch) const { return working[launch].counters; }

  /// What to copy at the start of a step.
  struct Copy {
    CUdeviceptr to = 0;
    std::span<const std::byte> from;
  };
  std::span<const Copy> copies() const { return blockCopies; }

  /// Counters start at zero, and kernels leave them so; a step that failed may not have.
  void clearCounters();

  uint64_t workspaceBytes() const { return edgeBytes; }
  uint64_t scratchBytes() const { return workingBytes; }

private:
  /// What a launch works with and nobody reads afterwards.
  struct Working {
    CUdeviceptr scratch = 0, counters = 0;
  };

  StepMemory(DevicePtr device, const planc::bundle::Program &program)
      : device(std::move(device)), plan(program), working(program.launch_list.size()) {}

  planc::Status placeHost();
  planc::Status placeTogether(bool unshared);
  planc::Status placeApart(const Kernels &kernels);
  /// An allocation that lives as long as this; address 0 for no bytes.
  planc::Result<CUdeviceptr> allocate(uint64_t bytes, const std::string &what);
  planc::Result<CUdeviceptr> allocateCounters(uint64_t words, const std::string &what);

  DevicePtr device;
  const planc::bundle::Program &plan;
  std::map<std::string, Value, std::less<>> edges, inputs;
  std::vector<Working> working; // by entry of the launch list
  std::vector<Copy> blockCopies;
  std::deque<DeviceMemory> owned;
  std::vector<std::pair<CUdeviceptr, uint64_t>> counterRanges; // and bytes
  PinnedMemory block, results;
  uint64_t edgeBytes = 0, workingBytes = 0;
};

} // namespace planrt

#endif // PLANRT_STEPMEMORY_H
