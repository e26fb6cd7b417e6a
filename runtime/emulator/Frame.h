//===- Frame.h - a function while it is decoded ---------------------------===//

#ifndef PLANEMU_FRAME_H
#define PLANEMU_FRAME_H

#include "runtime/emulator/Decoder.h"

namespace planemu {

/// A function that is called instead of being decoded wherever it is called. What a call of it needs
/// lies in a frame on the stack of each lane:
///
///   | return site, caller's frame | results, parameters, variables | saved registers |
struct Decoder::Body {
  static constexpr std::uint32_t LinkBytes = 16;

  const Function *function;
  std::uint32_t index;          // in `bodies`
  std::uint32_t entry, returns; // blocks: the first one, and the one that returns
  std::uint32_t firstRegister;
  std::uint32_t bytes = LinkBytes;                // of a frame without saved registers
  std::uint32_t mostSaved = 0;                    // registers
  std::vector<std::uint64_t> results, parameters; // where they lie in a frame
  std::vector<std::uint32_t> sites;               // blocks to return to
};

struct Decoder::Frame {
  const Function *function;
  Frame *caller; // whose code this one is part of
  std::uint32_t firstRegister;
  std::vector<std::uint64_t> variables;  // offsets or addresses, by space
  std::vector<std::uint64_t> parameters; // entry: in the parameter buffer; else: local
  std::vector<std::uint64_t> results;    // local
  std::vector<std::uint32_t> labels;     // block of each label
  std::uint32_t returnBlock;
  std::uint32_t savedStack; // register with the stack pointer at its start; 0: it allocates nothing
  Body *body = nullptr;     // in whose frames its local variables lie; null: at fixed places
};

} // namespace planemu

#endif // PLANEMU_FRAME_H
