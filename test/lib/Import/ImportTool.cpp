//===- ImportTool.cpp - the importer and the passes behind a command line --===//
//
//   plan-import-test PLAN.json... --model CONFIG.json [--to=import|groups|kernels|memory] [--quiet]
//
// Prints the module after that stage. Errors go to stderr as `file#/path: error: ...`, exit 1.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipeline.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

static std::string place(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return place(name.getChildLoc());
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return file.getFilename().str();
  return "?";
}

static void print(Diagnostic &diag) {
  llvm::StringRef kind = diag.getSeverity() == DiagnosticSeverity::Error ? "error" : "note";
  llvm::errs() << place(diag.getLocation()) << ": " << kind << ": " << diag.str() << "\n";
  for (Diagnostic &note : diag.getNotes())
    print(note);
}

int main(int argc, char **argv) {
  cl::list<std::string> plans(cl::Positional, cl::OneOrMore);
  cl::opt<std::string> model("model", cl::Required);
  cl::opt<std::string> to("to", cl::init("import"));
  cl::opt<bool> quiet("quiet");
  cl::ParseCommandLineOptions(argc, argv);

  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diag) { print(diag); });
  std::vector<std::string> files(plans.begin(), plans.end());
  OwningOpRef<ModuleOp> module = planc::importPlanFiles(&context, files, model);
  if (!module)
    return 1;
  PassManager pm(&context);
  if (to != "import")
    planc::buildGroupPipeline(pm);
  if (to == "kernels" || to == "memory")
    planc::buildKernelPipeline(pm);
  if (to == "memory")
    planc::buildMemoryPipeline(pm);
  if (failed(pm.run(*module)))
    return 1;
  if (!quiet)
    module->print(llvm::outs());
  return 0;
}
