//===- Machine.h - warps, CTAs and launches while they run ----------------===//
//
// The state that instructions read and write. A Worker is one host thread; it runs one CTA at a
// time, its warps in turn. Everything that belongs to a CTA is reset when the CTA starts, so that
// results do not depend on which worker runs it.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_MACHINE_H
#define PLANEMU_MACHINE_H

#include "runtime/emulator/Code.h"

#include <atomic>
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
  BadOperand, // a run-time operand outside what the instruction takes
};

struct Fault {
  FaultKind kind;
  std::uint32_t line;
  std::uint32_t cta[3], thread[3];
  std::uint64_t linearCta;
  std::uint64_t address;
  std::uint32_t bytes;
  const char *access; // "ld.global" and the like
};

struct Launch;

struct Cta {
  std::uint32_t id[3] = {0, 0, 0};
  std::uint64_t linear = 0;
  bool failed = false;
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
  std::uint32_t index = 0;    // in the CTA
  std::uint64_t executed = 0; // instructions

  // Where to go on. `ready` are runnable, highest order first; `parked` wait at a barrier,
  // `waiting` for the lanes of a .sync instruction.
  std::uint32_t block = 0, inst = 0;
  Fragment ready[32], parked[32], waiting[32];
  unsigned readyCount = 0, parkedCount = 0, waitingCount = 0;
  bool atBarrier = false;
  std::uint32_t barrierBlock = 0, barrierId = 0;
  bool done = false;
};

/// One grid. Workers take CTAs from `next`.
struct Launch {
  const Kernel *kernel = nullptr;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t dynamicShared = 0;
  const std::uint8_t *parameters = nullptr;
  std::uint64_t ctas = 1;
  std::string label;
  const class Memory *memory = nullptr;

  std::atomic<std::uint64_t> next{0};
  /// CTAs after this one need not run: it has failed, and the fault of the lowest CTA is the one
  /// reported.
  std::atomic<std::uint64_t> failedCta{~0ull};
  std::mutex faultMutex;
  bool faulted = false;
  Fault fault{};
};

/// Records a fault of `lane`; the first one of the lowest CTA wins.
void reportFault(Warp &warp, std::uint32_t line, FaultKind kind, unsigned lane,
                 std::uint64_t address = 0, std::uint32_t bytes = 0, const char *access = "");

/// Finds the region that holds `address`: global memory, or a window of the generic space. Null
/// region: none.
bool findRegion(const Warp &warp, std::uint64_t address, RegionRef &region);

/// Text of the launch's fault.
std::string describeFault(const Launch &launch, const struct PtxModule &ptx);

/// Runs CTAs of `launch` until none is left. One per worker thread, kept between launches for its
/// buffers.
class Worker {
public:
  void run(Launch &launch);

private:
  void prepare(Launch &launch);
  void startCta(std::uint64_t linear);
  void runCta();
  void fillConstant(const Constant &constant, Warp &warp);
  void arrive(Warp &warp);
  void completeBarrier(std::uint32_t id);

  struct BarrierState {
    std::uint32_t arrived = 0, expected = 0; // threads; expected 0: all of the CTA
    std::uint32_t count = 0;                 // of bar.red's predicate
    bool all = true, any = false;
  };

  Launch *launch = nullptr;
  Cta cta;
  std::vector<Warp> warps;
  std::vector<RegionRef> regions;
  std::unique_ptr<char[], void (*)(void *)> files{nullptr, nullptr};
  std::size_t filesBytes = 0;
  std::vector<char> shared, local;
  std::uint32_t liveWarps = 0;
  BarrierState barriers[16];
};

/// Warp instructions executed by all launches so far.
extern std::atomic<std::uint64_t> executedInstructions;

enum class Stop : std::uint8_t { Barrier, Exit, Yield };
/// Runs one warp until it stops.
Stop runWarp(const Kernel &kernel, Warp &warp);

} // namespace planemu

#endif // PLANEMU_MACHINE_H
