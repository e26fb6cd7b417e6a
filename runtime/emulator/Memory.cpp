//===- Memory.cpp - device memory as regions of host memory ---------------===//
//
// Allocations are anonymous mappings; blocks (cuMemCreate) are memfds, so that one block mapped at
// several addresses is the same memory everywhere. All of it is reserved without swap accounting
// and committed when touched.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Memory.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

using namespace planemu;

constexpr std::uint64_t Page = 4096;
constexpr std::uint64_t RedZone = 16 * Page; // unmapped, on both sides of an allocation

static std::uint64_t roundUp(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}
static void *pointer(std::uint64_t address) { return reinterpret_cast<void *>(address); }

Memory::~Memory() {
  for (auto &[address, region] : regions)
    if (region.kind == Kind::Allocation)
      munmap(pointer(address - RedZone), roundUp(region.bytes, Page) + 2 * RedZone);
  for (auto &[address, range] : freed)
    munmap(pointer(address - RedZone), roundUp(range.bytes, Page) + 2 * RedZone);
  for (auto &[address, bytes] : reserved)
    munmap(pointer(address), bytes);
  for (auto &[handle, block] : blocks)
    close(block.file);
}

/// Asks for addresses below 4 GiB one after the other until the kernel has one free; elsewhere if there
/// is none.
static void *mapLow(std::uint64_t bytes) {
  constexpr int Flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  constexpr std::uint64_t First = 0x1000'0000, End = 1ull << 32, Step = 16 << 20;
  static std::uint64_t next = First; // callers hold the device lock
  for (std::uint64_t tried = First; tried + bytes < End; tried += Step) {
    std::uint64_t wanted = next;
    next = next + 2 * Step + bytes < End ? next + roundUp(bytes, Step) : First;
    if (wanted + bytes >= End)
      continue;
    void *at = mmap(pointer(wanted), bytes, PROT_NONE, Flags, -1, 0);
    if (at == MAP_FAILED || reinterpret_cast<std::uint64_t>(at) + bytes < End)
      return at;
    munmap(at, bytes);
  }
  return mmap(nullptr, bytes, PROT_NONE, Flags, -1, 0);
}

Memory::Result Memory::allocate(std::uint64_t bytes, std::uint64_t &address, bool low) {
  if (bytes == 0)
    return Result::Invalid;
  if (bytes > capacity - usedBytes)
    return Result::OutOfMemory;
  std::uint64_t whole = roundUp(bytes, Page) + 2 * RedZone;
  void *at =
      low ? mapLow(whole)
          : mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return Result::OutOfMemory;
  address = reinterpret_cast<std::uint64_t>(at) + RedZone;
  if (mprotect(pointer(address), roundUp(bytes, Page), PROT_READ | PROT_WRITE) != 0) {
    munmap(at, whole);
    return Result::OutOfMemory;
  }
  regions[address] = {bytes, Kind::Allocation, true, 0,
                      std::make_shared<Shadow>(bytes, newTracksWrites)};
  usedBytes += bytes;
  return Result::Ok;
}

Memory::Result Memory::free(std::uint64_t address) {
  auto region = regions.find(address);
  if (region == regions.end() || region->second.kind != Kind::Allocation)
    return Result::Invalid;
  std::uint64_t bytes = region->second.bytes;
  if (newKeepsFreed) {
    std::uint64_t begin;
    const Named *named = namedAt(address, begin);
    freed[address] = {bytes, named ? named->text : ""};
    madvise(pointer(address), roundUp(bytes, Page), MADV_DONTNEED);
    mprotect(pointer(address), roundUp(bytes, Page), PROT_NONE);
  } else {
    munmap(pointer(address - RedZone), roundUp(bytes, Page) + 2 * RedZone);
  }
  usedBytes -= bytes;
  regions.erase(region);
  names.erase(names.lower_bound(address), names.lower_bound(address + bytes));
  return Result::Ok;
}

Memory::Result Memory::reserve(std::uint64_t bytes, std::uint64_t alignment,
                               std::uint64_t &address) {
  if (alignment == 0)
    alignment = Granularity;
  if (bytes == 0 || bytes % Granularity || (alignment & (alignment - 1)) || bytes > (1ull << 46) ||
      alignment > (1ull << 40))
    return Result::Invalid;
  if (alignment < Granularity)
    alignment = Granularity;
  std::uint64_t whole = bytes + alignment;
  void *at = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return Result::OutOfMemory;
  std::uint64_t begin = reinterpret_cast<std::uint64_t>(at);
  address = roundUp(begin, alignment);
  if (address > begin)
    munmap(at, address - begin);
  if (begin + whole > address + bytes)
    munmap(pointer(address + bytes), begin + whole - address - bytes);
  reserved[address] = bytes;
  return Result::Ok;
}

Memory::Result Memory::unreserve(std::uint64_t address, std::uint64_t bytes) {
  auto range = reserved.find(address);
  if (range == reserved.end() || range->second != bytes)
    return Result::Invalid;
  auto mapped = regions.lower_bound(address);
  if (mapped != regions.end() && mapped->first < address + bytes)
    return Result::Invalid;
  munmap(pointer(address), bytes);
  reserved.erase(range);
  return Result::Ok;
}

Memory::Result Memory::createBlock(std::uint64_t bytes, std::uint64_t &handle) {
  if (bytes == 0 || bytes % Granularity)
    return Result::Invalid;
  if (bytes > capacity - usedBytes)
    return Result::OutOfMemory;
  int file = memfd_create("planemu", MFD_CLOEXEC);
  if (file < 0)
    return Result::System;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return Result::OutOfMemory;
  }
  handle = nextHandle++;
  blocks[handle] = {file, bytes, 0, false, std::make_shared<Shadow>(bytes, newTracksWrites)};
  usedBytes += bytes;
  return Result::Ok;
}

/// A block lives until it is released and nothing maps it.
void Memory::dropBlock(std::uint64_t handle) {
  auto block = blocks.find(handle);
  if (!block->second.released || block->second.mappings)
    return;
  close(block->second.file);
  usedBytes -= block->second.bytes;
  blocks.erase(block);
}

Memory::Result Memory::releaseBlock(std::uint64_t handle) {
  auto block = blocks.find(handle);
  if (block == blocks.end() || block->second.released)
    return Result::Invalid;
  block->second.released = true;
  dropBlock(handle);
  return Result::Ok;
}

Memory::Result Memory::map(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                           std::uint64_t handle) {
  auto block = blocks.find(handle);
  if (block == blocks.end() || block->second.released || bytes == 0 || address % Granularity ||
      bytes % Granularity || offset % Granularity || offset > block->second.bytes ||
      bytes > block->second.bytes - offset)
    return Result::Invalid;
  auto range = reserved.upper_bound(address);
  if (range == reserved.begin())
    return Result::Invalid;
  --range;
  if (address - range->first > range->second || bytes > range->second - (address - range->first))
    return Result::Invalid;
  auto following = regions.lower_bound(address);
  if (following != regions.end() && following->first < address + bytes)
    return Result::Invalid;
  if (following != regions.begin()) {
    auto previous = std::prev(following);
    if (previous->first + previous->second.bytes > address)
      return Result::Invalid;
  }
  if (mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
           block->second.file, static_cast<off_t>(offset)) == MAP_FAILED)
    return Result::System;
  ++block->second.mappings;
  regions[address] = {bytes, Kind::Mapping, false, handle, block->second.shadow, offset};
  return Result::Ok;
}

Memory::Result Memory::unmap(std::uint64_t address, std::uint64_t bytes) {
  // Whole mappings only, one or several in a row.
  std::uint64_t end = address + bytes, at = address;
  while (at < end) {
    auto region = regions.find(at);
    if (region == regions.end() || region->second.kind != Kind::Mapping ||
        region->second.bytes > end - at)
      return Result::Invalid;
    at += region->second.bytes;
  }
  if (bytes == 0)
    return Result::Invalid;
  for (at = address; at < end;) {
    auto region = regions.find(at);
    Region was = region->second;
    mmap(pointer(at), was.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
         -1, 0);
    regions.erase(region);
    --blocks[was.handle].mappings;
    dropBlock(was.handle);
    at += was.bytes;
  }
  names.erase(names.lower_bound(address), names.lower_bound(end));
  return Result::Ok;
}

Memory::Result Memory::setAccess(std::uint64_t address, std::uint64_t bytes, bool accessible) {
  std::uint64_t end = address + bytes, at = address;
  if (bytes == 0)
    return Result::Invalid;
  while (at < end) {
    auto region = regions.find(at);
    if (region == regions.end() || region->second.kind != Kind::Mapping ||
        region->second.bytes > end - at)
      return Result::Invalid;
    at += region->second.bytes;
  }
  for (at = address; at < end;) {
    Region &region = regions[at];
    if (mprotect(pointer(at), region.bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
      return Result::System;
    region.accessible = accessible;
    at += region.bytes;
  }
  return Result::Ok;
}

bool Memory::find(std::uint64_t address, RegionRef &found) const {
  auto region = regions.upper_bound(address);
  if (region == regions.begin())
    return false;
  --region;
  if (address - region->first >= region->second.bytes || !region->second.accessible)
    return false;
  found = {region->first, region->second.bytes, 0};
  return true;
}

/// The named range that holds `address`, or null.
const Memory::Named *Memory::namedAt(std::uint64_t address, std::uint64_t &begin) const {
  auto named = names.upper_bound(address);
  if (named == names.begin())
    return nullptr;
  --named;
  begin = named->first;
  return address - begin < named->second.bytes ? &named->second : nullptr;
}

bool Memory::findNamed(std::uint64_t address, RegionRef &found) const {
  RegionRef region;
  if (!find(address, region))
    return false;
  std::uint64_t begin;
  if (const Named *named = namedAt(address, begin)) {
    std::uint64_t end = std::min(region.low + region.size, begin + named->bytes);
    region.low = std::max(region.low, begin);
    region.size = end - region.low;
  } else if (auto next = names.lower_bound(region.low);
             next != names.end() && next->first < region.low + region.size) {
    return false; // between names; memory without any is one range
  }
  found = region;
  return true;
}

ShadowRef Memory::shadowOf(std::uint64_t address) const {
  auto region = regions.upper_bound(address);
  if (region == regions.begin())
    return {};
  --region;
  if (address - region->first >= region->second.bytes)
    return {};
  return {region->first, region->second.bytes, region->second.shadowOffset,
          region->second.shadow.get()};
}

void Memory::wrote(std::uint64_t address, std::uint64_t bytes) { copied(address, 0, bytes); }

void Memory::copied(std::uint64_t address, std::uint64_t from, std::uint64_t bytes) {
  while (bytes) {
    ShadowRef to = shadowOf(address), source = shadowOf(from);
    std::uint64_t here = bytes;
    if (to.bytes)
      here = std::min(here, to.low + to.bytes - address);
    if (source.bytes)
      here = std::min(here, source.low + source.bytes - from);
    if (to.shadow && to.shadow->written()) {
      WrittenBits known = source.shadow ? source.shadow->written() : WrittenBits();
      to.shadow->written().copy(address - to.low + to.offset, here, known,
                                from - source.low + source.offset);
    }
    address += here;
    from += from ? here : 0;
    bytes -= here;
  }
}

void Memory::clearRaceCells() {
  for (auto &[address, region] : regions)
    if (region.shadow)
      region.shadow->clearCells();
}

bool Memory::covers(std::uint64_t address, std::uint64_t bytes) const {
  while (bytes) {
    RegionRef region;
    if (!find(address, region))
      return false;
    std::uint64_t here = region.size - (address - region.low);
    if (here >= bytes)
      return true;
    address += here;
    bytes -= here;
  }
  return true;
}

void Memory::zero(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t WorthIt = 1u << 20;
  while (bytes) {
    auto region = std::prev(regions.upper_bound(address));
    std::uint64_t here = std::min(bytes, region->first + region->second.bytes - address);
    std::uint64_t first = roundUp(address, Page), last = (address + here) / Page * Page;
    // Private pages read as zero once dropped; those of a block are shared and must be cut out of
    // its file.
    int advice = region->second.kind == Kind::Mapping ? MADV_REMOVE : MADV_DONTNEED;
    if (region->second.kind != Kind::Lent && here >= WorthIt && last > first &&
        madvise(pointer(first), last - first, advice) == 0) {
      std::memset(pointer(address), 0, first - address);
      std::memset(pointer(last), 0, address + here - last);
    } else {
      std::memset(pointer(address), 0, here);
    }
    address += here;
    bytes -= here;
  }
}

void Memory::expectWhole(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t HugePage = 2u << 20;
  std::uint64_t first = roundUp(address, HugePage), last = (address + bytes) / HugePage * HugePage;
  if (first < last)
    madvise(pointer(first), last - first, MADV_HUGEPAGE); // a wish; nothing depends on it
}

void Memory::lend(std::uint64_t address, std::uint64_t bytes) {
  if (bytes)
    regions[address] = {bytes, Kind::Lent, true, 0, nullptr};
}

void Memory::takeBack(std::uint64_t address) { regions.erase(address); }

void Memory::name(std::uint64_t address, std::uint64_t bytes, std::string text) {
  names[address] = {bytes, std::move(text)};
}

static std::string hexRange(std::uint64_t begin, std::uint64_t bytes) {
  char range[64];
  std::snprintf(range, sizeof(range), "(0x%llx, %llu bytes)",
                static_cast<unsigned long long>(begin), static_cast<unsigned long long>(bytes));
  return range;
}

std::string Memory::rangeName(std::uint64_t address) const {
  std::uint64_t begin;
  if (const Named *named = namedAt(address, begin))
    return named->text;
  RegionRef region;
  return find(address, region) ? "memory without a name (" + std::to_string(region.size) + " bytes)"
                               : "no memory of the device";
}

std::string Memory::nameOf(std::uint64_t address) const {
  std::uint64_t begin = address;
  RegionRef region;
  if (!namedAt(address, begin) && find(address, region))
    begin = region.low;
  return rangeName(address) + " + " + std::to_string(address - begin);
}

std::string Memory::describe(std::uint64_t address) const {
  auto quote = [&](std::uint64_t begin, std::uint64_t bytes) {
    std::uint64_t first;
    const Named *named = namedAt(begin, first);
    return (named ? "'" + named->text + "' " : "") + hexRange(begin, bytes);
  };
  if (auto gone = freed.upper_bound(address); gone != freed.begin()) {
    --gone;
    if (address - gone->first < gone->second.bytes)
      return "inside memory that was freed, " +
             (gone->second.name.empty() ? "" : "'" + gone->second.name + "' ") +
             hexRange(gone->first, gone->second.bytes);
  }
  auto region = regions.upper_bound(address);
  if (region != regions.end() && region->first - address < (1u << 20) &&
      (region == regions.begin() || region->first - address < address - std::prev(region)->first -
                                                                  std::prev(region)->second.bytes))
    return std::to_string(region->first - address) + " bytes before the allocation " +
           quote(region->first, region->second.bytes);
  if (region == regions.begin())
    return "no allocation lies below";
  --region;
  std::uint64_t end = region->first + region->second.bytes;
  if (address >= end)
    return std::to_string(address - end) + " bytes after the end of the allocation " +
           quote(region->first, region->second.bytes);
  std::uint64_t begin;
  if (const Named *named = namedAt(address, begin))
    return "inside '" + named->text + "' " + hexRange(begin, named->bytes);
  auto before = names.upper_bound(address);
  if (before != names.begin() && (--before)->first >= region->first)
    return std::to_string(address - before->first - before->second.bytes) +
           " bytes after the end of '" + before->second.text + "' " +
           hexRange(before->first, before->second.bytes) + " in the same allocation";
  return "inside the allocation " + quote(region->first, region->second.bytes);
}
