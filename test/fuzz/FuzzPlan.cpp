//===- FuzzPlan.cpp - any text as a plan and a config ---------------------===//
//
// Imports the input: a plan, a line `//config`, a model's config. Only lib/Import and lib/Support are
// instrumented, MLIR and the dialect are as everywhere. Anything may be refused, with a diagnostic.
//===----------------------------------------------------------------------===//

#include "lib/Import/Import.h"
#include "test/fuzz/Mutators.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdlib>

/// LLVM's allocators poison their memory where they are compiled with a sanitizer, and here only half of their users are.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

static constexpr std::string_view Separator = "\n//config\n";

static std::pair<std::string, std::string> parts(const std::uint8_t *data, std::size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  std::size_t at = text.find(Separator);
  if (at == text.npos)
    return {text, "{}"};
  return {text.substr(0, at), text.substr(at + Separator.size())};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto [plan, config] = parts(data, size);
  // A context keeps every name it has seen, so each input gets one of its own.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  bool said = false;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said |= !diagnostic.str().empty();
    return mlir::success();
  });
  planc::ImportSource source{"plan.json", plan};
  if (!planc::importPlans(&context, source, {"config.json", config}) && !said)
    std::abort();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  fuzz::Random random(seed);
  auto [plan, config] = parts(data, size);
  std::string &part = random.oneIn(4) ? config : plan;
  part =
      random.oneIn(16) ? fuzz::mutateBytes(part, part.size() + 64) : fuzz::mutateJson(part, random);
  return fuzz::store(plan + std::string(Separator) + config, data, size, most);
}

/// Members, elements and numbers of two plans mix by the mutator; crossing bytes gains nothing here.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t *data, std::size_t size,
                                                 const std::uint8_t *, std::size_t,
                                                 std::uint8_t *out, std::size_t most,
                                                 unsigned seed) {
  fuzz::Random random(seed);
  auto [plan, config] = parts(data, size);
  return fuzz::store(fuzz::mutateJson(plan, random) + std::string(Separator) + config, out, 0,
                     most);
}
