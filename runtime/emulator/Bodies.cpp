//===- Bodies.cpp - functions that are called, and their stack ------------===//
//
// A function that may call itself is decoded once, as a body that calls enter and leave: a call
// branches to its first block, and its last one is a switch over the places it was called from. So
// there is still one control-flow graph, and lanes that are at different depths run together where
// their blocks are the same.
//
// Each lane has a stack in its local memory, behind its variables. A call makes a frame on it
// (Frame.h): arguments are copied in before, results out afterwards. Registers belong to a function,
// not to a frame, so a body saves those that it reads again after a call (Finish.cpp finds out which)
// in its own frame.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Frame.h"
#include "runtime/emulator/Machine.h"
#include "runtime/emulator/observe/Observer.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace planemu;

// --- What is executed -------------------------------------------------------

static std::uint32_t executingLanes(const Warp &warp, const Inst &inst) {
  std::uint32_t guard;
  std::memcpy(&guard, warp.file + inst.guard, 4);
  return warp.active & (guard ^ inst.guardXor);
}

static std::uint64_t wide(const Warp &warp, std::uint32_t slot, unsigned lane) {
  std::uint64_t value;
  std::memcpy(&value, warp.file + slot + 8 * lane, 8);
  return value;
}

static void setWide(Warp &warp, std::uint32_t slot, unsigned lane, std::uint64_t value) {
  std::memcpy(warp.file + slot + 8 * lane, &value, 8);
}

/// Bytes of a lane's local memory; null, and a fault, if it has no such. A kernel that overruns its
/// variables can change where its frames seem to be.
static char *localBytes(Warp &warp, const Inst &inst, unsigned lane, std::uint64_t offset,
                        std::uint64_t bytes) {
  if (offset <= warp.localBytes && bytes <= warp.localBytes - offset)
    return warp.local + std::uint64_t(lane) * warp.localBytes + offset;
  reportFault(warp, inst.line, FaultKind::OutOfBounds, lane, offset,
              static_cast<std::uint32_t>(bytes), "call (local)");
  return nullptr;
}

/// Where the next frame begins: behind all that the stack holds.
static std::uint64_t nextFrame(std::uint64_t start, std::uint64_t top, std::uint64_t align) {
  return (start + top + align - 1) / align * align;
}

/// Operands: frame, top of the stack, start of the stack, top, frame, bytes and alignment of the new
/// frame. imm: the place to return to.
static void enterFrame(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t start = wide(warp, inst.ops[2], lane), bytes = wide(warp, inst.ops[5], lane);
    std::uint64_t frame =
        nextFrame(start, wide(warp, inst.ops[3], lane), wide(warp, inst.ops[6], lane));
    char *link = localBytes(warp, inst, lane, frame, bytes);
    if (!link)
      return;
    std::uint64_t outer = wide(warp, inst.ops[4], lane),
                  site = static_cast<std::uint64_t>(inst.imm);
    std::memcpy(link, &site, 8);
    std::memcpy(link + 8, &outer, 8);
    setWide(warp, inst.ops[0], lane, frame);
    setWide(warp, inst.ops[1], lane, frame + bytes - start);
  }
}

/// Operands: the place to return to, frame, top of the stack, start of the stack, frame.
static void leaveFrame(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t frame = wide(warp, inst.s[4], lane), site = ~0ull, outer = 0;
    if (const char *link = localBytes(warp, inst, lane, frame, 16)) {
      std::memcpy(&site, link, 8);
      std::memcpy(&outer, link + 8, 8);
    }
    std::uint32_t chosen = static_cast<std::uint32_t>(std::min<std::uint64_t>(site, ~0u));
    std::memcpy(warp.file + inst.s[0] + 4 * lane, &chosen, 4);
    setWide(warp, inst.s[2], lane, frame - wide(warp, inst.s[3], lane));
    setWide(warp, inst.s[1], lane, outer);
  }
}

/// Operands: where the caller's variable lies, start of the stack, its top, alignment of frames. imm:
/// where in the next frame the callee's lies, and how many bytes it has.
template <bool Back> static void copyArgument(Warp &warp, const Inst &inst) {
  std::uint64_t offset = static_cast<std::uint64_t>(inst.imm) >> 32, hosts[32] = {};
  std::uint32_t bytes = static_cast<std::uint32_t>(inst.imm), mask = executingLanes(warp, inst);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    std::uint64_t frame = nextFrame(wide(warp, inst.s[1], lane), wide(warp, inst.s[2], lane),
                                    wide(warp, inst.s[3], lane));
    char *outer = localBytes(warp, inst, lane, wide(warp, inst.s[0], lane), bytes);
    char *inner = outer ? localBytes(warp, inst, lane, frame + offset, bytes) : nullptr;
    if (!inner)
      return;
    std::memmove(Back ? outer : inner, Back ? inner : outer, bytes);
    hosts[lane] = reinterpret_cast<std::uint64_t>(Back ? outer : inner);
  }
  if (mask && warp.observer && warp.observer->seesMemory())
    warp.observer->access(warp, inst, {AccessKind::Store, mask, bytes, 0, hosts});
}

/// Operands: register and frame. imm: where in the frame.
template <class T, bool Restores> static void saveRegister(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    char *saved =
        localBytes(warp, inst, lane,
                   wide(warp, inst.s[1], lane) + static_cast<std::uint64_t>(inst.imm), sizeof(T));
    if (!saved)
      return;
    char *lanes = warp.file + inst.s[0] + lane * sizeof(T);
    std::memcpy(Restores ? lanes : saved, Restores ? saved : lanes, sizeof(T));
  }
}

template <bool Restores> static void savePredicate(Warp &warp, const Inst &inst) {
  std::uint32_t predicate;
  std::memcpy(&predicate, warp.file + inst.s[0], 4);
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    char *saved = localBytes(warp, inst, lane,
                             wide(warp, inst.s[1], lane) + static_cast<std::uint64_t>(inst.imm), 1);
    if (!saved)
      return;
    if (!Restores)
      *saved = static_cast<char>(predicate >> lane & 1);
    else
      predicate = (predicate & ~(1u << lane)) | static_cast<std::uint32_t>(*saved & 1) << lane;
  }
  if (Restores)
    std::memcpy(warp.file + inst.s[0], &predicate, 4);
}

/// Operands: address and frame. imm: offset.
template <class T> static void addToFrame(Warp &warp, const Inst &inst) {
  for (std::uint32_t left = executingLanes(warp, inst); left; left &= left - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    T address = static_cast<T>(wide(warp, inst.s[1], lane) + static_cast<std::uint64_t>(inst.imm));
    std::memcpy(warp.file + inst.s[0] + lane * sizeof(T), &address, sizeof(T));
  }
}

// --- Addresses --------------------------------------------------------------

std::uint32_t Decoder::frameRegister() {
  if (!frameBase)
    frameBase = newVirtual(64);
  return frameBase;
}

std::uint32_t Decoder::localAddress(std::uint64_t offset, unsigned bits) {
  if (!frame->body)
    return constant(Constant::Bits, offset, bits);
  // The Inst that is being built has operands already; it comes after the addition.
  std::vector<Reference> begun(references.begin() + appended, references.end());
  references.resize(appended);
  std::uint32_t address = newVirtual(bits);
  append(address, true);
  append(frameRegister(), false);
  emitBeside(InstClass::Part, bits == 64 ? addToFrame<std::uint64_t> : addToFrame<std::uint32_t>)
      .imm = static_cast<std::int64_t>(offset);
  references.insert(references.end(), begun.begin(), begun.end());
  return address;
}

// --- Calls ------------------------------------------------------------------

Decoder::Body &Decoder::bodyOf(const Function &callee) {
  for (const auto &body : bodies)
    if (body->function == &callee)
      return *body;
  auto body = std::make_shared<Body>();
  body->function = &callee;
  body->index = static_cast<std::uint32_t>(bodies.size());
  body->entry = newBlock();
  body->returns = newBlock();
  auto layOut = [&](const std::vector<Variable> &declared, std::vector<std::uint64_t> &offsets) {
    for (const Variable &variable : declared) {
      frameAlign = std::max(frameAlign, variable.align);
      offsets.push_back(variable.reg >= 0 ? 0 : allocate(body->bytes, variable));
    }
  };
  layOut(callee.results, body->results);
  layOut(callee.parameters, body->parameters);
  body->firstRegister = openRegisters(callee);
  bodies.push_back(std::move(body));
  return *bodies.back();
}

/// Decodes what has been called. Decoding one may call further ones.
void Decoder::decodeBodies() {
  for (std::size_t n = 0; n < bodies.size(); ++n) {
    Body &body = *bodies[n];
    Frame inner{body.function, nullptr, body.firstRegister, {}, body.parameters,
                body.results,  {},      body.returns,       0,  &body};
    startBlock(body.entry);
    layOutVariables(inner);
    decodeFunction(inner);
    blocks[current].block.next = body.returns;
    startBlock(body.returns);
    guard = 0;
    guardNegated = false;
    std::uint32_t site = newVirtual(32);
    append(site, true);
    append(frameRegister(), true);
    append(stackPointer(), true);
    useStackStart();
    append(frameRegister(), false);
    emitBeside(InstClass::Part, leaveFrame);
    endBlock(Ending::Switch).index = site;
  }
  for (const auto &body : bodies)
    blocks[body->returns].block.targets = body->sites;
}

/// All registers of the body whose code is being decoded, and of what is inlined there.
std::vector<std::uint32_t> Decoder::registersToSave() const {
  std::vector<std::uint32_t> registers;
  for (const Frame *inner = frame; inner; inner = inner->caller) {
    for (std::uint32_t n = 0; n < inner->function->registers.size(); ++n) {
      registers.push_back(inner->firstRegister + n);
      if (auto upper = upperHalves.find(registers.back()); upper != upperHalves.end())
        registers.push_back(upper->second);
    }
    if (inner->savedStack)
      registers.push_back(inner->savedStack);
  }
  return registers;
}

void Decoder::emitSave(std::uint32_t reg, std::uint32_t save, bool restores) {
  append(reg, restores);
  append(frameRegister(), false);
  auto choose = [&]<class T>(T) {
    return restores ? saveRegister<T, true> : saveRegister<T, false>;
  };
  unsigned bits = virtuals[reg].bits;
  emitBeside(InstClass::Part, bits == 1    ? (restores ? savePredicate<true> : savePredicate<false>)
                              : bits == 16 ? choose(std::uint16_t())
                              : bits == 32 ? choose(std::uint32_t())
                                           : choose(std::uint64_t()));
  blocks[current].insts.back().save = save + 1;
}

/// Copies what `argument` names to `offset` in the next frame, or back.
void Decoder::moveArgument(const Operand &argument, std::uint64_t offset, std::uint64_t bytes,
                           bool back) {
  useArgument(argument);
  useStackStart();
  append(stackPointer(), false);
  append(constant(Constant::FrameAlign, 0, 64), false);
  emitBeside(InstClass::Part, back ? copyArgument<true> : copyArgument<false>).imm =
      static_cast<std::int64_t>(offset << 32 | bytes);
}

void Decoder::callBody(const Function &callee, const Operand *results, const Operand *arguments,
                       std::uint32_t after) {
  Body &body = bodyOf(callee);
  guard = 0; // what it excludes goes around the call
  guardNegated = false;
  std::uint32_t site = newBlock();
  std::size_t firstSave = saves.size();
  std::vector<std::uint32_t> saved;
  if (frame->body)
    saved = registersToSave();
  for (std::uint32_t reg : saved) {
    saves.push_back({frame->body, site});
    emitSave(reg, static_cast<std::uint32_t>(saves.size() - 1), false);
  }
  // Registers of the callee may be the caller's, and the source of another argument.
  std::vector<std::pair<std::uint32_t, const Variable *>> moves;
  for (std::size_t n = 0; n < callee.parameters.size(); ++n) {
    const Variable &declared = callee.parameters[n];
    if (declared.reg < 0) {
      moveArgument(arguments->parts[n], body.parameters[n], declared.bytes, false);
      continue;
    }
    moves.emplace_back(newVirtual(bitsOf(declared.type)), &declared);
    use(arguments->parts[n], declared.type);
    moveRegister(moves.back().first, bitsOf(declared.type));
  }
  for (auto [from, to] : moves) {
    append(from, false);
    moveRegister(body.firstRegister + static_cast<std::uint32_t>(to->reg), bitsOf(to->type));
  }
  append(frameRegister(), true);
  append(stackPointer(), true);
  useStackStart();
  append(stackPointer(), false);
  append(frameRegister(), false);
  append(constant(Constant::FrameBytes, body.index, 64), false);
  append(constant(Constant::FrameAlign, 0, 64), false);
  emitList(enterFrame, static_cast<std::int64_t>(body.sites.size()));
  body.sites.push_back(site);
  blocks[current].block.next = body.entry;

  startBlock(site);
  moves.clear();
  for (std::size_t n = 0; n < callee.results.size(); ++n) {
    const Variable &declared = callee.results[n];
    if (declared.reg < 0) {
      moveArgument(results->parts[n], body.results[n], declared.bytes, true);
      continue;
    }
    moves.emplace_back(newVirtual(bitsOf(declared.type)), &declared);
    append(body.firstRegister + static_cast<std::uint32_t>(declared.reg), false);
    moveRegister(moves.back().first, bitsOf(declared.type));
  }
  for (std::size_t n = 0; n < saved.size(); ++n)
    emitSave(saved[n], static_cast<std::uint32_t>(firstSave + n), true);
  auto move = moves.begin();
  for (std::size_t n = 0; n < callee.results.size(); ++n)
    if (callee.results[n].reg >= 0) {
      append((move++)->first, false);
      takeResult(results->parts[n], callee, callee.results[n]);
    }
  blocks[current].block.next = after;
}

// --- Recursion --------------------------------------------------------------

std::vector<const Function *> Decoder::calleesOf(const Function &caller) {
  std::vector<const Function *> callees;
  for (const Statement &statement : caller.statements) {
    if (statement.opcode != "call")
      continue;
    auto name = std::find_if(statement.operands.begin(), statement.operands.end(),
                             [](const Operand &operand) { return operand.kind != Operand::List; });
    if (name == statement.operands.end())
      continue;
    if (name->kind == Operand::Register) {
      for (const Function *callee : pointeesOf(caller, statement, statement.operands.back()))
        callees.push_back(callee);
    } else if (const Function *callee = module.findFunction(name->text);
               callee && !callee->external) {
      callees.push_back(callee);
    }
  }
  return callees;
}

/// Finds the functions that may call themselves (Kosaraju's strongly connected components).
void Decoder::findRecursion(const Function &entry) {
  std::map<const Function *, std::vector<const Function *>> callees, callers;
  std::vector<const Function *> finished; // after all that they call
  std::vector<std::pair<const Function *, std::size_t>> path;
  auto enter = [&](const Function *function) {
    auto [found, fresh] = callees.try_emplace(function);
    if (!fresh)
      return;
    found->second = calleesOf(*function);
    path.emplace_back(function, 0);
  };
  enter(&entry);
  while (!path.empty()) {
    auto &[function, next] = path.back();
    const std::vector<const Function *> &called = callees[function];
    if (next == called.size()) {
      finished.push_back(function);
      path.pop_back();
      continue;
    }
    const Function *callee = called[next++];
    callers[callee].push_back(function);
    if (callee == function)
      recursive.insert(callee);
    enter(callee);
  }
  std::set<const Function *> seen;
  for (auto root = finished.rbegin(); root != finished.rend(); ++root) {
    std::vector<const Function *> component;
    if (seen.insert(*root).second)
      component.push_back(*root);
    for (std::size_t n = 0; n < component.size(); ++n)
      for (const Function *caller : callers[component[n]])
        if (seen.insert(caller).second)
          component.push_back(caller);
    if (component.size() > 1)
      recursive.insert(component.begin(), component.end());
  }
}
