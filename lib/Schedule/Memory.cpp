//===- Memory.cpp - global and shared memory, copies, barriers -------------===//

#include "lib/Schedule/Arrival.h"
#include "lib/Schedule/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace planc;
using plan::Format;

unsigned KernelBuilder::bytesOf(Format format) {
  switch (format) {
  case Format::BF16:
    return 2;
  case Format::F32:
  case Format::I32:
    return 4;
  case Format::I64:
    return 8;
  case Format::E4M3:
  case Format::FP8Block128x128:
    return 1;
  case Format::None:
    break;
  }
  llvm_unreachable("a value without a format");
}

Value KernelBuilder::at(Value base, Value index, unsigned elementBytes) {
  Type element = b.getIntegerType(elementBytes * 8);
  return LLVM::GEPOp::create(b, loc, base.getType(), element, base,
                             ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(index)},
                             LLVM::GEPNoWrapFlags::inbounds);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

Values KernelBuilder::loadWords(Value pointer, unsigned count) {
  if (count == 1)
    return {loadI32(pointer)};
  auto type = VectorType::get({int64_t(count)}, b.getI32Type());
  Value vector = LLVM::LoadOp::create(b, loc, type, pointer, count * 4);
  Values words;
  for (unsigned i = 0; i < count; ++i)
    words.push_back(LLVM::ExtractElementOp::create(b, loc, vector, i32(i)));
  return words;
}

void KernelBuilder::storeWords(Value pointer, ValueRange words) {
  if (words.size() == 1)
    return storeI32(pointer, words.front());
  auto type = VectorType::get({int64_t(words.size())}, b.getI32Type());
  Value vector = LLVM::PoisonOp::create(b, loc, type);
  for (auto [i, word] : llvm::enumerate(words))
    vector = LLVM::InsertElementOp::create(b, loc, vector, word, i32(i));
  LLVM::StoreOp::create(b, loc, vector, pointer, unsigned(words.size() * 4));
}

Values KernelBuilder::loadStream16(Value pointer) {
  SmallVector<Type> types(4, b.getI32Type());
  auto load = NVVM::InlinePtxOp::create(
      b, loc, types, ValueRange{pointer}, ValueRange(),
      "ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {$0, $1, $2, $3}, [$4];", Value());
  return Values(load.getResults());
}

Value KernelBuilder::loadI32(Value pointer) {
  return LLVM::LoadOp::create(b, loc, b.getI32Type(), pointer, 4);
}
Value KernelBuilder::loadI64(Value pointer) {
  return LLVM::LoadOp::create(b, loc, b.getI64Type(), pointer, 8);
}
void KernelBuilder::storeI32(Value pointer, Value value) {
  LLVM::StoreOp::create(b, loc, value, pointer, 4);
}

void KernelBuilder::storeI64(Value pointer, Value value) {
  LLVM::StoreOp::create(b, loc, value, pointer, 8);
}

/// Calls `access(first word, words)` for each of the widest accesses that cover `words` words.
static void forEachAccess(unsigned words, llvm::function_ref<void(unsigned, unsigned)> access) {
  for (unsigned first = 0; first < words;) {
    unsigned left = words - first, size = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    access(first, size);
    first += size;
  }
}

Values KernelBuilder::loadF32(Value pointer, Format format, unsigned count) {
  Values values;
  if (format == Format::BF16 && count == 1) {
    Value half = LLVM::LoadOp::create(b, loc, b.getI16Type(), pointer, 2);
    Value word = arith::ExtUIOp::create(b, loc, b.getI32Type(), half);
    return {lowBf16(word)};
  }
  unsigned perWord = format == Format::BF16 ? 2 : 1;
  assert(count % perWord == 0 && "bf16 values are loaded one or an even number at a time");
  forEachAccess(count / perWord, [&](unsigned first, unsigned size) {
    for (Value word : loadWords(at(pointer, i32(first), 4), size)) {
      if (perWord == 1) {
        values.push_back(asF32(word));
        continue;
      }
      values.push_back(lowBf16(word));
      values.push_back(highBf16(word));
    }
  });
  return values;
}

void KernelBuilder::storeF32(Value pointer, Format format, ValueRange values) {
  if (format == Format::BF16 && values.size() == 1) {
    Value half = arith::TruncIOp::create(b, loc, b.getI16Type(), packBf16(values.front(), f32(0)));
    LLVM::StoreOp::create(b, loc, half, pointer, 2);
    return;
  }
  Values words;
  for (unsigned i = 0; i < values.size(); i += format == Format::BF16 ? 2 : 1)
    words.push_back(format == Format::BF16 ? packBf16(values[i], values[i + 1]) : asI32(values[i]));
  forEachAccess(words.size(), [&](unsigned first, unsigned size) {
    storeWords(at(pointer, i32(first), 4), ValueRange(words).slice(first, size));
  });
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::sharedGlobal(StringRef name, uint64_t bytes, bool external) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false,
                         external ? LLVM::Linkage::External : LLVM::Linkage::Internal, name,
                         Attribute(), /*alignment=*/16, /*addrSpace=*/3);
  b.setInsertionPointToStart(&cast<gpu::GPUFuncOp>(function).getBody().front());
  return LLVM::AddressOfOp::create(b, loc, pointerType(3), name);
}

Value KernelBuilder::staticShared(uint64_t bytes) {
  return sharedGlobal(("shared" + Twine(sharedCount++)).str(), bytes, /*external=*/false);
}

Value KernelBuilder::dynamicShared() {
  if (!dynamicSharedPointer)
    dynamicSharedPointer = sharedGlobal("dynamic_shared", 0, /*external=*/true);
  return dynamicSharedPointer;
}

void KernelBuilder::cpAsync16(Value shared, Value global) {
  NVVM::CpAsyncOp::create(
      b, loc, shared, global, b.getI32IntegerAttr(16),
      NVVM::LoadCacheModifierKindAttr::get(b.getContext(), NVVM::LoadCacheModifierKind::CG),
      Value());
}

void KernelBuilder::cpAsyncCommit() { NVVM::CpAsyncCommitGroupOp::create(b, loc); }
void KernelBuilder::cpAsyncWait(unsigned pendingGroups) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, b.getI32IntegerAttr(pendingGroups));
}

//===----------------------------------------------------------------------===//
// Between threads
//===----------------------------------------------------------------------===//

void KernelBuilder::barrier() { gpu::BarrierOp::create(b, loc); }
void KernelBuilder::warpSync() { NVVM::SyncWarpOp::create(b, loc, i32(-1)); }

void KernelBuilder::fence() {
  LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acq_rel, "device");
}

Value KernelBuilder::lastCtaArrives(Value counterIndex, unsigned expected) {
  return planc::lastCtaArrives(*this, counterIndex, i32(expected));
}
