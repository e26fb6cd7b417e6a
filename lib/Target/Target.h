//===- Target.h - what is known about a GPU --------------------------------===//
//
// The door of lib/Target: the rows of Targets.def as constants that live as long as the process. No
// MLIR, no LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_TARGET_TARGET_H
#define PLANC_LIB_TARGET_TARGET_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planc {

/// What an architecture can do beyond the common base.
enum class Feature : unsigned {
#define PLANC_FEATURE(Name, text) Name,
#include "lib/Target/Targets.def"
};

/// One GPU to compile for.
struct Target {
  std::string_view name; ///< as given to --target: "gb10", "sm_121"
  unsigned sm;           ///< compute capability, major * 10 + minor: 121
  unsigned ptxVersion;   ///< major * 10 + minor: 88
  unsigned smCount;      ///< streaming multiprocessors
  uint32_t sharedBytes;  ///< shared memory that one block may opt into
  uint32_t dramGBps;     ///< peak DRAM bandwidth, 10^9 bytes per second
  uint32_t features;     ///< set of `Feature`, ask `has`

  bool has(Feature feature) const { return features >> unsigned(feature) & 1; }

  /// "sm_121": what `.target`, ptxas and a bundle's image call this GPU.
  std::string arch() const { return "sm_" + std::to_string(sm); }
};

/// The target of that name, or null.
const Target *lookupTarget(std::string_view name);

/// All targets, in the order of the table.
const std::vector<Target> &allTargets();

/// "gb10, rtx5090, ...": for --help and for the error about an unknown name.
std::string targetNames();

/// "e4m3 conversion instructions": for a schedule that refuses a target.
std::string_view describe(Feature feature);

} // namespace planc

#endif // PLANC_LIB_TARGET_TARGET_H
