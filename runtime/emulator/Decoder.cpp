//===- Decoder.cpp - PTX statements to Insts ------------------------------===//
//
// Walks the statements of a kernel, resolves operands to virtual registers and constants, and lets
// the rows of Instructions.def choose what executes. Finish.cpp turns the result into a Kernel.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Frame.h"
#include "runtime/emulator/Machine.h"

#include <algorithm>

#include <utility>

using namespace planemu;

// More than any kernel a compiler prints; keeps a hostile module from exhausting memory or the
// stack.
constexpr std::size_t MaxInsts = 1u << 20, MaxBlocks = 1u << 14;

Decoder::Decoder(const PtxModule &module, const ModuleLayout &layout, const InstructionSet &set)
    : module(module), layout(layout) {
  for (std::size_t row = 0; row < set.count; ++row)
    rows.emplace(set.rows[row].opcode, &set.rows[row]);
}

std::string Decoder::located(const std::string &message) const {
  std::string text = "line " + std::to_string(statement ? statement->line : 0) + ": kernel '" +
                     kernel->name + "': ";
  if (statement)
    text += quoted(statement->text) + ": ";
  return text + message;
}

void Decoder::fail(const std::string &message) const { throw PtxError(located(message)); }
void Decoder::failTooLarge(const std::string &message) const { throw TooLarge(located(message)); }

void Decoder::failType(Type type) const {
  fail(std::string("type '.") + nameOf(type) + "' is not supported here");
}

// --- Emission ---------------------------------------------------------------

Inst &Decoder::emit(Exec exec, std::int64_t imm, unsigned flags) {
  if (++instCount > MaxInsts)
    failTooLarge("the kernel is too large");
  Pending pending{};
  pending.inst.run = exec.run;
  pending.inst.together = exec.together ? exec.together : runEach;
  pending.effect = guard ? Effect::Other : exec.effect;
  pending.forms = exec.forms;
  pending.lanes = exec.lanes;
  pending.inst.imm = imm;
  pending.inst.line = statement->line;
  pending.inst.flags = static_cast<std::uint16_t>(flags);
  pending.inst.guardXor = guardNegated ? ~0u : 0;
  pending.guard = guard;
  pending.firstReference = appended;
  pending.referenceCount = static_cast<std::uint32_t>(references.size()) - appended;
  pending.list = pending.referenceCount > 6;
  pending.cls = std::exchange(cls, InstClass::Part);
  pending.flow = flowOf(*statement);
  appended = static_cast<std::uint32_t>(references.size());
  blocks[current].insts.push_back(pending);
  return blocks[current].insts.back().inst;
}

Inst &Decoder::emitList(Exec exec, std::int64_t imm, unsigned flags) {
  Inst &inst = emit(exec, imm, flags);
  blocks[current].insts.back().list = true;
  return inst;
}

Inst &Decoder::emitAccess(Exec exec, unsigned address, std::int64_t offset, unsigned flags) {
  Inst &inst = emitList(exec, offset, flags);
  blocks[current].insts.back().address = address + 1;
  needsRegionCache();
  return inst;
}

Inst &Decoder::emitBeside(InstClass as, Exec exec) {
  InstClass own = std::exchange(cls, as);
  Inst &inst = emit(exec);
  cls = own;
  return inst;
}

void Decoder::needsRegionCache() {
  // Only a cache: kernels with more memory instructions than the field can hold share entries.
  blocks[current].insts.back().inst.cache =
      static_cast<std::uint16_t>(kernel->cacheEntries++ % 0xffff);
}

std::uint32_t Decoder::newBlock() {
  if (blocks.size() >= MaxBlocks)
    failTooLarge("the kernel has too many blocks");
  blocks.emplace_back();
  return static_cast<std::uint32_t>(blocks.size() - 1);
}

void Decoder::startBlock(std::uint32_t block) {
  blocks[block].placed = true;
  sequence.push_back(block);
  current = block;
}

Decoder::PendingBlock &Decoder::endBlock(Ending ending) {
  std::uint32_t next = newBlock();
  PendingBlock &block = blocks[current];
  block.block.ending = ending;
  block.block.next = next;
  block.block.line = statement->line;
  block.block.cls = cls;
  block.block.guardXor = guardNegated ? ~0u : 0;
  block.guard = guard;
  std::uint32_t ended = current;
  startBlock(next);
  return blocks[ended];
}

std::uint32_t Decoder::labelBlock(std::string_view name) {
  const Label *label = frame->function->findLabel(name, statement->scope);
  if (!label)
    fail("unknown label '" + std::string(name) + "'");
  return frame->labels[static_cast<std::size_t>(label - frame->function->labels.data())];
}

void Decoder::branch(unsigned n) {
  const Operand &op = operand(n);
  if (op.kind != Operand::Symbol)
    fail(describe(op) + " is not a label");
  markTaken(op);
  std::uint32_t target = labelBlock(op.text);
  endBlock(Ending::Branch).block.target = target;
}

void Decoder::branchIndexed(unsigned index, unsigned table) {
  const Operand &op = operand(table);
  if (op.kind != Operand::Symbol)
    fail(describe(op) + " is not a label");
  markTaken(op);
  const Label *label = frame->function->findLabel(op.text, statement->scope);
  if (!label || label->targets.empty())
    fail(describe(op) + " is not a list of branch targets");
  std::vector<std::uint32_t> targets;
  for (std::string_view target : label->targets)
    targets.push_back(labelBlock(target));
  use(index, Type::U32);
  std::uint32_t id = references.back().id;
  references.pop_back();
  PendingBlock &block = endBlock(Ending::Switch);
  block.block.targets = std::move(targets);
  block.index = id;
}

void Decoder::emitNothing() {
  emit([](Warp &, const Inst &) {});
}

std::uint32_t Decoder::loopStart() {
  std::uint32_t start = newBlock();
  blocks[current].block.next = start;
  startBlock(start);
  return start;
}

void Decoder::loopUnless(std::uint32_t done, std::uint32_t start) {
  guard = done;
  guardNegated = true;
  endBlock(Ending::Branch).block.target = start;
}

std::uint32_t Decoder::clusterPhase() {
  if (!cluster)
    cluster = newVirtual(32); // zero, a phase that is over, until the first arrival
  return cluster;
}

void Decoder::exit() { endBlock(Ending::Exit); }
void Decoder::trap() { endBlock(Ending::Trap); }

void Decoder::barrier(BarrierSpec::Kind kind, bool negated, bool hasThreads, bool aligned) {
  std::uint32_t ids[4];
  for (int n = 3; n >= 0; --n) {
    ids[n] = references.back().id;
    references.pop_back();
  }
  PendingBlock &block = endBlock(Ending::Barrier);
  std::copy(ids, ids + 4, block.barrierRefs);
  block.hasThreads = hasThreads;
  block.block.index = static_cast<std::uint32_t>(kernel->barriers.size());
  BarrierSpec spec;
  spec.kind = kind;
  spec.negated = negated;
  spec.aligned = aligned;
  kernel->barriers.push_back(spec);
}

// --- Functions --------------------------------------------------------------

void Decoder::layOutVariables(Frame &inner) {
  std::uint32_t &top = inner.body ? inner.body->bytes : kernel->localBytes;
  for (const Variable &variable : inner.function->variables) {
    if (inner.body)
      frameAlign = std::max(frameAlign, variable.align);
    inner.variables.push_back(variable.space == Space::Local || variable.space == Space::Param
                                  ? allocate(top, variable)
                                  : 0);
  }
}

/// Makes the registers of `function`; returns the first.
std::uint32_t Decoder::openRegisters(const Function &function) {
  std::uint32_t first = static_cast<std::uint32_t>(virtuals.size());
  if (virtuals.size() + function.registers.size() > (1u << 22))
    failTooLarge("too many registers");
  for (Type type : function.registers)
    newVirtual(bitsOf(type));
  for (std::uint32_t n = 0; n < function.registers.size(); ++n)
    if (function.registers[n] == Type::B128)
      upperHalves[first + n] = newVirtual(64);
  return first;
}

void Decoder::decodeFunction(Frame &inner) {
  frame = &inner;
  const Function &function = *inner.function;
  for (std::size_t n = 0; n < function.labels.size(); ++n)
    inner.labels.push_back(newBlock());
  std::size_t label = 0;
  for (std::size_t n = 0; n <= function.statements.size(); ++n) {
    for (; label < function.labels.size() && function.labels[label].statement == n; ++label) {
      blocks[current].block.next = inner.labels[label];
      startBlock(inner.labels[label]);
    }
    if (n < function.statements.size())
      decodeStatement(function.statements[n]);
  }
  frame = inner.caller;
}

/// Modifiers of which a statement has one at the most, whatever its instruction: a select function
/// that asks for one after the other would take both.
void Decoder::checkAlternatives() const {
  static constexpr std::initializer_list<std::string_view> Groups[] = {
      {".add", ".inc", ".dec", ".min", ".max", ".exch", ".cas", ".and", ".or", ".xor"},
      {".lo", ".hi", ".wide"},
      {".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".ls", ".hs", ".equ", ".neu", ".ltu", ".leu",
       ".gtu", ".geu", ".num", ".nan"},
      {".rn", ".rz", ".rm", ".rp", ".rna", ".rni", ".rzi", ".rmi", ".rpi"},
      {".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"},
      {".weak", ".relaxed", ".acquire", ".release", ".acq_rel", ".sc", ".volatile"},
      {".cta", ".cluster", ".gpu", ".sys", ".gl"},
      {".up", ".down", ".bfly", ".idx"},
      {".all", ".any", ".uni", ".ballot"},
      {".x1", ".x2", ".x4"},
      {".v2", ".v4", ".v8"},
  };
  for (const auto &group : Groups) {
    std::string_view first;
    for (std::string_view modifier : statement->modifiers) {
      if (std::find(group.begin(), group.end(), modifier) == group.end())
        continue;
      if (first == modifier)
        fail("'" + std::string(modifier) + "' is given twice");
      if (!first.empty())
        fail("'" + std::string(first) + "' and '" + std::string(modifier) + "' exclude each other");
      first = modifier;
    }
  }
}

void Decoder::decodeStatement(const Statement &toDecode) {
  statement = &toDecode;
  auto row = rows.find(statement->opcode);
  if (row == rows.end())
    fail("unknown instruction");
  modifierTaken.assign(statement->modifiers.size(), false);
  operandTaken.assign(statement->operands.size(), false);
  alsoTaken.assign(statement->operands.size(), false);
  guard = statement->guarded ? frame->firstRegister + statement->guard : 0;
  guardNegated = statement->guardNegated;
  cls = classOf(row->second->cls, toDecode);
  checkAlternatives();
  Frame *before = frame;
  row->second->select(*this);
  statement = &toDecode;
  // A call has decoded other statements meanwhile and checked its own operands.
  if (before != frame || modifierTaken.size() != statement->modifiers.size() ||
      statement->opcode == "call")
    return;
  for (std::size_t n = 0; n < modifierTaken.size(); ++n)
    if (!modifierTaken[n])
      fail("modifier '" + std::string(statement->modifiers[n]) + "' is not supported");
  for (std::size_t n = 0; n < operandTaken.size(); ++n)
    if (!operandTaken[n] || (!statement->operands[n].also.empty() && !alsoTaken[n]))
      fail("operand " + std::to_string(n + 1) + " (" + describe(statement->operands[n]) +
           ") is not supported");
}

std::unique_ptr<Kernel> Decoder::decode(const Function &entry) {
  kernel = std::make_unique<Kernel>();
  kernel->name = entry.name;
  for (unsigned dim = 0; dim < 3; ++dim)
    kernel->reqNtid[dim] = entry.reqNtid[dim];
  if (entry.reqNtid[0])
    kernel->maxThreads = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        1024, std::uint64_t(entry.reqNtid[0]) * entry.reqNtid[1] * entry.reqNtid[2]));
  if (entry.maxNtid)
    kernel->maxThreads = static_cast<std::uint32_t>(std::min<std::uint64_t>(1024, entry.maxNtid));
  Frame top{&entry, nullptr, 0, {}, {}, {}, {}, 0, 0};
  for (const Variable &parameter : entry.parameters) {
    std::uint32_t offset = allocate(kernel->parameterBytes, parameter);
    kernel->parameters.push_back({offset, static_cast<std::uint32_t>(parameter.bytes)});
    top.parameters.push_back(offset);
  }
  std::uint32_t most = module.version >= 81 && module.target >= 70 ? 32764 : 4352;
  if (kernel->parameterBytes > most)
    throw PtxError("line " + std::to_string(entry.line) + ": kernel '" + entry.name +
                   "': " + std::to_string(kernel->parameterBytes) +
                   " bytes of parameters, at most " + std::to_string(most) + " are allowed");
  virtuals.push_back({1, false, 0});
  startBlock(newBlock());
  findRecursion(entry);
  layOutVariables(top);
  top.firstRegister = openRegisters(entry);
  decodeFunction(top);
  // Running off the end of the body is a return.
  blocks[current].block.ending = Ending::Exit;
  blocks[current].block.next = newBlock();
  decodeBodies();
  statement = nullptr;
  finish();
  return std::move(kernel);
}

std::unique_ptr<Kernel> planemu::decodeKernel(const PtxModule &module, const ModuleLayout &layout,
                                              const InstructionSet &set, const Function &entry) {
  try {
    return Decoder(module, layout, set).decode(entry);
  } catch (const Decoder::TooLarge &) {
    Decoder sharing(module, layout, set);
    sharing.shareBodies();
    return sharing.decode(entry);
  }
}
