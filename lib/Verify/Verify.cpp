//===- Verify.cpp - kernels over processes, verdicts in order --------------===//
//
// The emulator is one for a process and a check runs its CTAs on one thread, so kernels are spread
// over processes. A worker takes the next kernel that nobody has and writes a line of JSON when it
// is done. A worker that dies was at work on the last kernel that it has announced; another takes
// its place.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Verify.h"

#include "dialects/Plan/PlanOps.h"
#include "lib/Target/Target.h"
#include "lib/Verify/KernelVerifier.h"
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

/// A worker's whole life; returns what it cannot do its work without.
static Status work(Worker &worker, const std::vector<Subject> &subjects, const Options &options,
                   const VerdictCache &cache) {
  CodegenOptions codegenOptions;
  codegenOptions.stage = CodegenStage::Ptx;
  codegenOptions.threads = 1;
  codegenOptions.toolkit = "none";
  codegenOptions.cacheDir = options.cacheDir;
  codegenOptions.useCache = options.useCache;
  auto codegen = Codegen::create(codegenOptions);
  if (!codegen)
    return makeError(ErrorKind::Environment, "{}", llvm::toString(codegen.takeError()));
  Result<std::unique_ptr<Device>> device =
      Device::open("emulator", options.targets.front()->arch());
  if (!device.ok())
    return device.takeError();
  (*device)->setThreads(1);
  while (std::optional<size_t> next = worker.take(subjects.size()))
    worker.report(*next,
                  toJson(verifyKernel(subjects[*next], options, **device, **codegen, cache)));
  return {};
}

Result<Report> verify(ModuleOp module, const Options &options, const Progress &progress) {
  std::vector<Subject> subjects = collect(module);
  VerdictCache cache(options);
  Report report;
  report.kernels.resize(subjects.size());
  size_t done = 0;
  auto finish = [&](size_t index, Verdict verdict) {
    report.kernels[index] = std::move(verdict);
    if (progress)
      progress(report.kernels[index], ++done, subjects.size());
  };
  Status status = runWorkers(
      options.workers, subjects.size(),
      [&](Worker &worker) { return work(worker, subjects, options, cache); },
      [&](size_t index, const Json &line) { finish(index, verdictFromJson(line)); },
      [&](size_t index, const std::string &how) {
        Verdict verdict;
        verdict.name = subjects[index].kernel.getSymName().str();
        verdict.groups = subjects[index].groups;
        verdict.contract = subjects[index].kernel.getNumerics().str();
        verdict.failures.push_back({"the process that verified it", how});
        finish(index, std::move(verdict));
      });
  if (!status.ok())
    return status.takeError();
  return report;
}

} // namespace planc::verify
