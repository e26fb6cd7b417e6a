//===- KernelVerifier.cpp - everything that must hold for one kernel -------===//

#include "lib/Verify/KernelVerifier.h"

#include "dialects/Plan/Contract.h"
#include "lib/Target/Target.h"

using namespace mlir;

namespace planc::verify {

KernelVerifier::KernelVerifier(const Subject &subject, const Options &options, Device &device,
                               Codegen &codegen)
    : subject(subject), options(options), kernel(subject.kernel), device(device), codegen(codegen),
      target(*options.targets.front()) {
  verdict.name = kernel.getSymName().str();
  verdict.groups = subject.groups;
  verdict.contract = kernel.getNumerics().str();
}

void KernelVerifier::fail(std::string where, std::string message) {
  verdict.failures.push_back({std::move(where), std::move(message)});
}

std::string KernelVerifier::nodeName(const std::string &edge, Operation *maker) const {
  plan::KernelOp region = kernel;
  for (auto [node, op] : llvm::zip(subject.nodes, region.getBody().front().without_terminator()))
    if (maker ? &op == maker : StringRef(edge).starts_with(op.getName().getStringRef()))
      return fmt::format("node \"{}\", {}", node, edge);
  return edge;
}

Verdict KernelVerifier::run() {
  std::optional<plan::Contract> contract = plan::contractOf(verdict.contract);
  if (!contract) {
    fail("contract", fmt::format("\"{}\" is not a numerics contract; known are reference, "
                                 "bit_identical and differs",
                                 verdict.contract));
    return verdict;
  }
  verdict.contract = plan::toString(*contract).str();
  if (contract == plan::Contract::Differs && !options.allowDiffers)
    fail("contract", "the group differs from its plan's formulas by its own account; "
                     "--allow-differs accepts that");
  Result<CompiledKernel> made = compileKernel(kernel, target, options.kvBlock, codegen);
  if (!made.ok()) {
    fail("compile", made.error().message);
    return verdict;
  }
  compiled = std::move(*made);
  verdict.schedule = compiled.schedule;
  for (InputClass inputClass : inputClasses(kernel))
    verifyClass(inputClass);
  verifyOrders();
  verifyTargets();
  return verdict;
}

//===----------------------------------------------------------------------===//
// Against the reference and the unfused chain
//===----------------------------------------------------------------------===//

void KernelVerifier::verifyClass(InputClass inputClass) {
  const char *name = inputClassName(inputClass);
  std::vector<Input> inputs = makeInputs(kernel, options.seed, inputClass, options.kvBlock);
  device.setChecks(options.checks);
  Outcome outcome = runKernel(device, compiled, kernel, inputs);
  device.setChecks(false);
  for (const std::string &finding : outcome.findings)
    fail(name, finding);
  if (!outcome.fault.empty()) {
    fail(name, outcome.fault);
    device.reset();
    return;
  }
  judgeOutcome(name, inputs, outcome);
  if (plan::contractOf(verdict.contract) == plan::Contract::BitIdentical)
    verifyChain(name, inputs, outcome);
}

void KernelVerifier::judgeOutcome(const char *where, ArrayRef<Input> inputs,
                                  const Outcome &outcome) {
  reference::Options how;
  how.kvBlock = unsigned(options.kvBlock);
  how.threads = 1;
  Result<reference::Report> report = judge(kernel, compiled, inputs, outcome, how);
  if (!report.ok())
    return fail(where, report.error().message);
  // Outputs come first, in the order of the yield; what follows are states.
  OperandRange outputs = kernel.getBody().front().getTerminator()->getOperands();
  for (auto [i, edge] : llvm::enumerate(report->edges)) {
    if (edge.worstFraction > verdict.worst) {
      verdict.worst = edge.worstFraction;
      verdict.worstClass = where;
      verdict.worstEdge = edge.edge;
    }
    if (edge.failures)
      fail(where, nodeName(reference::describe(edge),
                           i < outputs.size() ? outputs[i].getDefiningOp() : nullptr));
  }
}

void KernelVerifier::verifyChain(const char *where, ArrayRef<Input> inputs, const Outcome &fused) {
  Result<Outcome> unfused = runUnfused(device, kernel, inputs, target, options.kvBlock, codegen);
  if (!unfused.ok())
    return fail(where, "unfused: " + unfused.error().message);
  if (!unfused->fault.empty()) {
    fail(where, "unfused: " + unfused->fault);
    return device.reset();
  }
  if (auto difference = firstDifference(kernel, fused, *unfused, subject.nodes))
    fail(where, "not bit_identical to the unfused chain, whose bytes it must have: " + *difference);
}

//===----------------------------------------------------------------------===//
// The same bytes, however it is run
//===----------------------------------------------------------------------===//

void KernelVerifier::verifyOrders() {
  std::vector<Input> inputs =
      makeInputs(kernel, options.seed, InputClass::Gaussian, options.kvBlock);
  struct Way {
    const char *name;
    uint64_t scheduleSeed;
    unsigned threads;
  };
  std::optional<Outcome> first;
  for (const Way &way : {Way{"one thread", 0, 1}, Way{"two threads", 0, 2},
                         Way{"schedule seed 1", 1, 1}, Way{"schedule seed 2", 2, 2}}) {
    device.setScheduleSeed(way.scheduleSeed);
    device.setThreads(way.threads);
    Outcome outcome = runKernel(device, compiled, kernel, inputs);
    if (!outcome.fault.empty()) {
      fail(way.name, outcome.fault);
      device.reset();
      break;
    }
    if (!first)
      first = std::move(outcome);
    else if (auto difference = firstDifference(kernel, *first, outcome, subject.nodes))
      fail(way.name, "not what one thread in natural order computes: " + *difference);
  }
  device.setScheduleSeed(0);
  device.setThreads(1);
}

void KernelVerifier::verifyTargets() {
  if (options.targets.size() < 2)
    return;
  std::vector<Input> inputs =
      makeInputs(kernel, options.seed, InputClass::Gaussian, options.kvBlock);
  std::optional<Outcome> first;
  for (const Target *other : options.targets) {
    Result<CompiledKernel> made = compileKernel(kernel, *other, options.kvBlock, codegen);
    std::string where = "target " + other->arch();
    if (!made.ok()) {
      fail(where, made.error().message);
      continue;
    }
    Outcome outcome = runKernel(device, *made, kernel, inputs);
    if (!outcome.fault.empty()) {
      fail(where, outcome.fault);
      device.reset();
      continue;
    }
    if (!first)
      first = std::move(outcome);
    else if (auto difference = firstDifference(kernel, *first, outcome, subject.nodes))
      fail(where, fmt::format("not what the PTX of {} computes: {}", target.arch(), *difference));
  }
}

} // namespace planc::verify
