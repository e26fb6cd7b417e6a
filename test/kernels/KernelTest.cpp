//===- KernelTest.cpp - one kernel against the reference -------------------===//
//
// usage: planc-kernel-test FILE.mlir [options]        (- reads standard input)
//
// Schedules and compiles every plan.kernel of the file, runs it on the emulator (or a GPU) with
// seeded data and compares what it stored with lib/Reference, within the bounds that follow from how
// the kernel rounds. Outputs start as NaN and scratch as rubbish, so that what a kernel forgets shows.
// With --chain the kernel's nodes also run one by one, each as a kernel of its own, and all outputs
// must have the same bytes.
//
// Exit codes: 0 all good, 1 a mismatch or a kernel that does not compile, 3 no device.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Target.h"
#include "lib/Verify/KernelRun.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;
using namespace planc::verify;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::init("-"), cl::desc("FILE.mlir"));
static cl::list<std::string> targetNames("target", cl::CommaSeparated, cl::desc("default: gb10"));
static cl::opt<uint64_t> seed("seed", cl::init(1));
static cl::opt<std::string> inputClassName("input-class", cl::init("gaussian"),
                                           cl::desc("what the edges hold (InputClasses.def)"));
static cl::opt<int64_t> kvBlock("kv-block", cl::init(16));
static cl::opt<std::string> deviceName("device", cl::init("emulator"),
                                       cl::desc("emulator, cuda or a library"));
static cl::opt<bool> chain("chain", cl::desc("compare bytes with the nodes run one by one"));
static cl::opt<bool> printPtx("print-ptx");
static cl::opt<bool> figures("figures", cl::desc("print what the kernel needs of the machine"));
static cl::opt<unsigned> repeat("repeat", cl::init(1), cl::desc("launches; all must agree"));

namespace {
class Tester {
public:
  Tester(const planc::Target &target, planc::Codegen &codegen, Device &device)
      : target(target), codegen(codegen), device(device) {}

  /// False after a failure was printed.
  bool test(plan::KernelOp kernel);

private:
  bool compareChain(plan::KernelOp kernel, ArrayRef<Input> inputs, const Outcome &fused);
  bool fail(plan::KernelOp kernel, const llvm::Twine &why) {
    llvm::outs() << target.name << " " << kernel.getSymName() << ": FAILED: " << why << '\n';
    return false;
  }

  const planc::Target &target;
  planc::Codegen &codegen;
  Device &device;
};
} // namespace

static void printFigures(const CompiledKernel &compiled) {
  const planc::KernelImage &image = compiled.image;
  const planc::LaunchShape &shape = compiled.shape;
  llvm::outs() << "  grid " << shape.grid[0] << "x" << shape.grid[1] << "x" << shape.grid[2]
               << ", block " << shape.block[0] << "x" << shape.block[1] << "x" << shape.block[2]
               << ", shared " << shape.dynamicSharedBytes << ", scratch " << shape.scratchBytes
               << ", counters " << shape.counters << ", ptx " << image.ptx.size() << " bytes\n";
  if (image.figures)
    llvm::outs() << "  registers " << image.figures->registers << ", spills "
                 << image.figures->spillStoreBytes + image.figures->spillLoadBytes << ", code "
                 << image.figures->codeBytes << " bytes\n";
}

bool Tester::test(plan::KernelOp kernel) {
  planc::Result<CompiledKernel> compiled = compileKernel(kernel, target, kvBlock, codegen);
  if (!compiled.ok())
    return fail(kernel, compiled.error().message);
  if (printPtx)
    llvm::outs() << compiled->image.ptx;
  if (figures)
    printFigures(*compiled);
  std::optional<InputClass> inputClass = lookupInputClass(::inputClassName);
  if (!inputClass)
    return fail(kernel, "unknown input class " + ::inputClassName);
  std::vector<Input> inputs = makeInputs(kernel, seed, *inputClass, kvBlock);
  Outcome outcome = runKernel(device, *compiled, kernel, inputs, repeat);
  if (!outcome.fault.empty())
    return fail(kernel, outcome.fault);
  planc::reference::Options options;
  options.kvBlock = kvBlock;
  planc::Result<planc::reference::Report> report =
      judge(kernel, *compiled, inputs, outcome, options);
  if (!report.ok())
    return fail(kernel, report.error().message);
  bool good = report->passed();
  llvm::outs() << target.name << " " << kernel.getSymName() << ": " << compiled->schedule << ", "
               << (good ? "ok" : "FAILED") << '\n';
  for (const planc::reference::EdgeReport &edge : report->edges)
    llvm::outs() << "  " << planc::reference::describe(edge) << '\n';
  return good && (!chain || compareChain(kernel, inputs, outcome));
}

bool Tester::compareChain(plan::KernelOp kernel, ArrayRef<Input> inputs, const Outcome &fused) {
  planc::Result<Outcome> unfused = runUnfused(device, kernel, inputs, target, kvBlock, codegen);
  if (!unfused.ok())
    return fail(kernel, unfused.error().message);
  if (!unfused->fault.empty())
    return fail(kernel, unfused->fault);
  if (auto difference = firstDifference(kernel, fused, *unfused))
    return fail(kernel, "differs from the unfused chain, " + *difference);
  llvm::outs() << "  chain: same bytes\n";
  return true;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  DialectRegistry registry;
  registry.insert<plan::PlanDialect>();
  planc::registerScheduleDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return 1;

  planc::CodegenOptions options;
  options.stage = figures ? planc::CodegenStage::Cubin : planc::CodegenStage::Ptx;
  options.threads = 1;
  auto codegen = planc::Codegen::create(options);
  if (!codegen) {
    llvm::errs() << "error: " << toString(codegen.takeError()) << '\n';
    return 3;
  }
  if (targetNames.empty())
    targetNames.push_back("gb10");
  bool good = true;
  for (const std::string &name : targetNames) {
    const planc::Target *target = planc::lookupTarget(name);
    if (!target) {
      llvm::errs() << "unknown target \"" << name << "\"; known are " << planc::targetNames()
                   << '\n';
      return 2;
    }
    planc::Result<std::unique_ptr<Device>> device = Device::open(deviceName, target->arch());
    if (!device.ok()) {
      llvm::errs() << device.error().text() << '\n';
      return 3;
    }
    Tester tester(*target, **codegen, **device);
    for (auto kernel : module->getOps<plan::KernelOp>())
      good &= tester.test(kernel);
  }
  return good ? 0 : 1;
}
