//===- Code.h - a kernel in the form that is executed ---------------------===//
//
// Decoded once at module load, immutable afterwards and shared by all workers. One Inst is one call
// through a pointer chosen for its opcode, types and modifiers; its operands are byte offsets into
// the *file* of the warp that executes it:
//
//   file:  | predicates, 4 bytes each | constants | registers | AddressNotes |
//
// A predicate is a mask of 32 lanes, and the one at offset 0 is always all ones: an unguarded
// instruction is guarded by it. Registers and constants are 32 lanes of 2, 4 or 8 bytes, 64-byte
// aligned. Immediates, kernel parameters and special registers are constants, so that every operand
// is of one kind.
//
// A block is there twice. `insts` has every statement, for warps whose lanes are apart and for those
// that are watched. `groupInsts` is for groups of warps (Group.cpp): an Inst there is executed for all
// of them before the next; and moves and conversions whose result nobody reads, or can read before they
// are done, are left out.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_CODE_H
#define PLANEMU_CODE_H

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <typeinfo>
#include <vector>

namespace planemu {

struct Warp;
struct Inst;
using Run = void (*)(Warp &, const Inst &);

/// Warps of one CTA at one place of the kernel, all 32 lanes of each.
struct Group {
  Warp *const *warps;
  unsigned count;

  Warp *const *begin() const { return warps; }
  Warp *const *end() const { return warps + count; }
};
using RunGroup = void (*)(const Group &, const Inst &);

/// What a reader of an instruction's result may read instead (GroupInsts.cpp).
enum class Effect : std::uint8_t {
  Other,
  Copy,      // d = a
  Split,     // {low, high} = a: b32 to two b16
  WidenE4m3, // the two halves of d = the two bytes of a, from e4m3 to f16
};

/// What an instruction does that computes each lane from the same lane of its sources: a function on
/// eight lanes, which a JIT compiler has as bitcode (jit/).
struct LaneCode {
  const std::type_info *type = nullptr; // whose name is the function's
  std::uint8_t bytes[6] = {};           // of a lane of each operand, in their order; 0: a predicate
#if defined(PLANEMU_BITCODE)
  const void *code = nullptr; // keeps the function
#endif
};

/// How a group executes an instruction.
struct GroupForm {
  RunGroup together = nullptr;
  const LaneCode *lanes = nullptr; // if it works on lanes
};

/// Forms for groups of an instruction whose only source has 16 bits, for where that source is...
struct SourceForms {
  GroupForm half[2] = {};      // a half of a b32
  GroupForm e4m3[2] = {};      // what WidenE4m3 makes of a byte of a b16
  GroupForm e4m3InB32[4] = {}; // or of a byte of a b32
};

/// How an instruction is executed: by a warp, and by a group, if it has a form for that.
struct Exec : GroupForm {
  Run run = nullptr;
  Effect effect = Effect::Other;
  const SourceForms *forms = nullptr;

  Exec() = default;
  /// A function, or a lambda that is one.
  template <std::convertible_to<Run> Function>
  constexpr Exec(Function run, RunGroup together = nullptr) : GroupForm{together}, run(run) {}
  constexpr Exec with(Effect what) const {
    Exec exec = *this;
    exec.effect = what;
    return exec;
  }
  constexpr Exec with(const SourceForms &others) const {
    Exec exec = *this;
    exec.forms = &others;
    return exec;
  }
  constexpr Exec with(const LaneCode &code) const {
    Exec exec = *this;
    exec.lanes = &code;
    return exec;
  }
  explicit operator bool() const { return run; }
};

/// X(enumerator, name in reports): what an instruction is counted as. Classes of memory are those of
/// the statement; generic accesses count as global ones.
#define PLANEMU_CLASSES(X)                                                                         \
  X(Part, "part") /* belongs to the Inst before it and is counted with that */                     \
  X(Integer, "integer")                                                                            \
  X(Float, "float")                                                                                \
  X(Half, "half")                                                                                  \
  X(Double, "double")                                                                              \
  X(Convert, "convert")                                                                            \
  X(Special, "special")                                                                            \
  X(Predicate, "predicate")                                                                        \
  X(Move, "move")                                                                                  \
  X(Warp, "warp")                                                                                  \
  X(LoadGlobal, "load.global")                                                                     \
  X(StoreGlobal, "store.global")                                                                   \
  X(LoadShared, "load.shared")                                                                     \
  X(StoreShared, "store.shared")                                                                   \
  X(LoadLocal, "load.local")                                                                       \
  X(StoreLocal, "store.local")                                                                     \
  X(LoadConst, "load.const")                                                                       \
  X(LoadParam, "load.param")                                                                       \
  X(StoreParam, "store.param")                                                                     \
  X(Atomic, "atomic")                                                                              \
  X(Async, "async")                                                                                \
  X(Matrix, "matrix")                                                                              \
  X(Mma, "mma")                                                                                    \
  X(Control, "control")                                                                            \
  X(Barrier, "barrier")                                                                            \
  X(Fence, "fence")                                                                                \
  X(Other, "other")

enum class InstClass : std::uint8_t {
#define PLANEMU_CLASS(Name, Text) Name,
  PLANEMU_CLASSES(PLANEMU_CLASS)
#undef PLANEMU_CLASS
};

constexpr unsigned InstClassCount = static_cast<unsigned>(InstClass::Other) + 1;
const char *nameOf(InstClass cls);

struct Inst {
  enum Flag : std::uint16_t {
    Sync = 1,     // waits for the lanes of its member mask, see Interpreter.cpp
    Meet = 2,     // bar.warp.sync: the lanes may come to different ones
    ScopeCta = 4, // a strong access or a fence, and how far it orders
    ScopeGpu = 8, // gpu scope or wider
    Acquire = 16, // the access is followed by a fence of its scope
    Release = 32, // the access is preceded by one
    List = 64,    // the operands are in `ops`
    // In groupInsts, of what has its addresses in a register: Inst::ops goes on with the file offset
    // of an AddressNote. The first access of a block by that register makes the note, others read it.
    MakesNote = 128,
    ReadsNote = 256,
  };

  Run run = nullptr;
  RunGroup together = nullptr;
  union {
    std::uint32_t s[6] = {};  // operands in the order of the decoder's calls
    const std::uint32_t *ops; // List: the same, elsewhere
  };
  std::uint32_t guard = 0;    // predicate
  std::uint32_t guardXor = 0; // all ones: @!%p
  std::int64_t imm = 0;       // address offset, or what the instruction packs here
  std::uint32_t line = 0;
  std::uint16_t cache = 0; // of Warp::regions: the region this instruction used last
  std::uint16_t flags = 0;
};
static_assert(sizeof(Inst) == 64);

/// That the lanes of a register that has addresses are equally far from each other.
struct AddressNote {
  static constexpr std::uint64_t NotSo = ~0ull; // as the stride
  std::uint64_t first, stride;                  // lane 0, and the distance
};

/// Operand offsets of an Inst, wherever they are.
inline const std::uint32_t *operandsOf(const Inst &inst) {
  return inst.flags & Inst::List ? inst.ops : inst.s;
}

/// How a block ends. The guard of the ending is in its Block, lanes whose guard is false go on to
/// `next`.
enum class Ending : std::uint8_t { Next, Branch, Switch, Exit, Barrier, Trap };

/// Of a Branch one of whose successors goes on to the other one, and does nothing that needs other lanes:
/// which one that is. `if (lane == 0) ...` is one.
enum class Aside : std::uint8_t { None, Target, Next };

struct BarrierSpec {
  enum Kind : std::uint8_t { Sync, Arrive, RedPopc, RedAnd, RedOr };
  Kind kind = Sync;
  bool negated = false;      // of the reduced predicate
  bool aligned = true;       // all threads of the warp come to this one
  std::uint32_t id = 0;      // file offset of the barrier number
  std::uint32_t threads = 0; // file offset of the thread count; 0: the whole CTA
  std::uint32_t source = 0;  // predicate to reduce
  std::uint32_t result = 0;  // file offset of the result
};

struct Block {
  std::uint32_t first = 0, last = 0;           // of Kernel::insts; last is exclusive
  std::uint32_t groupFirst = 0, groupLast = 0; // of Kernel::groupInsts; the same
  Ending ending = Ending::Next;
  InstClass cls = InstClass::Part; // of the ending
  bool backward = false;           // some successor does not come later in `order`
  Aside aside = Aside::None;
  std::uint32_t guard = 0, guardXor = 0;
  std::uint32_t target = 0;           // Branch
  std::uint32_t next = 0;             // successor of the lanes that do not take the ending
  std::uint32_t order = 0;            // the fragment with the lowest runs first
  std::uint32_t line = 0;             // of the ending
  std::uint32_t index = 0;            // Switch: file offset; Barrier: of Kernel::barriers
  std::vector<std::uint32_t> targets; // Switch
};

/// What fills a constant's 32 lanes, and when.
struct Constant {
  enum Kind : std::uint8_t {
    Bits,         // value
    Param,        // value: offset in the parameter buffer << 8 | signed << 7 | bytes
    ParamAddress, // value: offset in the parameter buffer
    TidX,
    TidY,
    TidZ,
    LaneId,
    WarpId, // per warp
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    NtidX,
    NtidY,
    NtidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    NwarpId, // per launch
    DynamicShared,
    TotalShared,
    DynamicBase, // offset of .extern .shared plus value; Bits once the kernel is finished
    LocalBase,   // offset where the stack starts in local memory; Bits once the kernel is finished
    FrameBytes,  // of the called function `value`; Bits once the kernel is finished
    FrameAlign,  // of frames; Bits once the kernel is finished
    WorkspaceHigh, // address of the grid barrier's memory, in halves
    WorkspaceLow,
    CtaidX,
    CtaidY,
    CtaidZ, // per CTA
  };
  Kind kind = Bits;
  std::uint8_t bytes = 4; // of one lane
  std::uint32_t offset = 0;
  std::uint64_t value = 0;

  bool perCta() const { return kind >= CtaidX; }
};

/// What a JIT compiler must know of an Inst of groupInsts.
struct LaneNote {
  const LaneCode *lanes = nullptr; // if it works on lanes
  std::uint32_t operands = 0;      // their number
  std::uint32_t written = 0;       // bit n: operand n is a destination; of the first 32
  std::uint32_t dying = 0;         // bit n: it is one, and nobody reads it behind the block
};

/// How a result depends on its sources, for checks that follow values (observe/Undefined.h).
enum class Flow : std::uint8_t {
  Use,  // by computing with them
  Copy, // it is them, or parts of them
  And,  // bit by bit, as these say
  Or,
  Bits, // bit by bit, each on all sources
  Left, // the first, shifted by the second
  Right,
  Select, // the first or the second, as the third says
  Mix,    // on all bits of all
  Load,   // results, then an address
  Store,  // an address, then what is stored
};

struct InstFlow {
  Flow flow = Flow::Use;
  std::uint8_t operands = 0; // their number, at most 32: others are not followed
  std::uint32_t written = 0; // bit n: operand n is a destination
};

struct Slot {
  std::uint32_t offset, bytes; // of all lanes
};

struct Kernel {
  std::string name;
  std::vector<Inst> insts, groupInsts;
  std::vector<LaneNote> notes;             // of groupInsts, one each
  std::vector<InstClass> classes;          // of insts, one each
  std::vector<InstFlow> flows;             // of insts, one each
  std::vector<std::uint32_t> operandStore; // what Inst::ops points into
  std::vector<Block> blocks;               // 0 is the entry
  std::vector<BarrierSpec> barriers;
  std::vector<Constant> constants;
  std::vector<Slot> readFirst; // may be read before anything is written: zero at CTA start
  std::uint32_t fileBytes = 0; // a multiple of 64
  // Where in the file constants start, and registers of 64, of 32 and of 16 bits.
  std::uint32_t constantsFrom = 0, doublesFrom = 0, wordsFrom = 0, halvesFrom = 0;
  std::uint32_t cacheEntries = 1;

  struct Parameter {
    std::uint32_t offset, bytes;
  };
  std::vector<Parameter> parameters;
  std::uint32_t parameterBytes = 0;
  std::uint32_t staticShared = 0;  // bytes; dynamic shared memory starts after them
  std::uint32_t toolkitShared = 0; // bytes of these that the toolkit's own code uses, zero at first
  std::uint32_t toolkitSharedAt = 0;
  std::uint32_t dynamicAlign = 16; // of .extern .shared
  /// A variable in shared memory, for messages; what is dynamic has no end.
  struct SharedName {
    std::string name;
    std::uint32_t offset, bytes;
  };
  static constexpr std::uint32_t Endless = ~0u;
  std::vector<SharedName> sharedNames;
  std::uint32_t localBytes = 0; // of one thread, its stack included
  bool orderedCtas = false;     // run one after the other: the order decides sums of floats
  bool allocates = false;       // calls malloc or free
  bool strongAccesses = false;  // a CTA may learn what others have done so far
  bool orderedWarps = false;    // so may a warp between barriers: they run one after the other
  std::uint32_t reqNtid[3] = {0, 0, 0};
  std::uint32_t maxThreads = 1024;
  std::uint32_t registersUsed = 0; // 32-bit registers after compaction, for cuFuncGetAttribute

  /// Additions, subtractions and multiplications without .rn, which ptxas may contract to fma.
  struct Contractible {
    std::uint32_t f32 = 0, f64 = 0, f16 = 0, bf16 = 0; // pairs count once
  } contractible;
};

} // namespace planemu

#endif // PLANEMU_CODE_H
