//===- Machine.h - warps, CTAs and launches while they run ----------------===//
//
// The state that instructions read and write. Who runs it: Resident.h has a CTA with its warps,
// Worker.h a host thread with its CTAs.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_MACHINE_H
#define PLANEMU_MACHINE_H

#include "runtime/emulator/Code.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace planemu {

// Shared and local memory seen through generic addresses. No host address looks like these.
constexpr std::uint64_t SharedWindow = 0x0100'0000'0000'0000;
constexpr std::uint64_t LocalWindow = 0x0200'0000'0000'0000;
constexpr std::uint64_t WindowMask = 0xff00'0000'0000'0000;

/// A range of valid addresses: `address` is good for `bytes` if address - low <= size - bytes; the
/// host's address is address + delta.
struct RegionRef {
  std::uint64_t low = 0, size = 0, delta = 0;
};

enum class FaultKind : std::uint8_t {
  OutOfBounds,
  Misaligned,
  PartialWarp, // an instruction that needs all 32 lanes
  BarrierDivergence,
  Deadlock,
  Trap,
  Assert,
  BadOperand, // a run-time operand outside what the instruction takes
  Mbarrier,   // one is used as it must not be; `access` says how
  Misuse,     // `access` says what; with `bytes` the address belongs to it
  Endless,    // a warp has executed more instructions than the launch allows
  Circles,    // no warp of the launch will ever see anything new
};

struct Fault {
  FaultKind kind;
  std::uint32_t line;
  std::uint32_t cta[3], thread[3];
  std::uint64_t linearCta;
  std::uint64_t address; // Endless: instructions executed
  std::uint32_t bytes;   // Endless, Circles: where the loop starts that ends at `line`
  const char *access;    // "ld.global" and the like
};

class Observer;
class LaunchObserver;
struct Launch;
struct PtxModule;

struct Cta {
  std::uint32_t id[3] = {0, 0, 0};
  std::uint64_t linear = 0;
  bool failed = false;
  struct Warp *warps = nullptr;
  std::uint32_t warpCount = 0;
  std::uint32_t clusterPhase = 1; // of barrier.cluster; 0 is over
  std::string output;             // what its threads have printed
};

/// Lanes that wait to run at one instruction.
struct Fragment {
  std::uint32_t block, inst; // inst is absolute
  std::uint32_t mask;
};

struct Warp {
  char *file = nullptr;
  std::uint32_t active = 0; // lanes that execute now
  std::uint32_t live = 0;   // lanes that have not exited
  char *shared = nullptr;
  std::uint32_t sharedBytes = 0;
  std::uint32_t localBytes = 0; // of one lane
  char *local = nullptr;        // lane after lane
  RegionRef *regions = nullptr; // one per Inst::cache
  Launch *launch = nullptr;
  Cta *cta = nullptr;
  Observer *observer = nullptr; // if something is checked or counted
  std::uint32_t index = 0;      // in the CTA
  std::uint64_t executed = 0;   // instructions since the CTA started
  std::uint64_t clockReads = 0;
  std::uint32_t atCluster = 0; // lanes that have arrived at barrier.cluster

  // Where to go on. `ready` are runnable, highest order first; `parked` wait at a barrier,
  // `waiting` for the lanes of a .sync instruction. While `atBarrier`, `parked` are the places where
  // the live lanes have arrived and the rest says where they go on.
  std::uint32_t block = 0, inst = 0;
  Fragment ready[32], parked[32], waiting[32];
  unsigned readyCount = 0, parkedCount = 0, waitingCount = 0;
  bool atBarrier = false;
  std::uint32_t barrierId = 0;
  bool done = false;

  // Fairness (Interpreter.cpp). Values of `executed`: when fragments last merged, when the warp was
  // last whole. At a backward jump from `stopAt` on the warp stops to look around.
  std::uint64_t mergedAt = 0, wholeAt = 0, stopAt = 0;
  std::uint32_t turnLane = 0, turnPicks = 0; // whose turn it is, and since how many blocks
  std::uint64_t random = 0;                  // state of the generator; 0: natural order

  // Whether it only waits (Resident.cpp): its registers at some earlier yield.
  std::uint64_t seenState = 0;
  unsigned sinceSeen = 0, seenFor = 0;
  std::uint32_t turn = 0; // instructions until it yields
  // Of a traced run: all that it saw, and the first loop it went through.
  std::uint64_t trace = 0, seenTrace = 0;
  std::uint32_t loop = 0;
};

/// The next number of a seeded sequence.
inline std::uint64_t nextRandom(std::uint64_t &state) {
  // splitmix64: https://prng.di.unimi.it/splitmix64.c, in the public domain
  std::uint64_t mixed = state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

/// Most warp instructions of one warp in a launch, unless the user sets another limit. The emulator
/// needs ten minutes for as many, a GPU a minute or more, for which no kernel is written; so it ends
/// what is endless and nothing else.
constexpr std::uint64_t DefaultMaxSteps = 1ull << 36;

/// One grid.
struct Launch {
  const Kernel *kernel = nullptr;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t dynamicShared = 0;
  const std::uint8_t *parameters = nullptr;
  std::uint64_t ctas = 1;
  std::string label;
  const class Memory *memory = nullptr;
  const PtxModule *ptx = nullptr;
  LaunchObserver *observer = nullptr; // if something is checked or counted
  bool serial = false;                // all CTAs run on the calling thread
  bool namedRanges = false; // accesses are confined to named ranges, not only to allocations

  bool cooperative = false; // all CTAs are started before the first one goes on
  /// Of a cooperative launch: two zeroed words of device memory, where its CTAs meet. Zero otherwise,
  /// which grid.sync() of CUDA's headers takes for "not cooperative" and traps.
  std::uint64_t workspace = 0;
  class DeviceHeap *heap = nullptr; // if the kernel allocates
  std::uint64_t maxSteps = DefaultMaxSteps;
  std::uint64_t seed = 0;     // permutes CTAs and warps; 0: natural order
  class Tier *tier = nullptr; // if the kernel's hot blocks are compiled

  // Workers write what follows; it has cache lines of its own.
  alignas(64) std::atomic<std::uint64_t> next{0}; // CTAs handed out
  /// CTAs from this one on need not run: it has failed, and the fault of the lowest CTA is the one
  /// reported.
  alignas(64) std::atomic<std::uint64_t> runBelow{~0ull};
  /// Raised whenever a CTA has done more than wait.
  std::atomic<std::uint64_t> progress{1};
  std::mutex faultMutex;
  std::map<std::uint64_t, std::string> output; // of the CTAs that printed; under faultMutex
  bool faulted = false;
  Fault fault{};
  std::string assertion; // what failed, of the lowest CTA where one did
  // Workers that take part, those that are through, and those whose CTAs all waited, or went in
  // circles, while `progress` was `judgedAt`.
  unsigned joined = 0, left = 0, quiet = 0, circling = 0;
  std::uint64_t judgedAt = 0;
};

constexpr unsigned MaxGroup = 8; // warps

/// Inst::together of an instruction without a form for groups.
void runEach(const Group &group, const Inst &inst);
/// Runs `block`, whose instructions are counted already, and those behind it. Each warp is left where
/// it cannot go on in a group: Warp::block has the block, its ending is still to be done.
void runGroup(const Kernel &kernel, const Group &group, std::uint32_t block);
/// The same from the beginning of the block where the warps are, which no observer hears. Afterwards
/// runWarp() goes on.
void startGroup(const Kernel &kernel, const Group &group);

/// Records a fault of `lane`; the first one of the lowest CTA wins.
void reportFault(Warp &warp, std::uint32_t line, FaultKind kind, unsigned lane,
                 std::uint64_t address = 0, std::uint32_t bytes = 0, const char *access = "");

/// Finds the region that holds `address`: global memory, or a window of the generic space. Null
/// region: none.
bool findRegion(const Warp &warp, std::uint64_t address, RegionRef &region);

/// Text of the launch's fault.
std::string describeFault(const Launch &launch);

/// Warp instructions executed by all launches so far.
extern std::atomic<std::uint64_t> executedInstructions;

enum class Stop : std::uint8_t { Barrier, Exit, Yield };
/// Runs one warp until it stops. Yield: at a backward jump from Warp::stopAt on.
Stop runWarp(const Kernel &kernel, Warp &warp);
/// The same, slowly: Warp::trace becomes a hash of all registers after every instruction.
Stop traceWarp(const Kernel &kernel, Warp &warp);
/// A hash of the warp's registers and live lanes.
std::uint64_t hashRegisters(const Kernel &kernel, const Warp &warp);
/// Records that `warp` does not leave the loop that `block` closes.
void reportLoop(const Kernel &kernel, Warp &warp, std::uint32_t block, FaultKind kind);

} // namespace planemu

#endif // PLANEMU_MACHINE_H
