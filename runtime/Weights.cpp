//===- Weights.cpp - a bundle's weights on a device ------------------------===//
//
// Binding a checkpoint: look everything up, refuse or allocate, then upload tensor by tensor
// through one pinned buffer. After that no page of a file is needed.
//
//===----------------------------------------------------------------------===//
#include "runtime/Weights.h"

#include "lib/Bundle/Checkpoint.h"
#include "runtime/Programs.h"

#include <algorithm>
#include <cstring>

using namespace planc;
using namespace planrt;
using namespace cudaabi;

/// Pinned memory for the upload: large enough to hide the calls, small enough not to matter.
static constexpr uint64_t stagingBytes = uint64_t(16) << 20;

Weights::Weights(BundlePtr bundle, DevicePtr device)
    : owner(std::move(bundle)), home(std::move(device)) {
  for (const bundle::Weight &weight : owner->manifest().weights) {
    operands[weight.name].weight = &weight;
    (weight.host ? onHost : onDevice) += weight.bytes + weight.scale_bytes;
  }
}

std::string Weights::describeOperand(const std::string &name, bool scales) {
  return fmt::format("weight \"{}\"{}", name, scales ? " scales" : "");
}

CUdeviceptr Weights::address(const std::string &name, bool scales) const {
  const Operand &operand = operands.find(name)->second;
  return scales ? operand.scales : operand.data;
}

Status Weights::read(const std::string &name, bool scales, uint64_t offset,
                     std::span<std::byte> out) const {
  auto at = operands.find(name);
  if (at == operands.end())
    return makeError(ErrorKind::Usage, "there is no weight \"{:.200}\"", name);
  const Operand &operand = at->second;
  uint64_t size = scales ? operand.weight->scale_bytes : operand.weight->bytes;
  if (offset > size || out.size() > size - offset)
    return makeError(ErrorKind::Usage, "weight \"{}\" has {} bytes, not {} at offset {}", name,
                     size, out.size(), offset);
  if (operand.host) {
    // Copy run by run: random content repeats.
    const Bytes &host = *operand.host;
    for (uint64_t done = 0; done < out.size();) {
      uint64_t from = (offset + done) % host.size();
      uint64_t count = std::min<uint64_t>(out.size() - done, host.size() - from);
      std::memcpy(out.data() + done, host.data() + from, count);
      done += count;
    }
    return {};
  }
  if (Status status = home->alive(); !status.ok())
    return status;
  Device::Scope scope(*home);
  CUdeviceptr from = (scales ? operand.scales : operand.data) + offset;
  return home->check(home->driver()->cuMemcpyDtoH_v2(out.data(), from, out.size()),
                     fmt::format("cannot read weight \"{}\"", name));
}

//===----------------------------------------------------------------------===//
// From a checkpoint
//===----------------------------------------------------------------------===//

/// Takes what placeWeights reads: to the device through pinned memory, or into the host's copy.
class Weights::Uploader : public bundle::OperandSink {
public:
  Uploader(Weights &weights, PinnedMemory &staging, const Progress &progress)
      : weights(weights), pinned(staging), progress(progress),
        total(weights.onDevice + weights.onHost) {}

  std::span<std::byte> staging() override { return pinned.bytes(); }

  Status put(const bundle::Weight &weight, bool scales, uint64_t offset, uint64_t bytes) override {
    if (weight.host) {
      std::memcpy(hosts.at(weight.name)->data() + offset, pinned.bytes().data(), bytes);
    } else {
      const Device &device = *weights.home;
      CUdeviceptr to = weights.address(weight.name, scales) + offset;
      CUresult result = device.driver()->cuMemcpyHtoD_v2(to, pinned.bytes().data(), bytes);
      if (Status status =
              device.check(result, fmt::format("cannot upload weight \"{}\"", weight.name));
          !status.ok())
        return status;
    }
    done += bytes;
    return report(progress, done, total);
  }

  std::map<std::string, std::shared_ptr<Bytes>, std::less<>> hosts;

private:
  Weights &weights;
  PinnedMemory &pinned;
  const Progress &progress;
  uint64_t done = 0, total;
};

Status Weights::report(const Progress &progress, uint64_t done, uint64_t total) {
  if (!progress || progress(done, total))
    return {};
  return makeError(ErrorKind::Cancelled, "the upload was cancelled after {} of {} bytes", done,
                   total);
}

Status Weights::allocate() {
  for (auto &[name, operand] : operands) {
    if (operand.weight->host)
      continue;
    for (bool scales : {false, true}) {
      uint64_t bytes = scales ? operand.weight->scale_bytes : operand.weight->bytes;
      Result<DeviceMemory> allocated =
          DeviceMemory::create(home, bytes, describeOperand(name, scales));
      if (!allocated.ok())
        return allocated.takeError();
      (scales ? operand.scales : operand.data) = allocated->address();
      memory.push_back(std::move(*allocated));
    }
  }
  return {};
}

Status Weights::upload(const std::string &path, const Progress &progress) {
  const bundle::Manifest &manifest = owner->manifest();
  Result<bundle::Checkpoint> checkpoint = bundle::Checkpoint::open(path);
  if (!checkpoint.ok())
    return checkpoint.takeError();
  Result<size_t> unread = bundle::checkCheckpoint(manifest, *checkpoint);
  if (!unread.ok())
    return unread.takeError();
  unreadTensors = *unread;
  if (Status status = checkMemory(*home, onDevice, "the weights take"); !status.ok())
    return status;
  if (Status status = report(progress, 0, onDevice + onHost); !status.ok())
    return status;
  if (Status status = allocate(); !status.ok())
    return status;

  Result<PinnedMemory> staging = PinnedMemory::create(home, stagingBytes, "uploading weights");
  if (!staging.ok())
    return staging.takeError();
  Device::Scope scope(*home);
  Uploader uploader(*this, *staging, progress);
  for (auto &[name, operand] : operands)
    if (operand.weight->host) {
      auto host = std::make_shared<Bytes>(operand.weight->bytes);
      uploader.hosts[name] = host;
      operand.host = host;
    }
  return bundle::placeWeights(manifest, *checkpoint, uploader);
}

Status Weights::checkDevice() const {
  if (Status status = home->alive(); !status.ok())
    return status;
  for (const bundle::Program &program : owner->manifest().programs)
    if (Status status = checkImages(*owner, *home, program); !status.ok())
      return status;
  return {};
}

Result<WeightsPtr> Weights::open(BundlePtr bundle, DevicePtr device, const std::string &path,
                                 const Progress &progress) {
  std::shared_ptr<Weights> weights(new Weights(std::move(bundle), std::move(device)));
  if (Status status = weights->checkDevice(); !status.ok())
    return status.takeError();
  if (Status status = weights->upload(path, progress); !status.ok())
    return status.takeError();
  return WeightsPtr(weights);
}
