//===- Verify.cpp - planc verify --------------------------------------------===//
//
// Compiles the plans up to their kernels and hands these to lib/Verify; prints its report.
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/planc/Verify.h"

#include "lib/Schedule/Schedule.h"
#include "lib/Support/File.h"
#include "lib/Target/Target.h"
#include "lib/Tools/CommandLine.h"
#include "lib/Verify/Verify.h"
#include "planc/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <unistd.h>

using namespace planc;
using namespace planc::tools;

namespace {
struct Options {
  std::vector<std::string> plans;
  std::string model;
  std::vector<std::string> targets = {"gb10"};
  std::optional<int64_t> maxContext;
  int64_t kvBlock = 16;
  uint64_t seed = 1;
  uint32_t workers = 0;
  std::string cacheDir;
  bool noCache = false, mutate = false, allowDiffers = false, json = false, help = false;
};
} // namespace

static constexpr const char *tool = "planc verify";

static const char *const usage =
    R"(usage: planc verify PLAN.json... --model CONFIG.json
  --target T,...      whose PTX is run (default: gb10); with several, all must give the same bytes
  --mutate            plant faults in every kernel; all must be caught
  --allow-differs     accept groups whose contract is `differs`
  --seed N            of the inputs (default: 1)
  --max-context N, --kv-block N
                      as in planc
  --json              one JSON object, {kernels[], ok}
  --cache-dir D, --no-cache
                      of kernels and verdicts
  -j N                processes (default: one per core)
exit code: 0 everything holds, 1 something does not or an input is wrong, 2 usage, 3 the environment is wrong
)";

template <auto Member> static Status setText(const std::string &value, Options &options) {
  options.*Member = value;
  return {};
}

static Status setTargets(const std::string &value, Options &options) {
  options.targets.clear();
  for (std::string_view name : split(value, ','))
    options.targets.emplace_back(name);
  return {};
}

static Status setContext(const std::string &value, Options &options) {
  int64_t context = 0;
  Status status = takeNumber("--max-context", value, context);
  options.maxContext = context;
  return status;
}

static constexpr tools::Option<Options> table[] = {
    {"--model", setText<&Options::model>},
    {"--target", setTargets},
    {"--mutate", nullptr, &Options::mutate},
    {"--allow-differs", nullptr, &Options::allowDiffers},
    {"--seed", [](const std::string &v, Options &o) { return takeNumber("--seed", v, o.seed); }},
    {"--max-context", setContext},
    {"--kv-block",
     [](const std::string &v, Options &o) { return takeNumber("--kv-block", v, o.kvBlock); }},
    {"--json", nullptr, &Options::json},
    {"--cache-dir", setText<&Options::cacheDir>},
    {"--no-cache", nullptr, &Options::noCache},
    {"-j", [](const std::string &v, Options &o) { return takeNumber("-j", v, o.workers); }},
    {"--help", nullptr, &Options::help},
};

static Result<Source> readSource(const std::string &path) {
  Result<Bytes> bytes = readFile(path, uint64_t(1) << 28);
  if (!bytes.ok())
    return bytes.takeError();
  return Source{path, std::string(asText(*bytes))};
}

/// The kernels of the plans, as text. `code` is the exit code if there are none.
static std::optional<std::string> kernelsOf(const Options &options, int &code) {
  CompilerOptions how;
  how.emit = Emit::Kernels;
  how.targets = options.targets;
  how.maxContext = options.maxContext;
  how.kvBlock = options.kvBlock;
  how.allowDiffers = options.allowDiffers;
  how.contractsRun = true;
  Result<Source> config = readSource(options.model);
  std::vector<Source> plans;
  bool complete = true;
  for (const std::string &path : options.plans) {
    Result<Source> plan = readSource(path);
    complete &= plan.ok();
    if (plan.ok())
      plans.push_back(std::move(*plan));
    else
      code = fail(tool, plan.error());
  }
  if (!config.ok())
    code = fail(tool, config.error());
  if (!config.ok() || !complete)
    return std::nullopt;
  Compiler compiler(how,
                    [](const Diagnostic &diagnostic) { print(stderr, toText(diagnostic) + "\n"); });
  std::string text;
  code = int(compiler.compile(plans, *config, text));
  if (code != 0)
    return std::nullopt;
  return text;
}

/// One line that is written over; only for people who watch.
static void showProgress(const verify::Verdict &verdict, size_t done, size_t total) {
  if (!isatty(STDERR_FILENO))
    return;
  print(stderr, fmt::format("\r\033[K[{}/{}] {}{}", done, total, verdict.name,
                            done == total ? "\r\033[K" : ""));
}

static int run(const Options &options) {
  int code = 0;
  std::optional<std::string> kernels = kernelsOf(options, code);
  if (!kernels)
    return code;
  mlir::DialectRegistry registry;
  registry.insert<plan::PlanDialect>();
  registerScheduleDialects(registry);
  // No threads: verify forks.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*kernels, &context, "kernels");
  if (!module)
    return fail(tool, inputError("internal error: the kernels cannot be read back"));
  verify::Options how;
  for (const std::string &name : options.targets)
    how.targets.push_back(lookupTarget(name));
  how.kvBlock = options.kvBlock;
  how.seed = options.seed;
  how.mutate = options.mutate;
  how.allowDiffers = options.allowDiffers;
  how.workers = options.workers;
  how.cacheDir = options.cacheDir;
  how.useCache = !options.noCache;
  Result<verify::Report> report = verify::verify(*module, how, showProgress);
  if (!report.ok())
    return fail(tool, report.error());
  print(stdout, options.json ? toJson(*report).dump(2) + "\n" : toText(*report));
  return report->ok() ? 0 : 1;
}

int verifyMain(int argc, char **argv) {
  Options options;
  auto takePlan = [](const std::string &word, Options &o) -> Status {
    o.plans.push_back(word);
    return {};
  };
  Status status = parseArguments<Options>({argv + 1, argv + argc}, table, takePlan, options);
  if (status.ok() && options.help) {
    print(stdout, usage);
    return finish(tool, 0);
  }
  if (status.ok() && options.plans.empty())
    status = usageError("no plan is given");
  if (status.ok() && options.model.empty())
    status = usageError("no model is given: --model CONFIG.json");
  if (!status.ok()) {
    int code = fail(tool, status.error());
    print(stderr, usage);
    return code;
  }
  return finish(tool, run(options));
}
