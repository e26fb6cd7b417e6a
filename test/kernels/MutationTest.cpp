//===- MutationTest.cpp - mutations of kernels in a file ---------------------===//
//
// usage: planc-mutation-test [--unchecked] FILE.mlir [KV-BLOCK]       (- reads standard input)
//
// Verifies every plan.kernel of the file with mutations, as `planc verify --mutate` does with those
// of a plan, and prints what became of each mutation. --unchecked: without the emulator's checks.
//
// Exit codes: as of `planc verify`.
//
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Schedule.h"
#include "lib/Target/Target.h"
#include "lib/Verify/Verify.h"

#include "mlir/Parser/Parser.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;
using namespace planc;

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry.insert<plan::PlanDialect>();
  registerScheduleDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  bool unchecked = argc > 1 && llvm::StringRef(argv[1]) == "--unchecked";
  const char *file = argc > 1 + unchecked ? argv[1 + unchecked] : "-";
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(file, &context);
  if (!module)
    return 1;
  verify::Options options;
  options.targets = {lookupTarget("gb10")};
  options.mutate = true;
  options.checks = !unchecked;
  options.useCache = false;
  if (argc > 2 + unchecked)
    options.kvBlock = std::atoi(argv[2 + unchecked]);
  Result<verify::Report> report = verify::verify(*module, options, nullptr);
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n", report.error().text().c_str());
    return 3;
  }
  for (const verify::Verdict &verdict : report->kernels)
    for (const verify::Planted &planted : verdict.mutations)
      std::printf("%s: %s, %s: %s\n", verdict.name.c_str(), planted.name.c_str(),
                  planted.where.c_str(),
                  planted.how.empty() ? "NOT CAUGHT" : ("caught, " + planted.how).c_str());
  std::fputs(verify::toText(*report).c_str(), stdout);
  return report->ok() ? 0 : 1;
}
