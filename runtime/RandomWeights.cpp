//===- RandomWeights.cpp - weights that need next to no memory -------------===//
//
// One physical block a kind (lib/Bundle/RandomWeights.h), mapped over every operand of that kind.
// The calls are those of the driver's virtual memory management, the same on a GPU and on the
// emulator.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/RandomWeights.h"
#include "runtime/Programs.h"

#include <algorithm>

using namespace planc;
using namespace planrt;
using namespace cudaabi;

/// Larger than the caches of any GPU, so that a stream of aliased weights is still one from memory.
static constexpr uint64_t maxBlockBytes = uint64_t(256) << 20;

static uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

static CUmemAllocationProp propertiesFor(const Device &device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal()};
  return properties;
}

//===----------------------------------------------------------------------===//
// AliasedMemory
//===----------------------------------------------------------------------===//

AliasedMemory &AliasedMemory::operator=(AliasedMemory &&other) noexcept {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(reserved, other.reserved);
  std::swap(mapped, other.mapped);
  std::swap(step, other.step);
  return *this;
}

AliasedMemory::~AliasedMemory() {
  if (!device)
    return;
  Device::Scope scope(*device);
  // What was mapped in one call is unmapped in one call.
  for (uint64_t done = 0; done < mapped; done += step)
    device->driver()->cuMemUnmap(start + done, std::min(step, mapped - done));
  if (start)
    device->driver()->cuMemAddressFree(start, reserved);
}

Status AliasedMemory::map(uint64_t bytes, CUmemGenericAllocationHandle block, uint64_t blockBytes) {
  const Driver &api = device->driver();
  step = blockBytes;
  for (uint64_t done = 0; done < bytes; done += blockBytes) {
    uint64_t count = std::min(blockBytes, bytes - done);
    if (Status status =
            device->check(api->cuMemMap(start + done, count, 0, block, 0), "cannot map memory");
        !status.ok())
      return status;
    mapped = done + count;
  }
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal()},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return device->check(api->cuMemSetAccess(start, bytes, &access, 1), "cannot access memory");
}

Result<AliasedMemory> AliasedMemory::create(DevicePtr device, uint64_t bytes,
                                            CUmemGenericAllocationHandle block, uint64_t blockBytes,
                                            uint64_t granularity) {
  AliasedMemory memory;
  memory.device = device;
  memory.reserved = alignUp(bytes, granularity);
  CUresult result = device->driver()->cuMemAddressReserve(&memory.start, memory.reserved, 0, 0, 0);
  if (Status status = device->check(result, "cannot reserve addresses"); !status.ok())
    return status.takeError();
  if (Status status = memory.map(memory.reserved, block, blockBytes); !status.ok())
    return status.takeError();
  return memory;
}

//===----------------------------------------------------------------------===//
// Blocks of random content
//===----------------------------------------------------------------------===//

namespace {
/// The physical memory of one kind. The mappings keep it alive after the handle is released.
class Block {
public:
  Block(DevicePtr device, const bundle::RandomKind &kind) : device(std::move(device)), kind(kind) {}
  ~Block() {
    if (handle)
      device->driver()->cuMemRelease(handle);
  }

  /// Creates `bytes` of memory and fills them, through a mapping of its own.
  Status create(uint64_t size, uint64_t granularity, uint64_t seed) {
    const Driver &api = device->driver();
    bytes = alignUp(size, granularity);
    CUmemAllocationProp properties = propertiesFor(*device);
    std::string who = fmt::format("cannot make {} bytes of random {}", bytes, kind.text());
    CUresult result = api->cuMemCreate(&handle, bytes, &properties, 0);
    if (Status status = device->check(result, who); !status.ok())
      return status;
    Result<AliasedMemory> whole = AliasedMemory::create(device, bytes, handle, bytes, granularity);
    if (!whole.ok())
      return whole.takeError();
    Bytes period(std::min(bytes, bundle::randomPeriod));
    bundle::fillRandom(kind, seed, period);
    for (uint64_t done = 0; done < bytes; done += period.size()) {
      uint64_t count = std::min<uint64_t>(period.size(), bytes - done);
      result = api->cuMemcpyHtoD_v2(whole->address() + done, period.data(), count);
      if (Status status = device->check(result, who); !status.ok())
        return status;
    }
    return {};
  }

  DevicePtr device;
  bundle::RandomKind kind;
  CUmemGenericAllocationHandle handle = 0;
  uint64_t bytes = 0;
};
} // namespace

Status Weights::fill(uint64_t seed, const Progress &progress) {
  Device::Scope scope(*home);
  CUmemAllocationProp properties = propertiesFor(*home);
  size_t granularity = 0;
  CUresult result = home->driver()->cuMemGetAllocationGranularity(&granularity, &properties,
                                                                  CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (Status status = home->check(result, "cannot map memory"); !status.ok())
    return status;

  // A block is as large as the largest operand of its kind, up to the limit.
  std::map<bundle::RandomKind, uint64_t> sizes;
  for (const auto &[name, operand] : operands)
    for (bool scales : {false, true}) {
      uint64_t bytes = scales ? operand.weight->scale_bytes : operand.weight->bytes;
      if (bytes && !operand.weight->host) {
        uint64_t &size = sizes[bundle::randomKind(*operand.weight, scales)];
        size = std::max(size, std::min(bytes, maxBlockBytes));
      }
    }
  uint64_t done = 0, total = 0;
  for (const auto &[kind, size] : sizes)
    total += size;
  if (Status status = checkMemory(*home, total, "the random weights take"); !status.ok())
    return status;
  if (Status status = report(progress, 0, total); !status.ok())
    return status;
  std::map<bundle::RandomKind, Block> blocks;
  for (const auto &[kind, size] : sizes) {
    Block &block = blocks.try_emplace(kind, home, kind).first->second;
    if (Status status = block.create(size, granularity, seed); !status.ok())
      return status;
    if (Status status = report(progress, done += size, total); !status.ok())
      return status;
  }
  for (auto &[name, operand] : operands)
    for (bool scales : {false, true}) {
      uint64_t bytes = scales ? operand.weight->scale_bytes : operand.weight->bytes;
      bundle::RandomKind kind = bundle::randomKind(*operand.weight, scales);
      if (bytes == 0)
        continue;
      if (operand.weight->host) {
        auto host = std::make_shared<Bytes>(std::min(bytes, bundle::randomPeriod));
        bundle::fillRandom(kind, seed, *host);
        operand.host = host;
        continue;
      }
      const Block &block = blocks.at(kind);
      Result<AliasedMemory> mapped =
          AliasedMemory::create(home, bytes, block.handle, block.bytes, granularity);
      if (!mapped.ok())
        return mapped.takeError();
      (scales ? operand.scales : operand.data) = mapped->address();
      home->driver().nameRange(mapped->address(), bytes, describeOperand(name, scales));
      aliases.push_back(std::move(*mapped));
    }
  return {};
}

Result<WeightsPtr> Weights::random(BundlePtr bundle, DevicePtr device, uint64_t seed,
                                   const Progress &progress) {
  std::shared_ptr<Weights> weights(new Weights(std::move(bundle), std::move(device)));
  if (Status status = weights->checkDevice(); !status.ok())
    return status.takeError();
  if (Status status = weights->fill(seed, progress); !status.ok())
    return status.takeError();
  return WeightsPtr(weights);
}
