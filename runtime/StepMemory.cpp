//===- StepMemory.cpp - where the values of a step are ----------------------===//
//
// See StepMemory.h. The emulator gets a name for every range, for its messages.
//
//===----------------------------------------------------------------------===//
#include "runtime/StepMemory.h"

#include <algorithm>

using namespace planc;
using namespace planrt;

/// Of the parts of the block: the largest that a kernel may want.
static constexpr uint64_t alignment = 256;

static uint64_t alignUp(uint64_t value) { return (value + alignment - 1) / alignment * alignment; }

static std::string edgeName(const bundle::Buffer &buffer) {
  return fmt::format("edge \"{}\"", buffer.edge);
}

static std::string inputName(const bundle::Input &input) {
  return fmt::format("step input \"{}\"", input.name);
}

Result<std::unique_ptr<StepMemory>> StepMemory::create(DevicePtr device,
                                                       const bundle::Program &program,
                                                       const Kernels &kernels, Layout layout) {
  std::unique_ptr<StepMemory> memory(new StepMemory(std::move(device), program));
  Device::Scope scope(*memory->device);
  if (Status status = memory->placeHost(); !status.ok())
    return status.takeError();
  if (Status status = layout == Layout::Apart ? memory->placeApart(kernels)
                                              : memory->placeTogether(layout == Layout::Unshared);
      !status.ok())
    return status.takeError();
  memory->clearCounters();
  return memory;
}

const StepMemory::Value *StepMemory::edge(std::string_view name) const {
  auto at = edges.find(name);
  return at == edges.end() ? nullptr : &at->second;
}

const StepMemory::Value *StepMemory::input(std::string_view name) const {
  auto at = inputs.find(name);
  return at == inputs.end() ? nullptr : &at->second;
}

/// The pinned memory of both directions, and its parts.
Status StepMemory::placeHost() {
  std::vector<std::pair<std::span<std::byte> Value::*, Value *>> parts;
  uint64_t blockBytes = 0, resultBytes = 0;
  for (const bundle::Input &input : plan.inputs) {
    Value &value = inputs[input.name];
    value.bytes = bundle::byteSize(input.dtype);
    for (int64_t extent : input.shape)
      value.bytes *= uint64_t(extent);
    parts.emplace_back(&Value::block, &value);
  }
  for (const bundle::Buffer &buffer : plan.buffers) {
    Value &value = edges[buffer.edge];
    value.bytes = buffer.bytes;
    if (buffer.host_writes)
      parts.emplace_back(&Value::block, &value);
    if (buffer.host_reads)
      parts.emplace_back(&Value::readBack, &value);
  }
  for (auto &[member, value] : parts)
    (member == &Value::block ? blockBytes : resultBytes) += alignUp(value->bytes);
  for (auto [memory, bytes, what] : {std::tuple(&block, blockBytes, "the step's inputs"),
                                     std::tuple(&results, resultBytes, "the step's results")}) {
    Result<PinnedMemory> created = PinnedMemory::create(device, bytes, what);
    if (!created.ok())
      return created.takeError();
    *memory = std::move(*created);
    std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte(0));
  }
  uint64_t blockEnd = 0, resultEnd = 0;
  for (auto &[member, value] : parts) {
    bool inBlock = member == &Value::block;
    uint64_t &end = inBlock ? blockEnd : resultEnd;
    value->*member = (inBlock ? block : results).bytes().subspan(end, value->bytes);
    end += alignUp(value->bytes);
  }
  return {};
}

Result<CUdeviceptr> StepMemory::allocate(uint64_t bytes, const std::string &what) {
  Result<DeviceMemory> created = DeviceMemory::create(device, bytes, what);
  if (!created.ok())
    return created.takeError();
  owned.push_back(std::move(*created));
  return owned.back().address();
}

Result<CUdeviceptr> StepMemory::allocateCounters(uint64_t words, const std::string &what) {
  Result<CUdeviceptr> range = allocate(words * 4, what);
  if (range.ok())
    counterRanges.emplace_back(*range, words * 4);
  workingBytes += words * 4;
  return range;
}

Status StepMemory::placeTogether(bool unshared) {
  const bundle::Workspace &sizes = plan.workspace;
  edgeBytes = unshared ? sizes.unshared_bytes : sizes.bytes;
  workingBytes = sizes.scratch_bytes;
  Result<CUdeviceptr> workspace = allocate(edgeBytes, "the workspace");
  Result<CUdeviceptr> scratch = allocate(sizes.scratch_bytes, "scratch");
  Result<CUdeviceptr> counters = allocateCounters(sizes.counters, "counters");
  Result<CUdeviceptr> onDevice = allocate(block.bytes().size(), "the step's inputs");
  for (Result<CUdeviceptr> *allocated : {&workspace, &scratch, &counters, &onDevice})
    if (!allocated->ok())
      return allocated->takeError();
  for (Working &launch : working)
    launch = {*scratch, *counters};
  if (*onDevice)
    blockCopies.push_back({*onDevice, block.bytes()});

  const Driver &api = device->driver();
  auto inBlock = [&](Value &value, const std::string &name) {
    value.address = *onDevice + uint64_t(value.block.data() - block.bytes().data());
    api.nameRange(value.address, value.bytes, name);
  };
  for (const bundle::Input &input : plan.inputs)
    inBlock(inputs[input.name], inputName(input));
  for (const bundle::Buffer &buffer : plan.buffers) {
    Value &value = edges[buffer.edge];
    if (buffer.host_writes) {
      inBlock(value, edgeName(buffer));
      continue;
    }
    value.address = *workspace + *(unshared ? buffer.unshared_offset : buffer.offset);
    if (unshared) // else the range belongs to several
      api.nameRange(value.address, value.bytes, edgeName(buffer));
  }
  return {};
}

Status StepMemory::placeApart(const Kernels &kernels) {
  auto place = [&](Value &value, const std::string &name) -> Status {
    Result<CUdeviceptr> address = allocate(value.bytes, name);
    if (!address.ok())
      return address.takeError();
    value.address = *address;
    if (!value.block.empty())
      blockCopies.push_back({value.address, value.block});
    return {};
  };
  for (const bundle::Input &input : plan.inputs)
    if (Status status = place(inputs[input.name], inputName(input)); !status.ok())
      return status;
  for (const bundle::Buffer &buffer : plan.buffers) {
    if (Status status = place(edges[buffer.edge], edgeName(buffer)); !status.ok())
      return status;
    if (!buffer.host_writes)
      edgeBytes += buffer.bytes;
  }
  for (size_t i = 0; i < working.size(); ++i) {
    const bundle::Launch &launch = plan.launch_list[i];
    for (const bundle::Arg &arg : launch.args) {
      const bundle::KernelTarget &target = *kernels.find(*launch.kernel).target;
      bool isScratch = arg.kind == bundle::ArgKind::scratch;
      if (!isScratch && arg.kind != bundle::ArgKind::counters)
        continue;
      std::string name =
          fmt::format("{} of group {}", isScratch ? "scratch" : "counters", launch.group);
      Result<CUdeviceptr> address = isScratch ? allocate(target.scratch_bytes, name)
                                              : allocateCounters(target.counters, name);
      if (!address.ok())
        return address.takeError();
      (isScratch ? working[i].scratch : working[i].counters) = *address;
      workingBytes += isScratch ? target.scratch_bytes : 0;
    }
  }
  return {};
}

void StepMemory::clearCounters() {
  if (!device->alive().ok())
    return;
  for (auto [address, bytes] : counterRanges)
    if (bytes)
      device->driver()->cuMemsetD8_v2(address, 0, bytes);
}
