//===- Mutator.cpp - plants faults in one kernel and sees whether they show ===//

#include "lib/Verify/Mutator.h"

#include "dialects/Plan/Contract.h"

#include "mlir/IR/Verifier.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace planc::verify {

/// Of inputs that are kept for the next mutation.
static constexpr size_t kKeptBytes = size_t(256) << 20;

/// Instructions of a warp, after which a mutant is taken to be in an endless loop: far more than
/// any kernel of a step needs.
static constexpr uint64_t kMaxSteps = 1 << 22;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

const CompiledKernel *Mutator::unmutated(std::string &why) {
  if (!original) {
    Result<CompiledKernel> made =
        compileKernel(kernel, *options.targets.front(), options.kvBlock, codegen);
    if (!made.ok()) {
      why = made.error().message;
      return nullptr;
    }
    original = std::move(*made);
  }
  return &*original;
}

/// True if some schedule takes what became of the plan: else no compiler would let it pass.
static bool isTaken(PlanCopy &copy) {
  ScopedDiagnosticHandler quiet(copy.kernel.getContext(), [](Diagnostic &) { return success(); });
  Refusals refusals;
  return succeeded(mlir::verify(*copy.module)) && selectSchedule(copy.kernel, refusals);
}

Result<CompiledKernel> Mutator::compile(const Mutation &mutation, std::optional<Trial> &early) {
  const Target &target = *options.targets.front();
  if (mutationStage(mutation.kind) == MutationStage::Plan) {
    PlanCopy copy(kernel, options.kvBlock);
    planSites(mutation.kind, copy).at(mutation.site).plant();
    if (!isTaken(copy)) {
      early = {Trial::End::NoFault, "no schedule takes it"};
      return inputError("no schedule takes it");
    }
    return compileKernel(copy.kernel, target, copy.kvBlock, codegen);
  }
  bool isValid = true;
  Result<CompiledKernel> made =
      compileKernel(kernel, target, options.kvBlock, codegen, [&](EmittedKernel &emitted) {
        gpuSites(mutation.kind, kernel, emitted).at(mutation.site).plant();
        isValid = succeeded(mlir::verify(*emitted.module));
      });
  if (!isValid)
    return inputError("internal error: it makes the module invalid");
  return made;
}

Trial Mutator::attempt(const Mutation &mutation) {
  device.setMaxSteps(kMaxSteps);
  std::string why;
  const CompiledKernel *as = unmutated(why);
  if (!as)
    return {Trial::End::Broken, why};
  if (mutationStage(mutation.kind) == MutationStage::Data) {
    DataSite data = dataSites(mutation.kind, kernel).at(mutation.site);
    return hold(*as, &data, likelyClass(mutation.kind));
  }
  std::optional<Trial> early;
  Result<CompiledKernel> mutant = compile(mutation, early);
  if (early)
    return *early;
  if (!mutant.ok())
    return {Trial::End::Broken, mutant.error().message};
  if (mutant->image.ptx == as->image.ptx && mutant->shape.grid == as->shape.grid &&
      mutant->shape.block == as->shape.block)
    return {Trial::End::NoFault, "the PTX is the same"};
  return hold(*mutant, nullptr, likelyClass(mutation.kind));
}

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

Mutator::Case &Mutator::caseOf(InputClass inputClass) {
  for (auto &known : cases)
    if (known->inputClass == inputClass)
      return *known;
  size_t kept = 0;
  for (auto &known : cases)
    for (const Input &input : known->inputs)
      kept += input.data.size();
  if (kept > kKeptBytes)
    cases.clear();
  auto made = std::make_unique<Case>();
  made->inputClass = inputClass;
  made->inputs = makeInputs(kernel, options.seed, inputClass, options.kvBlock);
  cases.push_back(std::move(made));
  return *cases.back();
}

std::optional<std::string> Mutator::objection(Case &given, const Outcome &outcome) {
  if (!outcome.fault.empty())
    return outcome.fault;
  if (!outcome.findings.empty())
    return outcome.findings.front();
  reference::Options how;
  how.kvBlock = unsigned(options.kvBlock);
  how.threads = 1;
  std::string why; // by the bounds of the kernel as it should be
  const CompiledKernel *as = unmutated(why);
  if (!as)
    return why;
  Result<reference::Report> report = judge(kernel, *as, given.inputs, outcome, how);
  if (!report.ok())
    return report.error().message;
  for (const reference::EdgeReport &edge : report->edges)
    if (edge.failures)
      return reference::describe(edge);
  if (plan::contractOf(kernel.getNumerics()) != plan::Contract::BitIdentical)
    return std::nullopt;
  if (!given.unfused) {
    Result<Outcome> unfused = runUnfused(device, kernel, given.inputs, *options.targets.front(),
                                         options.kvBlock, codegen);
    if (!unfused.ok())
      return "unfused: " + unfused.error().message;
    given.unfused = std::move(*unfused);
  }
  if (auto difference = firstDifference(kernel, outcome, *given.unfused))
    return "not bit_identical to the unfused chain: " + *difference;
  return std::nullopt;
}

static bool isSame(const std::vector<Input> &a, const std::vector<Input> &c) {
  return llvm::equal(a, c, [](const Input &x, const Input &y) {
    return x.data == y.data && x.scales.size() == y.scales.size() &&
           std::memcmp(x.scales.data(), y.scales.data(), x.scales.size() * sizeof(float)) == 0;
  });
}

Trial Mutator::hold(const CompiledKernel &compiled, const DataSite *data, InputClass likely) {
  SmallVector<InputClass> order = inputClasses(kernel);
  if (auto *first = llvm::find(order, likely); first != order.end())
    std::rotate(order.begin(), first, first + 1);
  bool differs = !data;
  for (InputClass inputClass : order) {
    Case &given = caseOf(inputClass);
    std::vector<Input> corrupted;
    if (data) {
      corrupted = given.inputs;
      data->corrupt(corrupted);
      if (isSame(corrupted, given.inputs) && !data->restore)
        continue;
      differs = true;
    }
    device.setChecks(options.checks);
    Outcome outcome = runKernel(device, compiled, kernel, data ? corrupted : given.inputs);
    device.setChecks(false);
    if (data && data->restore && outcome.fault.empty())
      data->restore(outcome);
    std::optional<std::string> caught = objection(given, outcome);
    if (!outcome.fault.empty())
      device.reset();
    if (caught)
      return {Trial::End::Caught, fmt::format("{}: {}", inputClassName(inputClass), *caught)};
  }
  if (!differs)
    return {Trial::End::NoFault, "the data of every class stay the same"};
  return {Trial::End::Survived, fmt::format("all {} classes of inputs", order.size())};
}

} // namespace planc::verify
