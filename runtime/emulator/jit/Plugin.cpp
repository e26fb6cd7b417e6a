//===- Plugin.cpp - libplanemu-jit: compile blocks with LLVM's ORC --------===//
//
// The functions of lanes are in this library as bitcode, one file for each instruction set of the
// host. A compilation takes from it what it needs.
//
// There is one pass over the IR, which turns the places of operands into registers: more of them were
// measured and gained nothing, since every function was optimised when the bitcode was made.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/jit/BlockBuilder.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Scalar/SROA.h"

#include <cstdio>
#include <mutex>

using namespace llvm;
using namespace planemu::jit;

// The instruction sets of the host, each a file PLANEMU_JIT_FOLDER/set.bc (CMakeLists.txt).
#define PLANEMU_JIT_SETS(X) X(v3) X(v4)
#define BITCODE(Set)                                                                               \
  asm(".pushsection .rodata\n"                                                                     \
      ".balign 16\n"                                                                               \
      "planemu_lanes_" #Set ":\n"                                                                  \
      ".incbin \"" PLANEMU_JIT_FOLDER "/" #Set ".bc\"\n"                                           \
      "planemu_lanes_" #Set "_end:\n"                                                              \
      ".popsection\n");                                                                            \
  extern "C" {                                                                                     \
  extern const char planemu_lanes_##Set[] __attribute__((visibility("hidden")));                   \
  extern const char planemu_lanes_##Set##_end[] __attribute__((visibility("hidden")));             \
  }
PLANEMU_JIT_SETS(BITCODE)
#undef BITCODE

/// The bitcode of an instruction set; empty if there is none.
static StringRef bitcodeOf(StringRef isa) {
#define FIND(Set)                                                                                  \
  if (isa == #Set)                                                                                 \
    return StringRef(planemu_lanes_##Set, planemu_lanes_##Set##_end - planemu_lanes_##Set);
  PLANEMU_JIT_SETS(FIND)
#undef FIND
  return {};
}

static std::string nameOf(size_t block) { return "block" + std::to_string(block); }

/// Turns allocas into values.
static void promote(ArrayRef<Function *> functions) {
  LoopAnalysisManager loopAnalyses;
  FunctionAnalysisManager functionAnalyses;
  CGSCCAnalysisManager componentAnalyses;
  ModuleAnalysisManager moduleAnalyses;
  PassBuilder builder;
  builder.registerModuleAnalyses(moduleAnalyses);
  builder.registerCGSCCAnalyses(componentAnalyses);
  builder.registerFunctionAnalyses(functionAnalyses);
  builder.registerLoopAnalyses(loopAnalyses);
  builder.crossRegisterProxies(loopAnalyses, functionAnalyses, componentAnalyses, moduleAnalyses);
  SROAPass pass(SROAOptions::PreserveCFG);
  for (Function *function : functions)
    pass.run(*function, functionAnalyses);
}

/// Reads what the functions call and leaves of all others but declarations.
static Error keepCallees(Module &module, ArrayRef<Function *> functions) {
  SmallSetVector<Function *, 16> kept(functions.begin(), functions.end());
  for (size_t n = 0; n < kept.size(); ++n) {
    if (Error error = kept[n]->materialize())
      return error;
    for (Instruction &instruction : instructions(*kept[n]))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (Function *callee = call->getCalledFunction(); callee && !callee->isDeclaration())
          kept.insert(callee);
  }
  for (Function &function : module)
    if (!function.isDeclaration() && !kept.contains(&function))
      function.deleteBody();
  return Error::success();
}

static Expected<std::unique_ptr<orc::LLJIT>> makeJit() {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  auto machine = orc::JITTargetMachineBuilder::detectHost();
  if (!machine)
    return machine.takeError();
  // Only what the PTX says is contracted. Level 1 was as good as 2, level 0 a fifth slower.
  machine->getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  machine->setCodeGenOptLevel(CodeGenOptLevel::Less);
  return orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*machine)).create();
}

static Expected<std::unique_ptr<orc::LLJIT>> compileBlocks(const planemu_jit_kernel &kernel,
                                                           planemu_jit_run *entries) {
  auto context = std::make_unique<LLVMContext>();
  auto module = getLazyBitcodeModule(MemoryBufferRef(bitcodeOf(kernel.isa), kernel.isa), *context);
  if (!module)
    return module.takeError();
  BlockBuilder builder(**module, kernel);
  SmallVector<Function *> functions;
  for (size_t n = 0; n < kernel.block_count; ++n) {
    auto function = builder.build(kernel.blocks[n], nameOf(n));
    if (!function)
      return function.takeError();
    functions.push_back(*function);
  }
  promote(functions);
  if (Error error = keepCallees(**module, functions))
    return std::move(error);

  auto jit = makeJit();
  if (!jit)
    return jit.takeError();
  if (Error error =
          (*jit)->addIRModule(orc::ThreadSafeModule(std::move(*module), std::move(context))))
    return std::move(error);
  for (size_t n = 0; n < kernel.block_count; ++n) {
    auto symbol = (*jit)->lookup(nameOf(n));
    if (!symbol)
      return symbol.takeError();
    entries[n] = symbol->toPtr<planemu_jit_run>();
  }
  return jit;
}

// --- The interface ------------------------------------------------------------

static int knows(const char *isa) { return !bitcodeOf(isa).empty(); }

static void *compile(const planemu_jit_kernel *kernel, planemu_jit_run *entries, char *error,
                     size_t errorBytes) {
  auto jit = compileBlocks(*kernel, entries);
  if (jit)
    return jit->release();
  std::snprintf(error, errorBytes, "%s", toString(jit.takeError()).c_str());
  return nullptr;
}

static void release(void *code) { delete static_cast<orc::LLJIT *>(code); }

extern "C" __attribute__((visibility("default"))) const planemu_jit_compiler *
planemu_jit(uint32_t version) {
  static constexpr planemu_jit_compiler Compiler = {knows, compile, release};
  return version == PLANEMU_JIT_VERSION ? &Compiler : nullptr;
}
