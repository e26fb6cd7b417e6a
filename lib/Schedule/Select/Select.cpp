//===- Select.cpp - the schedule for routing and argmax ------------------------===//

#include "lib/Schedule/Select/Keys.h"

using namespace mlir;
using namespace planc;

namespace {
class Select : public Schedule {
public:
  StringRef name() const override { return "select"; }

  std::optional<Refusal> refuses(plan::KernelOp kernel) const override {
    if (kernel.getCompute().starts_with("tensor_core"))
      return Refusal{"declared for tensor cores, which this schedule does not use"};
    Operation *selection = nullptr;
    for (Operation &member : kernel.getBody().front().without_terminator()) {
      if (!isa<plan::TopKOp, plan::ArgmaxOp>(member))
        return Refusal{"no selection", &member};
      if (selection)
        return Refusal{"a second selection in one kernel", &member};
      selection = &member;
    }
    if (auto node = dyn_cast<plan::TopKOp>(selection)) {
      int64_t experts = *plan::knownDim(node.getLogits().getType(), 1);
      if (experts > kMaxExperts)
        return Refusal{"chooses among " + std::to_string(experts) +
                           " experts, more than the 1024 that a warp holds in registers",
                       node};
    }
    return std::nullopt;
  }

  LogicalResult emit(plan::KernelOp kernel, KernelBuilder &b, const ScheduleContext &,
                     LaunchShape &shape) const override {
    Operation &member = kernel.getBody().front().front();
    if (auto node = dyn_cast<plan::TopKOp>(member))
      select::emitTopK(b, node, shape);
    else
      select::emitArgmax(b, cast<plan::ArgmaxOp>(member), shape);
    return success();
  }

private:
  static constexpr int64_t kMaxExperts = 1024;
};
} // namespace

namespace planc {
const Schedule &selectionSchedule() {
  static const Select schedule;
  return schedule;
}
} // namespace planc
