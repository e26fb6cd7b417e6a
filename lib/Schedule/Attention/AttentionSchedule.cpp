//===- AttentionSchedule.cpp - paged attention as a schedule --------------===//

#include "lib/Schedule/Attention/Emitter.h"

using namespace mlir;
using namespace planc;

namespace {
class AttentionSchedule : public Schedule {
public:
  StringRef name() const override { return "attention"; }

  std::optional<Refusal> refuses(plan::KernelOp kernel) const override {
    AttentionKernel parts;
    return matchAttention(kernel, parts);
  }

  LogicalResult emit(plan::KernelOp kernel, KernelBuilder &builder, const ScheduleContext &context,
                     LaunchShape &shape) const override {
    AttentionKernel parts;
    if (matchAttention(kernel, parts))
      return kernel.emitError("internal error: the attention schedule does not take this kernel");
    AttentionEmitter emitter(builder, parts, context.kvBlock);
    shape = emitter.shape();
    builder.begin(shape);
    emitter.emit();
    return success();
  }
};
} // namespace

namespace planc {
const Schedule &attentionSchedule() {
  static const AttentionSchedule schedule;
  return schedule;
}
} // namespace planc
