//===- DecodePtx.cpp - planemu-decode: print what a module decodes to -----===//
//
// For lit tests of the decoded form. For every kernel, in the order in which blocks are laid out, a
// line per instruction: `LINE CLASS TEXT`.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Decoder.h"

#include <cstdio>
#include <fstream>
#include <sstream>

using namespace planemu;

namespace planemu::base {
extern const InstructionSet instructions;
}

static void print(const PtxModule &ptx, unsigned line, InstClass cls) {
  if (cls != InstClass::Part)
    std::printf("%u %s %s\n", line, nameOf(cls), std::string(lineText(ptx, line)).c_str());
}

int main(int argc, char **argv) {
  std::ifstream file(argc == 2 ? argv[1] : "");
  if (!file) {
    std::fprintf(stderr, "usage: planemu-decode FILE.ptx\n");
    return 2;
  }
  std::stringstream text;
  text << file.rdbuf();
  try {
    std::unique_ptr<PtxModule> ptx = parsePtx(text.str());
    for (const auto &function : ptx->functions) {
      if (!function->entry || function->external)
        continue;
      std::unique_ptr<Kernel> kernel = decodeKernel(*ptx, {}, base::instructions, *function);
      std::printf("kernel %s\n", kernel->name.c_str());
      for (const Block &block : kernel->blocks) {
        for (unsigned n = block.first; n < block.last; ++n)
          print(*ptx, kernel->insts[n].line, kernel->classes[n]);
        print(*ptx, block.line, block.cls);
      }
    }
  } catch (const PtxError &error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
  return 0;
}
