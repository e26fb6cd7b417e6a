//===- Arguments.h - a kernel's arguments, from the command line -----------===//
//
// A buffer comes from a .npy file or is made for an output; anything else is a value that is passed
// itself.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_PLAN_EMU_ARGUMENTS_H
#define PLANC_LIB_TOOLS_PLAN_EMU_ARGUMENTS_H

#include "lib/Support/Npy.h"

namespace planemutool {

struct Argument {
  std::string text;      // as it was given, for messages
  bool isBuffer = false; // passed by its address
  std::string input;     // file to read; empty: none
  std::string output;    // file to write; empty: none
  std::string descr;     // NumPy's name of the element type, of what is read or written
  std::vector<int64_t> shape;
  planc::Bytes data;  // the buffer's content, or the value
  uint64_t bytes = 0; // of the buffer

  /// "arg 2 (y.npy)"
  std::string name(size_t position) const;
};

/// Parses argument `position` as `--arg` takes it; reads no file.
planc::Result<Argument> parseArgument(const std::string &text, size_t position);

/// Reads the file, if it has one.
planc::Status readArgument(Argument &argument);

} // namespace planemutool

#endif // PLANC_LIB_TOOLS_PLAN_EMU_ARGUMENTS_H
