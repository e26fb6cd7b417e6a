//===- GpuAddresses.cpp - faults in an emitted kernel: where it reads ---------===//
//
// Addresses are getelementptr operations over i32 and i64 arithmetic: their indices are followed
// back to what they are made of.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Mutations/GpuFinder.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace planc::verify {

/// Not remainders: one more in what one is taken of turns all indices around, which deals the same
/// work to other threads.
static bool makesIndices(Operation *op) {
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::MinSIOp, arith::MaxSIOp, arith::ShLIOp>(op);
}

/// The operations that make the indices of an address, the nearest first.
static llvm::SetVector<Operation *> indexOperations(Value pointer) {
  llvm::SetVector<Operation *> found;
  SmallVector<Value> pending;
  while (auto gep = pointer.getDefiningOp<LLVM::GEPOp>()) {
    llvm::append_range(pending, gep.getDynamicIndices());
    pointer = gep.getBase();
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    Operation *op = pending[i].getDefiningOp();
    if (!op || !makesIndices(op) || !found.insert(op))
      continue;
    llvm::append_range(pending, op->getOperands());
  }
  return found;
}

/// True if `op` is one of what makes the index `of`.
static bool makesOperandOf(Operation *op, Operation *of) {
  return llvm::any_of(of->getOperands(), [&](Value operand) {
    Operation *made = operand.getDefiningOp();
    return made && (made == op || (makesIndices(made) && makesOperandOf(op, made)));
  });
}

/// `value` + `by`, made in front of `user`.
static Value plus(Operation *user, Value value, int64_t by) {
  OpBuilder b(user);
  Value constant = arith::ConstantIntOp::create(b, user->getLoc(), value.getType(), by);
  return arith::AddIOp::create(b, user->getLoc(), value, constant);
}

/// A copy of an operation whose operands may be any numbers.
static Operation *cloneUnlimited(Operation *op, OpBuilder &b) {
  Operation *copy = b.clone(*op);
  if (auto limited = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(copy))
    copy->setAttr(
        limited.getIntegerOverflowAttrName(),
        arith::IntegerOverflowFlagsAttr::get(b.getContext(), arith::IntegerOverflowFlags::none));
  return copy;
}

/// An address with `changed` for the result of `op`, made where `b` is.
static Value rebuild(Value value, Operation *op, Value changed, OpBuilder &b) {
  Operation *made = value.getDefiningOp();
  if (made == op)
    return changed;
  if (!made || (!isa<LLVM::GEPOp>(made) && !makesIndices(made)))
    return value;
  SmallVector<Value> operands;
  for (Value operand : made->getOperands())
    operands.push_back(rebuild(operand, op, changed, b));
  if (llvm::equal(operands, made->getOperands()))
    return value;
  Operation *copy = cloneUnlimited(made, b);
  copy->setOperands(operands);
  return copy->getResult(0);
}

/// What is added to a factor for the address of `pointer`, so that it leads elsewhere: one, or as
/// much as a division that follows does not round away; less where a minimum follows, since more of
/// the last piece may be what it was.
static int64_t stepOf(Operation *factor, Value pointer) {
  int64_t by = 1, scale = 1, sign = 1;
  if (std::optional<int64_t> constant = getConstantIntValue(factor->getOperand(1)))
    scale = isa<arith::ShLIOp>(factor) ? int64_t(1) << *constant : *constant;
  for (Operation *op : indexOperations(pointer)) {
    if (!isa<arith::DivUIOp, arith::MinSIOp>(op) || !makesOperandOf(factor, op))
      continue;
    if (isa<arith::MinSIOp>(op))
      sign = -1;
    else if (std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1)))
      by = std::max(by, *divisor / std::max<int64_t>(scale, 1));
  }
  return sign * by;
}

/// Another number in `op`, for the address of one access alone.
static void changeFor(OpOperand &pointer, Operation *op) {
  OpBuilder b(pointer.getOwner());
  Operation *copy = cloneUnlimited(op, b);
  copy->setOperand(0, plus(copy, copy->getOperand(0), stepOf(op, pointer.get())));
  pointer.set(rebuild(pointer.get(), op, copy->getResult(0), b));
}

void GpuFinder::findWrongId() {
  for (const Access &access : accesses()) {
    auto load = dyn_cast<LLVM::LoadOp>(access.pointer->getOwner());
    if (!load || !access.memory.isIntegerEdge())
      continue;
    for (int64_t by : {1, -1})
      add(fmt::format("{} from {}, {}", name(load), access.memory.text(),
                      by > 0 ? "one more" : "one less"),
          [load, by]() mutable {
            OpBuilder b(load->getContext());
            b.setInsertionPointAfter(load);
            Value loaded = load.getRes();
            Value constant = arith::ConstantIntOp::create(b, load.getLoc(), loaded.getType(), by);
            auto other = arith::AddIOp::create(b, load.getLoc(), loaded, constant);
            loaded.replaceAllUsesExcept(other, other);
          });
  }
}

void GpuFinder::findWrongIndex() {
  // Of each buffer, the factors nearest to the access and farthest from it. In shared memory loads
  // alone go wrong: if all do, the CTA uses its scratch differently, and nobody else sees it.
  std::map<std::pair<void *, bool>, llvm::SetVector<Operation *>> factors;
  std::vector<std::pair<std::pair<void *, bool>, Memory>> order;
  for (const Access &access : accesses()) {
    auto key = std::pair(access.memory.root.getAsOpaquePointer(), access.isStore);
    auto [entry, isNew] = factors.try_emplace(key);
    if (isNew)
      order.emplace_back(key, access.memory);
    for (Operation *op : indexOperations(access.pointer->get()))
      if (isa<arith::MulIOp, arith::ShLIOp>(op))
        entry->second.insert(op);
  }
  llvm::SmallPtrSet<Operation *, 16> taken;
  for (const auto &[key, memory] : order) {
    const llvm::SetVector<Operation *> &found = factors[key];
    for (size_t i = 0; i < found.size(); ++i) {
      Operation *op = found[i];
      if ((i > 0 && i + 1 < found.size()) || !taken.insert(op).second)
        continue;
      SmallVector<OpOperand *> loads;
      if (memory.kind == Memory::Kind::Shared)
        for (const Access &access : accesses())
          if (!access.isStore && access.memory.root == memory.root &&
              indexOperations(access.pointer->get()).contains(op))
            loads.push_back(access.pointer);
      add(fmt::format("{} in an address of {}", name(op), memory.text()), [op, loads] {
        for (OpOperand *load : loads)
          changeFor(*load, op);
        if (loads.empty())
          op->setOperand(0, plus(op, op->getOperand(0), 1));
      });
    }
  }
}

void GpuFinder::findWrongPiece() {
  // The first and the last access of each buffer, loads and stores.
  std::vector<Access> all = accesses();
  auto isAlike = [](const Access &a, const Access &c) {
    return a.memory.root == c.memory.root && a.isStore == c.isStore;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    auto alike = [&](const Access &other) { return isAlike(all[i], other); };
    bool isFirst = std::none_of(all.begin(), all.begin() + long(i), alike);
    bool isLast = std::none_of(all.begin() + long(i) + 1, all.end(), alike);
    if ((!isFirst && !isLast) || all[i].memory.kind == Memory::Kind::Counters)
      continue;
    OpOperand *pointer = all[i].pointer;
    unsigned bytes = all[i].bytes;
    add(fmt::format("{} {} {}", name(pointer->getOwner()), all[i].isStore ? "to" : "from",
                    all[i].memory.text()),
        [pointer, bytes] {
          OpBuilder b(pointer->getOwner());
          Value other =
              LLVM::GEPOp::create(b, pointer->getOwner()->getLoc(), pointer->get().getType(),
                                  b.getI8Type(), pointer->get(), ArrayRef<LLVM::GEPArg>{bytes});
          pointer->set(other);
        });
  }
}

void GpuFinder::findWrongScaleBlock() {
  llvm::SetVector<Operation *> divisions;
  for (const Access &access : accesses())
    if (access.memory.kind == Memory::Kind::Scales)
      for (Operation *op : indexOperations(access.pointer->get()))
        if (isa<arith::DivUIOp>(op))
          divisions.insert(op);
  for (Operation *op : divisions)
    add(fmt::format("{} in the index of a scale", name(op)), [op] {
      OpBuilder b(op);
      Value two = arith::ConstantIntOp::create(b, op->getLoc(), op->getOperand(0).getType(), 2);
      op->setOperand(0, arith::MulIOp::create(b, op->getLoc(), op->getOperand(0), two));
    });
}

void GpuFinder::findMissingScale() {
  std::map<void *, std::vector<Operation *>> loads;
  std::vector<Memory> order;
  for (const Access &access : accesses())
    if (access.memory.kind == Memory::Kind::Scales &&
        isa<LLVM::LoadOp>(access.pointer->getOwner())) {
      auto &found = loads[access.memory.root.getAsOpaquePointer()];
      if (found.empty())
        order.push_back(access.memory);
      found.push_back(access.pointer->getOwner());
    }
  for (const Memory &memory : order)
    add(memory.text(), [all = loads[memory.root.getAsOpaquePointer()]] {
      for (Operation *load : all) {
        // Scales are loaded as the bits of f32 numbers.
        OpBuilder b(load);
        Value bits = arith::ConstantIntOp::create(b, load->getLoc(), b.getI32Type(), 0x3f800000);
        load->getResult(0).replaceAllUsesWith(bits);
      }
    });
}

} // namespace planc::verify
