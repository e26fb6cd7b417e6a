//===- Schedule.cpp - which schedule takes a kernel -------------------------===//

#include "lib/Schedule/Schedule.h"
#include "lib/Schedule/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace planc;

namespace planc {
#define PLANC_SCHEDULE(function) const Schedule &function();
#include "lib/Schedule/Schedules.def"
} // namespace planc

ArrayRef<const Schedule *> planc::allSchedules() {
  static const SmallVector<const Schedule *> schedules = {
#define PLANC_SCHEDULE(function) &function(),
#include "lib/Schedule/Schedules.def"
  };
  return schedules;
}

/// What no schedule could take, and what all of them may rely on.
static std::optional<Refusal> refuseForAll(plan::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  if (body.without_terminator().empty())
    return Refusal{"the kernel has no members"};
  llvm::SmallDenseSet<Value> stored;
  for (Value yielded : body.getTerminator()->getOperands()) {
    if (isa<BlockArgument>(yielded))
      return Refusal{"the kernel stores one of its inputs"};
    if (!stored.insert(yielded).second)
      return Refusal{"a value is stored twice", yielded.getDefiningOp()};
  }
  auto isBound = [](Type type) {
    for (unsigned i = 0, e = plan::numDims(type); i < e; ++i)
      if (!plan::knownDim(type, i))
        return false;
    return true;
  };
  for (Operation &member : body.without_terminator())
    for (TypeRange types :
         {TypeRange(member.getOperandTypes()), TypeRange(member.getResultTypes())})
      if (!llvm::all_of(types, isBound))
        return Refusal{"dims are not bound", &member};
  return std::nullopt;
}

const Schedule *planc::selectSchedule(plan::KernelOp kernel, Refusals &refusals) {
  std::optional<Refusal> all = refuseForAll(kernel);
  for (const Schedule *schedule : allSchedules()) {
    std::optional<Refusal> refusal = all ? all : schedule->refuses(kernel);
    if (!refusal)
      return schedule;
    refusals.emplace_back(schedule->name(), std::move(*refusal));
  }
  return nullptr;
}

/// A kernel of its own that holds `members`: what they read from outside are arguments, what others
/// or the terminator read is yielded.
static OwningOpRef<plan::KernelOp> cutKernel(plan::KernelOp kernel, ArrayRef<Operation *> members) {
  OpBuilder b(kernel->getContext());
  OwningOpRef<plan::KernelOp> cut =
      plan::KernelOp::create(b, kernel.getLoc(), kernel.getSymNameAttr(), kernel.getRowsAttr(),
                             kernel.getComputeAttr(), kernel.getNumericsAttr());
  Block &body = cut->getBody().emplaceBlock();
  b.setInsertionPointToStart(&body);
  llvm::SmallPtrSet<Operation *, 8> inside(members.begin(), members.end());
  IRMapping mapping;
  // Edges, step inputs, weights, states: the order of the kernel's own arguments, edges from other
  // members first.
  for (Operation *member : members)
    for (Value operand : member->getOperands())
      if (Operation *writer = operand.getDefiningOp();
          writer && !inside.contains(writer) && !mapping.contains(operand))
        mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (llvm::any_of(argument.getUsers(), [&](Operation *user) { return inside.contains(user); }))
      mapping.map(Value(argument), body.addArgument(argument.getType(), argument.getLoc()));
  Values yielded;
  for (Operation *member : members) {
    b.clone(*member, mapping);
    for (Value result : member->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        yielded.push_back(mapping.lookup(result));
  }
  plan::YieldOp::create(b, kernel.getLoc(), TypeRange(), yielded, ArrayRef<NamedAttribute>());
  return cut;
}

static bool isTaken(plan::KernelOp kernel, ArrayRef<Operation *> members) {
  OwningOpRef<plan::KernelOp> cut = cutKernel(kernel, members);
  // A declared unit speaks of the whole group: a part may need another.
  static constexpr StringRef units[] = {"memory", "cuda_core",
                                        "tensor_core:mma.sync.m16n8k16.bf16"};
  for (StringRef unit : units) {
    (*cut).setCompute(unit);
    Refusals refusals;
    if (selectSchedule(*cut, refusals))
      return true;
  }
  return false;
}

SmallVector<SmallVector<Operation *>> planc::nearestGrouping(plan::KernelOp kernel) {
  SmallVector<SmallVector<Operation *>> parts;
  for (Operation &member : kernel.getBody().front().without_terminator()) {
    if (!parts.empty()) {
      SmallVector<Operation *> longer = parts.back();
      longer.push_back(&member);
      if (isTaken(kernel, longer)) {
        parts.back() = std::move(longer);
        continue;
      }
    }
    parts.push_back({&member});
  }
  return parts;
}

/// A member by its name in the plan, where the location has one.
static std::string nameOf(Operation *member) {
  if (auto name = dyn_cast<NameLoc>(member->getLoc()))
    return name.getName().str();
  return cast<plan::PlanNode>(member).getPlanWord();
}

/// The way out, if there is one: how the members could be grouped.
static void suggestGrouping(InFlightDiagnostic &error, plan::KernelOp kernel) {
  auto parts = nearestGrouping(kernel);
  for (ArrayRef<Operation *> part : parts)
    if (!isTaken(kernel, part)) {
      error.attachNote(part.front()->getLoc())
          << "no grouping would compile: '" << nameOf(part.front()) << "' is not taken alone";
      return;
    }
  Diagnostic &note = error.attachNote(kernel.getLoc());
  note << (parts.size() > 1 ? "the nearest grouping that would compile: "
                            : "the group would compile as another unit: ");
  llvm::interleave(
      parts,
      [&](ArrayRef<Operation *> part) {
        note << '[';
        llvm::interleave(
            part, [&](Operation *member) { note << nameOf(member); }, [&] { note << ", "; });
        note << ']';
      },
      [&] { note << ' '; });
}

FailureOr<EmittedKernel> planc::emitKernel(plan::KernelOp kernel, const ScheduleContext &context) {
  kernel->getContext()
      ->loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
                    scf::SCFDialect>();
  Refusals refusals;
  const Schedule *schedule = selectSchedule(kernel, refusals);
  if (!schedule) {
    InFlightDiagnostic error = kernel.emitError() << "no schedule takes this kernel";
    for (auto &[name, refusal] : refusals)
      error.attachNote(refusal.node ? refusal.node->getLoc() : kernel.getLoc())
          << name << ": " << (refusal.node ? plan::describe(refusal.node) + ": " : "")
          << refusal.reason;
    suggestGrouping(error, kernel);
    return failure();
  }
  KernelBuilder builder(kernel, context);
  EmittedKernel emitted;
  if (failed(schedule->emit(kernel, builder, context, emitted.shape)))
    return failure();
  emitted.module = builder.finish();
  emitted.entry = builder.entry();
  emitted.schedule = schedule->name();
  emitted.arithmetic = builder.arithmetic();
  for (const numerics::Node &node : emitted.arithmetic)
    if (std::string problem = numerics::problemOf(node); !problem.empty())
      return kernel.emitError() << "internal error: schedule '" << schedule->name()
                                << "': " << problem;
  if (failed(verify(*emitted.module)))
    return kernel.emitError() << "internal error: schedule '" << schedule->name()
                              << "' emitted invalid IR";
  return emitted;
}

void planc::registerScheduleDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
                  scf::SCFDialect>();
}
