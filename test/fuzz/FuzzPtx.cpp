//===- FuzzPtx.cpp - any bytes through the PTX reader ---------------------===//
//
// Parses the input as a module and decodes every kernel, as loading does; nothing runs. Any text may
// be refused, with a PtxError; nothing else may happen.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Decoder.h"

using namespace planemu;

namespace planemu::base {
extern const InstructionSet instructions;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  try {
    auto module = parsePtx(std::string(reinterpret_cast<const char *>(data), size));
    ModuleLayout layout;
    std::uint64_t address = 1ull << 32;
    for (const Variable &variable : module->variables)
      if (variable.space != Space::Shared && !variable.external)
        layout.globals[variable.name] = address += 4096;
    for (const auto &function : module->functions)
      if (function->entry && !function->external)
        Decoder(*module, layout, base::instructions).decode(*function);
  } catch (const PtxError &) {
  }
  return 0;
}
