//===- Tier.h - compiled code for the hot blocks of a kernel --------------===//
//
// The JIT compiler is a library of its own, libplanemu-jit (jit/), which lies beside this one and is
// opened when somebody asks for it. Blocks are compiled, once whole warps have run them often enough;
// all else stays with the interpreter, which hands whole, unwatched warps over block by block.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_TIER_H
#define PLANEMU_TIER_H

#include "runtime/emulator/Code.h"
#include "runtime/emulator/jit/Jit.h"

#include <atomic>
#include <mutex>
#include <string>

namespace planemu {

/// Opens the compiler. Null if there is none that fits, and `error` says why.
const planemu_jit_compiler *openCompiler(std::string &error);

/// Of one kernel.
class Tier {
public:
  /// Executions of a block after which it is compiled. To compile an instruction takes as long as some
  /// 150000 of its executions save; of a model's kernels what has come so far comes to that within a
  /// few tokens.
  static constexpr std::uint32_t Hot = 1 << 14, Always = 0;

  Tier(const Kernel &kernel, const planemu_jit_compiler &compiler, const char *isa);
  ~Tier();
  Tier(const Tier &) = delete;

  /// From now on compiles blocks that have been executed `executions` times.
  void setThreshold(std::uint32_t executions) { threshold = executions; }
  /// A whole warp enters the block: its code, or null if it is to be interpreted.
  planemu_jit_run enter(std::uint32_t block) {
    State &state = states[block];
    if (planemu_jit_run code = state.code.load(std::memory_order_acquire)) [[likely]]
      return code;
    // Counts may get lost between threads, which makes no difference but when.
    std::uint32_t entered = state.entered.load(std::memory_order_relaxed);
    if (entered >= threshold)
      return compile(block);
    state.entered.store(entered + 1, std::memory_order_relaxed);
    return nullptr;
  }
  /// Why a block could not be compiled; empty if all could.
  std::string failure();

private:
  planemu_jit_run compile(std::uint32_t block);

  struct State {
    std::atomic<planemu_jit_run> code{nullptr};
    std::atomic<std::uint32_t> entered{0};
  };
  const Kernel &kernel;
  const planemu_jit_compiler &compiler;
  const char *const isa;
  std::uint32_t threshold = Hot;
  std::vector<State> states; // of the kernel's blocks
  std::mutex mutex;          // for what follows
  std::vector<void *> compiled;
  std::string error;
};

} // namespace planemu

#endif // PLANEMU_TIER_H
