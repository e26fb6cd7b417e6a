//===- Pack.cpp - the instructions' lane functions in one bitcode file ----===//
//
//   planemu-jit-pack OUT.bc IN.bc...
//
// IN are the files of ops/ as bitcode. Of them the functions that a LaneCode names (Code.h) are kept,
// with what they call; each is renamed to its LaneCode's name, which is that of a type.
//===----------------------------------------------------------------------===//

#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/StripDeadPrototypes.h"

#include <map>

using namespace llvm;

[[noreturn]] static void die(const Twine &message) {
  errs() << "planemu-jit-pack: " << message << "\n";
  exit(1);
}

/// The type that has this function as its `run`, mangled; empty if it is no function of a LaneCode.
static std::string typeOf(StringRef function) {
  // A class's member `void run(long, char *, ...)`: _ZN <class> 3runE lPc...
  size_t at = function.rfind("3runElPc");
  if (!function.consume_front("_Z") || at == StringRef::npos)
    return "";
  return (function.take_front(at - 2) + "E").str();
}

/// Leaves of `module` what LaneCodes name.
static void reduce(Module &module, std::map<std::string, bool> &known) {
  for (const char *name : {"llvm.global_ctors", "llvm.used", "llvm.compiler.used"})
    if (GlobalVariable *list = module.getNamedGlobal(name))
      list->eraseFromParent();
  for (GlobalObject &object : module.global_objects()) {
    object.setComdat(nullptr);
    if (object.isDeclaration())
      continue;
    bool own = object.hasLocalLinkage();
    std::string type = isa<Function>(object) ? typeOf(object.getName()) : "";
    object.setLinkage(GlobalValue::InternalLinkage);
    object.setVisibility(GlobalValue::DefaultVisibility);
    if (type.empty())
      continue;
    auto [seen, fresh] = known.try_emplace(type, own);
    // The linker drops all but one of those that headers bring; names of a file's own must differ.
    if (!fresh && !seen->second && !own)
      continue;
    if (!fresh)
      die("two files have " + type);
    object.setName(type);
    object.setLinkage(GlobalValue::ExternalLinkage);
  }
}

int main(int argc, char **argv) {
  if (argc < 3)
    die("usage: planemu-jit-pack OUT.bc IN.bc...");
  LLVMContext context;
  Module all("lanes", context);
  std::map<std::string, bool> known;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  passes.addPass(GlobalDCEPass());
  passes.addPass(StripDeadPrototypesPass());
  for (int n = 2; n < argc; ++n) {
    SMDiagnostic problem;
    std::unique_ptr<Module> module = parseIRFile(argv[n], problem, context);
    if (!module)
      die(Twine(argv[n]) + ": " + problem.getMessage());
    if (n == 2) {
      all.setDataLayout(module->getDataLayout());
      all.setTargetTriple(module->getTargetTriple());
    }
    StripDebugInfo(*module);
    reduce(*module, known);
    passes.run(*module, modules);
    modules.clear();
    if (Linker::linkModules(all, std::move(module)))
      die(Twine("cannot link ") + argv[n]);
  }
  if (known.empty())
    die("no functions of lanes in the files");
  std::error_code error;
  ToolOutputFile out(argv[1], error, sys::fs::OF_None);
  if (error)
    die(Twine(argv[1]) + ": " + error.message());
  WriteBitcodeToFile(all, out.os());
  out.keep();
}
