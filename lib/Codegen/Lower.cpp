//===- Lower.cpp - the in-process way from MLIR to PTX ----------------------===//
//
// Text of a gpu module -> MLIR passes -> LLVM IR -> O3 -> NVPTX. What a backend does on an
// instruction that its target lacks is to end the process ("Cannot select"); here that is an error
// like any other: the backend runs under a crash recovery context, and its fatal error handler
// leaves through it. The contexts in use are abandoned then, leaked on purpose, since nothing is
// known about their state.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/Lower.h"
#include "lib/Target/Target.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <map>

using namespace mlir;
using planc::CodegenStage;

//===----------------------------------------------------------------------===//
// Once per process
//===----------------------------------------------------------------------===//

/// Where a fatal error of the backend leaves its message; null outside `recovering`.
static thread_local std::string *fatalMessage = nullptr;

static void onFatalError(void *, const char *reason, bool) {
  if (fatalMessage) {
    *fatalMessage = reason;
    llvm::CrashRecoveryContext::GetCurrent()->HandleExit(1);
  }
  llvm::errs() << "LLVM ERROR: " << reason << '\n';
}

/// Runs `work`. If the backend gives up instead of returning, that is the error.
static llvm::Error recovering(llvm::function_ref<void()> work) {
  std::string message;
  fatalMessage = &message;
  llvm::CrashRecoveryContext recovery;
  bool finished = recovery.RunSafely(work);
  fatalMessage = nullptr;
  if (finished)
    return llvm::Error::success();
  return llvm::createStringError(message.empty() ? "the backend crashed" : message);
}

static void initializeBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::install_fatal_error_handler(onFatalError);
    llvm::CrashRecoveryContext::Enable();
    // On sm_100 and up LLVM pairs f32 operations. All targets run the same instructions here, so it
    // must not.
    auto &options = llvm::cl::getRegisteredOptions();
    auto pairs = options.find("nvptx-no-f32x2");
    if (pairs == options.end() || pairs->second->addOccurrence(0, "nvptx-no-f32x2", "true"))
      llvm::report_fatal_error("this LLVM cannot turn paired f32 instructions off");
  });
}

//===----------------------------------------------------------------------===//
// Per thread
//===----------------------------------------------------------------------===//

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect, ub::UBDialect,
                  vector::VectorDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  return registry;
}

struct planc::Lowerer::Contexts {
  MLIRContext mlir{makeRegistry(), MLIRContext::Threading::DISABLED};
  llvm::LLVMContext llvm;
  /// By architecture; a target machine is costly enough to keep.
  std::map<unsigned, std::unique_ptr<llvm::TargetMachine>> machines;
};

planc::Lowerer::Lowerer() { initializeBackend(); }
planc::Lowerer::~Lowerer() = default;

static std::unique_ptr<llvm::TargetMachine> createMachine(const planc::Target &target) {
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    llvm::report_fatal_error(llvm::StringRef(error));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.arch(), "+ptx" + std::to_string(target.ptxVersion), options, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// scf before gpu, which cannot convert it; nvvm last, since some of its operations come from gpu
/// ones.
static void buildPipeline(PassManager &passes) {
  passes.addPass(createSCFToControlFlowPass());
  OpPassManager &nested = passes.nest<gpu::GPUModuleOp>();
  ConvertGpuOpsToNVVMOpsOptions toNvvm;
  toNvvm.indexBitwidth = 32;
  nested.addPass(createConvertGpuOpsToNVVMOps(toNvvm));
  nested.addPass(createConvertNVVMToLLVMPass());
  nested.addPass(createCanonicalizerPass());
  nested.addPass(createCSEPass());
  nested.addPass(createReconcileUnrealizedCastsPass());
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

namespace {
/// What the work under recovery leaves behind.
struct Outcome {
  std::string text, error;

  void fail(const llvm::Twine &message) {
    if (error.empty())
      error = message.str();
  }
};
} // namespace

static void emitPtx(std::unique_ptr<llvm::Module> module, llvm::TargetMachine &machine,
                    Outcome &outcome) {
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  optimize(*module, machine);
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream stream(ptx);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return outcome.fail("the backend writes no assembly");
  passes.run(*module);
  outcome.text = ptx.str().str();
}

llvm::Expected<std::string> planc::Lowerer::lower(const std::string &text, const Target &target,
                                                  CodegenStage stage) {
  if (!contexts)
    contexts = std::make_unique<Contexts>();
  Outcome outcome;
  llvm::Error crash = recovering([&] {
    ScopedDiagnosticHandler collect(&contexts->mlir, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        outcome.fail(diagnostic.str());
      return success();
    });
    auto module = parseSourceString<ModuleOp>(text, &contexts->mlir);
    if (!module)
      return outcome.fail("the module does not parse");
    PassManager passes(&contexts->mlir);
    buildPipeline(passes);
    if (failed(passes.run(*module)))
      return outcome.fail("lowering to NVVM failed");
    if (stage == CodegenStage::Nvvm) {
      llvm::raw_string_ostream stream(outcome.text);
      module->print(stream);
      return;
    }
    auto kernels = module->getOps<gpu::GPUModuleOp>();
    if (!llvm::hasSingleElement(kernels))
      return outcome.fail("expected one gpu.module");
    contexts->llvm.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo *info, void *outcome) {
          if (info->getSeverity() != llvm::DS_Error)
            return;
          std::string message;
          llvm::raw_string_ostream stream(message);
          llvm::DiagnosticPrinterRawOStream printer(stream);
          info->print(printer);
          static_cast<Outcome *>(outcome)->fail(message);
        },
        &outcome);
    auto translated = translateModuleToLLVMIR(*kernels.begin(), contexts->llvm, "kernel");
    if (!translated)
      return outcome.fail("translation to LLVM IR failed");
    auto &machine = contexts->machines[target.sm * 1000 + target.ptxVersion];
    if (!machine)
      machine = createMachine(target);
    emitPtx(std::move(translated), *machine, outcome);
  });
  if (crash) {
    contexts.release(); // NOLINT: see the top of this file
    return std::move(crash);
  }
  if (!outcome.error.empty())
    return llvm::createStringError(outcome.error);
  return std::move(outcome.text);
}

std::string planc::printForCodegen(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  return text;
}
