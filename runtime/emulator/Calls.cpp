//===- Calls.cpp - calls, returns, addresses of functions -----------------===//
//
// A call is decoded as the callee's body, so a kernel has one control-flow graph; functions that may
// call themselves are the exception (Bodies.cpp). A call through a pointer is a switch over the calls
// of all functions it may mean: those whose address the module takes and whose results and
// parameters have the sizes of the prototype, or those that .calltargets names. The pointer itself is
// a number that no memory has for an address.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Frame.h"
#include "runtime/emulator/Machine.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

using namespace planemu;

std::uint64_t planemu::functionAddress(const PtxModule &module, const Function &function) {
  std::uint64_t index = 0;
  while (module.functions[index].get() != &function)
    ++index;
  return FunctionWindow + FunctionStride * (index + 1);
}

static std::uint32_t executingLanes(const Warp &warp, const Inst &inst) {
  std::uint32_t guard;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  return warp.active & (guard ^ inst.guardXor);
}

// --- The stack --------------------------------------------------------------

std::uint32_t Decoder::stackPointer() {
  if (!stack)
    stack = newVirtual(64); // zero from the start, as nothing is written first
  return stack;
}

void Decoder::useStackStart() { append(constant(Constant::LocalBase, 0, 64), false); }

// --- Arguments --------------------------------------------------------------

std::uint32_t Decoder::functionLocal(const Operand &op) const {
  if (op.kind != Operand::Local || frame->function->variables[op.index].space != Space::Param)
    fail("argument " + describe(op) + " is not a .param variable");
  return static_cast<std::uint32_t>(frame->variables[op.index]);
}

void Decoder::useArgument(const Operand &op, unsigned leastBytes) {
  std::uint64_t offset = functionLocal(op);
  if (frame->function->variables[op.index].bytes < leastBytes)
    fail("argument " + describe(op) + " is too small");
  std::uint32_t address = localAddress(offset, 64);
  append(address, false);
}

template <class T> static void moveLanes(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::memcpy(warp.file + inst.s[0] + lane * sizeof(T), warp.file + inst.s[1] + lane * sizeof(T),
                sizeof(T));
  }
}

static void movePredicate(Warp &warp, const Inst &inst) {
  std::uint32_t lanes = executingLanes(warp, inst), from, to;
  std::memcpy(&from, warp.file + inst.s[1], 4);
  std::memcpy(&to, warp.file + inst.s[0], 4);
  to = (to & ~lanes) | (from & lanes);
  std::memcpy(warp.file + inst.s[0], &to, 4);
}

/// Emits a move from the source that was appended to the register `to`.
void Decoder::moveRegister(std::uint32_t to, unsigned bits) {
  std::uint32_t from = references.back().id;
  references.pop_back();
  append(to, true);
  append(from, false);
  emit(bits == 1    ? movePredicate
       : bits <= 16 ? moveLanes<std::uint16_t>
       : bits == 32 ? moveLanes<std::uint32_t>
                    : moveLanes<std::uint64_t>);
}

// --- Calls ------------------------------------------------------------------

/// The results and arguments of a call are as many and as large as `callee` declares them.
void Decoder::checkArguments(const Function &callee, const Operand *results,
                             const Operand *arguments) {
  auto check = [&](const std::vector<Variable> &declared, const Operand *given) {
    std::size_t count = given ? given->parts.size() : 0;
    if (count != declared.size())
      fail("'" + callee.name + "' takes " + std::to_string(declared.size()) + ", not " +
           std::to_string(count));
    for (std::size_t n = 0; n < count; ++n) {
      const Operand &argument = given->parts[n];
      if (declared[n].reg >= 0)
        continue;
      functionLocal(argument);
      if (frame->function->variables[argument.index].bytes < declared[n].bytes)
        fail("argument " + describe(argument) + " is too small");
    }
  };
  check(callee.results, results);
  check(callee.parameters, arguments);
}

/// Emits a move of the result that was appended to `to`.
void Decoder::takeResult(const Operand &to, const Function &callee, const Variable &result) {
  if (to.kind == Operand::Sink) {
    references.pop_back();
    return;
  }
  if (to.kind != Operand::Register || registerBits(to) != bitsOf(result.type))
    fail(describe(to) + " cannot take the result of '" + callee.name + "'");
  moveRegister(registerId(to), bitsOf(result.type));
}

/// Decodes the body of `callee` here; its returns go to the block `after`.
void Decoder::inlineCall(const Function &callee, const Operand *results, const Operand *arguments,
                         std::uint32_t after) {
  unsigned depth = 0;
  for (Frame *caller = frame; caller; caller = caller->caller)
    if (++depth > 64)
      failTooLarge("calls nest too deeply");
  Frame inner{&callee, frame, 0, {}, {}, {}, {}, 0, 0, frame->body};
  for (std::size_t n = 0; n < callee.results.size(); ++n)
    inner.results.push_back(callee.results[n].reg >= 0 ? 0 : functionLocal(results->parts[n]));
  for (std::size_t n = 0; n < callee.parameters.size(); ++n)
    inner.parameters.push_back(callee.parameters[n].reg >= 0 ? 0
                                                             : functionLocal(arguments->parts[n]));
  layOutVariables(inner);
  inner.firstRegister = openRegisters(callee);
  auto registerOf = [&](const Variable &variable) {
    return inner.firstRegister + static_cast<std::uint32_t>(variable.reg);
  };
  const Statement *calling = statement;
  guard = 0; // what it excludes goes around the call
  guardNegated = false;
  for (std::size_t n = 0; n < callee.parameters.size(); ++n)
    if (const Variable &variable = callee.parameters[n]; variable.reg >= 0) {
      use(arguments->parts[n], variable.type);
      moveRegister(registerOf(variable), bitsOf(variable.type));
    }
  bool allocates = std::any_of(callee.statements.begin(), callee.statements.end(),
                               [](const Statement &s) { return s.opcode == "alloca"; });
  if (allocates) {
    inner.savedStack = newVirtual(64);
    append(stackPointer(), false);
    moveRegister(inner.savedStack, 64);
  }
  inner.returnBlock = newBlock();
  decodeFunction(inner);
  statement = calling;
  modifierTaken.assign(statement->modifiers.size(), true);
  operandTaken.assign(statement->operands.size(), true);
  alsoTaken.assign(statement->operands.size(), true);
  guard = 0;
  guardNegated = false;
  blocks[current].block.next = inner.returnBlock;
  startBlock(inner.returnBlock);
  if (allocates) {
    append(inner.savedStack, false);
    moveRegister(stackPointer(), 64);
  }
  for (std::size_t n = 0; n < callee.results.size(); ++n)
    if (const Variable &variable = callee.results[n]; variable.reg >= 0) {
      append(registerOf(variable), false);
      takeResult(results->parts[n], callee, variable);
    }
  blocks[current].block.next = after;
}

void Decoder::enterCallee(const Function &callee, const Operand *results, const Operand *arguments,
                          std::uint32_t after) {
  checkArguments(callee, results, arguments);
  if (sharesBodies || recursive.contains(&callee))
    callBody(callee, results, arguments, after);
  else
    inlineCall(callee, results, arguments, after);
}

void Decoder::call(const Function &callee, const Operand *results, const Operand *arguments) {
  if (callee.external)
    fail("function '" + callee.name + "' is declared, but not defined");
  std::uint32_t after = newBlock();
  if (guard != 0) {
    // Lanes whose guard is false go around the callee.
    guardNegated = !guardNegated;
    endBlock(Ending::Branch).block.target = after;
  }
  enterCallee(callee, results, arguments, after);
  startBlock(after);
}

void Decoder::ret() {
  if (frame->function->entry)
    return exit();
  std::uint32_t target = frame->returnBlock;
  endBlock(Ending::Branch).block.target = target;
}

// --- Calls through pointers -------------------------------------------------

/// The functions whose addresses the module takes, by name.
const std::set<std::string_view> &Decoder::addressTaken() {
  if (taken)
    return *taken;
  taken.emplace();
  for (const Variable &variable : module.variables)
    for (const Relocation &relocation : variable.relocations)
      taken->insert(relocation.symbol);
  for (const auto &function : module.functions)
    for (const Statement &statement : function->statements)
      if (statement.opcode != "call")
        for (const Operand &operand : statement.operands)
          if (operand.kind == Operand::Symbol)
            taken->insert(operand.text);
  return *taken;
}

static bool sameSizes(const std::vector<Variable> &a, const std::vector<Variable> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto &one, const auto &other) {
    return one.bytes == other.bytes && (one.reg < 0) == (other.reg < 0);
  });
}

/// Operands: case, pointer, the addresses that are meant. imm: their number.
static void findCase(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t pointer, address = 0;
    std::memcpy(&pointer, warp.file + inst.ops[1] + 8 * lane, 8);
    std::uint32_t found = 0;
    for (; found < inst.imm; ++found) {
      std::memcpy(&address, warp.file + inst.ops[2 + found] + 8 * lane, 8);
      if (address == pointer)
        break;
    }
    if (found == inst.imm) {
      reportFault(warp, inst.line, FaultKind::Misuse, lane, pointer, 8,
                  "a call of what is not the address of a function that it may call");
      found = 0;
    }
    std::memcpy(warp.file + inst.ops[0] + 4 * lane, &found, 4);
  }
}

std::vector<const Function *> Decoder::pointeesOf(const Function &caller, const Statement &call,
                                                  const Operand &targets) {
  const Label *label =
      targets.kind == Operand::Symbol ? caller.findLabel(targets.text, call.scope) : nullptr;
  std::vector<const Function *> callees;
  if (label && label->callTargets) {
    for (std::string_view name : label->targets)
      if (const Function *callee = module.findFunction(name); callee && !callee->external)
        callees.push_back(callee);
  } else if (label && label->prototype) {
    for (const auto &function : module.functions)
      if (!function->entry && !function->external && addressTaken().contains(function->name) &&
          sameSizes(function->results, label->prototype->results) &&
          sameSizes(function->parameters, label->prototype->parameters))
        callees.push_back(function.get());
  }
  return callees;
}

void Decoder::callThrough(const Operand &pointer, const Operand *results, const Operand *arguments,
                          const Operand &targets) {
  const Label *label = targets.kind == Operand::Symbol
                           ? frame->function->findLabel(targets.text, statement->scope)
                           : nullptr;
  if (!label || (!label->callTargets && !label->prototype))
    fail(describe(targets) + " is neither a .callprototype nor a list of .calltargets");
  for (std::string_view name : label->targets)
    if (const Function *callee = module.findFunction(name); !callee || callee->external)
      fail("'" + std::string(name) + "' is no function that can be called");
  std::vector<const Function *> callees = pointeesOf(*frame->function, *statement, targets);
  if (callees.empty())
    fail("the module takes the address of no function of this prototype");
  std::uint32_t chosen = newVirtual(32);
  append(chosen, true);
  use(pointer, Type::U64);
  for (const Function *callee : callees)
    append(constant(Constant::Bits, functionAddress(module, *callee), 64), false);
  emitList(findCase, static_cast<std::int64_t>(callees.size()));

  std::vector<std::uint32_t> bodies;
  for (std::size_t n = 0; n < callees.size(); ++n)
    bodies.push_back(newBlock());
  std::uint32_t after = newBlock();
  PendingBlock &jump = endBlock(Ending::Switch);
  jump.block.targets = bodies;
  jump.index = chosen;
  blocks[current].block.next = after; // of lanes whose guard is false
  for (std::size_t n = 0; n < callees.size(); ++n) {
    startBlock(bodies[n]);
    guard = 0;
    guardNegated = false;
    enterCallee(*callees[n], results, arguments, after);
  }
  startBlock(after);
}
