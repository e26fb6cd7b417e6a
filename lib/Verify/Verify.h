//===- Verify.h - prove that kernels compute what their plan says ----------===//
//
// The door of lib/Verify. Every kernel is compiled and run on the emulator, with all its checks, on
// seeded inputs of several classes, and each outcome is held against lib/Reference within bounds
// that follow from the plan's own steps. Kernels of a `bit_identical` group must also have the bytes
// of the unfused chain, and every kernel the same bytes in every order of CTAs and warps, on every
// number of threads, and from the PTX of every target. With `mutate`, faults are planted in kernels,
// and each must be caught: a check that cannot fail proves nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_VERIFY_H
#define PLANC_LIB_VERIFY_VERIFY_H

#include "lib/Support/Error.h"
#include "lib/Support/Json.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace planc {

struct Target;

namespace verify {

struct Options {
  std::vector<const Target *> targets; ///< borrowed; the first one's PTX meets every check
  int64_t kvBlock = 16;
  uint64_t seed = 1;
  bool mutate = false;
  bool checks = true;        ///< run under the emulator's; without, to see what only they find
  bool allowDiffers = false; ///< groups whose contract is `differs` are otherwise failures
  unsigned workers = 0;      ///< processes; 0 for one per core
  std::string cacheDir;      ///< of kernels and verdicts; "" for the user's own
  bool useCache = true;
};

/// Something that does not hold: which class of inputs (or which comparison), and what was seen.
struct Failure {
  std::string
      where; ///< "gaussian", "schedule seed 7", "target sm_80", "mutation drop_last_tile #2"
  std::string message;
};

/// A fault that was planted in a kernel.
struct Planted {
  std::string name;  ///< "skipped_barrier"
  std::string where; ///< "gpu.barrier #2"
  std::string how;   ///< it was caught: "gaussian: ..."; empty if it was not
};

/// What was found out about one kernel.
struct Verdict {
  std::string name;
  std::vector<int64_t> groups; ///< that start it, of all programs
  std::string contract;
  std::string schedule;
  double worst = 0;       ///< largest error as a fraction of its bound
  std::string worstClass; ///< of inputs, where it occurred
  std::string worstEdge;  ///< and on which edge or state
  std::vector<Planted> mutations;
  std::vector<Failure> failures;
  bool fromCache = false;

  size_t mutationsCaught() const;
};

struct Report {
  std::vector<Verdict> kernels; ///< in the order of the module

  bool ok() const;
};

/// Called as kernels are done, and then as mutations are, in the order in which that happens.
using Progress = std::function<void(const Verdict &, size_t done, size_t total)>;

/// Verifies every plan.kernel of a module that has been through the kernel pipeline. The process
/// may have no thread beside the calling one: kernels are verified in forked processes, so that one
/// that brings its process down is a failure of that kernel alone.
Result<Report> verify(mlir::ModuleOp module, const Options &options, const Progress &progress);

/// For people: a line a kernel, a line a kind of mutation, and what failed.
std::string toText(const Report &report);
/// {kernels[] {name, groups, contract, schedule, worst, class, mutations_applied, mutations_caught,
/// failures[] {where, message}}, ok}. An infinite `worst` is null.
Json toJson(const Report &report);

} // namespace verify
} // namespace planc

#endif // PLANC_LIB_VERIFY_VERIFY_H
