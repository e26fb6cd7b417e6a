//===- Kernels.cpp - compile every kernel for every target ------------------===//
//
// What decides about a kernel's image is the text of its plan.kernel, the target and the block size
// of the caches. That text is the key to the cache, so that a warm run neither schedules nor lowers
// anything; how a kernel is started and how its members round, which its schedule found, ride along
// in the entry as the image's facts.
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Kernels.h"
#include "lib/Bundle/Manifest.h"
#include "lib/Target/Target.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using planc::LaunchShape;

//===----------------------------------------------------------------------===//
// Facts: "schedule gx gy gz bx by bz shared scratch counters [arithmetic as JSON]"
//===----------------------------------------------------------------------===//

static std::string packFacts(StringRef schedule, const LaunchShape &shape,
                             const std::vector<planc::numerics::Node> &arithmetic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << schedule;
  for (uint32_t extent : shape.grid)
    stream << ' ' << extent;
  for (uint32_t extent : shape.block)
    stream << ' ' << extent;
  stream << ' ' << shape.dynamicSharedBytes << ' ' << shape.scratchBytes << ' ' << shape.counters
         << ' ' << planc::bundle::toJson(arithmetic).dump();
  return text;
}

template <typename Int> static bool takeNumber(StringRef &text, Int &number) {
  text = text.ltrim();
  return !text.consumeInteger(10, number);
}

static bool unpackFacts(StringRef text, std::string &schedule, LaunchShape &shape,
                        std::vector<planc::numerics::Node> &arithmetic) {
  schedule = text.take_until([](char c) { return c == ' '; }).str();
  text = text.drop_front(schedule.size());
  for (uint32_t &extent : shape.grid)
    if (!takeNumber(text, extent))
      return false;
  for (uint32_t &extent : shape.block)
    if (!takeNumber(text, extent))
      return false;
  if (!takeNumber(text, shape.dynamicSharedBytes) || !takeNumber(text, shape.scratchBytes) ||
      !takeNumber(text, shape.counters))
    return false;
  auto json = planc::parseJson(text.trim());
  if (!json.ok())
    return false;
  auto nodes = planc::bundle::arithmeticFromJson(*json);
  if (!nodes.ok())
    return false;
  arithmetic = std::move(*nodes);
  return true;
}

//===----------------------------------------------------------------------===//
// Jobs
//===----------------------------------------------------------------------===//

static std::string identityOf(plan::KernelOp kernel, int64_t kvBlock) {
  std::string text = "kv-block " + std::to_string(kvBlock) + "\n";
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  return text;
}

std::optional<std::vector<planc::CompiledKernel>>
planc::compileKernels(ArrayRef<plan::KernelOp> kernels, ArrayRef<const Target *> targets,
                      int64_t kvBlock, Codegen &codegen) {
  std::vector<CompiledKernel> compiled;
  std::vector<KernelJob> jobs;
  llvm::DenseSet<Operation *> refused; // said once, not once per target
  for (plan::KernelOp kernel : kernels) {
    std::string identity = identityOf(kernel, kvBlock);
    for (const Target *target : targets) {
      compiled.push_back({kernel, target, {}, {}, {}, {}});
      auto emit = [kernel, target, kvBlock, &refused]() mutable -> std::optional<KernelSource> {
        if (refused.contains(kernel))
          return std::nullopt;
        FailureOr<EmittedKernel> emitted = emitKernel(kernel, {*target, kvBlock});
        if (failed(emitted)) {
          refused.insert(kernel);
          return std::nullopt;
        }
        return KernelSource{printForCodegen(*emitted->module), emitted->entry,
                            packFacts(emitted->schedule, emitted->shape, emitted->arithmetic)};
      };
      jobs.push_back({kernel.getSymName().str(), target, identity, emit});
    }
  }

  std::vector<KernelResult> results = codegen.compile(jobs);
  bool complete = true;
  for (auto [item, result] : llvm::zip_equal(compiled, results)) {
    if (result.image &&
        unpackFacts(result.image->facts, item.schedule, item.shape, item.arithmetic)) {
      item.image = std::move(*result.image);
      if (&item == &compiled.front() || (&item)[-1].kernel != item.kernel ||
          (&item)[-1].arithmetic == item.arithmetic)
        continue;
      complete = false;
      emitError(item.kernel.getLoc())
          << "internal error: " << item.target->arch() << " rounds in another order than "
          << (&item)[-1].target->arch();
      continue;
    }
    complete = false;
    if (result.image)
      emitError(item.kernel.getLoc())
          << "internal error: what its schedule said of it cannot be read back";
    else if (!result.error.empty())
      emitError(item.kernel.getLoc()) << result.error;
  }
  if (!complete)
    return std::nullopt;
  return compiled;
}
