//===- Gpu.cpp - faults in an emitted kernel: what memory, what order ---------===//
//
// Which buffer an address leads to, and the faults of synchronisation and control flow.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Mutations/GpuFinder.h"

using namespace mlir;

namespace planc::verify {

std::string Memory::text() const {
  switch (kind) {
  case Kind::Argument:
    return fmt::format("argument {}", number);
  case Kind::Scales:
    return fmt::format("the scales of argument {}", number);
  case Kind::Output:
    return fmt::format("output {}", number);
  case Kind::Scratch:
    return "scratch";
  case Kind::Counters:
    return "the counters";
  case Kind::Shared:
    return fmt::format("shared array {}", number);
  }
  return "";
}

bool Memory::isIntegerEdge() const {
  auto edge = argument ? dyn_cast<RankedTensorType>(argument.getType()) : RankedTensorType();
  return edge && edge.getElementType().isInteger();
}

GpuFinder::GpuFinder(plan::KernelOp kernel, EmittedKernel &emitted) : ctas(emitted.shape.grid[0]) {
  emitted.module->walk([&](gpu::GPUFuncOp found) { function = found; });
  // The kernel ABI: arguments (a weight with block scales is two), outputs, scratch, counters.
  auto parameter = [&](Memory::Kind kind, unsigned number, BlockArgument argument) {
    parameters.push_back({kind, number, argument, function.getArgument(parameters.size())});
  };
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    parameter(Memory::Kind::Argument, argument.getArgNumber(), argument);
    auto weight = dyn_cast<plan::WeightType>(argument.getType());
    if (weight && weight.getFormat() == plan::Format::FP8Block128x128)
      parameter(Memory::Kind::Scales, argument.getArgNumber(), argument);
  }
  for (unsigned i = 0; i < body.getTerminator()->getNumOperands(); ++i)
    parameter(Memory::Kind::Output, i, nullptr);
  if (emitted.shape.scratchBytes)
    parameter(Memory::Kind::Scratch, 0, nullptr);
  if (emitted.shape.counters)
    parameter(Memory::Kind::Counters, 0, nullptr);
  std::map<StringRef, unsigned> counts;
  function.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { numbers[op] = ++counts[op->getName().getStringRef()]; });
}

std::string GpuFinder::name(Operation *op) {
  return fmt::format("{} #{}", op->getName().getStringRef().str(), numbers.lookup(op));
}

std::optional<Memory> GpuFinder::memoryOf(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (auto address = dyn_cast<LLVM::AddressOfOp>(op)) {
      // Shared arrays are numbered as the module declares them.
      unsigned number = 0;
      for (auto global : function->getParentOfType<gpu::GPUModuleOp>().getOps<LLVM::GlobalOp>()) {
        if (global.getSymName() == address.getGlobalName())
          return Memory{Memory::Kind::Shared, number, nullptr, address};
        ++number;
      }
      return std::nullopt;
    }
    if (auto gep = dyn_cast<LLVM::GEPOp>(op))
      pointer = gep.getBase();
    else if (auto select = dyn_cast<arith::SelectOp>(op))
      pointer = select.getTrueValue();
    else
      return std::nullopt;
  }
  for (const Memory &parameter : parameters)
    if (parameter.root == pointer)
      return parameter;
  return std::nullopt;
}

static unsigned bytesOf(TypeRange types) {
  unsigned bits = 0;
  for (Type type : types) {
    if (auto vector = dyn_cast<VectorType>(type))
      bits += unsigned(vector.getNumElements()) * vector.getElementTypeBitWidth();
    else
      bits += type.getIntOrFloatBitWidth();
  }
  return bits / 8;
}

std::vector<Access> GpuFinder::accesses() {
  std::vector<Access> all;
  auto take = [&](OpOperand &pointer, bool isStore, unsigned bytes) {
    if (std::optional<Memory> memory = memoryOf(pointer.get()))
      all.push_back({&pointer, *memory, isStore, bytes});
  };
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      take(load.getAddrMutable(), false, bytesOf(load->getResultTypes()));
    } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      take(store.getAddrMutable(), true, bytesOf(store.getValue().getType()));
    } else if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op)) {
      take(copy.getSrcMutable(), false, copy.getSize());
      take(copy.getDstMutable(), true, copy.getSize());
    } else if (isa<NVVM::InlinePtxOp>(op) && op->getNumResults()) {
      for (OpOperand &operand : op->getOpOperands())
        if (isa<LLVM::LLVMPointerType>(operand.get().getType()))
          take(operand, false, bytesOf(op->getResultTypes()));
    }
  });
  return all;
}

//===----------------------------------------------------------------------===//
// Synchronisation
//===----------------------------------------------------------------------===//

template <class... Ops> void GpuFinder::eraseEach() {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<Ops...>(op))
      add(name(op), [op] { op->erase(); });
  });
}

void GpuFinder::findSkippedBarrier() {
  eraseEach<gpu::BarrierOp, NVVM::SyncWarpOp, NVVM::CpAsyncWaitGroupOp>();
}

void GpuFinder::findMissingFence() { eraseEach<LLVM::FenceOp>(); }

void GpuFinder::findStaleCounter() {
  for (const Access &access : accesses())
    if (access.isStore && access.memory.kind == Memory::Kind::Counters) {
      Operation *store = access.pointer->getOwner();
      add(name(store), [store] { store->erase(); });
    }
}

void GpuFinder::findEarlyMerge() {
  // Who comes last is told from what the counter was.
  walk<LLVM::AtomicRMWOp>([&](LLVM::AtomicRMWOp arrival) {
    for (OpOperand &use : arrival.getRes().getUses())
      if (auto compare = dyn_cast<arith::CmpIOp>(use.getOwner()))
        add(name(compare), [compare, arrival]() mutable {
          OpBuilder b(compare);
          Location loc = compare.getLoc();
          Value one = arith::ConstantIntOp::create(b, loc, arrival.getRes().getType(), 1);
          Value more = arith::AddIOp::create(b, loc, arrival.getRes(), one);
          compare->replaceUsesOfWith(arrival.getRes(), more);
        });
  });
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Makes a condition what it never, or always, is.
static void fix(scf::IfOp guard, bool value) {
  OpBuilder b(guard);
  guard.getConditionMutable().assign(
      arith::ConstantIntOp::create(b, guard.getLoc(), b.getI1Type(), value));
}

void GpuFinder::findSkippedBranch() {
  // One that has an alternative may be a shortcut to the same.
  walk<scf::IfOp>([&](scf::IfOp guard) {
    if (!guard.elseBlock())
      add(name(guard), [guard] { fix(guard, false); });
  });
}

/// The value of an integer in a CTA, if nothing else decides it.
static std::optional<int64_t> valueIn(int64_t cta, Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  Operation *op = value.getDefiningOp();
  if (auto id = dyn_cast_or_null<NVVM::BlockIdXOp>(op))
    return cta;
  if (!op || !isa<arith::SubIOp, arith::CmpIOp>(op))
    return std::nullopt;
  std::optional<int64_t> a = valueIn(cta, op->getOperand(0)), c = valueIn(cta, op->getOperand(1));
  if (!a || !c)
    return std::nullopt;
  auto compare = dyn_cast<arith::CmpIOp>(op);
  return !compare ? *a - *c
                  : int64_t(arith::applyCmpPredicate(compare.getPredicate(), APInt(64, *a),
                                                     APInt(64, *c)));
}

/// True if both branches are work of a single CTA: exchanged, the two change places.
static bool choosesBetweenTwo(scf::IfOp choice, int64_t ctas) {
  int64_t counts[2] = {0, 0};
  for (int64_t cta = 0; cta < ctas; ++cta) {
    bool comesHere = true;
    for (auto outer = choice->getParentOfType<scf::IfOp>(); outer && comesHere;
         outer = outer->getParentOfType<scf::IfOp>()) {
      std::optional<int64_t> taken = valueIn(cta, outer.getCondition());
      if (!taken)
        return false;
      comesHere = outer.getThenRegion().isAncestor(choice->getParentRegion()) == bool(*taken);
    }
    std::optional<int64_t> taken = valueIn(cta, choice.getCondition());
    if (!taken)
      return false;
    if (comesHere)
      ++counts[*taken ? 0 : 1];
  }
  return counts[0] == 1 && counts[1] == 1;
}

void GpuFinder::findSwappedBranches() {
  walk<scf::IfOp>([&](scf::IfOp choice) {
    if (choice.elseBlock() && !choosesBetweenTwo(choice, ctas))
      add(name(choice), [choice]() mutable {
        OpBuilder b(choice);
        Location loc = choice.getLoc();
        Value yes = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
        choice.getConditionMutable().assign(
            arith::XOrIOp::create(b, loc, choice.getCondition(), yes));
      });
  });
}

/// True if a condition depends on an id, a slot or a length that is loaded.
bool GpuFinder::dependsOnData(Value condition) {
  SmallVector<Value> pending = {condition};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      std::optional<Memory> memory = memoryOf(load.getAddr());
      if (memory && memory->isIntegerEdge())
        return true;
    } else if (isa<arith::ArithDialect>(op->getDialect())) {
      llvm::append_range(pending, op->getOperands());
    }
  }
  return false;
}

void GpuFinder::findMissingGuard() {
  // Of threads and CTAs alone a guard may be true for all there are; data must show both sides.
  walk<scf::IfOp>([&](scf::IfOp guard) {
    if (dependsOnData(guard.getCondition()))
      add(name(guard), [guard] { fix(guard, true); });
  });
}

void GpuFinder::findWrongExtremum() {
  // Of keys alone: the maximum of a softmax only scales what it is taken from.
  walk<arith::MaxUIOp>([&](arith::MaxUIOp max) {
    add(name(max), [max]() mutable {
      OpBuilder b(max);
      Value min = arith::MinUIOp::create(b, max.getLoc(), max.getLhs(), max.getRhs());
      max.replaceAllUsesWith(min);
      max.erase();
    });
  });
}

Sites gpuSites(MutationKind kind, plan::KernelOp kernel, EmittedKernel &emitted) {
  GpuFinder finder(kernel, emitted);
  switch (kind) {
#define PLANC_GPU_MUTATION(Name, text, likely, description)                                        \
  case MutationKind::Name:                                                                         \
    finder.find##Name();                                                                           \
    break;
#include "lib/Verify/Mutations.def"
  default:
    break;
  }
  return std::move(finder.sites);
}

} // namespace planc::verify
