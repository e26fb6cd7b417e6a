//===- Memory.h - device memory as regions of host memory -----------------===//
//
// Device addresses are host addresses. Every allocation and every mapped range is a region of its
// own, in its own pages with unmapped pages around it; an access is valid if it lies in one region
// (copies may cross adjacent ones). Nothing is committed before it is touched.
//
// Not locked: the driver's entry points hold the device lock while they change regions or run a
// launch.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_MEMORY_H
#define PLANEMU_MEMORY_H

#include "runtime/emulator/Machine.h"
#include "runtime/emulator/observe/Shadow.h"

#include <map>
#include <memory>
#include <string>

namespace planemu {

class Memory {
public:
  explicit Memory(std::uint64_t capacity) : capacity(capacity) {}
  ~Memory();
  Memory(const Memory &) = delete;

  /// From now on: `tracksWrites` gives new memory a record of which bytes are written; `keepsFreed`
  /// keeps what is freed out of use, so that accesses to it are known for what they are.
  void observe(bool tracksWrites, bool keepsFreed) {
    newTracksWrites = tracksWrites;
    newKeepsFreed = keepsFreed;
  }

  enum class Result { Ok, Invalid, OutOfMemory, System };

  /// `low`: below 4 GiB, as constants are, whose addresses may be of 32 bits. No other memory is there.
  Result allocate(std::uint64_t bytes, std::uint64_t &address, bool low = false);
  Result free(std::uint64_t address);

  // Virtual memory management: reserved ranges, blocks of memory, and the ranges where blocks are
  // mapped.
  Result reserve(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t &address);
  Result unreserve(std::uint64_t address, std::uint64_t bytes);
  Result createBlock(std::uint64_t bytes, std::uint64_t &handle);
  Result releaseBlock(std::uint64_t handle);
  Result map(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
             std::uint64_t handle);
  Result unmap(std::uint64_t address, std::uint64_t bytes);
  Result setAccess(std::uint64_t address, std::uint64_t bytes, bool accessible);

  /// The region that holds `address`.
  bool find(std::uint64_t address, RegionRef &region) const;
  /// As find, but where a region has names only the named range that holds `address` is valid.
  bool findNamed(std::uint64_t address, RegionRef &region) const;
  /// The shadow of the region that holds `address`; null if there is none (memory that is lent).
  ShadowRef shadowOf(std::uint64_t address) const;
  /// The host has written the range, or copied it from `from` (of this memory, or of the host's).
  void wrote(std::uint64_t address, std::uint64_t bytes);
  void copied(std::uint64_t address, std::uint64_t from, std::uint64_t bytes);
  /// Forgets the accesses that race checks keep.
  void clearRaceCells();
  /// True if all bytes of the range are valid, in one region or in adjacent ones.
  bool covers(std::uint64_t address, std::uint64_t bytes) const;
  /// Zeros a covered range. Whole pages are given back to the host instead of being written, so
  /// that clearing a large pool does not commit it.
  void zero(std::uint64_t address, std::uint64_t bytes);
  /// A copy or a fill will now write all of a covered range: large ranges get large pages, which
  /// ranges that are only touched here and there do not.
  void expectWhole(std::uint64_t address, std::uint64_t bytes);
  /// Makes host memory of the caller valid for the time of a launch (its parameters).
  void lend(std::uint64_t address, std::uint64_t bytes);
  void takeBack(std::uint64_t address);

  /// Names for messages. A range may be named before it is allocated and is forgotten with it.
  void name(std::uint64_t address, std::uint64_t bytes, std::string text);
  /// "8 bytes after the end of region 'x' (...)".
  std::string describe(std::uint64_t address) const;
  /// "x + 16": the named range that holds `address`, or else the region.
  std::string nameOf(std::uint64_t address) const;
  /// That without the offset.
  std::string rangeName(std::uint64_t address) const;

  std::uint64_t total() const { return capacity; }
  std::uint64_t used() const { return usedBytes; }

  static constexpr std::uint64_t Granularity = 2u
                                               << 20; // of blocks and their mappings, as on a GPU

private:
  enum class Kind : std::uint8_t { Allocation, Mapping, Lent };
  struct Region {
    std::uint64_t bytes;
    Kind kind;
    bool accessible;
    std::uint64_t handle;           // of a Mapping
    std::shared_ptr<Shadow> shadow; // of the memory; null if it is lent
    std::uint64_t shadowOffset = 0; // of the region in it
  };
  struct Block {
    int file;
    std::uint64_t bytes;
    unsigned mappings;
    bool released;
    std::shared_ptr<Shadow> shadow;
  };
  struct Named {
    std::uint64_t bytes;
    std::string text;
  };

  struct Freed {
    std::uint64_t bytes;
    std::string name;
  };

  void dropBlock(std::uint64_t handle);
  const Named *namedAt(std::uint64_t address, std::uint64_t &begin) const;

  std::uint64_t capacity, usedBytes = 0, nextHandle = 1;
  std::map<std::uint64_t, Region> regions;
  std::map<std::uint64_t, std::uint64_t> reserved; // address -> bytes
  std::map<std::uint64_t, Block> blocks;
  std::map<std::uint64_t, Named> names;
  std::map<std::uint64_t, Freed> freed; // kept out of use
  bool newTracksWrites = false, newKeepsFreed = false;
};

} // namespace planemu

#endif // PLANEMU_MEMORY_H
