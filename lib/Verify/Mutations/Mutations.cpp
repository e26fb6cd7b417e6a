//===- Mutations.cpp - the table of faults ----------------------------------===//

#include "lib/Verify/Mutations.h"

using namespace mlir;

namespace planc::verify {

namespace {
struct Row {
  const char *name;
  MutationStage stage;
  InputClass likely;
};
} // namespace

/// By kind.
static constexpr Row rows[] = {
#define PLANC_MUTATION(stage, Name, text, likely, description)                                     \
  {text, MutationStage::stage, InputClass::likely},
#include "lib/Verify/Mutations.def"
};

const char *mutationName(MutationKind kind) { return rows[size_t(kind)].name; }
MutationStage mutationStage(MutationKind kind) { return rows[size_t(kind)].stage; }
InputClass likelyClass(MutationKind kind) { return rows[size_t(kind)].likely; }

Result<std::vector<Mutation>> mutationsOf(plan::KernelOp kernel, const ScheduleContext &context) {
  std::string why;
  ScopedDiagnosticHandler handler(kernel.getContext(), [&](Diagnostic &diagnostic) {
    why += (why.empty() ? "" : "\n") + diagnostic.str();
    return success();
  });
  FailureOr<EmittedKernel> emitted = emitKernel(kernel, context);
  if (failed(emitted))
    return inputError("no schedule emits it: {}", why);
  PlanCopy copy(kernel, context.kvBlock);
  std::vector<Mutation> mutations;
  auto take = [&](MutationKind kind, const auto &sites) {
    for (unsigned i = 0; i < sites.size(); ++i)
      mutations.push_back({kind, i, sites[i].where});
  };
  for (MutationKind kind : {
#define PLANC_MUTATION(stage, Name, text, likely, description) MutationKind::Name,
#include "lib/Verify/Mutations.def"
       })
    switch (mutationStage(kind)) {
    case MutationStage::Plan:
      take(kind, planSites(kind, copy));
      break;
    case MutationStage::Gpu:
      take(kind, gpuSites(kind, kernel, *emitted));
      break;
    case MutationStage::Data:
      take(kind, dataSites(kind, kernel));
      break;
    }
  return mutations;
}

} // namespace planc::verify
