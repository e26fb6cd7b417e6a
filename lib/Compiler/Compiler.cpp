//===- Compiler.cpp - the stages, one after the other -----------------------===//
//
// Import -> passes -> Schedule and Codegen -> Bundle. `Emit` stops between any two of them. A stage
// runs only if the one before it reported no error; inside a stage, all errors are reported.
//
//===----------------------------------------------------------------------===//

#include "planc/Compiler.h"
#include "lib/Bundle/Container.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Kernels.h"
#include "lib/Compiler/ManifestBuilder.h"
#include "lib/Import/Import.h"
#include "lib/Support/Hash.h"
#include "lib/Target/Target.h"
#include "passes/Pipeline.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace planc;

namespace {

/// One compilation.
class Session {
public:
  Session(const CompilerOptions &options,
          const std::function<void(const planc::Diagnostic &)> &report)
      : options(options), report(report) {}

  Outcome run(const std::vector<Source> &plans, const Source &config, std::string &output);

private:
  Outcome fail(Outcome outcome, std::string message) {
    report({planc::Severity::Error, "", std::move(message), {}});
    return outcome;
  }

  Outcome resolveOptions();
  Outcome createCodegen();
  LogicalResult runPasses(void (*build)(OpPassManager &));
  std::string printModule();
  std::string printKernels(ArrayRef<CompiledKernel> kernels);
  std::string planIr();
  Outcome bundle(ArrayRef<CompiledKernel> kernels, const std::vector<Source> &plans,
                 const Source &config, std::string &output);

  const CompilerOptions &options;
  const std::function<void(const planc::Diagnostic &)> &report;
  std::vector<const planc::Target *> targets;
  std::unique_ptr<Codegen> codegen;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

Outcome Session::resolveOptions() {
  for (const std::string &name : options.targets) {
    const planc::Target *target = lookupTarget(name);
    if (!target)
      return fail(Outcome::Usage, "unknown target \"" + name + "\"; known are " + targetNames());
    auto rival =
        llvm::find_if(targets, [&](const planc::Target *other) { return other->sm == target->sm; });
    if (rival == targets.end())
      targets.push_back(target);
    else if (*rival != target)
      return fail(Outcome::Usage, "targets \"" + std::string((*rival)->name) + "\" and \"" + name +
                                      "\" are both " + target->arch() +
                                      ", and a bundle holds one image per architecture");
  }
  if (targets.empty())
    return fail(Outcome::Usage, "no target is given");
  if (options.kvBlock <= 0 || options.kvBlock > 4096 || !llvm::isPowerOf2_64(options.kvBlock))
    return fail(Outcome::Usage,
                "a KV block of " + std::to_string(options.kvBlock) +
                    " positions is not possible, expected a power of two up to 4096");
  if (options.maxContext && *options.maxContext <= 0)
    return fail(Outcome::Usage, "a context of " + std::to_string(*options.maxContext) +
                                    " positions is not possible, expected at least 1");
  if (options.requireCubin && options.toolkit == "none")
    return fail(Outcome::Usage, "cubins are required, but no toolkit may be used");
  return Outcome::Ok;
}

Outcome Session::createCodegen() {
  CodegenOptions codegenOptions;
  codegenOptions.stage = options.emit == Emit::Nvvm  ? CodegenStage::Nvvm
                         : options.emit == Emit::Ptx ? CodegenStage::Ptx
                                                     : CodegenStage::Cubin;
  codegenOptions.toolkit = options.toolkit;
  codegenOptions.cacheDir = options.cacheDir;
  codegenOptions.useCache = options.useCache;
  codegenOptions.threads = options.threads;
  auto created = Codegen::create(codegenOptions);
  if (!created)
    return fail(Outcome::Environment, llvm::toString(created.takeError()));
  codegen = std::move(*created);
  if (options.requireCubin && codegen->assembler().empty())
    return fail(Outcome::Environment,
                "cubins are required, but there is neither ptxas nor nvJitLink on this "
                "machine; --toolkit=DIR says where to look");
  return Outcome::Ok;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

LogicalResult Session::runPasses(void (*build)(OpPassManager &)) {
  PassManager passes(context.get());
  // Fails only where the program has not registered these options, and then there are none.
  (void)applyPassManagerCLOptions(passes);
  applyDefaultTimingPassManagerCLOptions(passes);
  build(passes);
  return passes.run(*module);
}

std::string Session::printModule() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().enableDebugInfo(false));
  stream << '\n';
  return text;
}

std::string Session::printKernels(ArrayRef<CompiledKernel> kernels) {
  std::string text;
  for (CompiledKernel kernel : kernels)
    text += "// " + kernel.kernel.getSymName().str() + " for " + kernel.target->arch() + "\n" +
            kernel.image.ptx + "\n";
  return text;
}

/// The module as bytecode, without locations: they hold the names of files.
std::string Session::planIr() {
  Location unknown = UnknownLoc::get(context.get());
  module->walk([&](Operation *op) {
    op->setLoc(unknown);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(unknown);
  });
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  (void)writeBytecodeToFile(*module, stream, BytecodeWriterConfig("planc"));
  return bytes;
}

//===----------------------------------------------------------------------===//
// The bundle
//===----------------------------------------------------------------------===//

static bundle::KernelTarget describeImage(const CompiledKernel &kernel) {
  bundle::KernelTarget image;
  image.entry = kernel.image.entry;
  image.grid = kernel.shape.grid;
  image.block = kernel.shape.block;
  image.shared_bytes = kernel.shape.dynamicSharedBytes;
  image.scratch_bytes = kernel.shape.scratchBytes;
  image.counters = kernel.shape.counters;
  image.static_shared_bytes = declaredSharedBytes(kernel.image.ptx);
  if (const auto &figures = kernel.image.figures) {
    image.static_shared_bytes = figures->staticSharedBytes;
    image.registers = figures->registers;
    image.stack_bytes = figures->stackBytes;
    image.spill_bytes = figures->spillStoreBytes + figures->spillLoadBytes;
    image.code_bytes = figures->codeBytes;
  }
  image.ptx_bytes = kernel.image.ptx.size();
  return image;
}

/// Kernels with their images as sections. `launches` has one launch of each kernel, for its
/// parameters.
static std::vector<bundle::Kernel>
describeKernels(ArrayRef<CompiledKernel> compiled,
                const llvm::DenseMap<Operation *, plan::LaunchOp> &launches, int64_t kvBlock,
                std::vector<bundle::SectionData> &sections) {
  std::vector<bundle::Kernel> kernels;
  for (CompiledKernel item : compiled) {
    std::string name = item.kernel.getSymName().str();
    if (kernels.empty() || kernels.back().name != name) {
      bundle::Kernel &kernel = kernels.emplace_back();
      kernel.name = name;
      kernel.schedule = item.schedule;
      kernel.numerics = item.kernel.getNumerics().str();
      kernel.compute = item.kernel.getCompute().str();
      kernel.arithmetic = item.arithmetic;
      kernel.params = describeParams(launches.at(item.kernel), kvBlock);
      if (item.shape.scratchBytes)
        kernel.params.push_back({bundle::ArgKind::scratch, bundle::Dtype::f32, {}, true});
      if (item.shape.counters)
        kernel.params.push_back({bundle::ArgKind::counters, bundle::Dtype::i32, {}, true});
    }
    bundle::KernelTarget image = describeImage(item);
    std::string section = name + "." + item.target->arch();
    image.ptx = section + ".ptx";
    sections.push_back({image.ptx, item.image.ptx});
    if (!item.image.cubin.empty()) {
      image.cubin = section + ".cubin";
      sections.push_back({*image.cubin, item.image.cubin});
    }
    kernels.back().targets[item.target->arch()] = std::move(image);
  }
  return kernels;
}

/// Adds what the schedules of its kernels ask for: scratch and counters, as arguments and as the
/// largest sizes.
static void addScratch(bundle::Program &program, const bundle::Manifest &manifest) {
  for (bundle::Launch &launch : program.launch_list) {
    if (!launch.kernel)
      continue;
    uint64_t scratch = 0, counters = 0;
    for (const auto &[name, image] : manifest.findKernel(*launch.kernel)->targets) {
      scratch = std::max(scratch, image.scratch_bytes);
      counters = std::max(counters, image.counters);
    }
    if (scratch)
      launch.args.push_back({bundle::ArgKind::scratch, std::nullopt, std::nullopt});
    if (counters)
      launch.args.push_back({bundle::ArgKind::counters, std::nullopt, std::nullopt});
    program.workspace.scratch_bytes = std::max(program.workspace.scratch_bytes, scratch);
    program.workspace.counters = std::max(program.workspace.counters, counters);
  }
}

Outcome Session::bundle(ArrayRef<CompiledKernel> kernels, const std::vector<Source> &plans,
                        const Source &config, std::string &output) {
  bundle::Manifest manifest;
  manifest.provenance.planc = version();
  manifest.provenance.llvm = Codegen::backend();
  if (!codegen->assembler().empty())
    manifest.provenance.ptxas = codegen->assembler();
  manifest.provenance.config_digest = digest(config.text);

  auto dims = module->getOperation()->getAttrOfType<DictionaryAttr>(plan::kDimsAttrName);
  for (NamedAttribute dim : dims)
    manifest.model.dims[dim.getName().str()] = cast<IntegerAttr>(dim.getValue()).getInt();
  manifest.model.vocab = manifest.model.dims.at("vocab");
  manifest.model.kv_block = options.kvBlock;
  manifest.model.max_context = manifest.model.dims.at("max_context");
  for (const planc::Target *target : targets)
    manifest.targets.push_back({target->arch(), target->sm, std::string(target->name)});

  llvm::DenseMap<Operation *, plan::LaunchOp> launches;
  SymbolTable symbols(*module);
  module->walk([&](plan::LaunchOp launch) {
    if (auto kernel = launch.getKernel())
      launches.try_emplace(symbols.lookup(*kernel), launch);
  });
  std::vector<bundle::SectionData> sections;
  manifest.kernels = describeKernels(kernels, launches, options.kvBlock, sections);
  auto uses = firstUses(*module);
  for (auto weight : module->getOps<plan::WeightOp>())
    manifest.weights.push_back(describeWeight(weight, uses.lookup(weight.getSymName()).getId()));
  for (auto state : module->getOps<plan::StateOp>())
    manifest.states.push_back(
        describeState(state, uses.lookup(state.getSymName()).getLayer(), options.kvBlock));
  for (auto [graph, source] : llvm::zip_equal(module->getOps<plan::GraphOp>(), plans)) {
    manifest.programs.push_back(describeProgram(graph));
    manifest.programs.back().plan_digest = digest(source.text);
    addScratch(manifest.programs.back(), manifest);
  }
  sections.push_back({bundle::planIrSection, planIr()});

  auto bytes = bundle::serialize(std::move(manifest), sections);
  if (!bytes.ok())
    return fail(Outcome::Rejected,
                "internal error: the bundle contradicts itself: " + bytes.error().message);
  output = std::move(*bytes);
  return Outcome::Ok;
}

//===----------------------------------------------------------------------===//
// The stages
//===----------------------------------------------------------------------===//

Outcome Session::run(const std::vector<Source> &plans, const Source &config, std::string &output) {
  if (Outcome outcome = resolveOptions(); outcome != Outcome::Ok)
    return outcome;
  if (options.emit >= Emit::Nvvm)
    if (Outcome outcome = createCodegen(); outcome != Outcome::Ok)
      return outcome;

  DialectRegistry registry;
  registry.insert<plan::PlanDialect>();
  registerScheduleDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  ScopedDiagnosticHandler handler(
      context.get(), [&](mlir::Diagnostic &diagnostic) { report(convert(diagnostic)); });

  SmallVector<ImportSource> sources;
  for (const Source &plan : plans)
    sources.push_back({plan.name, plan.text});
  module = importPlans(context.get(), sources, {config.name, config.text},
                       {options.kvBlock, options.maxContext, options.allowDiffers});
  if (!module)
    return Outcome::Rejected;
  if (options.contractsRun)
    (*module)->setAttr(plan::kContractsRunAttrName, UnitAttr::get(context.get()));
  if (options.emit == Emit::Plan) {
    output = printModule();
    return Outcome::Ok;
  }
  if (failed(runPasses(buildGroupPipeline)))
    return Outcome::Rejected;
  if (options.emit == Emit::Groups) {
    output = printModule();
    return Outcome::Ok;
  }
  if (failed(runPasses([](OpPassManager &passes) {
        buildKernelPipeline(passes);
        buildMemoryPipeline(passes);
      })))
    return Outcome::Rejected;
  if (options.emit == Emit::Kernels) {
    output = printModule();
    return Outcome::Ok;
  }

  SmallVector<plan::KernelOp> kernels(module->getOps<plan::KernelOp>());
  auto compiled = compileKernels(kernels, targets, options.kvBlock, *codegen);
  if (std::string warning = codegen->warning(); !warning.empty())
    report({planc::Severity::Warning, "", warning, {}});
  if (!compiled)
    return Outcome::Rejected;
  if (options.emit == Emit::Bundle)
    return bundle(*compiled, plans, config, output);
  output = printKernels(*compiled);
  return Outcome::Ok;
}

std::string planc::version() { return PLANC_VERSION; }

Compiler::Compiler(CompilerOptions options, std::function<void(const Diagnostic &)> report)
    : options(std::move(options)), report(std::move(report)) {}

Outcome Compiler::compile(const std::vector<Source> &plans, const Source &config,
                          std::string &output) {
  output.clear();
  return Session(options, report).run(plans, config, output);
}
