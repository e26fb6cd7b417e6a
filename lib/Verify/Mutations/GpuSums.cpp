//===- GpuSums.cpp - faults in an emitted kernel: how it adds -------------------===//
//
// A sum is a chain of fma or mma operations, each the addend of the next, perhaps carried by a
// loop; or a tree over lanes, or over partial sums that lie in shared memory or scratch.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Mutations/GpuFinder.h"

using namespace mlir;

namespace planc::verify {

/// Through selects and loops to what was added to last.
static Value throughSelects(Value value) {
  while (auto select = value.getDefiningOp<arith::SelectOp>())
    value = select.getTrueValue();
  return value;
}

/// The fma before this one in its sum. A polynomial has a factor in common with its neighbour; the
/// products of a sum do not.
static LLVM::FMAOp previousOf(LLVM::FMAOp fma) {
  Value addend = throughSelects(fma.getC());
  auto previous = addend.getDefiningOp<LLVM::FMAOp>();
  auto shares = [&](Value factor) {
    return factor == previous.getA() || factor == previous.getB();
  };
  return previous && !shares(fma.getA()) && !shares(fma.getB()) ? previous : LLVM::FMAOp();
}

/// A value that a loop hands on to its next turn.
static bool isCarried(Value value) {
  auto argument = dyn_cast<BlockArgument>(throughSelects(value));
  return argument && isa<scf::ForOp>(argument.getOwner()->getParentOp()) &&
         argument.getArgNumber() > 0;
}

using Chain = std::vector<LLVM::FMAOp>;

/// Sums of at least two products, in the order of their ends.
static std::vector<Chain> chainsOf(gpu::GPUFuncOp function) {
  llvm::DenseSet<Operation *> continued;
  SmallVector<LLVM::FMAOp> all;
  function.walk([&](LLVM::FMAOp fma) {
    if (!fma.getRes().getType().isF32())
      return;
    all.push_back(fma);
    if (LLVM::FMAOp previous = previousOf(fma))
      continued.insert(previous);
  });
  std::vector<Chain> chains;
  for (LLVM::FMAOp fma : all) {
    if (continued.contains(fma))
      continue;
    Chain chain = {fma};
    while (LLVM::FMAOp previous = previousOf(chain.back()))
      chain.push_back(previous);
    std::reverse(chain.begin(), chain.end());
    if (chain.size() > 1 || isCarried(fma.getC()))
      chains.push_back(std::move(chain));
  }
  return chains;
}

/// The operand that continues a sum of matrix products.
static NVVM::MmaOp previousOf(NVVM::MmaOp mma) {
  Value addend = mma.getOperandC().front();
  if (auto extract = addend.getDefiningOp<LLVM::ExtractValueOp>())
    return extract.getContainer().getDefiningOp<NVVM::MmaOp>();
  return {};
}

/// Rounds `value` to bf16 for everyone who reads it.
static void round(Value value) {
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  // As kernels do it: a pair is rounded, and widened by moving its bits.
  auto pairType = VectorType::get({2}, b.getF32Type());
  Value zero = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 0);
  Value pair = LLVM::PoisonOp::create(b, loc, pairType);
  for (unsigned i = 0; i < 2; ++i) {
    Value index = i ? arith::ConstantIntOp::create(b, loc, b.getI32Type(), 1).getResult() : zero;
    pair = LLVM::InsertElementOp::create(b, loc, pair, value, index);
  }
  Operation *first = pair.getDefiningOp()->getOperand(0).getDefiningOp();
  Operation *second = pair.getDefiningOp();
  Value narrow = LLVM::FPTruncOp::create(b, loc, VectorType::get({2}, b.getBF16Type()), pair);
  Value word = LLVM::BitcastOp::create(b, loc, b.getI32Type(), narrow);
  Value sixteen = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 16);
  Value high = arith::ShLIOp::create(b, loc, word, sixteen);
  Value rounded = LLVM::BitcastOp::create(b, loc, b.getF32Type(), high);
  value.replaceUsesWithIf(
      rounded, [&](OpOperand &use) { return use.getOwner() != first && use.getOwner() != second; });
}

/// Calls `body` with the first and the last of several.
template <class T>
static void atBothEnds(const std::vector<T> &all, llvm::function_ref<void(const T &)> body) {
  if (!all.empty())
    body(all.front());
  if (all.size() > 1)
    body(all.back());
}

//===----------------------------------------------------------------------===//
// Over lanes and partial sums
//===----------------------------------------------------------------------===//

static bool isFromLane(Value value) { return value.getDefiningOp<NVVM::ShflOp>() != nullptr; }

/// A partial sum that another thread has stored.
static bool isLoaded(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<LLVM::BitcastOp, LLVM::ExtractElementOp>(op))
      value = op->getOperand(0);
    else
      return isa<LLVM::LoadOp>(op);
  }
  return false;
}

/// An addition of what another lane or another thread has summed: {kept, added}.
static std::optional<std::pair<Value, Value>> asJoin(arith::AddFOp add, bool ofLanes) {
  for (auto [kept, added] :
       {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
    if (ofLanes ? isFromLane(added) : isLoaded(added))
      return std::pair(kept, added);
  return std::nullopt;
}

void GpuFinder::findDroppedPart() {
  for (bool ofLanes : {true, false}) {
    std::vector<arith::AddFOp> joins;
    walk<arith::AddFOp>([&](arith::AddFOp add) {
      auto join = asJoin(add, ofLanes);
      if (!join)
        return;
      // The last join of a tree: lanes beyond a short row may add zeros before it, never in it.
      bool isLast = llvm::none_of(add.getResult().getUsers(), [](Operation *user) {
        return isa<NVVM::ShflOp, arith::SelectOp>(user);
      });
      if (!ofLanes || isLast)
        joins.push_back(add);
    });
    atBothEnds<arith::AddFOp>(joins, [&](arith::AddFOp last) {
      Value kept = asJoin(last, ofLanes)->first;
      add(name(last), [last, kept]() mutable {
        last.getResult().replaceAllUsesWith(kept);
        last.erase();
      });
    });
  }
}

//===----------------------------------------------------------------------===//
// Over k
//===----------------------------------------------------------------------===//

void GpuFinder::findDroppedTile() {
  walk<scf::ForOp>([&](scf::ForOp loop) {
    add(name(loop), [loop]() mutable {
      OpBuilder b(loop);
      loop.setUpperBound(
          arith::SubIOp::create(b, loop.getLoc(), loop.getUpperBound(), loop.getStep()));
    });
  });
  std::vector<NVVM::MmaOp> ends;
  walk<NVVM::MmaOp>([&](NVVM::MmaOp mma) {
    bool isContinued = llvm::any_of(mma->getUsers(), [&](Operation *part) {
      return llvm::any_of(part->getUsers(), [&](Operation *user) {
        auto next = dyn_cast<NVVM::MmaOp>(user);
        return next && previousOf(next) == mma;
      });
    });
    if (!isContinued)
      ends.push_back(mma);
  });
  atBothEnds<NVVM::MmaOp>(ends, [&](NVVM::MmaOp last) {
    add(name(last), [last]() mutable {
      for (Operation *part : llvm::to_vector(last->getUsers())) {
        unsigned index = unsigned(cast<LLVM::ExtractValueOp>(part).getPosition().front());
        part->getResult(0).replaceAllUsesWith(last.getOperandC()[index]);
        part->erase();
      }
      last.erase();
    });
  });
  atBothEnds<Chain>(chainsOf(function), [&](const Chain &chain) {
    LLVM::FMAOp last = chain.back();
    add(name(last), [last]() mutable {
      last.getRes().replaceAllUsesWith(last.getC());
      last.erase();
    });
  });
}

void GpuFinder::findBf16Accumulate() {
  std::vector<NVVM::MmaOp> products;
  walk<NVVM::MmaOp>([&](NVVM::MmaOp mma) { products.push_back(mma); });
  if (!products.empty())
    add("nvvm.mma.sync, all", [products] {
      for (NVVM::MmaOp mma : products)
        for (Operation *part : llvm::to_vector(mma->getUsers()))
          round(part->getResult(0));
    });
  atBothEnds<Chain>(chainsOf(function), [&](const Chain &chain) {
    add(fmt::format("{} products up to {}", chain.size(), name(Chain(chain).back())), [chain] {
      for (LLVM::FMAOp fma : chain)
        round(fma.getRes());
    });
  });
  std::vector<arith::AddFOp> joins;
  walk<arith::AddFOp>([&](arith::AddFOp add) {
    if (asJoin(add, true))
      joins.push_back(add);
  });
  if (!joins.empty())
    add(fmt::format("{} sums over lanes", joins.size()), [joins] {
      for (arith::AddFOp add : joins)
        round(add.getResult());
    });
}

} // namespace planc::verify
