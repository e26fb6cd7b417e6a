//===- RecurrenceSchedule.cpp - the gated delta rule as a schedule --------===//

#include "lib/Schedule/Recurrence/Emitter.h"

using namespace mlir;
using namespace planc;

namespace {
class RecurrenceSchedule : public Schedule {
public:
  StringRef name() const override { return "recurrence"; }

  std::optional<Refusal> refuses(plan::KernelOp kernel) const override {
    RecurrenceKernel parts;
    return matchRecurrence(kernel, parts);
  }

  LogicalResult emit(plan::KernelOp kernel, KernelBuilder &builder, const ScheduleContext &,
                     LaunchShape &shape) const override {
    RecurrenceKernel parts;
    if (matchRecurrence(kernel, parts))
      return kernel.emitError("internal error: the recurrence schedule does not take this kernel");
    shape = RecurrenceEmitter::shape(parts);
    builder.begin(shape);
    RecurrenceEmitter(builder, parts).emit();
    return success();
  }
};
} // namespace

namespace planc {
const Schedule &recurrenceSchedule() {
  static const RecurrenceSchedule schedule;
  return schedule;
}
} // namespace planc
