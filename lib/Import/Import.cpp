//===- Import.cpp - plans and a config as the plan dialect ----------------===//

#include "lib/Import/Import.h"

#include "lib/Import/Plan.h"
#include "lib/Support/File.h"

#include "dialects/Plan/PlanOps.h"

#include "mlir/IR/Verifier.h"

using namespace planc;

/// The 35B plan takes 0.7 MB; a file beyond this is not a plan.
static constexpr uint64_t kMaxFileBytes = uint64_t(64) << 20;
/// Context length without an option, see design.md section 2.
static constexpr int64_t kDefaultContext = 32768;

/// Parses a file's text; false after errors.
static bool parse(Problems &problems, JsonFile &file, llvm::StringRef text) {
  for (const JsonProblem &problem : file.parse(text))
    problems.errorAt(problem.path, problem.message);
  problems.finish();
  return !problems.any();
}

static mlir::DictionaryAttr makeDims(mlir::Builder &builder, const ModelConfig &config,
                                     const ImportOptions &options) {
  int64_t context = options.maxContext.value_or(
      std::min(config.maxPositions.value_or(kDefaultContext), kDefaultContext));
  llvm::SmallVector<mlir::NamedAttribute> dims;
  for (const auto &[name, value] : config.dims)
    dims.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  dims.push_back(builder.getNamedAttr("max_context", builder.getI64IntegerAttr(context)));
  dims.push_back(builder.getNamedAttr("kv_block", builder.getI64IntegerAttr(options.kvBlock)));
  dims.push_back(builder.getNamedAttr(
      "max_blocks", builder.getI64IntegerAttr((context + options.kvBlock - 1) / options.kvBlock)));
  return builder.getDictionaryAttr(dims);
}

/// A context or block length that no cache can have; both are options, not part of a file.
static bool checkOptions(mlir::MLIRContext *context, const ModelConfig &config,
                         const ImportSource &source, const ImportOptions &options) {
  auto error = [&] { return mlir::emitError(locationIn(context, source.name, "")); };
  if (options.kvBlock < 1 || options.kvBlock > 4096 || (options.kvBlock & (options.kvBlock - 1))) {
    error() << "a block of the cache holds " << options.kvBlock
            << " positions, expected a power of two up to 4096";
    return false;
  }
  int64_t longest = config.maxPositions.value_or(INT32_MAX);
  if (options.maxContext && (*options.maxContext < 1 || *options.maxContext > longest)) {
    error() << "the context is " << *options.maxContext
            << " positions long, but the model takes 1 to " << longest;
    return false;
  }
  return true;
}

mlir::OwningOpRef<mlir::ModuleOp> planc::importPlans(mlir::MLIRContext *context,
                                                     llvm::ArrayRef<ImportSource> plans,
                                                     const ImportSource &config,
                                                     const ImportOptions &options) {
  context->getOrLoadDialect<plan::PlanDialect>();
  Problems configProblems(context, config.name);
  JsonFile configFile;
  ModelConfig model;
  bool configOk = parse(configProblems, configFile, config.text);
  if (configOk) {
    model = readConfig(configProblems, configFile.root());
    configProblems.finish();
    configOk = !configProblems.any() && checkOptions(context, model, config, options);
  }
  bool ok = configOk;

  mlir::Builder builder(context);
  auto module = mlir::ModuleOp::create(builder.getUnknownLoc());
  mlir::OwningOpRef<mlir::ModuleOp> owner(module);
  if (configOk)
    module->setAttr(plan::kDimsAttrName, makeDims(builder, model, options));
  for (const ImportSource &source : plans) {
    Problems problems(context, source.name);
    JsonFile file;
    if (!parse(problems, file, source.text)) {
      ok = false;
      continue;
    }
    PlanContents contents = readPlan(problems, file.root(), options.allowDiffers);
    // Without a config a plan can still be read, so that one run shows the errors of both.
    if (!problems.any() && configOk)
      checkPlan(problems, contents, model, config.name, configFile.root());
    if (!problems.any() && configOk)
      (void)buildPlan(problems, contents, model, module);
    problems.finish();
    ok &= !problems.any();
  }
  if (!ok)
    return {};
  // The verifier stops at the first op; a user wants all nodes that do not fit.
  module.walk(
      [&](plan::PlanNode node) { ok &= mlir::succeeded(node->getName().verifyInvariants(node)); });
  if (!ok || mlir::failed(mlir::verify(module)))
    return {};
  return owner;
}

mlir::OwningOpRef<mlir::ModuleOp> planc::importPlanFiles(mlir::MLIRContext *context,
                                                         llvm::ArrayRef<std::string> plans,
                                                         const std::string &config,
                                                         const ImportOptions &options) {
  bool ok = true;
  auto read = [&](const std::string &path) {
    Result<Bytes> bytes = readFile(path, kMaxFileBytes);
    if (bytes.ok())
      return ImportSource{path, std::string(asText(*bytes))};
    ok = false;
    llvm::StringRef message = bytes.error().message;
    message.consume_front(path + ": ");
    mlir::emitError(locationIn(context, path, "")) << message;
    return ImportSource{path, {}};
  };
  ImportSource configSource = read(config);
  llvm::SmallVector<ImportSource> planSources = llvm::map_to_vector(plans, read);
  if (!ok)
    return {};
  return importPlans(context, planSources, configSource, options);
}
