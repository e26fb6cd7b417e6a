//===- KernelBuilder.cpp - the kernel, its parameters, integers, control flow ===//
//
// Parameters as the kernel ABI orders them: arguments of the kernel region (a weight with block
// scales is two), what it yields, scratch, counters. `noalias readonly` lets the backend load
// through the read-only path; it is said only of what no thread of the kernel writes.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/KernelBuilder.h"
#include "lib/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace planc;

/// PTX names: letters, digits and `_`.
static std::string entryNameOf(StringRef symbol) {
  std::string name;
  for (char c : symbol)
    name += llvm::isAlnum(c) ? c : '_';
  return name.empty() || llvm::isDigit(name.front()) ? "k_" + name : name;
}

KernelBuilder::KernelBuilder(plan::KernelOp kernel, const ScheduleContext &context)
    : kernel(kernel), context(context), b(kernel->getContext()), loc(b.getUnknownLoc()),
      entryName(entryNameOf(kernel.getSymName())) {}

//===----------------------------------------------------------------------===//
// The kernel and its parameters
//===----------------------------------------------------------------------===//

Type KernelBuilder::pointerType(unsigned space) {
  return LLVM::LLVMPointerType::get(b.getContext(), space);
}

/// True if no member writes the argument: edges, step inputs, weights and states that are only
/// read.
static bool isReadOnly(BlockArgument argument) {
  for (OpOperand &use : argument.getUses()) {
    auto node = dyn_cast<plan::PlanNode>(use.getOwner());
    if (!node)
      continue;
    for (auto [operand, access] : node.getAccesses())
      if (operand == use.getOperandNumber() && access != plan::Access::Read)
        return false;
  }
  return true;
}

static bool hasScales(Type type) {
  auto weight = dyn_cast<plan::WeightType>(type);
  return weight && weight.getFormat() == plan::Format::FP8Block128x128;
}

/// Bytes of an edge or step input; 0 for what is large and whole.
static int64_t sizeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8 : 0;
}

/// Buffers are aligned to more, but what is said here lets LLVM widen a load up to it: three
/// positions become four, past the buffer's end.
static int64_t alignmentOf(int64_t bytes) { return bytes % 16 ? bytes & -bytes : 16; }

void KernelBuilder::addParameters(SmallVectorImpl<Type> &types,
                                  SmallVectorImpl<DictionaryAttr> &attrs,
                                  const LaunchShape &shape) {
  auto parameter = [&](bool readOnly, int64_t bytes) {
    SmallVector<NamedAttribute> attributes = {
        b.getNamedAttr("llvm.align", b.getI32IntegerAttr(alignmentOf(bytes)))};
    if (readOnly)
      for (StringRef name : {"llvm.noalias", "llvm.readonly"})
        attributes.push_back(b.getNamedAttr(name, b.getUnitAttr()));
    types.push_back(pointerType(1));
    attrs.push_back(b.getDictionaryAttr(attributes));
  };
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    parameter(isReadOnly(argument), sizeOf(argument.getType()));
    if (hasScales(argument.getType()))
      parameter(/*readOnly=*/true, /*bytes=*/0);
  }
  for (Value yielded : body.getTerminator()->getOperands())
    parameter(/*readOnly=*/false, sizeOf(yielded.getType()));
  if (shape.scratchBytes)
    parameter(/*readOnly=*/false, /*bytes=*/0);
  if (shape.counters)
    parameter(/*readOnly=*/false, /*bytes=*/0);
}

void KernelBuilder::begin(const LaunchShape &shape) {
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  gpuModule = gpu::GPUModuleOp::create(b, loc, "kernels");
  b.setInsertionPointToStart(cast<gpu::GPUModuleOp>(gpuModule).getBody());

  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  addParameters(types, attrs, shape);
  auto func = gpu::GPUFuncOp::create(b, loc, entryName, b.getFunctionType(types, {}));
  function = func;
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  func.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(
      {int32_t(shape.block[0]), int32_t(shape.block[1]), int32_t(shape.block[2])}));
  if (shape.minBlocks)
    func->setAttr("nvvm.minctasm", b.getI32IntegerAttr(shape.minBlocks));
  for (auto [index, attributes] : llvm::enumerate(attrs))
    func.setArgAttrs(index, attributes);

  Block &body = kernel.getBody().front();
  unsigned next = 0;
  for (BlockArgument argument : body.getArguments()) {
    pointers[argument] = func.getArgument(next++);
    if (hasScales(argument.getType()))
      scalePointers[argument] = func.getArgument(next++);
  }
  for (Value yielded : body.getTerminator()->getOperands())
    outputs[yielded] = func.getArgument(next++);
  if (shape.scratchBytes)
    scratchPointer = func.getArgument(next++);
  if (shape.counters)
    countersPointer = func.getArgument(next++);
  b.setInsertionPointToStart(&func.getBody().front());
}

OwningOpRef<ModuleOp> KernelBuilder::finish() {
  gpu::ReturnOp::create(b, loc);
  return std::move(module);
}

Value KernelBuilder::pointer(Value argument) const { return pointers.lookup(argument); }
Value KernelBuilder::scales(Value weight) const { return scalePointers.lookup(weight); }
Value KernelBuilder::outputPointer(Value yielded) const { return outputs.lookup(yielded); }

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value KernelBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(int32_t(value)));
}
Value KernelBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}
Value KernelBuilder::i1(bool value) {
  return arith::ConstantOp::create(b, loc, b.getBoolAttr(value));
}
Value KernelBuilder::f32(float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

Value KernelBuilder::constantLike(Value like, int64_t value) {
  return like.getType().isInteger(64) ? i64(value) : i32(value);
}

Value KernelBuilder::threadId(unsigned dim) {
  Type type = b.getI32Type();
  switch (dim) {
  case 0:
    return NVVM::ThreadIdXOp::create(b, loc, type);
  case 1:
    return NVVM::ThreadIdYOp::create(b, loc, type);
  default:
    return NVVM::ThreadIdZOp::create(b, loc, type);
  }
}

Value KernelBuilder::blockId(unsigned dim) {
  Type type = b.getI32Type();
  switch (dim) {
  case 0:
    return NVVM::BlockIdXOp::create(b, loc, type);
  case 1:
    return NVVM::BlockIdYOp::create(b, loc, type);
  default:
    return NVVM::BlockIdZOp::create(b, loc, type);
  }
}

Value KernelBuilder::laneId() { return bitAnd(threadId(), 31); }
Value KernelBuilder::warpId() { return shr(threadId(), 5); }

static constexpr auto kNoWrap = arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;

Value KernelBuilder::add(Value a, Value c) {
  return b.createOrFold<arith::AddIOp>(loc, a, c, kNoWrap);
}
Value KernelBuilder::sub(Value a, Value c) {
  return b.createOrFold<arith::SubIOp>(loc, a, c, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::mul(Value a, Value c) {
  return b.createOrFold<arith::MulIOp>(loc, a, c, kNoWrap);
}
Value KernelBuilder::div(Value a, Value c) { return b.createOrFold<arith::DivUIOp>(loc, a, c); }
Value KernelBuilder::rem(Value a, Value c) { return b.createOrFold<arith::RemUIOp>(loc, a, c); }
Value KernelBuilder::min(Value a, Value c) { return b.createOrFold<arith::MinSIOp>(loc, a, c); }
Value KernelBuilder::max(Value a, Value c) { return b.createOrFold<arith::MaxSIOp>(loc, a, c); }
Value KernelBuilder::maxUnsigned(Value a, Value c) {
  return b.createOrFold<arith::MaxUIOp>(loc, a, c);
}
Value KernelBuilder::zeroExtend(Value value) {
  return b.createOrFold<arith::ExtUIOp>(loc, b.getI64Type(), value);
}
Value KernelBuilder::toI64(Value index) {
  if (index.getType().isInteger(64))
    return index;
  return b.createOrFold<arith::ExtSIOp>(loc, b.getI64Type(), index);
}
Value KernelBuilder::toI32(Value value) {
  if (value.getType().isInteger(32))
    return value;
  return b.createOrFold<arith::TruncIOp>(loc, b.getI32Type(), value);
}

Value KernelBuilder::wrapAdd(Value a, Value c) { return b.createOrFold<arith::AddIOp>(loc, a, c); }
Value KernelBuilder::wrapSub(Value a, Value c) { return b.createOrFold<arith::SubIOp>(loc, a, c); }
Value KernelBuilder::bitAnd(Value a, Value c) { return b.createOrFold<arith::AndIOp>(loc, a, c); }
Value KernelBuilder::bitOr(Value a, Value c) { return b.createOrFold<arith::OrIOp>(loc, a, c); }
Value KernelBuilder::bitXor(Value a, Value c) { return b.createOrFold<arith::XOrIOp>(loc, a, c); }
Value KernelBuilder::shl(Value a, Value c) { return b.createOrFold<arith::ShLIOp>(loc, a, c); }
Value KernelBuilder::shr(Value a, Value c) { return b.createOrFold<arith::ShRUIOp>(loc, a, c); }
Value KernelBuilder::ashr(Value a, Value c) { return b.createOrFold<arith::ShRSIOp>(loc, a, c); }

Value KernelBuilder::prmt(Value low, Value high, unsigned selector) {
  return intrinsic("llvm.nvvm.prmt", b.getI32Type(), {low, high, i32(selector)});
}

Value KernelBuilder::bitcast(Value value, Type type) {
  return value.getType() == type ? value : LLVM::BitcastOp::create(b, loc, type, value);
}
Value KernelBuilder::asF32(Value value) { return bitcast(value, b.getF32Type()); }
Value KernelBuilder::asI32(Value value) { return bitcast(value, b.getI32Type()); }

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate integer,
                     arith::CmpFPredicate real, Value a, Value c) {
  if (isa<FloatType>(a.getType()))
    return b.createOrFold<arith::CmpFOp>(loc, real, a, c);
  return b.createOrFold<arith::CmpIOp>(loc, integer, a, c);
}

Value KernelBuilder::eq(Value a, Value c) {
  return compare(b, loc, arith::CmpIPredicate::eq, arith::CmpFPredicate::OEQ, a, c);
}
Value KernelBuilder::ne(Value a, Value c) {
  return compare(b, loc, arith::CmpIPredicate::ne, arith::CmpFPredicate::UNE, a, c);
}
Value KernelBuilder::lt(Value a, Value c) {
  return compare(b, loc, arith::CmpIPredicate::slt, arith::CmpFPredicate::OLT, a, c);
}
Value KernelBuilder::le(Value a, Value c) {
  return compare(b, loc, arith::CmpIPredicate::sle, arith::CmpFPredicate::OLE, a, c);
}
Value KernelBuilder::select(Value condition, Value a, Value c) {
  return b.createOrFold<arith::SelectOp>(loc, condition, a, c);
}

Value KernelBuilder::intrinsic(StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), operands)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void KernelBuilder::forLoop(Value from, Value to, Value step, LoopBody body) {
  forLoop(from, to, step, ValueRange(), [&](Value index, ValueRange) {
    body(index);
    return Values();
  });
}

Values KernelBuilder::forLoop(Value from, Value to, Value step, ValueRange init, CarriedBody body) {
  auto loop = scf::ForOp::create(b, loc, from, to, step, init,
                                 [&](OpBuilder &nested, Location, Value index, ValueRange carried) {
                                   OpBuilder::InsertionGuard guard(b);
                                   b.setInsertionPoint(nested.getInsertionBlock(),
                                                       nested.getInsertionPoint());
                                   Values next = body(index, carried);
                                   scf::YieldOp::create(b, loc, next);
                                 });
  return Values(loop.getResults());
}

void KernelBuilder::ifThen(Value condition, Body then) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
}

void KernelBuilder::ifElse(Value condition, Body then, Body otherwise) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

Values KernelBuilder::ifValues(Value condition, Producer then, Producer otherwise) {
  // The result types are known once the arms are built: they are built in a draft and moved.
  auto draft = scf::IfOp::create(b, loc, TypeRange(), condition, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  auto build = [&](Block *block, Producer producer) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    Values results = producer();
    scf::YieldOp::create(b, loc, results);
  };
  build(draft.thenBlock(), then);
  build(draft.elseBlock(), otherwise);
  auto branch = scf::IfOp::create(b, loc, draft.thenBlock()->getTerminator()->getOperandTypes(),
                                  condition, /*addThenBlock=*/false, /*addElseBlock=*/false);
  branch.getThenRegion().takeBody(draft.getThenRegion());
  branch.getElseRegion().takeBody(draft.getElseRegion());
  draft.erase();
  return Values(branch.getResults());
}
