//===- Instructions.cpp - the table of one instruction set ----------------===//
//
// Instructions.def as data: what the decoder looks a mnemonic up in.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Instructions.h"

namespace planemu::PLANEMU_ISA {

static const InstructionRow Rows[] = {
#define PLANEMU_INSTRUCTION(Opcode, Select, Class) {Opcode, Select, InstClass::Class},
#include "runtime/emulator/ops/Instructions.def"
#undef PLANEMU_INSTRUCTION
};

#define PLANEMU_STRING_(Text) #Text
#define PLANEMU_STRING(Text) PLANEMU_STRING_(Text)
const InstructionSet instructions = {PLANEMU_STRING(PLANEMU_ISA), Rows,
                                     sizeof(Rows) / sizeof(*Rows)};

} // namespace planemu::PLANEMU_ISA
