//===- plan-emu.cpp - run one kernel of a PTX file --------------------------===//
//
// Arrays in, arrays out. Files are written last, when everything has succeeded, each whole or not
// at all.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/CommandLine.h"
#include "lib/Tools/plan-emu/Run.h"

#include <algorithm>
#include <new>

using namespace planc;
using namespace planc::tools;
using namespace planemutool;

static constexpr const char *tool = "plan-emu";

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

static std::string triple(const std::array<uint32_t, 3> &extents) {
  return fmt::format("({})", fmt::join(extents, ", "));
}

static std::string kernelNames(const std::vector<KernelInfo> &kernels) {
  std::string names;
  for (const KernelInfo &kernel : kernels)
    names += (names.empty() ? "" : ", ") + kernel.name;
  return names;
}

static void printList(const Options &options, const std::vector<KernelInfo> &kernels) {
  Json list = Json::array();
  std::string text;
  for (const KernelInfo &kernel : kernels) {
    std::vector<uint64_t> bytes;
    for (const KernelInfo::Parameter &parameter : kernel.parameters)
      bytes.push_back(parameter.bytes);
    text +=
        fmt::format("{}: parameters of {} bytes, at most {} threads a block, {} bytes of static "
                    "shared memory, {} of local memory a thread\n",
                    kernel.name, bytes.empty() ? "no" : fmt::format("{}", fmt::join(bytes, ", ")),
                    kernel.maxThreads, kernel.sharedBytes, kernel.localBytes);
    list.push_back({{"name", kernel.name},
                    {"parameter_bytes", bytes},
                    {"max_threads", kernel.maxThreads},
                    {"shared_bytes", kernel.sharedBytes},
                    {"local_bytes", kernel.localBytes}});
  }
  if (kernels.empty())
    text = fmt::format("{} holds no kernel (.entry)\n", options.file);
  print(stdout, options.json ? Json({{"kernels", list}}).dump(2) + "\n" : text);
}

static std::string typeText(const Argument &argument) {
  return fmt::format("{} [{}]", argument.descr, fmt::join(argument.shape, ", "));
}

/// `error` is why the run failed, or null.
static void printRun(const Options &options, const KernelInfo &kernel, const RunResults &results,
                     const Error *error = nullptr) {
  std::string text = fmt::format("kernel {}, grid {}, block {}: {} warp instructions, {:.1f} ms\n",
                                 kernel.name, triple(options.grid), triple(options.block),
                                 results.warpInstructions, results.ms);
  Json outputs = Json::array();
  for (size_t i = 0; i < options.arguments.size(); ++i) {
    const Argument &argument = options.arguments[i];
    if (argument.output.empty() || error || !results.findings.empty())
      continue; // not written then
    text += fmt::format("arg {}: {} {}\n", i, argument.output, typeText(argument));
    outputs.push_back({{"arg", i},
                       {"file", argument.output},
                       {"descr", argument.descr},
                       {"shape", argument.shape}});
  }
  if (options.checks)
    text += fmt::format("checks {}: nothing found\n", fmt::join(checkNames(options.checks), ", "));
  if (!options.json)
    return print(options.counters == "-" ? stderr : stdout, text);
  Json json = {{"kernel", kernel.name},
               {"grid", options.grid},
               {"block", options.block},
               {"launches", options.repeat},
               {"warp_instructions", results.warpInstructions},
               {"ms", results.ms},
               {"outputs", outputs}};
  if (options.checks)
    json["checks"] = {{"enabled", checkNames(options.checks)}, {"findings", results.findings}};
  if (error)
    json["error"] = error->message;
  print(stdout, json.dump(2) + "\n");
}

/// Can every file be written? Asked before the kernel runs, so that a folder that is not there costs
/// nobody a run, nor leaves half of the files.
static Status checkFiles(const Options &options) {
  std::vector<std::string> files;
  for (const Argument &argument : options.arguments)
    files.push_back(argument.output);
  files.push_back(options.counters == "-" ? "" : options.counters);
  for (const std::string &file : files)
    if (!file.empty())
      if (Result<OutputFile> trial = OutputFile::create(file); !trial.ok())
        return trial.takeError();
  return {};
}

static Status writeFiles(const Options &options, const RunResults &results) {
  for (const Argument &argument : options.arguments)
    if (!argument.output.empty())
      if (Status status = writeNpy(argument.output, argument.descr, argument.shape, argument.data);
          !status.ok())
        return status;
  if (options.counters == "-")
    print(stdout, results.counters);
  else if (!options.counters.empty())
    return writeFile(options.counters, asBytes(results.counters));
  return {};
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

static Result<const KernelInfo *> chooseKernel(const Options &options,
                                               const std::vector<KernelInfo> &kernels) {
  if (kernels.empty())
    return fileError(options.file, "holds no kernel (.entry)");
  if (options.kernel.empty() && kernels.size() == 1)
    return &kernels[0];
  if (options.kernel.empty())
    return fileError(options.file, "has {} kernels, choose one with --kernel: {}", kernels.size(),
                     kernelNames(kernels));
  auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KernelInfo &kernel) {
    return kernel.name == options.kernel;
  });
  if (found == kernels.end())
    return fileError(options.file, "there is no kernel \"{:.80}\", there are: {}", options.kernel,
                     kernelNames(kernels));
  return &*found;
}

static int run(Options &options) {
  Result<Emulator> emulator = Emulator::load();
  if (!emulator.ok())
    return fail(tool, emulator.error());
  Run run(*emulator, options);
  Result<std::vector<KernelInfo>> kernels = run.open();
  if (!kernels.ok())
    return fail(tool, kernels.error());
  if (options.list) {
    printList(options, *kernels);
    return 0;
  }
  Result<const KernelInfo *> kernel = chooseKernel(options, *kernels);
  if (!kernel.ok())
    return fail(tool, kernel.error());
  print(stderr, run.warnings((*kernel)->name));
  for (Argument &argument : options.arguments)
    if (Status status = readArgument(argument); !status.ok())
      return fail(tool, status.error());
  if (Status status = checkFiles(options); !status.ok())
    return fail(tool, status.error());

  RunResults results;
  Status status = run.launch(**kernel, options.arguments, results);
  for (const std::string &finding : results.findings)
    print(stderr, finding + "\n");
  if (status.ok() && !results.findings.empty())
    status = inputError("the checks found faults in kernel \"{}\": {}; nothing is written",
                        (*kernel)->name, results.findings.size());
  if (!status.ok()) {
    if (options.json)
      printRun(options, **kernel, results, &status.error());
    return fail(tool, status.error());
  }
  if (Status written = writeFiles(options, results); !written.ok())
    return fail(tool, written.error());
  printRun(options, **kernel, results);
  return 0;
}

static int run(const std::vector<std::string> &arguments) {
  Result<Options> options = parseOptions(arguments);
  if (!options.ok()) {
    int code = fail(tool, options.error());
    if (code == 2)
      print(stderr, usage);
    return code;
  }
  if (options->help || options->version) {
    print(stdout, options->help ? usage : fmt::format("{} {}\n", tool, PLANC_VERSION));
    return 0;
  }
  try {
    return run(*options);
  } catch (const std::bad_alloc &) {
    return fail(tool, {"out of memory", ErrorKind::Memory});
  }
}

int main(int argc, char **argv) { return finish(tool, run({argv + 1, argv + argc})); }
