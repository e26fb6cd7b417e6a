//===- Heap.cpp - malloc and free in kernels ------------------------------===//
//
// CUDA C++ Programming Guide, "Dynamic Global Memory Allocation": blocks outlive the kernel, and one
// that another launch has allocated may be freed. Lanes allocate in order.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Heap.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/observe/Observer.h"
#include "runtime/emulator/observe/Shadow.h"

#include <algorithm>
#include <cstring>

using namespace planemu;

std::uint64_t DeviceHeap::allocate(std::uint64_t bytes, std::uint64_t align) {
  if (bytes > 1ull << 48 || align > 1ull << 48)
    return 0;
  bytes = sizeOf(bytes);
  for (auto [low, size] : holes) {
    std::uint64_t address = (low + align - 1) / align * align, before = address - low;
    if (before > size || size - before < bytes)
      continue;
    holes.erase(low);
    if (before)
      holes.emplace(low, before);
    if (size - before > bytes)
      holes.emplace(address + bytes, size - before - bytes);
    blocks.emplace(address, bytes);
    return address;
  }
  return 0;
}

bool DeviceHeap::free(std::uint64_t address) {
  auto block = blocks.find(address);
  if (block == blocks.end())
    return false;
  auto hole = holes.emplace(address, block->second).first;
  blocks.erase(block);
  if (auto next = std::next(hole); next != holes.end() && address + hole->second == next->first) {
    hole->second += next->second;
    holes.erase(next);
  }
  if (hole != holes.begin())
    if (auto before = std::prev(hole); before->first + before->second == address) {
      before->second += hole->second;
      holes.erase(hole);
    }
  return true;
}

static std::uint32_t executingLanes(const Warp &warp, const Inst &inst) {
  std::uint32_t guard;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  return warp.active & (guard ^ inst.guardXor);
}

/// The .param variable whose offset in local memory operand `n` holds. It was checked to have 8 bytes.
static char *argument(Warp &warp, const Inst &inst, unsigned n, unsigned lane) {
  std::uint64_t offset;
  std::memcpy(&offset, warp.file + operandsOf(inst)[n] + 8 * lane, 8);
  if (offset <= warp.localBytes && warp.localBytes - offset >= 8)
    return warp.local + std::uint64_t(lane) * warp.localBytes + offset;
  reportFault(warp, inst.line, FaultKind::OutOfBounds, lane, offset, 8, "call (local)");
  return nullptr;
}

void planemu::allocateMemory(Warp &warp, const Inst &inst) {
  std::uint64_t hosts[32] = {};
  std::uint32_t mask = executingLanes(warp, inst);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    char *result = argument(warp, inst, 0, lane), *size = argument(warp, inst, 1, lane);
    if (!result || !size)
      return;
    std::uint64_t bytes, address;
    std::memcpy(&bytes, size, 8);
    std::uint64_t align = 16;
    if (inst.imm) {
      char *given = argument(warp, inst, 2, lane);
      if (!given)
        return;
      std::memcpy(&align, given, 8);
      if (!align || (align & (align - 1)))
        return reportFault(warp, inst.line, FaultKind::Misuse, lane, align, 8,
                           "an alignment of memory that is no power of two");
      align = std::max<std::uint64_t>(align, 16);
    }
    address = warp.launch->heap->allocate(bytes, align);
    if (address && warp.observer)
      if (ShadowRef shadow = warp.launch->memory->shadowOf(address); shadow.shadow)
        shadow.shadow->renew(address - shadow.low + shadow.offset, DeviceHeap::sizeOf(bytes));
    std::memcpy(result, &address, 8);
    hosts[lane] = reinterpret_cast<std::uint64_t>(result);
  }
  if (mask && warp.observer && warp.observer->seesMemory())
    warp.observer->access(warp, inst, {AccessKind::Store, mask, 8, 0, hosts});
}

void planemu::freeMemory(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    char *pointer = argument(warp, inst, 0, lane);
    if (!pointer)
      return;
    std::uint64_t address;
    std::memcpy(&address, pointer, 8);
    if (address && !warp.launch->heap->free(address))
      return reportFault(warp, inst.line, FaultKind::Misuse, lane, address, 1,
                         "a free of what malloc has not given, or of what is free");
  }
}
