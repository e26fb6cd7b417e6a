//===- Counters.cpp - what a launch executes and moves --------------------===//

#include "runtime/emulator/observe/Counters.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/Ptx.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace planemu;

constexpr std::uint64_t SectorBytes = 32;
constexpr std::uint32_t BankCount = 32, BankBytes = 4;

void Traffic::add(const Traffic &other) {
  requests += other.requests;
  bytes += other.bytes;
  transfers += other.transfers;
  ideal += other.ideal;
}

void SectorSet::add(std::uint64_t first, std::uint64_t last) {
  if (last / 64 >= words.size())
    words.resize(last / 64 + 1);
  for (std::uint64_t word = first / 64; word <= last / 64; ++word) {
    std::uint64_t bits = ~0ull;
    if (word == first / 64)
      bits &= ~0ull << (first % 64);
    if (word == last / 64)
      bits &= ~0ull >> (63 - last % 64);
    words[word] |= bits;
  }
}

void SectorSet::add(const SectorSet &other) {
  words.resize(std::max(words.size(), other.words.size()));
  for (std::size_t n = 0; n < other.words.size(); ++n)
    words[n] |= other.words[n];
}

std::uint64_t SectorSet::count() const {
  std::uint64_t sum = 0;
  for (std::uint64_t word : words)
    sum += static_cast<std::uint64_t>(std::popcount(word));
  return sum;
}

Counters::Counters(const Launch &launch)
    : launch(launch), insts(launch.kernel->insts.size()), endings(InstClassCount),
      lastTensor(launch.kernel->cacheEntries) {}

void Counters::executed(const Warp &warp, const Inst &inst) {
  std::uint32_t guard;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  Executed &count = insts[static_cast<std::size_t>(&inst - launch.kernel->insts.data())];
  ++count.warps;
  count.threads += static_cast<std::uint64_t>(std::popcount(warp.active & (guard ^ inst.guardXor)));
}

void Counters::ended(const Block &block, std::uint32_t lanes, std::uint32_t taken) {
  if (block.cls == InstClass::Part)
    return;
  Executed &count = endings[static_cast<unsigned>(block.cls)];
  ++count.warps;
  count.threads += static_cast<std::uint64_t>(std::popcount(taken));
  if (block.ending == Ending::Branch || block.ending == Ending::Switch) {
    ++branches;
    divergent += taken && taken != lanes;
  }
}

std::size_t Counters::tensorOf(const Inst &inst, std::uint64_t host) {
  std::size_t &last = lastTensor[inst.cache];
  if (last && host - tensors[last - 1].low < tensors[last - 1].bytes)
    return last - 1;
  RegionRef range;
  if (!launch.memory->findNamed(host, range) && !launch.memory->find(host, range))
    range = {host, 1, 0};
  auto [found, isNew] = tensorAt.try_emplace(range.low, tensors.size());
  if (isNew) {
    Tensor &tensor = tensors.emplace_back();
    tensor.low = range.low;
    tensor.bytes = range.size;
    tensor.name = launch.memory->rangeName(host);
  }
  last = found->second + 1;
  return found->second;
}

/// Lanes that go together in one transfer.
static std::uint32_t groupOf(std::uint32_t bytes) {
  return bytes <= 4 ? 32 : std::max(1u, 128 / bytes);
}

/// The common case: 32 rows that follow each other in one tensor. False if it is another.
bool Counters::countRows(const Inst &inst, const Access &access, Traffic &traffic,
                         Direction direction) {
  if (!access.whole || access.sizes)
    return false;
  const std::uint64_t bytes = 32ull * access.bytes;
  Tensor &tensor = tensors[tensorOf(inst, access.whole)];
  if (access.whole + bytes > tensor.low + tensor.bytes)
    return false;
  if (direction != Store)
    tensor.loaded += bytes;
  if (direction != Load)
    tensor.stored += bytes;
  traffic.bytes += bytes;
  const std::uint64_t together = std::uint64_t(groupOf(access.bytes)) * access.bytes;
  for (std::uint64_t done = 0; done < bytes; done += together)
    traffic.transfers += (access.whole + done + together - 1) / SectorBytes -
                         (access.whole + done) / SectorBytes + 1;
  std::uint64_t first = access.whole / SectorBytes - tensor.low / SectorBytes;
  std::uint64_t last = (access.whole + bytes - 1) / SectorBytes - tensor.low / SectorBytes;
  if (direction != Store)
    tensor.loadedSectors.add(first, last);
  if (direction != Load)
    tensor.storedSectors.add(first, last);
  return true;
}

void Counters::countGlobal(const Inst &inst, const Access &access, std::uint32_t lanes,
                           Traffic &traffic, Direction direction) {
  if (lanes == ~0u && countRows(inst, access, traffic, direction))
    return;
  std::uint32_t group = groupOf(access.bytes);
  std::uint64_t seen[64];
  for (std::uint32_t first = 0; first < 32; first += group) {
    std::uint32_t here = lanes & ((group == 32 ? ~0u : (1u << group) - 1) << first);
    unsigned count = 0;
    for (; here; here &= here - 1) {
      unsigned lane = static_cast<unsigned>(std::countr_zero(here));
      std::uint64_t host = access.of(lane);
      std::uint64_t bytes = access.sizes ? access.sizes[lane] : access.bytes;
      if (!bytes)
        continue;
      Tensor &tensor = tensors[tensorOf(inst, host)];
      if (direction != Store)
        tensor.loaded += bytes;
      if (direction != Load)
        tensor.stored += bytes;
      traffic.bytes += bytes;
      for (std::uint64_t sector = host / SectorBytes; sector <= (host + bytes - 1) / SectorBytes;
           ++sector) {
        if (std::find(seen, seen + count, sector) != seen + count)
          continue;
        seen[count++] = sector;
        std::uint64_t index = sector - tensor.low / SectorBytes;
        if (direction != Store)
          tensor.loadedSectors.add(index, index);
        if (direction != Load)
          tensor.storedSectors.add(index, index);
      }
    }
    traffic.transfers += count;
  }
}

void Counters::countShared(const Warp &warp, const Access &access, std::uint32_t lanes,
                           Traffic &traffic) {
  std::uint32_t group = groupOf(access.bytes);
  const std::uint64_t low = reinterpret_cast<std::uint64_t>(warp.shared);
  std::uint32_t all = 0;
  for (std::uint32_t first = 0; first < 32; first += group) {
    std::uint32_t here = lanes & ((group == 32 ? ~0u : (1u << group) - 1) << first);
    std::uint32_t words[BankCount][128], inBank[BankCount] = {}, most = 0;
    for (; here; here &= here - 1) {
      unsigned lane = static_cast<unsigned>(std::countr_zero(here));
      std::uint32_t offset = static_cast<std::uint32_t>(access.of(lane) - low);
      traffic.bytes += access.bytes;
      for (std::uint32_t word = offset / BankBytes; word <= (offset + access.bytes - 1) / BankBytes;
           ++word) {
        std::uint32_t *bank = words[word % BankCount], &count = inBank[word % BankCount];
        if (std::find(bank, bank + count, word) != bank + count)
          continue;
        bank[count++] = word;
        most = std::max(most, count);
        ++all;
      }
    }
    traffic.transfers += most;
  }
  traffic.ideal += (all + BankCount - 1) / BankCount;
}

void Counters::access(const Warp &warp, const Inst &inst, const Access &access) {
  Direction direction = access.kind == AccessKind::Atomic ? Atomic
                        : access.kind == AccessKind::Load || access.kind == AccessKind::AsyncLoad
                            ? Load
                            : Store;
  const std::uint64_t sharedLow = reinterpret_cast<std::uint64_t>(warp.shared);
  const std::uint64_t localLow = reinterpret_cast<std::uint64_t>(warp.local);
  std::uint32_t lanes[Spaces] = {};
  for (std::uint32_t left = access.mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint64_t host = access.of(lane);
    Space space = host - sharedLow < warp.sharedBytes         ? Shared
                  : host - localLow < 32ull * warp.localBytes ? Local
                                                              : Global;
    lanes[space] |= host ? 1u << lane : 0;
  }
  for (unsigned space = 0; space < Spaces; ++space) {
    if (!lanes[space])
      continue;
    Traffic &count = traffic[space][direction];
    ++count.requests;
    if (space == Global) {
      countGlobal(inst, access, lanes[space], count, direction);
    } else if (space == Shared) {
      countShared(warp, access, lanes[space], count);
    } else {
      // Local memory is interleaved by lane on hardware: a word of all lanes is one line.
      std::uint64_t bytes = access.bytes * static_cast<std::uint64_t>(std::popcount(lanes[space]));
      count.bytes += bytes;
      count.transfers += (bytes + SectorBytes - 1) / SectorBytes;
    }
  }
}

void Counters::add(const Counters &other) {
  auto addAll = [](std::vector<Executed> &to, const std::vector<Executed> &from) {
    for (std::size_t n = 0; n < to.size(); ++n) {
      to[n].warps += from[n].warps;
      to[n].threads += from[n].threads;
    }
  };
  addAll(insts, other.insts);
  addAll(endings, other.endings);
  branches += other.branches;
  divergent += other.divergent;
  for (unsigned space = 0; space < Spaces; ++space)
    for (unsigned direction = 0; direction < Directions; ++direction)
      traffic[space][direction].add(other.traffic[space][direction]);
  for (const Tensor &tensor : other.tensors) {
    auto [found, isNew] = tensorAt.try_emplace(tensor.low, tensors.size());
    if (isNew) {
      tensors.push_back(tensor);
      continue;
    }
    Tensor &mine = tensors[found->second];
    mine.loaded += tensor.loaded;
    mine.stored += tensor.stored;
    mine.loadedSectors.add(tensor.loadedSectors);
    mine.storedSectors.add(tensor.storedSectors);
  }
}
