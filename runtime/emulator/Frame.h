//===- Frame.h - a function while it is decoded ---------------------------===//

#ifndef PLANEMU_FRAME_H
#define PLANEMU_FRAME_H

#include "runtime/emulator/Decoder.h"

namespace planemu {

struct Decoder::Frame {
  const Function *function;
  Frame *caller;
  std::uint32_t firstRegister;
  std::vector<std::uint64_t> variables;  // offsets or addresses, by space
  std::vector<std::uint64_t> parameters; // entry: in the parameter buffer; else: local
  std::vector<std::uint64_t> results;    // local
  std::vector<std::uint32_t> labels;     // block of each label
  std::uint32_t returnBlock;
  std::uint32_t savedStack; // register with the stack pointer at its start; 0: it allocates nothing
};

} // namespace planemu

#endif // PLANEMU_FRAME_H
