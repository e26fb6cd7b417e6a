//===- Options.h - plan-emu's command line ---------------------------------===//
//
// What the command line asks for; the kernel's arguments have a header of their own.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_EMU_OPTIONS_H
#define PLANC_LIB_TOOLS_PLAN_EMU_OPTIONS_H

#include "lib/Tools/plan-emu/Arguments.h"

#include <array>

namespace planemutool {

struct Options {
  std::string file;
  std::string kernel; // empty: the only one
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  uint32_t sharedBytes = 0; // dynamic
  std::vector<Argument> arguments;
  uint32_t repeat = 1;
  bool cooperative = false;

  std::string target; // empty: what the file is for
  uint32_t threads = 0;
  uint64_t maxSteps = 0;
  uint64_t seed = 0;
  uint32_t checks = 0;
  std::string counters; // a file, or "-" for stdout

  bool list = false;
  bool json = false;
  bool help = false;
  bool version = false;
};

/// Parses the arguments after the program's name; reads no file.
planc::Result<Options> parseOptions(const std::vector<std::string> &arguments);

extern const char *const usage;

} // namespace planemutool

#endif // PLANC_LIB_TOOLS_PLAN_EMU_OPTIONS_H
