//===- Decoder.h - PTX statements to Insts --------------------------------===//
//
// One Decoder decodes one kernel. For each statement it looks up the mnemonic in Instructions.def
// and calls the row's select function, which consumes modifiers and operands through the interface
// in the first half of the class and emits one Inst or more. A modifier or operand that nobody
// consumed is an error: nothing is ever ignored.
//
// A call is decoded as the callee's body, so a kernel has one control-flow graph. Functions that may
// call themselves have one body, and a stack (Calls.cpp).
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DECODER_H
#define PLANEMU_DECODER_H

#include "runtime/emulator/Code.h"
#include "runtime/emulator/Ptx.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

namespace planemu {

class Decoder;

struct InstructionRow {
  const char *opcode;
  void (*select)(Decoder &);
  InstClass cls;
};

/// The rows of Instructions.def, compiled for one instruction set of the host.
struct InstructionSet {
  const char *name;
  const InstructionRow *rows;
  std::size_t count;
};

/// Where the module's variables lie; they are laid out before any kernel is decoded.
struct ModuleLayout {
  std::unordered_map<std::string, std::uint64_t>
      globals; // addresses of .global and .const variables
};

/// What stands for the address of a function: its index in PtxModule::functions, in a window that is
/// no memory.
constexpr std::uint64_t FunctionWindow = 0x0300'0000'0000'0000;
constexpr std::uint64_t FunctionStride = 16;
std::uint64_t functionAddress(const PtxModule &module, const Function &function);

/// Decodes a kernel of `module`. Throws PtxError.
std::unique_ptr<Kernel> decodeKernel(const PtxModule &module, const ModuleLayout &layout,
                                     const InstructionSet &set, const Function &entry);

/// The class of `statement`, whose row says `row`: types and spaces refine it (Classes.cpp).
InstClass classOf(InstClass row, const Statement &statement);

/// How the results of `statement` depend on its sources (Classes.cpp).
Flow flowOf(const Statement &statement);

class Decoder {
public:
  Decoder(const PtxModule &module, const ModuleLayout &layout, const InstructionSet &set);
  std::unique_ptr<Kernel> decode(const Function &entry);
  /// The kernel is too large if calls become copies of their callees.
  struct TooLarge : PtxError {
    using PtxError::PtxError;
  };
  /// From now on every function has one body, not only those that may call themselves.
  void shareBodies() { sharesBodies = true; }

  // --- For select functions: modifiers ------------------------------------

  /// Consumes `modifier` (with its dot) if it is there.
  bool take(std::string_view modifier);
  /// Consumes the first type among the modifiers that are left, or fails.
  Type takeType();
  /// As takeType, Type::None if there is none.
  Type takeTypeIfAny();
  /// The modifiers that are left, consumed; for families that read them in order.
  std::vector<std::string_view> takeAll();
  /// Forgets what was consumed, for a select function that hands over to another.
  void untake() { modifierTaken.assign(modifierTaken.size(), false); }
  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void failType(Type type) const;

  // --- For select functions: operands -------------------------------------

  unsigned operandCount() const;
  const Operand &operand(unsigned n) const;
  /// Elements of a vector operand; 1 if it is not a vector.
  unsigned elements(unsigned n) const;
  /// Bits of the register, or 0 if the operand is something else.
  unsigned registerBits(const Operand &operand) const;
  /// Sets `value` if the operand is an immediate.
  bool isImmediate(unsigned n, std::int64_t &value) const;

  /// Appends the destination `n`; its register must have `bits` bits. def(Operand) is for elements
  /// of vectors.
  void def(unsigned n, unsigned bits);
  void def(const Operand &operand, unsigned bits);
  /// Appends a destination that nobody reads.
  void defUnused(unsigned bits) { append(newVirtual(bits), true); }
  /// Appends a source of `type`, read as bitsOf(type); immediates and special registers become
  /// constants.
  void use(unsigned n, Type type);
  void use(const Operand &operand, Type type);
  /// ld, st and cvt may name a register wider than their type; returns the bits of the register (of
  /// `type` for an immediate or a sink).
  unsigned defWide(const Operand &operand, Type type);
  unsigned useWide(const Operand &operand, Type type);
  /// The lower and the upper half of a register of 128 bits, each as one of 64. An immediate is
  /// extended with its sign.
  void defHalf(const Operand &operand, unsigned half);
  void useHalf(const Operand &operand, unsigned half);
  /// Appends a constant of `bits` bits.
  void useConstant(std::uint64_t value, unsigned bits);
  /// Says that operand `n` was read some other way.
  void operandUsed(unsigned n) { markTaken(operand(n)); }
  /// A register of the statement's own, to pass a value from one of its Insts to the next.
  std::uint32_t temporary(unsigned bits) { return newVirtual(bits); }
  void defTemporary(std::uint32_t id) { append(id, true); }
  void useTemporary(std::uint32_t id) { append(id, false); }
  /// Appends the predicate that is true everywhere.
  void useTrue();
  /// Appends the carry flag as a source (if `real`, else a predicate that is false everywhere) and
  /// as a destination.
  void useCarry(bool real);
  void defCarry(bool real);
  /// Appends the second destination of `%a|%b`, or a register nobody reads if there is none.
  void defAlso(unsigned n, unsigned bits);

  /// What an address operand refers to. `space` starts as the instruction's own space.
  struct Address {
    Space space;
    unsigned baseBits; // 32 or 64
    std::int64_t offset;
  };
  /// Appends the base of the address `n`.
  Address useAddress(unsigned n, Space space);
  /// True if the address is a parameter of the kernel at a known offset.
  bool isKernelParameter(unsigned n) const;
  /// Appends the value of `type` in the kernel parameter `n`, `byteOffset` after the address, as a
  /// constant of `registerBits` bits.
  void useKernelParameter(unsigned n, unsigned byteOffset, Type type, unsigned registerBits);
  /// Appends `bits` bits of a source operand that is an address or a number: mov's source.
  void useValue(const Operand &operand, Type type);

  // --- For select functions: emission -------------------------------------

  /// Ends the current Inst: everything appended since the last emit belongs to it.
  Inst &emit(Exec exec, std::int64_t imm = 0, unsigned flags = 0);
  /// As emit, but the operands are always in Inst::ops.
  Inst &emitList(Exec exec, std::int64_t imm = 0, unsigned flags = 0);
  /// As emit, for what a statement does besides its own work: counted as `as` in its own right.
  Inst &emitBeside(InstClass as, Exec exec);
  Inst &lastInst() { return blocks[current].insts.back().inst; }
  /// As emitList, for an access to memory whose address is operand `address` of those appended.
  Inst &emitAccess(Exec exec, unsigned address, std::int64_t offset, unsigned flags);
  /// Gives the last emitted Inst a region cache of its own.
  void needsRegionCache();

  /// Emits what has no effect of its own; the operands appended were checked.
  void emitNothing();
  /// The Insts emitted from loopStart to loopUnless repeat for the lanes where `done` is false.
  std::uint32_t loopStart();
  void loopUnless(std::uint32_t done, std::uint32_t start);
  /// The register of each lane that barrier.cluster has for itself.
  std::uint32_t clusterPhase();

  void branch(unsigned n);
  void branchIndexed(unsigned index, unsigned table);
  void exit();
  void ret();
  void trap();
  void call(const Function &callee, const Operand *results, const Operand *arguments);
  /// Appends where the argument or result `op` of a call lies in local memory, 64 bits.
  void useArgument(const Operand &op, unsigned leastBytes = 0);
  /// Appends the special register `name`, for one that is an element of what the statement names.
  void useSpecial(const std::string &name, unsigned bits) {
    append(specialRegister(name, bits), false);
  }
  /// A call of whatever `pointer` points to: of the functions whose addresses the module takes, those
  /// that `targets`, a label, allows.
  void callThrough(const Operand &pointer, const Operand *results, const Operand *arguments,
                   const Operand &targets);
  /// How much of its stack each lane uses, a register of 64 bits.
  std::uint32_t stackPointer();
  /// Appends where the stack starts in local memory, a constant of 64 bits.
  void useStackStart();
  /// The operands appended are: number, threads (or constant 0), source predicate, destination.
  void barrier(BarrierSpec::Kind kind, bool negated, bool hasThreads, bool aligned);
  const PtxModule &ptx() const { return module; }
  /// Calls malloc or free. The order of CTAs decides which addresses they get.
  void noteAllocates() { kernel->allocates = kernel->orderedCtas = kernel->orderedWarps = true; }
  /// CTAs must run one after the other on one thread.
  void noteOrderedCtas() { kernel->orderedCtas = kernel->orderedWarps = true; }
  /// Warps of a CTA must run one after the other: their order can be seen.
  void noteOrderedWarps() { kernel->orderedWarps = true; }
  /// The Inst emitted last is a weak load of one element, or an atom.cas: reference 1 is the address.
  void noteWeakRead() { blocks[current].insts.back().weakRead = true; }
  void noteCompares() { blocks[current].insts.back().compares = true; }
  /// Counts an addition, subtraction or multiplication on `type` that has no rounding modifier.
  void noteContractible(Type type);

private:
  struct Body;
  /// A register that is saved for the time of a call, where a body's code makes it.
  struct Save {
    Body *body;
    std::uint32_t site; // saves of one call have the same
    bool kept = true;
    std::uint32_t slot = 0;
  };
  struct Virtual {
    std::uint16_t bits;
    bool constant;
    std::uint32_t constantIndex;
  };
  struct Reference {
    std::uint32_t id; // of `virtuals`
    bool def;
  };
  struct Pending {
    Inst inst;
    std::uint32_t firstReference, referenceCount;
    std::uint32_t guard; // 0: the true predicate
    bool list;
    Effect effect;     // in all lanes that run
    bool left = false; // out of groupInsts
    bool weakRead = false, compares = false;
    Flow flow = Flow::Use;
    const SourceForms *forms;
    const LaneCode *lanes;
    std::uint32_t dying = 0; // LaneNote
    std::uint32_t instead;   // in groupInsts: what is read instead of reference 1, if not 0
    InstClass cls;
    std::uint32_t save = 0;    // of `saves`, counted from 1: stores or restores it
    std::uint32_t address = 0; // the reference that has addresses, counted from 1
    unsigned noteFlag = 0;     // Inst::MakesNote or ReadsNote
    std::uint32_t note = 0;    // number of the AddressNote
  };
  struct PendingBlock {
    std::vector<Pending> insts;
    Block block;
    std::uint32_t guard = 0, index = 0;          // virtual ids; index for Switch
    std::uint32_t barrierRefs[4] = {0, 0, 0, 0}; // virtual ids
    bool hasThreads = false;
    bool placed = false;
  };
  struct Frame;    // Frame.h
  struct Liveness; // Finish.cpp

  // Decoder.cpp
  void decodeFunction(Frame &frame);
  void decodeStatement(const Statement &statement);
  void checkAlternatives() const;
  void layOutVariables(Frame &frame);
  std::uint32_t openRegisters(const Function &function);
  std::string located(const std::string &message) const;
  [[noreturn]] void failTooLarge(const std::string &message) const;
  std::uint32_t newVirtual(unsigned bits);
  std::uint32_t constant(Constant::Kind kind, std::uint64_t value, unsigned bits);
  std::uint32_t specialRegister(std::string_view name, unsigned bits);
  std::uint64_t immediateBits(const Operand &operand, Type type) const;
  std::uint32_t newBlock();
  void startBlock(std::uint32_t block);
  PendingBlock &endBlock(Ending ending);
  std::uint32_t labelBlock(std::string_view name);
  /// The address of the variable or parameter that `operand` names, as a constant; `space` receives
  /// its space.
  std::uint32_t addressConstant(const Operand &operand, std::int64_t offset, unsigned bits,
                                Space &space);
  std::uint32_t sharedConstant(const Variable &variable, std::int64_t offset, unsigned bits);
  std::uint32_t allocate(std::uint32_t &top, const Variable &variable);
  std::uint32_t functionLocal(const Operand &operand) const;
  /// `offset` in local memory, or in the current frame of the body whose code is being decoded.
  std::uint32_t localAddress(std::uint64_t offset, unsigned bits);
  void moveRegister(std::uint32_t to, unsigned bits);
  void inlineCall(const Function &callee, const Operand *results, const Operand *arguments,
                  std::uint32_t after);
  void takeResult(const Operand &to, const Function &callee, const Variable &result);
  void checkArguments(const Function &callee, const Operand *results, const Operand *arguments);
  /// What a call through a pointer may mean; empty if `targets` says nothing that makes sense.
  std::vector<const Function *> pointeesOf(const Function &caller, const Statement &call,
                                           const Operand &targets);
  std::vector<const Function *> calleesOf(const Function &caller);
  void findRecursion(const Function &entry);
  Body &bodyOf(const Function &callee);
  void decodeBodies();
  void callBody(const Function &callee, const Operand *results, const Operand *arguments,
                std::uint32_t after);
  std::vector<std::uint32_t> registersToSave() const;
  void emitSave(std::uint32_t reg, std::uint32_t save, bool restores);
  void moveArgument(const Operand &argument, std::uint64_t offset, std::uint64_t bytes, bool back);
  std::uint32_t frameRegister();
  void enterCallee(const Function &callee, const Operand *results, const Operand *arguments,
                   std::uint32_t after);
  const std::set<std::string_view> &addressTaken();
  void markTaken(const Operand &operand);
  void append(std::uint32_t id, bool isDef);
  std::uint32_t registerId(const Operand &operand) const;
  /// The register was declared with a type that goes with `type`.
  void requireType(const Operand &operand, Type type) const;
  std::uint32_t halfOf(const Operand &operand, unsigned half) const;
  std::string describe(const Operand &operand) const;

  // Finish.cpp: from virtual registers to the final Kernel
  void finish();
  void strengthenReads(const std::vector<std::uint32_t> &reachable);
  void orderBlocks(std::vector<std::uint32_t> &reachable);
  Liveness findLiveness(const std::vector<std::uint32_t> &reachable);
  void layOutStack();
  void dropSaves(const std::vector<std::uint32_t> &reachable);
  void assignSlots(const std::vector<std::uint32_t> &reachable);
  template <typename Visit> void visitReferences(PendingBlock &block, Visit visit);

  // GroupInsts.cpp: the part of that which concerns groups
  void readThrough(PendingBlock &block);
  void leaveOut(PendingBlock &block, std::vector<bool> &live);
  unsigned shareAddresses(PendingBlock &block);
  void findAsides();

  const PtxModule &module;
  const ModuleLayout &layout;
  std::unordered_map<std::string_view, const InstructionRow *> rows;
  std::unique_ptr<Kernel> kernel;

  std::vector<Virtual> virtuals; // 0 is the true predicate
  // Of a register of 128 bits: its upper half. Its own entry in `virtuals` is the lower one.
  std::unordered_map<std::uint32_t, std::uint32_t> upperHalves;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> constantIds;
  std::unordered_map<const Variable *, std::uint32_t> sharedOffsets;
  std::vector<Reference> references; // of all Pendings
  std::uint32_t appended = 0;        // first reference of the Inst being built
  std::vector<PendingBlock> blocks;
  std::vector<std::uint32_t> sequence; // blocks as they appear in the text
  std::vector<std::uint32_t> offsets;  // of each virtual, after assignSlots
  std::uint32_t current = 0;
  Frame *frame = nullptr;

  const Statement *statement = nullptr;
  std::vector<bool> modifierTaken, operandTaken, alsoTaken;
  std::size_t instCount = 0;
  InstClass cls = InstClass::Part; // of the next Inst
  std::uint32_t guard = 0;
  bool guardNegated = false;
  std::uint32_t stack = 0;     // virtual register, made when first needed
  std::uint32_t cluster = 0;   // virtual register, made when first needed
  std::uint32_t frameBase = 0; // likewise: where the current frame lies in local memory
  std::vector<std::shared_ptr<Body>> bodies;
  std::vector<Save> saves;
  std::set<const Function *> recursive;            // that may call themselves
  std::optional<std::set<std::string_view>> taken; // functions whose addresses the module takes
  bool sharesBodies = false;
  std::uint32_t frameAlign = 16;
  std::uint32_t carry = 0, never = 0; // virtual predicates, made when first needed
};

} // namespace planemu

#endif // PLANEMU_DECODER_H
