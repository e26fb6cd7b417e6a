//===- Counters.h - what a launch executes and moves ----------------------===//
//
// Integers that depend on the kernel and its inputs alone: counted by each observer for the CTAs it
// sees, then added up. Rules:
//
//   instructions  one per PTX statement and warp that issues it, guard true or not; threads are the
//                 lanes whose guard is true
//   requests      a memory instruction of one warp with at least one lane
//   sectors       distinct 32-byte sectors of a request; rows of 8, 16, 32 bytes go in groups of 16,
//                 8, 4 lanes, as on hardware. No cache is modelled
//   unique        distinct sectors of a tensor in the launch: the least that must be moved
//   wavefronts    of shared memory: for each group of lanes the most distinct words in one of the 32
//                 banks; `ideal` is distinct words / 32, rounded up
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OBSERVE_COUNTERS_H
#define PLANEMU_OBSERVE_COUNTERS_H

#include "runtime/emulator/observe/Observer.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planemu {

/// Requests of one space and direction. `transfers`: sectors of global and local memory, wavefronts
/// of shared memory; `ideal` is of those.
struct Traffic {
  std::uint64_t requests = 0, bytes = 0, transfers = 0, ideal = 0;
  void add(const Traffic &other);
};

/// One bit a sector.
class SectorSet {
public:
  /// Sectors `first` to `last`.
  void add(std::uint64_t first, std::uint64_t last);
  void add(const SectorSet &other);
  std::uint64_t count() const;

private:
  std::vector<std::uint64_t> words;
};

class Counters {
public:
  explicit Counters(const Launch &launch);

  void executed(const Warp &warp, const Inst &inst);
  /// A block's ending is executed by `lanes`, of which `taken` branch.
  void ended(const Block &block, std::uint32_t lanes, std::uint32_t taken);
  void access(const Warp &warp, const Inst &inst, const Access &access);
  void add(const Counters &other);
  /// A JSON object.
  std::string json() const;

private:
  enum Space { Global, Shared, Local, Spaces };
  enum Direction { Load, Store, Atomic, Directions };
  struct Executed {
    std::uint64_t warps = 0, threads = 0;
  };
  struct Tensor {
    std::string name;
    std::uint64_t low = 0, bytes = 0;
    std::uint64_t loaded = 0, stored = 0;
    SectorSet loadedSectors, storedSectors;
  };

  std::size_t tensorOf(const Inst &inst, std::uint64_t host);
  bool countRows(const Inst &inst, const Access &access, Traffic &traffic, Direction direction);
  void countGlobal(const Inst &inst, const Access &access, std::uint32_t lanes, Traffic &traffic,
                   Direction direction);
  void countShared(const Warp &warp, const Access &access, std::uint32_t lanes, Traffic &traffic);

  const Launch &launch;
  std::vector<Executed> insts;   // by index in the kernel
  std::vector<Executed> endings; // by class
  std::uint64_t branches = 0, divergent = 0;
  Traffic traffic[Spaces][Directions];
  std::vector<Tensor> tensors;
  std::map<std::uint64_t, std::size_t> tensorAt; // by address
  std::vector<std::size_t> lastTensor;           // by Inst::cache; index + 1
};

/// `text` as a JSON string.
std::string jsonString(std::string_view text);

} // namespace planemu

#endif // PLANEMU_OBSERVE_COUNTERS_H
