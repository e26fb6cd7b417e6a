//===- Ptx.h - a PTX module as parsed -------------------------------------===//
//
// What the parser hands to the decoder: statements with their operands, names of registers and
// variables already resolved by scope. Nothing here knows what an instruction does. Views point
// into the module's own copy of the text.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_PTX_H
#define PLANEMU_PTX_H

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace planemu {

/// A module that cannot be loaded. The message names line, kernel and text.
struct PtxError : std::runtime_error {
  enum Reason { Invalid, Version, Target };
  explicit PtxError(std::string message, Reason reason = Invalid)
      : std::runtime_error(std::move(message)), reason(reason) {}
  Reason reason;
};

/// X(enumerator, PTX spelling without the dot, bits)
#define PLANEMU_TYPES(X)                                                                           \
  X(B8, "b8", 8)                                                                                   \
  X(B16, "b16", 16)                                                                                \
  X(B32, "b32", 32)                                                                                \
  X(B64, "b64", 64)                                                                                \
  X(B128, "b128", 128)                                                                             \
  X(U8, "u8", 8)                                                                                   \
  X(U16, "u16", 16)                                                                                \
  X(U32, "u32", 32)                                                                                \
  X(U64, "u64", 64)                                                                                \
  X(S8, "s8", 8)                                                                                   \
  X(S16, "s16", 16)                                                                                \
  X(S32, "s32", 32)                                                                                \
  X(S64, "s64", 64)                                                                                \
  X(F16, "f16", 16)                                                                                \
  X(F16x2, "f16x2", 32)                                                                            \
  X(BF16, "bf16", 16)                                                                              \
  X(BF16x2, "bf16x2", 32)                                                                          \
  X(F32, "f32", 32)                                                                                \
  X(F32x2, "f32x2", 64)                                                                            \
  X(F64, "f64", 64)                                                                                \
  X(U16x2, "u16x2", 32)                                                                            \
  X(S16x2, "s16x2", 32)                                                                            \
  X(E4M3x2, "e4m3x2", 16)                                                                          \
  X(E5M2x2, "e5m2x2", 16)                                                                          \
  X(E3M2x2, "e3m2x2", 16)                                                                          \
  X(E2M3x2, "e2m3x2", 16)                                                                          \
  X(E2M1x2, "e2m1x2", 8)                                                                           \
  X(UE8M0x2, "ue8m0x2", 16)                                                                        \
  X(TF32, "tf32", 32)                                                                              \
  X(Pred, "pred", 1)

enum class Type : std::uint8_t {
  None,
#define PLANEMU_TYPE(Name, Text, Bits) Name,
  PLANEMU_TYPES(PLANEMU_TYPE)
#undef PLANEMU_TYPE
};

unsigned bitsOf(Type type);
const char *nameOf(Type type);
/// Type::None if `text` (with its dot) names no type.
Type typeNamed(std::string_view text);

inline bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }
inline bool isUnsigned(Type type) { return type >= Type::U8 && type <= Type::U64; }
inline bool isInteger(Type type) { return isSigned(type) || isUnsigned(type); }
inline bool isBits(Type type) { return type >= Type::B8 && type <= Type::B128; }

enum class Space : std::uint8_t { Generic, Global, Const, Shared, Local, Param };

/// An address stored in the initial value of a module variable.
struct Relocation {
  std::uint64_t offset;
  std::string symbol;
  std::int64_t addend;
  unsigned bytes;
};

struct Variable {
  std::string name;
  Space space = Space::Generic;
  Type type = Type::None;
  unsigned align = 1;
  std::uint64_t bytes = 0;
  bool external = false;
  int reg = -1;                   // a parameter that is a register of its function: which
  std::vector<std::uint8_t> init; // empty: zero
  std::vector<Relocation> relocations;
  unsigned line = 0;
};

struct Operand {
  enum Kind : std::uint8_t {
    Register,  // index: of Function::registers
    Special,   // text: %tid.x and the like
    Immediate, // bits, as a 64-bit two's complement integer
    Float32,   // bits of an f32 (0f...)
    Float64,   // bits of an f64 (0d... or a decimal)
    Local,     // index: of Function::variables; offset
    Parameter, // index: of Function::parameters; offset
    Result,    // index: of Function::results; offset
    Symbol,    // text: a label, function or module variable; offset
    Vector,    // parts
    Address,   // parts[0], offset
    List,      // parts, in parentheses
    Sink,      // _
  };
  Kind kind = Sink;
  bool negated = false; // !%p
  unsigned index = 0;
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::string_view text;      // as written, for messages and symbols
  std::vector<Operand> parts; // of Vector, Address, List
  std::vector<Operand> also;  // %r1|%p1: the second destination
};

struct Statement {
  std::string_view text; // as written, without the semicolon
  unsigned line = 0;
  unsigned scope = 0;
  bool guarded = false, guardNegated = false;
  unsigned guard = 0; // register index
  std::string_view opcode;
  std::vector<std::string_view> modifiers; // each with its dot
  std::vector<Operand> operands;
};

/// What a .callprototype says of functions: the sizes of what goes in and out.
struct Prototype {
  std::vector<Variable> results, parameters;
};

struct Label {
  std::string_view name;
  unsigned scope;
  unsigned statement;                    // of the statement that follows
  std::vector<std::string_view> targets; // of .branchtargets and .calltargets
  std::shared_ptr<Prototype> prototype;  // of .callprototype
  bool callTargets = false;
};

struct Function {
  std::string name;
  unsigned line = 0;
  bool entry = false, external = false;
  std::vector<Variable> results, parameters, variables;
  std::vector<Type> registers;
  std::vector<std::string> registerNames; // parallel to registers
  std::vector<Statement> statements;
  std::vector<unsigned> scopeParents; // scope 0 is the body
  std::vector<Label> labels;
  std::array<unsigned, 3> reqNtid = {0, 0, 0};
  std::uint64_t maxNtid = 0; // product of .maxntid; 0: none given

  /// The label `name` seen from `scope`, or null.
  const Label *findLabel(std::string_view name, unsigned scope) const;
};

struct PtxModule {
  std::string text;
  unsigned version = 0;            // 10 * major + minor
  unsigned target = 0;             // sm number
  std::string targetSuffix;        // "", "a" or "f"
  std::vector<Variable> variables; // .global, .const, .shared
  std::vector<std::unique_ptr<Function>> functions;

  const Function *findFunction(std::string_view name) const;
  const Variable *findVariable(std::string_view name) const;
};

/// The statement that starts on `line`, up to the end of that line; empty if there is no such line.
std::string_view lineText(const PtxModule &module, unsigned line);
/// `text` as messages quote it: on one line, and not too long.
std::string quoted(std::string_view text);

/// Throws PtxError.
std::unique_ptr<PtxModule> parsePtx(std::string text);

} // namespace planemu

#endif // PLANEMU_PTX_H
