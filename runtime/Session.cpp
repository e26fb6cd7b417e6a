//===- Session.cpp - sequences, their states and KV blocks ------------------===//
//
// Pools are not cleared: an empty sequence reads slot -1, which kernels take for zeros, and
// attention reads only what the sequence has written.
//
//===----------------------------------------------------------------------===//
#include "runtime/Session.h"

#include <algorithm>
#include <limits>

using namespace planc;
using namespace planrt;

Session::Session(WeightsPtr weights, const SessionOptions &options)
    : owner(std::move(weights)), options(options), states(options.sequences) {}

Result<std::shared_ptr<Session>> Session::open(WeightsPtr weights, const SessionOptions &options) {
  const bundle::Model &model = weights->bundle()->manifest().model;
  if (options.sequences == 0 || options.sequences > (1u << 20) || options.kvTokens < 0)
    return makeError(ErrorKind::Usage, "a session of {} sequences with {} tokens makes no sense",
                     options.sequences, options.kvTokens);
  int64_t perSequence = model.blocksPerSequence(), count;
  if (options.kvTokens == 0) {
    count = perSequence * options.sequences;
  } else {
    // Every sequence but one may leave its last block nearly empty.
    count = options.kvTokens / model.kv_block + (options.kvTokens % model.kv_block != 0) +
            options.sequences - 1;
    count = std::min(count, perSequence * options.sequences);
  }
  if (count > std::numeric_limits<int32_t>::max())
    return makeError(ErrorKind::Usage, "{} KV blocks are more than a block table can name", count);
  std::shared_ptr<Session> session(new Session(std::move(weights), options));
  if (Status status = session->allocate(count); !status.ok())
    return status.takeError();
  return session;
}

Status Session::allocate(int64_t count) {
  blockCount = count;
  for (int64_t block = count; block-- > 0;)
    freeBlocks.push_back(int32_t(block));
  for (const bundle::State &state : owner->bundle()->manifest().states) {
    bool paged = state.kind == "paged";
    uint64_t units = paged ? uint64_t(count) : states.size() * (options.inPlace ? 1 : 2), bytes;
    if (__builtin_mul_overflow(state.bytes, units, &bytes))
      return makeError(ErrorKind::Memory, "state \"{}\" of {} sequences fits into no memory",
                       state.name, states.size());
    Result<DeviceMemory> memory =
        DeviceMemory::create(owner->device(), bytes, fmt::format("state \"{}\"", state.name));
    if (!memory.ok())
      return memory.takeError();
    pools.emplace(state.name, std::move(*memory));
    (paged ? pagedBytes : slotBytes) += bytes;
  }
  return {};
}

Status Session::reset(uint32_t sequence) {
  if (sequence >= states.size())
    return makeError(ErrorKind::Usage, "there is no sequence {}, the session has {}", sequence,
                     states.size());
  Sequence &state = states[sequence];
  freeBlocks.insert(freeBlocks.end(), state.blocks.rbegin(), state.blocks.rend());
  state = {};
  return {};
}

Status Session::checkRow(uint32_t sequence, int32_t token) const {
  const bundle::Model &model = owner->bundle()->manifest().model;
  if (sequence >= states.size())
    return makeError(ErrorKind::Usage, "there is no sequence {}, the session has {}", sequence,
                     states.size());
  if (token < 0 || token >= model.vocab)
    return inputError("token {} of sequence {} is outside the vocabulary of {}", token, sequence,
                      model.vocab);
  if (states[sequence].length >= model.max_context)
    return inputError("sequence {} has {} tokens, which is all the context", sequence,
                      states[sequence].length);
  if (states[sequence].broken)
    return inputError("sequence {} lost its state in a step that failed; reset it", sequence);
  return {};
}

Result<std::vector<Row>> Session::prepare(std::span<const uint32_t> sequences,
                                          std::span<const int32_t> tokens) {
  int64_t blockSize = owner->bundle()->manifest().model.kv_block;
  std::vector<uint32_t> sorted(sequences.begin(), sequences.end());
  std::sort(sorted.begin(), sorted.end());
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return makeError(ErrorKind::Usage, "sequence {} is in the step twice", *twice);
  size_t needed = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (Status status = checkRow(sequences[i], tokens[i]); !status.ok())
      return status.takeError();
    needed += states[sequences[i]].length % blockSize == 0;
  }
  if (needed > freeBlocks.size())
    return inputError("the step needs {} KV blocks, {} of {} are free", needed, freeBlocks.size(),
                      blockCount);

  std::vector<Row> rows;
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence &state = states[sequences[i]];
    Row row;
    row.sequence = sequences[i];
    row.token = tokens[i];
    row.position = state.length;
    int32_t slot = int32_t(sequences[i]) * (options.inPlace ? 1 : 2);
    int32_t current = slot + state.current, other = slot + (options.inPlace ? 0 : !state.current);
    // An empty sequence has no state yet: it reads zeros.
    row.slotIn = state.length ? current : -1;
    row.slotOut = other;
    row.takesBlock = state.length % blockSize == 0;
    if (row.takesBlock) {
      state.blocks.push_back(freeBlocks.back());
      freeBlocks.pop_back();
    }
    rows.push_back(row);
  }
  return rows;
}

void Session::commit(std::span<const Row> rows) {
  for (const Row &row : rows) {
    Sequence &state = states[row.sequence];
    ++state.length;
    if (!options.inPlace)
      state.current = !state.current;
  }
}

void Session::abandon(std::span<const Row> rows, bool started) {
  for (const Row &row : rows) {
    Sequence &state = states[row.sequence];
    if (row.takesBlock) {
      freeBlocks.push_back(state.blocks.back());
      state.blocks.pop_back();
    }
    state.broken |= started && options.inPlace && slotBytes > 0;
  }
}

uint64_t Session::poolBytes(const std::string &state) const {
  auto at = pools.find(state);
  return at == pools.end() ? 0 : at->second.size();
}

Status Session::readPool(const std::string &state, uint64_t offset,
                         std::span<std::byte> out) const {
  auto at = pools.find(state);
  if (at == pools.end())
    return makeError(ErrorKind::Usage, "there is no state \"{:.200}\"", state);
  const DeviceMemory &memory = at->second;
  if (offset > memory.size() || out.size() > memory.size() - offset)
    return makeError(ErrorKind::Usage, "state \"{}\" has {} bytes, not {} at offset {}", state,
                     memory.size(), out.size(), offset);
  const Device &device = *owner->device();
  if (Status status = device.alive(); !status.ok())
    return status;
  Device::Scope scope(device);
  return device.check(
      device.driver()->cuMemcpyDtoH_v2(out.data(), memory.address() + offset, out.size()),
      fmt::format("cannot read state \"{}\"", state));
}
