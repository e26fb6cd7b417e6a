//===- Verify.cpp - kernels over processes, verdicts in order --------------===//
//
// The emulator is one for a process and a check runs its CTAs on one thread, so kernels are spread
// over processes. A worker takes the next kernel that nobody has and writes a line of JSON when it
// is done. A worker that dies was at work on the last kernel that it has announced; another takes
// its place. Then the same with mutations, so that one that crashes or hangs takes nothing else
// along.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Verify.h"

#include "dialects/Plan/PlanOps.h"
#include "lib/Target/Target.h"
#include "lib/Verify/KernelVerifier.h"
#include "lib/Verify/Mutator.h"
#include "lib/Verify/VerdictCache.h"
#include "lib/Verify/Workers.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

#include <algorithm>

using namespace mlir;

namespace planc::verify {

bool Report::ok() const {
  return std::all_of(kernels.begin(), kernels.end(),
                     [](const Verdict &verdict) { return verdict.failures.empty(); });
}

/// Every kernel with the groups that start it.
static std::vector<Subject> collect(ModuleOp module) {
  std::vector<Subject> subjects;
  llvm::DenseMap<Operation *, size_t> at;
  for (auto kernel : module.getOps<plan::KernelOp>()) {
    at[kernel] = subjects.size();
    subjects.push_back({kernel, {}, {}});
  }
  SymbolTable symbols(module);
  module.walk([&](plan::LaunchOp launch) {
    auto name = launch.getKernel();
    if (!name)
      return;
    Subject &subject = subjects[at.lookup(symbols.lookup(*name))];
    if (subject.groups.empty())
      for (Attribute node : launch.getNodes())
        subject.nodes.push_back(cast<plan::NodeAttr>(node).getId().str());
    subject.groups.push_back(launch.getInfo().getId());
  });
  return subjects;
}

/// In a worker: the verdict of one kernel, from the cache if it is there.
static Verdict verifyKernel(const Subject &subject, const Options &options, Device &device,
                            Codegen &codegen, const VerdictCache &cache) {
  std::string key = cache.keyOf(subject.kernel, options);
  if (std::optional<Verdict> known = cache.find(key)) {
    known->name = plan::KernelOp(subject.kernel).getSymName().str();
    known->groups = subject.groups;
    known->fromCache = true;
    return *known;
  }
  Verdict verdict = KernelVerifier(subject, options, device, codegen).run();
  cache.store(key, verdict);
  return verdict;
}

/// What a worker needs.
struct Tools {
  std::unique_ptr<Codegen> codegen;
  std::unique_ptr<Device> device;
};

static Result<Tools> openTools(const Options &options, bool useCache) {
  CodegenOptions codegenOptions;
  codegenOptions.stage = CodegenStage::Ptx;
  codegenOptions.threads = 1;
  codegenOptions.toolkit = "none";
  codegenOptions.cacheDir = options.cacheDir;
  codegenOptions.useCache = useCache;
  auto codegen = Codegen::create(codegenOptions);
  if (!codegen)
    return makeError(ErrorKind::Environment, "{}", llvm::toString(codegen.takeError()));
  Result<std::unique_ptr<Device>> device =
      Device::open("emulator", options.targets.front()->arch());
  if (!device.ok())
    return device.takeError();
  (*device)->setThreads(1);
  return Tools{std::move(*codegen), std::move(*device)};
}

static Status verifyKernels(const std::vector<Subject> &subjects, const Options &options,
                            const VerdictCache &cache, Report &report, const Progress &progress) {
  size_t done = 0;
  auto finish = [&](size_t index, Verdict verdict) {
    report.kernels[index] = std::move(verdict);
    if (progress)
      progress(report.kernels[index], ++done, subjects.size());
  };
  auto work = [&](Worker &worker) -> Status {
    Result<Tools> tools = openTools(options, options.useCache);
    if (!tools.ok())
      return tools.takeError();
    while (std::optional<size_t> next = worker.take(subjects.size()))
      worker.report(*next, toJson(verifyKernel(subjects[*next], options, *tools->device,
                                               *tools->codegen, cache)));
    return {};
  };
  return runWorkers(
      options.workers, subjects.size(), work,
      [&](size_t index, const Json &line) { finish(index, verdictFromJson(line)); },
      [&](size_t index, const std::string &how) {
        Verdict verdict;
        plan::KernelOp kernel = subjects[index].kernel;
        verdict.name = kernel.getSymName().str();
        verdict.groups = subjects[index].groups;
        verdict.contract = kernel.getNumerics().str();
        verdict.failures.push_back({"the process that verified it", how});
        finish(index, std::move(verdict));
      });
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

namespace {
/// A mutation of one of the kernels.
struct Item {
  size_t kernel;
  Mutation mutation;
};
} // namespace

/// What a trial says about its kernel.
static void record(const Item &item, Trial::End end, const std::string &how, Verdict &verdict) {
  if (end == Trial::End::NoFault)
    return;
  std::string name = mutationName(item.mutation.kind);
  bool caught = end == Trial::End::Caught;
  verdict.mutations.push_back({name, item.mutation.where, caught ? how : ""});
  if (!caught)
    verdict.failures.push_back(
        {fmt::format("mutation {}, {}", name, item.mutation.where),
         (end == Trial::End::Survived ? "not caught by " : "not tried: ") + how});
}

/// In a worker: tries the mutations that nobody has taken. Those of a kernel follow one another.
static Status tryMutations(Worker &worker, const std::vector<Subject> &subjects,
                           const std::vector<Item> &items, const Options &options) {
  // Mutants are compiled once: their verdict is kept, not their code.
  Result<Tools> tools = openTools(options, /*useCache=*/false);
  if (!tools.ok())
    return tools.takeError();
  std::optional<Mutator> mutator;
  std::optional<size_t> kernel;
  while (std::optional<size_t> next = worker.take(items.size())) {
    const Item &item = items[*next];
    if (kernel != item.kernel) {
      kernel = item.kernel;
      mutator.emplace(subjects[*kernel].kernel, options, *tools->device, *tools->codegen);
    }
    Trial trial = mutator->attempt(item.mutation);
    worker.report(*next, {{"end", int(trial.end)}, {"how", trial.how}});
  }
  return {};
}

/// Plants faults in the kernels that hold: of another it says nothing that a fault is seen.
static Status mutateKernels(const std::vector<Subject> &subjects, const Options &options,
                            const VerdictCache &cache, Report &report, const Progress &progress) {
  std::vector<Item> items;
  std::vector<std::string> keys(subjects.size()); // of what is not known yet
  for (size_t i = 0; i < subjects.size(); ++i) {
    Verdict &verdict = report.kernels[i];
    if (!verdict.failures.empty())
      continue;
    std::string key = cache.keyOf(subjects[i].kernel, options);
    if (std::optional<Verdict> known = cache.find(key)) {
      verdict.mutations = std::move(known->mutations);
      continue;
    }
    keys[i] = key;
    Result<std::vector<Mutation>> mutations =
        mutationsOf(subjects[i].kernel, {*options.targets.front(), options.kvBlock});
    if (!mutations.ok())
      return mutations.takeError();
    for (Mutation &mutation : *mutations)
      items.push_back({i, std::move(mutation)});
  }
  std::vector<std::pair<Trial::End, std::string>> trials(items.size());
  size_t done = 0;
  auto finish = [&](size_t index, Trial::End end, std::string how) {
    trials[index] = {end, std::move(how)};
    if (progress)
      progress(report.kernels[items[index].kernel], ++done, items.size());
  };
  Status status = runWorkers(
      options.workers, items.size(),
      [&](Worker &worker) { return tryMutations(worker, subjects, items, options); },
      [&](size_t index, const Json &line) {
        finish(index, Trial::End(line["end"].get<int>()), line["how"].get<std::string>());
      },
      [&](size_t index, const std::string &how) {
        finish(index, Trial::End::Broken, "the process " + how);
      });
  if (!status.ok())
    return status;
  // Workers finish in any order; verdicts list mutations in that of the table.
  for (size_t i = 0; i < items.size(); ++i)
    record(items[i], trials[i].first, trials[i].second, report.kernels[items[i].kernel]);
  for (size_t i = 0; i < subjects.size(); ++i)
    if (!keys[i].empty())
      cache.store(keys[i], report.kernels[i]);
  return {};
}

Result<Report> verify(ModuleOp module, const Options &options, const Progress &progress) {
  std::vector<Subject> subjects = collect(module);
  VerdictCache cache(options);
  Report report;
  report.kernels.resize(subjects.size());
  // What holds without mutations is known by itself.
  Options plain = options;
  plain.mutate = false;
  Status status = verifyKernels(subjects, plain, cache, report, progress);
  if (status.ok() && options.mutate)
    status = mutateKernels(subjects, options, cache, report, progress);
  if (!status.ok())
    return status.takeError();
  return report;
}

} // namespace planc::verify
