//===- Session.cpp - sequences, their states and KV blocks ------------------===//
//
// Pools are not cleared: an empty sequence reads slot -1, which kernels take for zeros, and
// attention reads only what the sequence has written.
//
//===----------------------------------------------------------------------===//
#include "runtime/Session.h"

#include "runtime/Programs.h"

#include <algorithm>
#include <limits>

using namespace planc;
using namespace planrt;

static constexpr uint32_t maxSequences = 1u << 20;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Result<SessionSize> SessionSize::of(const bundle::Manifest &manifest,
                                    const SessionOptions &options) {
  const bundle::Model &model = manifest.model;
  if (options.sequences == 0 || options.sequences > maxSequences)
    return makeError(ErrorKind::Usage,
                     "a session of {} sequences is not possible, expected 1 to {}",
                     options.sequences, maxSequences);
  if (options.kvTokens < 0)
    return makeError(ErrorKind::Usage, "a KV cache of {} tokens is not possible", options.kvTokens);
  SessionSize size;
  size.slots = options.slots ? options.slots : options.sequences * (options.inPlace ? 1 : 2);
  uint32_t least = options.sequences + (options.inPlace ? 0 : 1);
  if (size.slots < least)
    return makeError(ErrorKind::Usage,
                     "{} state slots are too few: {} sequences need at least {}{}", size.slots,
                     options.sequences, least, options.inPlace ? "" : " (or `in_place`)");
  // A step needs no more than one slot to read and one to write of each.
  if (size.slots > 2 * options.sequences)
    return makeError(ErrorKind::Usage, "{} state slots are too many: {} sequences use at most {}",
                     size.slots, options.sequences, 2 * options.sequences);
  int64_t perSequence = model.blocksPerSequence(), all = perSequence * options.sequences;
  size.blocks = all;
  if (options.kvTokens) // every sequence but one may leave its last block nearly empty
    size.blocks =
        std::min(all, options.kvTokens / model.kv_block + (options.kvTokens % model.kv_block != 0) +
                          options.sequences - 1);
  if (size.blocks > std::numeric_limits<int32_t>::max())
    return makeError(ErrorKind::Usage, "{} KV blocks are more than a block table can name",
                     size.blocks);
  for (const bundle::State &state : manifest.states) {
    bool isPaged = state.kind == "paged";
    uint64_t &sum = isPaged ? size.blockBytes : size.slotBytes, total;
    if (__builtin_add_overflow(sum, state.bytes, &sum) ||
        __builtin_mul_overflow(sum, isPaged ? uint64_t(size.blocks) : size.slots, &total))
      return makeError(ErrorKind::Memory, "state \"{}\" of {} sequences fits into no memory",
                       state.name, options.sequences);
  }
  return size;
}

Session::Session(WeightsPtr weights, const SessionOptions &options, const SessionSize &size)
    : owner(std::move(weights)), options(options), size(size),
      model(owner->bundle()->manifest().model), states(options.sequences),
      unused(options.sequences), slots(size.slots), blocks(size.blocks) {
  for (Sequence &state : states)
    state.blocks.reserve(size_t(std::min(model.blocksPerSequence(), size.blocks)));
}

Result<std::shared_ptr<Session>> Session::open(WeightsPtr weights, const SessionOptions &options) {
  Result<SessionSize> size = SessionSize::of(weights->bundle()->manifest(), options);
  if (!size.ok())
    return size.takeError();
  if (Status status =
          checkMemory(*weights->device(), size->bytes(), "states and KV cache of the session take");
      !status.ok())
    return status.takeError();
  std::shared_ptr<Session> session(new Session(std::move(weights), options, *size));
  if (Status status = session->allocate(); !status.ok())
    return status.takeError();
  return session;
}

Status Session::allocate() {
  for (const bundle::State &state : owner->bundle()->manifest().states) {
    bool isPaged = state.kind == "paged";
    uint64_t units = isPaged ? uint64_t(size.blocks) : size.slots;
    Result<DeviceMemory> memory = DeviceMemory::create(owner->device(), state.bytes * units,
                                                       fmt::format("state \"{}\"", state.name));
    if (!memory.ok())
      return memory.takeError();
    if (isPaged)
      paged.push_back({memory->address(), state.bytes});
    pools.emplace(state.name, std::move(*memory));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Status Session::checkSequence(uint32_t sequence) const {
  if (!exists(sequence))
    return makeError(ErrorKind::Usage, "there is no sequence {}, the session has {} of {}",
                     sequence, states.size() - unused, states.size());
  if (states[sequence].busy)
    return makeError(ErrorKind::Usage, "sequence {} is in a step that runs", sequence);
  return {};
}

Result<uint32_t> Session::create() {
  if (unused == 0)
    return makeError(ErrorKind::Exhausted, "the session has all its {} sequences", states.size());
  auto at = std::find_if(states.begin(), states.end(), [](const Sequence &s) { return !s.used; });
  at->used = true;
  --unused;
  return uint32_t(at - states.begin());
}

Result<uint32_t> Session::fork(uint32_t sequence) {
  if (Status status = checkSequence(sequence); !status.ok())
    return status.takeError();
  if (states[sequence].broken)
    return inputError("sequence {} lost its state in a step that failed; truncate it to 0 or free "
                      "it",
                      sequence);
  Result<uint32_t> created = create();
  if (!created.ok())
    return created;
  const Sequence &from = states[sequence];
  Sequence &state = states[*created];
  state.length = from.length;
  state.slot = from.slot;
  state.next = from.next;
  state.blocks.assign(from.blocks.begin(), from.blocks.end());
  if (state.slot >= 0)
    slots.share(state.slot);
  for (int32_t block : state.blocks)
    blocks.share(block);
  return created;
}

void Session::empty(Sequence &state) {
  for (size_t i = state.blocks.size(); i-- > 0;)
    blocks.release(state.blocks[i]);
  state.blocks.clear();
  if (state.slot >= 0)
    slots.release(state.slot);
  state.slot = state.next = -1;
  state.length = 0;
  state.broken = false;
}

Status Session::truncate(uint32_t sequence, int64_t length) {
  if (Status status = checkSequence(sequence); !status.ok())
    return status;
  Sequence &state = states[sequence];
  if (length < 0 || length > state.length)
    return makeError(ErrorKind::Usage, "sequence {} has {} tokens, it cannot be truncated to {}",
                     sequence, state.length, length);
  if (length == 0) {
    empty(state);
    return {};
  }
  if (length == state.length)
    return {};
  for (const bundle::State &recurrent : owner->bundle()->manifest().states)
    if (recurrent.kind != "paged")
      return makeError(ErrorKind::Usage,
                       "sequence {} cannot be truncated from {} tokens to {}: state \"{}\" is "
                       "recurrent and cannot go back; 0 is possible, or a fork made earlier",
                       sequence, state.length, length, recurrent.name);
  size_t keep = size_t((length + model.kv_block - 1) / model.kv_block);
  for (size_t i = state.blocks.size(); i-- > keep;)
    blocks.release(state.blocks[i]);
  state.blocks.resize(keep);
  state.length = length;
  state.next = -1;
  return {};
}

Status Session::release(uint32_t sequence) {
  if (Status status = checkSequence(sequence); !status.ok())
    return status;
  empty(states[sequence]);
  states[sequence].used = false;
  ++unused;
  return {};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Status Session::checkRow(uint32_t sequence, int32_t token) const {
  if (Status status = checkSequence(sequence); !status.ok())
    return status;
  const Sequence &state = states[sequence];
  if (token < 0 || token >= model.vocab)
    return inputError("token {} of sequence {} is outside the vocabulary of {}", token, sequence,
                      model.vocab);
  if (state.length >= model.max_context)
    return inputError("sequence {} has {} tokens, which is all the context", sequence,
                      state.length);
  if (state.broken)
    return inputError("sequence {} lost its state in a step that failed; truncate it to 0 or free "
                      "it",
                      sequence);
  return {};
}

Status Session::checkRows(std::span<const uint32_t> sequences, const int32_t *tokens) const {
  for (size_t i = 0; i < sequences.size(); ++i) {
    uint32_t sequence = sequences[i];
    // Rows are few: looking back costs less than sorting.
    if (std::find(sequences.begin(), sequences.begin() + long(i), sequence) !=
        sequences.begin() + long(i))
      return makeError(ErrorKind::Usage, "sequence {} is in the step twice", sequence);
    if (!tokens && exists(sequence) && states[sequence].next < 0)
      return makeError(ErrorKind::Usage,
                       "sequence {} has no next token: no step since has asked for one", sequence);
    int32_t token = tokens ? tokens[i] : exists(sequence) ? states[sequence].next : 0;
    if (Status status = checkRow(sequence, token); !status.ok())
      return status;
  }
  return {};
}

/// All of them or none.
Status Session::takeResources(std::span<Row> rows) {
  auto startsBlock = [&](const Row &row) { return row.position % model.kv_block == 0; };
  for (size_t i = 0; i < rows.size(); ++i) {
    Row &row = rows[i];
    Sequence &state = states[row.sequence];
    bool copies = !startsBlock(row) && blocks.shared(state.blocks.back());
    bool takesBlock = size.blockBytes && (startsBlock(row) || copies);
    bool writesOwn = options.inPlace && state.slot >= 0 && !slots.shared(state.slot);
    bool takesSlot = size.slotBytes && !writesOwn;
    if ((takesBlock && !blocks.available()) || (takesSlot && !slots.available())) {
      abandon(rows.first(i), false);
      return takesBlock && !blocks.available()
                 ? makeError(ErrorKind::Exhausted,
                             "sequence {} needs a KV block, all {} of the session are taken",
                             row.sequence, blocks.total())
                 : makeError(ErrorKind::Exhausted,
                             "sequence {} needs a state slot, all {} of the session are taken",
                             row.sequence, slots.total());
    }
    if (takesBlock)
      row.block = blocks.take();
    if (takesBlock && copies) {
      row.copyFrom = state.blocks.back();
      blocks.beginLeaving(row.copyFrom);
    }
    row.slotIn = state.slot;
    row.slotOut = takesSlot ? slots.take() : state.slot;
    state.busy = true;
  }
  return {};
}

Status Session::prepare(std::span<const uint32_t> sequences, const int32_t *tokens,
                        std::span<Row> rows) {
  if (Status status = checkRows(sequences, tokens); !status.ok())
    return status;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sequence &state = states[sequences[i]];
    rows[i] = Row();
    rows[i].sequence = sequences[i];
    rows[i].token = tokens ? tokens[i] : state.next;
    rows[i].position = state.length;
  }
  return takeResources(rows);
}

void Session::commit(std::span<const Row> rows, const int32_t *next) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row &row = rows[i];
    Sequence &state = states[row.sequence];
    state.busy = false;
    ++state.length;
    state.next = next ? next[i] : -1;
    if (row.copyFrom >= 0) {
      blocks.endLeaving(row.copyFrom, true);
      state.blocks.back() = row.block;
    } else if (row.block >= 0) {
      state.blocks.push_back(row.block);
    }
    if (row.slotOut == state.slot)
      continue;
    if (state.slot >= 0)
      slots.release(state.slot);
    state.slot = row.slotOut;
  }
}

void Session::abandon(std::span<const Row> rows, bool started) {
  for (const Row &row : rows) {
    Sequence &state = states[row.sequence];
    state.busy = false;
    if (row.copyFrom >= 0)
      blocks.endLeaving(row.copyFrom, false);
    if (row.block >= 0)
      blocks.release(row.block);
    if (row.slotOut != state.slot)
      slots.release(row.slotOut);
    else
      state.broken |= started && row.slotOut >= 0;
  }
}

int32_t Session::lastBlock(const Row &row) const {
  if (row.block >= 0)
    return row.block;
  const std::vector<int32_t> &held = states[row.sequence].blocks;
  return held.empty() ? -1 : held.back();
}

void Session::fillTable(const Row &row, std::span<int32_t> table) const {
  const std::vector<int32_t> &held = states[row.sequence].blocks;
  auto end = std::copy(held.begin(), held.end(), table.begin());
  std::fill(end, table.end(), 0);
  if (row.block >= 0)
    table[size_t(row.position / model.kv_block)] = row.block;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

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
