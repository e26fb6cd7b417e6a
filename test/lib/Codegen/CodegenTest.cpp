//===- CodegenTest.cpp - lib/Codegen from the command line ------------------===//
//
// Compiles the gpu modules of its input files, one kernel each, and prints what comes out: the
// text, or with
// --emit=figures one line per kernel. For lit tests; not installed.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/Codegen.h"
#include "lib/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace planc;

static cl::list<std::string> inputs(cl::Positional, cl::OneOrMore, cl::desc("module.mlir..."));
static cl::opt<std::string> targetName("target", cl::init("gb10"));
static cl::opt<std::string> emit("emit", cl::init("ptx"), cl::desc("nvvm, ptx or figures"));
static cl::opt<std::string> toolkit("toolkit");
static cl::opt<std::string> cacheDir("cache-dir", cl::desc("no cache without it or --user-cache"));
static cl::opt<bool> userCache("user-cache", cl::desc("the cache of the user"));
static cl::opt<std::string> jobIdentity("identity", cl::desc("KernelJob::identity of all inputs"));
static cl::opt<unsigned> threads("j", cl::init(1));

static std::string digest(StringRef text) { return utohexstr(xxh3_64bits(text), true); }

/// registers=12 stack=0 ..., or what there is instead.
static std::string describe(const std::optional<CubinFigures> &figures) {
  if (!figures)
    return "null";
  std::string text;
  raw_string_ostream(text) << "registers=" << figures->registers << " stack=" << figures->stackBytes
                           << " spills=" << figures->spillStoreBytes << "/"
                           << figures->spillLoadBytes << " shared=" << figures->staticSharedBytes
                           << " code=" << figures->codeBytes;
  return text;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  const planc::Target *target = lookupTarget(targetName.getValue());
  if (!target) {
    errs() << "unknown target \"" << targetName << "\"; known are " << targetNames() << '\n';
    return 2;
  }
  mlir::MLIRContext context;
  context
      .loadDialect<mlir::arith::ArithDialect, mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect,
                   mlir::NVVM::NVVMDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  std::vector<KernelJob> jobs;
  for (const std::string &path : inputs) {
    mlir::ModuleOp module =
        *modules.emplace_back(mlir::parseSourceFile<mlir::ModuleOp>(path, &context));
    if (!module)
      return 1;
    std::string name;
    module->walk([&](mlir::gpu::GPUFuncOp function) { name = function.getName(); });
    jobs.push_back({name, target, jobIdentity, [module, name] {
                      errs() << "emits " << name << '\n';
                      return KernelSource{printForCodegen(module), name, "facts of " + name};
                    }});
  }

  CodegenOptions options;
  options.stage = emit == "nvvm"  ? CodegenStage::Nvvm
                  : emit == "ptx" ? CodegenStage::Ptx
                                  : CodegenStage::Cubin;
  options.toolkit = toolkit;
  options.cacheDir = cacheDir;
  options.useCache = userCache || !cacheDir.empty();
  options.threads = threads;
  auto codegen = Codegen::create(options);
  if (!codegen) {
    errs() << "error: " << toString(codegen.takeError()) << '\n';
    return 3;
  }
  std::vector<KernelResult> results = (*codegen)->compile(jobs);
  int status = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!results[i].image) {
      errs() << "error: " << results[i].error << '\n';
      status = 1;
      continue;
    }
    const KernelImage &image = *results[i].image;
    if (emit != "figures") {
      outs() << image.ptx;
      continue;
    }
    outs() << jobs[i].name << ": " << describe(image.figures)
           << " declared=" << declaredSharedBytes(image.ptx) << " ptx=" << digest(image.ptx)
           << " cubin=" << (image.cubin.empty() ? "none" : digest(image.cubin)) << " facts=\""
           << image.facts << "\"" << (image.fromCache ? " cached" : "") << '\n';
  }
  if (std::string warning = (*codegen)->warning(); !warning.empty())
    errs() << "warning: " << warning << '\n';
  return status;
}
