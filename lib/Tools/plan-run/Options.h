//===- Options.h - plan-run's command line ---------------------------------===//
//
// Parsed by hand: plan-run's options are few, and the tool's usage text is its only other home.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_RUN_OPTIONS_H
#define PLANC_LIB_TOOLS_PLAN_RUN_OPTIONS_H

#include "lib/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planrun {

/// What the command line asks for.
struct Options {
  std::string bundle;
  std::string weights;                      // a path; empty with `seed`
  std::optional<uint64_t> seed;             // random weights
  std::vector<std::vector<int64_t>> tokens; // one list a sequence
  uint32_t generate = 0;
  std::string device = "emulator"; // or "cuda", "cuda:N", "reference"
  std::string program;             // empty: the first
  std::string logits;              // .npy to write
  std::vector<std::string> dump;
  std::string dumpDir;
  uint32_t threads = 0;
  uint32_t checks = 0;       // of planrt_check
  uint64_t scheduleSeed = 0; // 0: the natural order
  std::string counters;      // .json to write
  std::string trace;         // .json to write
  bool countersDiff = false; // a mode of its own: no bundle, but two files of counters
  std::vector<std::string> counterFiles;
  bool compare = false;
  bool verbose = false;
  bool json = false;
  bool help = false;
  bool version = false;

  /// Steps to run: every given token, then one less than is generated (the last is not fed back).
  size_t steps() const { return tokens[0].size() + (generate ? generate - 1 : 0); }
};

/// Parses the arguments after the program's name. An error is a usage error, except where the
/// content of a well-formed option is refused.
planc::Result<Options> parseOptions(const std::vector<std::string> &arguments);

extern const char *const usage;

} // namespace planrun

#endif // PLANC_LIB_TOOLS_PLAN_RUN_OPTIONS_H
