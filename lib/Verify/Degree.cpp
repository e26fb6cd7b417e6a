//===- Degree.cpp - how many inputs are multiplied in a kernel -------------===//

#include "lib/Verify/Degree.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;

namespace planc::verify {

namespace {
/// Of what a node makes: what leaves it, and the largest on the way there.
struct Degrees {
  int64_t result, inside;
};
} // namespace

static Degrees degreesOf(Operation *op, llvm::function_ref<int64_t(Value)> of) {
  auto make = [](int64_t result, int64_t inside) {
    return Degrees{result, std::max(result, inside)};
  };
  return llvm::TypeSwitch<Operation *, Degrees>(op)
      // A sum of squares, whose root is a divisor of what is normed.
      .Case<plan::RmsNormOp, plan::FinalNormOp, plan::QkNormOp>(
          [&](auto norm) { return make(0, 2 * of(norm->getOperand(0))); })
      .Case([&](plan::GatedRmsNormOp norm) {
        return make(of(norm->getOperand(1)), 2 * of(norm->getOperand(0)));
      })
      // Values pass by the keys that are normed.
      .Case([&](plan::L2NormOp norm) { return make(of(norm.getX()), 2 * of(norm.getX())); })
      .Case([&](plan::ResidualAddOp add) {
        return make(std::max(of(add.getX()), of(add.getUpdate())), 0);
      })
      .Case([&](plan::SiluMulOp silu) { return make(2 * of(silu.getX()), 0); })
      .Case([&](plan::SigmoidGateMulOp gate) { return make(of(gate.getX()), of(gate.getGate())); })
      .Case([&](plan::BlendOp blend) {
        return make(
            std::max(of(blend.getExperts()) + of(blend.getWeights()), of(blend.getShared())),
            of(blend.getGate()));
      })
      .Case([&](plan::PagedAttentionOp attention) {
        return make(of(attention.getV()), of(attention.getQ()) + of(attention.getK()));
      })
      .Case([&](plan::GdnRecurrenceOp recurrence) {
        auto normed = recurrence.getQkv().getDefiningOp();
        bool isUnit = !normed || isa<plan::L2NormOp>(normed);
        return make((isUnit ? 1 : 3) * of(recurrence.getQkv()), 0);
      })
      // Ids, and factors between 0 and 1.
      .Case<plan::TopKOp, plan::ArgmaxOp, plan::GdnGatesOp>(
          [&](auto node) { return make(0, of(node->getOperand(0))); })
      .Default([&](Operation *node) {
        // Sums of products with weights, rotations, copies.
        int64_t most = 0;
        for (Value operand : node->getOperands())
          most = std::max(most, of(operand));
        return make(most, 0);
      });
}

int64_t degreeOf(plan::KernelOp kernel) {
  llvm::DenseMap<Value, int64_t> degrees;
  auto of = [&](Value value) -> int64_t {
    auto edge = dyn_cast<RankedTensorType>(value.getType());
    if (!edge || !isa<FloatType>(edge.getElementType()))
      return 0;
    return value.getDefiningOp() ? degrees.lookup(value) : 1;
  };
  int64_t most = 2;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto [result, inside] = degreesOf(&op, of);
    for (Value made : op.getResults())
      degrees[made] = result;
    most = std::max(most, inside);
  }
  return most;
}

} // namespace planc::verify
