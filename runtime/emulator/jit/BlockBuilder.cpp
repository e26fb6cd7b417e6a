//===- BlockBuilder.cpp - the straight part of a block as LLVM IR ---------===//
//
// A block becomes segments: calls of the interpreter's functions, for all that touches memory or looks
// at several lanes, and then what works on lanes, as one loop over four chunks of eight lanes. In the
// loop operands are read from the warp's file where they are first needed, and written at its end if
// somebody needs them behind the segment; in between they are values.
//
//                                                      for c in 0, 1, 2, 3:
//   add %r3, %r1, %r2;                                   a, b = file[%r1][c], file[%r2][c]
//   mul %r4, %r3, %r1;    %r3 is not read again  -->     file[%r4][c] = mul(add(a, b), a)
//
// What an instruction computes is not known here. Its function is inlined, and all places that operands
// have in the loop become registers.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/jit/BlockBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace planemu::jit;

constexpr unsigned Chunk = 8, Lanes = 32;
constexpr uint32_t TruePredicate = 0; // its offset in every file

BlockBuilder::BlockBuilder(Module &lanes, const planemu_jit_kernel &kernel)
    : module(lanes), kernel(kernel), ir(lanes.getContext()) {
  for (size_t n = 0; n < kernel.constant_count; ++n)
    constants[kernel.constants[n].offset] = &kernel.constants[n];
}

static bool isWritten(const planemu_jit_step &step, unsigned n) {
  return n >= 32 || (step.written >> n & 1);
}
static bool isRead(const planemu_jit_step &step, unsigned n) {
  return n >= 32 || !(step.written >> n & 1);
}
static ArrayRef<uint32_t> operandsOf(const planemu_jit_step &step) {
  return ArrayRef<uint32_t>(step.operands, step.count);
}

// --- Segments -----------------------------------------------------------------

/// What works on lanes waits until somebody needs it: a call that depends on none of it goes first, so
/// that the instructions between several calls come together.
SmallVector<BlockBuilder::Segment> BlockBuilder::segmentsOf(Steps steps) const {
  SmallVector<Segment> segments(1);
  DenseSet<uint32_t> written, read; // by what waits
  for (const planemu_jit_step &step : steps) {
    if (step.lanes) {
      segments.back().lanes.push_back(&step);
      read.insert(step.guard);
      for (auto [n, offset] : enumerate(operandsOf(step)))
        (isWritten(step, n) ? written : read).insert(offset);
      continue;
    }
    bool depends = written.contains(step.guard);
    for (auto [n, offset] : enumerate(operandsOf(step)))
      depends |= written.contains(offset) || (isWritten(step, n) && read.contains(offset));
    if (depends) {
      segments.emplace_back();
      written.clear();
      read.clear();
    }
    segments.back().calls.push_back(&step);
  }
  return segments;
}

/// Finds what segments must write, backwards: whether the value that an operand has is needed from
/// here on.
void BlockBuilder::findStored(MutableArrayRef<Segment> segments) const {
  enum Need : uint8_t { AsBehind, Needed, Overwritten }; // AsBehind: if it is behind the block
  DenseMap<uint32_t, Need> needs;
  for (Segment &segment : reverse(segments)) {
    DenseSet<uint32_t> written;
    for (const planemu_jit_step *step : reverse(segment.lanes))
      for (auto [n, offset] : enumerate(operandsOf(*step))) {
        if (!isWritten(*step, n) || !written.insert(offset).second)
          continue;
        Need need = needs.lookup(offset);
        if (need == Needed || (need == AsBehind && !(step->dying >> n & 1)))
          segment.stored.insert(offset);
      }
    for (const planemu_jit_step *step : reverse(segment.lanes)) {
      for (auto [n, offset] : enumerate(operandsOf(*step)))
        if (isWritten(*step, n))
          needs[offset] = step->guard == TruePredicate ? Overwritten : Needed;
      for (auto [n, offset] : enumerate(operandsOf(*step)))
        if (isRead(*step, n))
          needs[offset] = Needed;
      needs[step->guard] = Needed;
    }
    // What a call writes it may write in part.
    for (const planemu_jit_step *call : segment.calls) {
      needs[call->guard] = Needed;
      for (uint32_t offset : operandsOf(*call))
        needs[offset] = Needed;
    }
  }
}

// --- Calls ----------------------------------------------------------------------

void BlockBuilder::emitCall(const planemu_jit_step &step) {
  auto pointer = [&](uintptr_t address) {
    return ir.CreateIntToPtr(ir.getInt64(address), ir.getPtrTy());
  };
  auto *type = FunctionType::get(ir.getVoidTy(), {ir.getPtrTy(), ir.getPtrTy()}, false);
  ir.CreateCall(type, pointer(reinterpret_cast<uintptr_t>(step.run)),
                {function->getArg(0), pointer(reinterpret_cast<uintptr_t>(step.inst))});
}

// --- Lanes ----------------------------------------------------------------------

Type *BlockBuilder::vectorOf(unsigned bytes) {
  return FixedVectorType::get(ir.getIntNTy(8 * bytes), Chunk);
}

AllocaInst *BlockBuilder::allocate(Type *type) {
  BasicBlock &entry = function->getEntryBlock();
  return IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
}

Value *BlockBuilder::fileAddress(uint32_t offset) {
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), function->getArg(1), offset);
}

/// The chunk's eight lanes of `bytes` bytes.
Value *BlockBuilder::chunkAddress(uint32_t offset, unsigned bytes) {
  Value *by = ir.CreateNUWMul(chunk, ir.getInt64(bytes));
  return ir.CreateInBoundsGEP(ir.getInt8Ty(), fileAddress(offset), by);
}

/// The eight lanes of a predicate that belong to the chunk.
Value *BlockBuilder::predicateByte(uint32_t offset) {
  if (offset == TruePredicate)
    return ir.getInt8(0xff);
  Value *mask = ir.CreateLoad(ir.getInt32Ty(), places[offset].at);
  return ir.CreateTrunc(ir.CreateLShr(mask, shift), ir.getInt8Ty());
}

/// Gives all operands of the segment a place. Returns those that are read before they are written.
SetVector<uint32_t> BlockBuilder::makePlaces(const Segment &segment) {
  places.clear();
  SetVector<uint32_t> readFirst;
  DenseSet<uint32_t> written;
  auto add = [&](uint32_t offset, unsigned bytes, bool reads) {
    auto [place, fresh] = places.try_emplace(offset);
    if (fresh)
      place->second = {allocate(bytes ? vectorOf(bytes) : ir.getInt32Ty()), bytes};
    if (reads && !written.contains(offset))
      readFirst.insert(offset);
  };
  for (const planemu_jit_step *step : segment.lanes) {
    bool guarded = step->guard != TruePredicate;
    if (guarded)
      add(step->guard, 0, true);
    for (auto [n, offset] : enumerate(operandsOf(*step)))
      // Lanes that do not execute keep what they have.
      add(offset, step->bytes[n], !isWritten(*step, n) || guarded);
    for (auto [n, offset] : enumerate(operandsOf(*step)))
      if (isWritten(*step, n))
        written.insert(offset);
  }
  return readFirst;
}

void BlockBuilder::loadPlaces(ArrayRef<uint32_t> offsets) {
  for (uint32_t offset : offsets) {
    const Place &place = places[offset];
    if (!place.bytes)
      continue;
    Value *value;
    if (auto constant = constants.find(offset); constant != constants.end())
      value = ir.CreateVectorSplat(
          Chunk, ir.getInt(APInt(64, constant->second->value).trunc(8 * place.bytes)));
    else
      value = ir.CreateAlignedLoad(vectorOf(place.bytes), chunkAddress(offset, place.bytes),
                                   Align(Chunk * place.bytes));
    ir.CreateStore(value, place.at);
  }
}

/// Takes what the function has left in `result` as operand `n`.
void BlockBuilder::keepResult(const planemu_jit_step &step, unsigned n, AllocaInst *result,
                              Value *guard) {
  uint32_t offset = step.operands[n];
  AllocaInst *place = places[offset].at;
  if (unsigned bytes = step.bytes[n]) {
    if (!guard)
      return; // they are the same
    Value *runs = ir.CreateBitCast(guard, FixedVectorType::get(ir.getInt1Ty(), Chunk));
    Value *fresh = ir.CreateLoad(vectorOf(bytes), result);
    ir.CreateStore(ir.CreateSelect(runs, fresh, ir.CreateLoad(vectorOf(bytes), place)), place);
    return;
  }
  Value *byte = ir.CreateLoad(ir.getInt8Ty(), result);
  if (guard)
    byte = ir.CreateOr(ir.CreateAnd(byte, guard),
                       ir.CreateAnd(predicateByte(offset), ir.CreateNot(guard)));
  Value *others = ir.CreateAnd(ir.CreateLoad(ir.getInt32Ty(), place),
                               ir.CreateNot(ir.CreateShl(ir.getInt32(0xff), shift)));
  Value *these = ir.CreateShl(ir.CreateZExt(byte, ir.getInt32Ty()), shift);
  ir.CreateStore(ir.CreateOr(others, these), place);
}

Error BlockBuilder::emitStep(const planemu_jit_step &step) {
  Function *lanes = module.getFunction(step.lanes);
  if (!lanes)
    return createStringError(Twine("no function for lanes is called ") + step.lanes);
  if (lanes->arg_size() != step.count + 1)
    return createStringError(Twine(step.lanes) + " does not take " + Twine(step.count) +
                             " operands");
  Value *guard = nullptr; // a bit for each lane
  if (step.guard != TruePredicate)
    guard = ir.CreateXor(predicateByte(step.guard), ir.getInt8(step.guard_xor & 0xff));
  SmallVector<Value *> arguments = {ir.getInt64(step.imm)};
  SmallVector<std::pair<unsigned, AllocaInst *>> results;
  for (auto [n, offset] : enumerate(operandsOf(step))) {
    AllocaInst *at = places.lookup(offset).at;
    if (!step.bytes[n]) {
      at = allocate(ir.getInt8Ty());
      if (isRead(step, n))
        ir.CreateStore(predicateByte(offset), at);
    } else if (isWritten(step, n) && guard) {
      at = allocate(vectorOf(step.bytes[n]));
    }
    if (isWritten(step, n))
      results.emplace_back(n, at);
    arguments.push_back(at);
  }
  laneCalls.push_back(ir.CreateCall(lanes, arguments));
  for (auto [n, at] : results)
    keepResult(step, n, at, guard);
  return Error::success();
}

Error BlockBuilder::emitLanes(const Segment &segment) {
  SetVector<uint32_t> readFirst = makePlaces(segment);
  for (auto &[offset, place] : places)
    if (!place.bytes) {
      Value *mask = ir.getInt32(0);
      if (readFirst.contains(offset))
        mask = ir.CreateLoad(ir.getInt32Ty(), fileAddress(offset));
      ir.CreateStore(mask, place.at);
    }

  BasicBlock *before = ir.GetInsertBlock();
  BasicBlock *body = BasicBlock::Create(module.getContext(), "chunk", function);
  BasicBlock *behind = BasicBlock::Create(module.getContext(), "behind", function);
  ir.CreateBr(body);
  ir.SetInsertPoint(body);
  // Counts lanes: times 2, 4 or 8 the host's addressing modes have it.
  PHINode *first = ir.CreatePHI(ir.getInt64Ty(), 2);
  first->addIncoming(ir.getInt64(0), before);
  chunk = first;
  shift = ir.CreateTrunc(chunk, ir.getInt32Ty());
  loadPlaces(readFirst.getArrayRef());
  for (const planemu_jit_step *step : segment.lanes)
    if (Error error = emitStep(*step))
      return error;
  for (uint32_t offset : segment.stored)
    if (const Place &place = places[offset]; place.bytes)
      ir.CreateAlignedStore(ir.CreateLoad(vectorOf(place.bytes), place.at),
                            chunkAddress(offset, place.bytes), Align(Chunk * place.bytes));
  Value *next = ir.CreateNUWAdd(chunk, ir.getInt64(Chunk));
  first->addIncoming(next, body);
  ir.CreateCondBr(ir.CreateICmpULT(next, ir.getInt64(Lanes)), body, behind);

  // Predicates at once: whoever reads one reads all of it.
  ir.SetInsertPoint(behind);
  for (uint32_t offset : segment.stored)
    if (const Place &place = places[offset]; !place.bytes)
      ir.CreateStore(ir.CreateLoad(ir.getInt32Ty(), place.at), fileAddress(offset));
  return Error::success();
}

Error BlockBuilder::inlineLanes() {
  for (CallInst *call : laneCalls) {
    Function *lanes = call->getCalledFunction();
    if (Error error = lanes->materialize())
      return error;
    for (const char *host : {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width"})
      if (Attribute attribute = lanes->getFnAttribute(host); attribute.isValid())
        function->addFnAttr(attribute);
    InlineFunctionInfo info;
    if (InlineResult result = InlineFunction(*call, info); !result.isSuccess())
      return createStringError(Twine("cannot inline ") + lanes->getName() + ": " +
                               result.getFailureReason());
  }
  laneCalls.clear();
  return Error::success();
}

Expected<Function *> BlockBuilder::build(const planemu_jit_block &block, const Twine &name) {
  auto *type = FunctionType::get(ir.getVoidTy(), {ir.getPtrTy(), ir.getPtrTy()}, false);
  function = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
  ir.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", function));
  SmallVector<Segment> segments = segmentsOf(Steps(kernel.steps + block.first, block.count));
  findStored(segments);
  for (const Segment &segment : segments) {
    for (const planemu_jit_step *call : segment.calls)
      emitCall(*call);
    if (segment.lanes.empty())
      continue;
    if (Error error = emitLanes(segment))
      return std::move(error);
  }
  ir.CreateRetVoid();
  if (Error error = inlineLanes())
    return std::move(error);
  return function;
}
