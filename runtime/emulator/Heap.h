//===- Heap.h - memory that kernels allocate ------------------------------===//

#ifndef PLANEMU_HEAP_H
#define PLANEMU_HEAP_H

#include "runtime/emulator/Machine.h"

#include <map>

namespace planemu {

/// The heap of a context: first fit, so that addresses depend on what was asked for alone. The CTAs
/// of kernels that use it run one after the other.
class DeviceHeap {
public:
  DeviceHeap(std::uint64_t address, std::uint64_t bytes) : holes{{address, bytes}} {}

  /// 0 if there is no room. A block of no bytes has an address too. `align`: a power of two.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t align = 16);
  /// Of a block for `bytes` bytes.
  static std::uint64_t sizeOf(std::uint64_t bytes) { return bytes ? (bytes + 15) / 16 * 16 : 16; }
  /// False if no block starts at `address`.
  bool free(std::uint64_t address);

private:
  std::map<std::uint64_t, std::uint64_t> holes, blocks; // address and bytes
};

/// malloc(bytes): operands are the result and the argument, both 64 bits. imm: a second argument is the
/// alignment.
void allocateMemory(Warp &warp, const Inst &inst);
/// free(address).
void freeMemory(Warp &warp, const Inst &inst);

} // namespace planemu

#endif // PLANEMU_HEAP_H
