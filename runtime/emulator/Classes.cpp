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

/// Conversions between integers and between bits move them; others compute.
static Flow flowOfConversion(const Statement &statement) {
  for (std::string_view modifier : statement.modifiers)
    if (modifier != ".sat" &&
        (modifier.size() < 3 || !(modifier[1] == 's' || modifier[1] == 'u' || modifier[1] == 'b') ||
         modifier[2] < '0' || modifier[2] > '9'))
      return Flow::Use;
  return Flow::Copy;
}

Flow planemu::flowOf(const Statement &statement) {
  static constexpr struct {
    std::string_view opcode;
    Flow flow;
  } Flows[] = {
      {"mov", Flow::Copy}, {"cvta", Flow::Copy}, {"ld", Flow::Load},   {"st", Flow::Store},
      {"and", Flow::And},  {"or", Flow::Or},     {"xor", Flow::Bits},  {"not", Flow::Bits},
      {"lop3", Flow::Mix}, {"shl", Flow::Left},  {"shr", Flow::Right}, {"shf", Flow::Mix},
      {"bfe", Flow::Mix},  {"bfi", Flow::Mix},   {"prmt", Flow::Mix},  {"selp", Flow::Select},
      {"min", Flow::Mix},  {"max", Flow::Mix},   {"setp", Flow::Mix},  {"set", Flow::Mix},
      {"call", Flow::Mix}, {"ret", Flow::Mix},
  };
  if (statement.opcode == "cvt")
    return flowOfConversion(statement);
  for (const auto &row : Flows)
    if (row.opcode == statement.opcode)
      return row.flow;
  return Flow::Use;
}
