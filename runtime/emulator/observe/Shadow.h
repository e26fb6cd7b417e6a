//===- Shadow.h - what the checks know about device memory ----------------===//
//
// One Shadow belongs to one piece of memory, an allocation or a block that is mapped at one or more
// addresses. Its tables are reserved address space that is committed where it is touched, so the
// shadow of a large weight that nobody reads costs nothing.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_SHADOW_H
#define PLANEMU_OBSERVE_SHADOW_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace planemu {

/// One bit for each byte of a range: set if the byte was written.
class WrittenBits {
public:
  WrittenBits() = default;
  explicit WrittenBits(std::uint8_t *bits) : bits(bits) {}
  explicit operator bool() const { return bits != nullptr; }

  void mark(std::uint64_t first, std::uint64_t count);
  /// The bytes whose bits in `bytes` are set count as not written, from `first` on.
  void unmark(std::uint64_t first, std::uint32_t bytes) {
    for (; bytes; bytes &= bytes - 1) {
      std::uint64_t at = first + static_cast<unsigned>(__builtin_ctz(bytes));
      bits[at / 8] &= static_cast<std::uint8_t>(~(1u << at % 8));
    }
  }
  bool get(std::uint64_t at) const { return bits[at / 8] >> (at % 8) & 1; }
  void copy(std::uint64_t first, std::uint64_t count, WrittenBits from, std::uint64_t fromFirst);
  /// True if all bytes of the range were written; it has 56 or fewer.
  bool allOf(std::uint64_t first, std::uint64_t count) const {
    std::uint64_t word; // reaches beyond the range, for which the table has room
    std::memcpy(&word, bits + first / 8, 8);
    return (~(word >> first % 8) & ((1ull << count) - 1)) == 0;
  }
  /// The first byte of the range that was not written; `count` if all were.
  std::uint64_t firstUnwritten(std::uint64_t first, std::uint64_t count) const;

private:
  std::uint8_t *bits = nullptr;
};

/// The last accesses to one 4-byte word: ids of RaceCheck's records, 0 or stale if there are none.
/// Readers are two, of different warps; more would rarely find more.
struct RaceCell {
  std::uint32_t write, first, second;
  std::uint32_t writeLane : 5, firstLane : 5, secondLane : 5;
  std::uint32_t writeBytes : 4, firstBytes : 4, secondBytes : 4; // masks
  std::uint32_t writeMixed : 1, firstMixed : 1, secondMixed : 1; // several lanes
  std::uint32_t split : 1;                                       // of RaceCells::quads
  std::uint32_t : 1;
};
static_assert(sizeof(RaceCell) == 16);

/// The cells of a piece of memory. Most accesses are to 16 aligned bytes or more, and then four words
/// share one cell; it is split where their pasts differ.
struct RaceCells {
  RaceCell *quads = nullptr; // of 16 bytes
  RaceCell *words = nullptr; // of 4 bytes; count where the quad is split
  explicit operator bool() const { return quads; }
};

class Shadow {
public:
  /// `tracksWrites`: else everything counts as written.
  Shadow(std::uint64_t bytes, bool tracksWrites);
  ~Shadow();
  Shadow(const Shadow &) = delete;

  /// Null bits if everything counts as written.
  WrittenBits written() const { return WrittenBits(bits); }
  /// Made when first asked for. Null if there is no address space left.
  RaceCells cells();
  /// Forgets all accesses.
  void clearCells();
  /// The range, of 16-byte units, is new memory: nothing has written or accessed it.
  void renew(std::uint64_t first, std::uint64_t count);

private:
  std::uint64_t bytes;
  std::uint8_t *bits = nullptr;
  RaceCells raceCells;
};

/// Where a region's bytes are in a Shadow: byte `low + n` is its byte `offset + n`.
struct ShadowRef {
  std::uint64_t low = 0, bytes = 0, offset = 0;
  Shadow *shadow = nullptr;
};

} // namespace planemu

#endif // PLANEMU_OBSERVE_SHADOW_H
