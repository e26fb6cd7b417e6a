//===- planc.cpp - the compiler driver --------------------------------------===//
//
// Options, files and exit codes; include/planc/Compiler.h does the rest. Nothing is written unless
// all went well, and then at once: an output is there as a whole or not at all.
//
//===----------------------------------------------------------------------===//

#include "lib/Support/File.h"
#include "lib/Target/Target.h"
#include "lib/Tools/CommandLine.h"
#include "lib/Tools/planc/Inspect.h"
#include "lib/Tools/planc/Verify.h"
#include "planc/Compiler.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

namespace cl = llvm::cl;

static cl::OptionCategory category("planc options");

static cl::list<std::string> planFiles(cl::Positional, cl::OneOrMore, cl::desc("PLAN.json..."),
                                       cl::cat(category));
static cl::opt<std::string> modelFile("model", cl::Required, cl::value_desc("CONFIG.json"),
                                      cl::desc("The model's config.json"), cl::cat(category));
static cl::list<std::string> targets("target", cl::CommaSeparated, cl::value_desc("gb10,sm_90,..."),
                                     cl::desc("What to compile for (default: gb10)"),
                                     cl::cat(category));
static cl::opt<std::string> outputFile("o", cl::value_desc("FILE"),
                                       cl::desc("Where to write; text goes to stdout without it"),
                                       cl::cat(category));
static cl::opt<planc::Emit>
    emit("emit", cl::desc("Where to stop (default: bundle)"), cl::init(planc::Emit::Bundle),
         cl::values(clEnumValN(planc::Emit::Plan, "plan", "the plan dialect as imported"),
                    clEnumValN(planc::Emit::Groups, "groups", "one region per declared group"),
                    clEnumValN(planc::Emit::Kernels, "kernels", "kernels, launches, memory"),
                    clEnumValN(planc::Emit::Nvvm, "nvvm", "the kernels in the NVVM dialect"),
                    clEnumValN(planc::Emit::Ptx, "ptx", "the kernels' PTX"),
                    clEnumValN(planc::Emit::Bundle, "bundle", "a bundle")),
         cl::cat(category));
static cl::opt<std::string>
    cacheDir("cache-dir", cl::value_desc("DIR"),
             cl::desc("Cache of compiled kernels (default: $XDG_CACHE_HOME/planc)"),
             cl::cat(category));
static cl::opt<bool> noCache("no-cache", cl::desc("Compile every kernel anew"), cl::cat(category));
static cl::opt<unsigned> threads("j", cl::Prefix, cl::value_desc("N"),
                                 cl::desc("Threads that compile kernels (default: one per core)"),
                                 cl::init(0), cl::cat(category));
static cl::opt<int64_t>
    maxContext("max-context", cl::value_desc("N"),
               cl::desc("Positions a sequence can have (default: the model's, at most 32768)"),
               cl::cat(category));
static cl::opt<int64_t>
    kvBlock("kv-block", cl::value_desc("N"), cl::init(16),
            cl::desc("Positions in a block of the paged cache, a power of two (default: 16)"),
            cl::cat(category));
static cl::opt<std::string>
    toolkit("toolkit", cl::value_desc("DIR|none"),
            cl::desc("CUDA toolkit that makes cubins (default: look for one)"), cl::cat(category));
static cl::opt<bool> requireCubin("require-cubin", cl::desc("Fail without a CUDA toolkit"),
                                  cl::cat(category));
static cl::opt<bool> allowDiffers("allow-differs",
                                  cl::desc("Take groups whose numerics contract is `differs`"),
                                  cl::cat(category));
enum class Style { Text, Json };
static cl::opt<Style>
    diagnostics("diagnostics", cl::desc("How to print errors and warnings, on stderr"),
                cl::init(Style::Text),
                cl::values(clEnumValN(Style::Text, "text", "for people (default)"),
                           clEnumValN(Style::Json, "json", "one JSON object a line")),
                cl::cat(category));

static constexpr int usageError = int(planc::Outcome::Usage);

static void print(const planc::Diagnostic &diagnostic) {
  llvm::errs() << (diagnostics == Style::Json ? toJson(diagnostic) : toText(diagnostic)) << '\n';
}

static int fail(planc::Outcome outcome, std::string message, std::string location = "") {
  print({planc::Severity::Error, std::move(location), std::move(message), {}});
  return int(outcome);
}

/// Reads an input. Plans and configs are far below this limit.
static bool readSource(const std::string &path, planc::Source &source) {
  auto bytes = planc::readFile(path, uint64_t(1) << 28);
  if (!bytes.ok()) {
    print({planc::Severity::Error, bytes.error().where, bytes.error().message, {}});
    return false;
  }
  source = {path, std::string(planc::asText(*bytes))};
  return true;
}

/// `planc CMD` where CMD is no command and no file: a mistyped command is a usage error, not a
/// missing plan.
static bool looksLikeCommand(llvm::StringRef word) {
  return !word.empty() && word.find_first_of("./-") == llvm::StringRef::npos &&
         !llvm::sys::fs::exists(word);
}

static planc::CompilerOptions compilerOptions() {
  planc::CompilerOptions options;
  options.emit = emit;
  if (!targets.empty())
    options.targets = targets;
  if (maxContext.getNumOccurrences())
    options.maxContext = maxContext;
  options.kvBlock = kvBlock;
  options.threads = threads;
  options.toolkit = toolkit;
  options.requireCubin = requireCubin;
  options.cacheDir = cacheDir;
  options.useCache = !noCache;
  options.allowDiffers = allowDiffers;
  return options;
}

static int compile() {
  if (emit == planc::Emit::Bundle && outputFile.empty())
    return fail(planc::Outcome::Usage, "a bundle needs a file: -o OUT.bundle");
  if (outputFile.getNumOccurrences() && outputFile.empty())
    return fail(planc::Outcome::Usage, "-o needs a file name");

  planc::Source config;
  std::vector<planc::Source> plans(planFiles.size());
  bool complete = readSource(modelFile, config);
  for (size_t i = 0; i < plans.size(); ++i)
    complete &= readSource(planFiles[i], plans[i]);
  if (!complete)
    return int(planc::Outcome::Rejected);

  planc::Compiler compiler(compilerOptions(), print);
  std::string output;
  planc::Outcome outcome = compiler.compile(plans, config, output);
  if (outcome != planc::Outcome::Ok)
    return int(outcome);
  if (outputFile.empty() || outputFile == "-") {
    planc::tools::print(stdout, output);
    return planc::tools::finish("planc", 0);
  }
  planc::Status written = planc::writeFile(outputFile, planc::asBytes(output));
  return written.ok()
             ? 0
             : fail(planc::Outcome::Environment, written.error().message, written.error().where);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A file that may grow no more is an error of the write, as on a full disk, and no crash.
  std::signal(SIGXFSZ, SIG_IGN);
  if (argc > 1 && llvm::StringRef(argv[1]) == "inspect")
    return inspectMain(argc - 1, argv + 1);
  if (argc > 1 && llvm::StringRef(argv[1]) == "verify")
    return verifyMain(argc - 1, argv + 1);
  if (argc > 1 && looksLikeCommand(argv[1]))
    return fail(planc::Outcome::Usage,
                "unknown command \"" + std::string(argv[1]) + "\"; try planc --help");

  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "planc " << planc::version() << '\n'; });
  std::string overview =
      "planc: compiles execution plans of language models to bundles of GPU kernels\n\n"
      "  planc PLAN.json... --model CONFIG.json -o OUT.bundle\n"
      "  planc inspect OUT.bundle [--json]\n"
      "  planc inspect --explain OUT.bundle [KERNEL]\n"
      "  planc verify PLAN.json... --model CONFIG.json [--mutate] [--json]\n\nTargets: " +
      planc::targetNames() +
      "\nThe usual MLIR options (--mlir-print-ir-after-all, --mlir-timing, ...) work too.\n"
      "Exit codes: 0 ok, 1 an input is wrong, 2 usage, 3 the machine lacks something.\n";
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return usageError;
  return compile();
}
