//===- Classes.cpp - what an instruction is counted as --------------------===//
//
// A row of Instructions.def gives the class of its mnemonic. Some mnemonics serve several
// classes: arithmetic, by its first type, loads and stores, by their space, and wmma.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Decoder.h"

using namespace planemu;

const char *planemu::nameOf(InstClass cls) {
  switch (cls) {
#define PLANEMU_CLASS(Name, Text)                                                                  \
  case InstClass::Name:                                                                            \
    return Text;
    PLANEMU_CLASSES(PLANEMU_CLASS)
#undef PLANEMU_CLASS
  }
  return "unknown";
}

/// Of `row` where the type says nothing else: integers, the functions of Special on f32.
static InstClass byType(InstClass row, Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
  case Type::BF16:
  case Type::BF16x2:
    return row == InstClass::Special ? row : InstClass::Half;
  case Type::F64:
    return InstClass::Double;
  case Type::F32:
  case Type::F32x2:
    return row == InstClass::Special ? row : InstClass::Float;
  case Type::Pred:
    return InstClass::Predicate;
  default:
    return row;
  }
}

namespace {
struct SpaceRow {
  std::string_view prefix; // `.shared` also stands for `.shared::cta`
  InstClass load, store;
};
} // namespace

static constexpr SpaceRow Spaces[] = {
    {".shared", InstClass::LoadShared, InstClass::StoreShared},
    {".local", InstClass::LoadLocal, InstClass::StoreLocal},
    {".const", InstClass::LoadConst, InstClass::Other},
    {".param", InstClass::LoadParam, InstClass::StoreParam},
};

InstClass planemu::classOf(InstClass row, const Statement &statement) {
  switch (row) {
  case InstClass::Integer:
  case InstClass::Float:
  case InstClass::Special:
    for (std::string_view modifier : statement.modifiers)
      if (Type type = typeNamed(modifier); type != Type::None)
        return byType(row, type);
    return row;
  case InstClass::LoadGlobal:
  case InstClass::StoreGlobal:
    for (std::string_view modifier : statement.modifiers)
      for (const SpaceRow &space : Spaces)
        if (modifier.starts_with(space.prefix))
          return row == InstClass::LoadGlobal ? space.load : space.store;
    return row;
  case InstClass::Matrix: // wmma.mma beside wmma.load and wmma.store
    return !statement.modifiers.empty() && statement.modifiers[0] == ".mma" ? InstClass::Mma : row;
  default:
    return row;
  }
}
