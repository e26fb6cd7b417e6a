//===- Instructions.h - the select functions of Instructions.def ----------===//
//
// One per row, defined in the family files of this folder.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_INSTRUCTIONS_H
#define PLANEMU_OPS_INSTRUCTIONS_H

#include "runtime/emulator/Decoder.h"

namespace planemu::PLANEMU_ISA {

#define PLANEMU_INSTRUCTION(Opcode, Select, Class) void Select(Decoder &d);
#include "runtime/emulator/ops/Instructions.def"
#undef PLANEMU_INSTRUCTION

extern const InstructionSet instructions;

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_INSTRUCTIONS_H
