//===- plan-run.cpp - run a bundle ------------------------------------------===//
//
// Token ids in, token ids (and logits, edges, a comparison) out. Files are written last, when
// everything has succeeded, each whole or not at all.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Npy.h"
#include "lib/Tools/CommandLine.h"
#include "lib/Tools/plan-run/Counters.h"
#include "lib/Tools/plan-run/Results.h"

#include "include/planrt/planrt.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

using namespace planc;
using namespace planc::tools;
using namespace planrun;

static constexpr const char *tool = "plan-run";

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

/// What each sequence has generated: the argmax of its last given token, and of what followed.
static Json generatedTokens(const Options &options, const Results &results) {
  Json lists = Json::array();
  for (size_t list = 0; list < options.tokens.size(); ++list) {
    Json tokens = Json::array();
    for (size_t step = options.tokens[list].size() - 1; step < results.steps.size(); ++step)
      tokens.push_back(results.steps[step].argmax[list]);
    lists.push_back(std::move(tokens));
  }
  return lists;
}

static Json toJson(const Options &options, const Results &results) {
  Json json = {{"device", results.device}, {"program", results.program}};
  Json steps = Json::array();
  for (const StepResult &step : results.steps)
    steps.push_back({{"tokens", step.tokens}, {"argmax", step.argmax}, {"ms", step.ms}});
  json["steps"] = std::move(steps);
  if (options.generate)
    json["generated"] = generatedTokens(options, results);
  json["memory"] = results.memory;
  if (results.compare)
    json["compare"] = *results.compare;
  if (options.checks)
    json["checks"] = {{"enabled", checkNames(options.checks)}, {"findings", results.findings}};
  return json;
}

static std::string comparisonText(const Json &compare) {
  std::string text;
  for (const Json &edge : compare["edges"])
    text += fmt::format(
        "  {:<32} max abs error {:<10.3g} relative norm {:<10.3g} of the bound {:<8.3g}{}\n",
        edge["edge"].get<std::string>(), edge["max_abs_error"].get<double>(),
        edge["relative_norm"].get<double>(), edge["of_bound"].get<double>(),
        edge["failures"].get<uint64_t>()
            ? fmt::format(" {} of {} outside their bound", edge["failures"].get<uint64_t>(),
                          edge["elements"].get<uint64_t>())
            : "");
  return text;
}

static std::string toText(const Options &options, const Results &results) {
  std::string text;
  for (size_t i = 0; i < results.steps.size(); ++i) {
    const StepResult &step = results.steps[i];
    text += fmt::format("step {}: {} -> {} ({:.1f} ms)\n", i, fmt::join(step.tokens, " "),
                        fmt::join(step.argmax, " "), step.ms);
  }
  if (options.generate)
    for (const Json &list : generatedTokens(options, results))
      text += fmt::format("generated: {}\n", fmt::join(list.get<std::vector<int32_t>>(), ","));
  text += "memory:";
  for (const auto &[what, bytes] : results.memory.items())
    text += fmt::format(" {} {}", what, bytes.get<uint64_t>());
  text += "\n";
  if (results.compare)
    text += "compared with the reference, launch by launch:\n" + comparisonText(*results.compare);
  if (options.checks && results.findings.empty())
    text += fmt::format("checks {}: nothing found\n", fmt::join(checkNames(options.checks), ", "));
  return text;
}

static Status writeFiles(const Options &options, const Results &results, int64_t vocab) {
  int64_t steps = int64_t(results.steps.size()), lists = int64_t(options.tokens.size());
  if (!options.logits.empty()) {
    const int64_t shape[] = {steps, lists, vocab};
    if (Status status =
            writeNpy(options.logits, "<f4", shape, std::as_bytes(std::span(results.logits)));
        !status.ok())
      return status;
  }
  if (!options.counters.empty())
    if (Status status = writeFile(options.counters, asBytes(results.counters)); !status.ok())
      return status;
  if (!options.trace.empty())
    if (Status status = writeFile(options.trace, asBytes(results.trace)); !status.ok())
      return status;
  if (options.dump.empty())
    return {};
  std::error_code error;
  std::filesystem::create_directories(options.dumpDir, error);
  for (const auto &[edge, dump] : results.dumps) {
    std::string name = edge;
    std::replace(name.begin(), name.end(), '/', '_');
    const int64_t shape[] = {steps, lists, dump.rows, dump.dim};
    if (Status status =
            writeNpy(options.dumpDir + "/" + name + ".npy", dump.descr, shape, dump.data);
        !status.ok())
      return status;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// --counters-diff
static int diffCounters(const Options &options) {
  std::vector<LaunchCounters> files[2];
  for (size_t i = 0; i < 2; ++i) {
    Result<std::vector<LaunchCounters>> file = readCounters(options.counterFiles[i]);
    if (!file.ok())
      return fail(tool, file.error());
    files[i] = std::move(*file);
  }
  std::vector<CounterDifference> differences = compareCounters(files[0], files[1]);
  print(stdout,
        options.json ? differenceJson(differences).dump(2) + "\n" : differenceTable(differences));
  return differences.empty() ? 0 : 1;
}

/// What a comparison or a check has found, as errors; gives the exit code.
static int judge(const Results &results) {
  if (!results.passed) {
    const Json &first = (*results.compare)["first"];
    return fail(tool,
                inputError("step {}, group {} ({}), {}: {}", first["step"].get<size_t>(),
                           first["group"].get<uint32_t>(), first["rule"].get<std::string>(),
                           first["nodes"].get<std::string>(), first["text"].get<std::string>()));
  }
  if (!results.findings.empty())
    return fail(tool, inputError("the checks found {} faults", results.findings.size()));
  return 0;
}

static int run(const Options &options) {
  Result<bundle::Bundle> bundle = bundle::Bundle::open(options.bundle);
  if (!bundle.ok())
    return fail(tool, bundle.error());
  Result<const bundle::Program *> program = chooseProgram(*bundle, options);
  if (!program.ok())
    return fail(tool, program.error());
  Results results;
  results.program = (*program)->name;
  Status status = options.device == "reference"
                      ? runOnReference(*bundle, **program, options, results)
                      : runOnDevice(*bundle, **program, options, results);
  for (const std::string &finding : results.findings)
    print(stderr, finding + "\n");
  if (!status.ok())
    return fail(tool, status.error());
  std::string costs;
  if (!options.counters.empty() && !options.json) {
    Result<std::vector<LaunchCounters>> launches =
        parseCounters(results.counters, "the emulator's counters");
    if (!launches.ok())
      return fail(tool, launches.error());
    costs = "what the kernels cost:\n" + costTable(*launches);
  }

  std::string image = results.device["image"].is_string()
                          ? fmt::format(" ({})", results.device["image"].get<std::string>())
                          : "";
  print(stderr, fmt::format("device {}{}, program {}\n", options.device, image, results.program));
  if (Status written = writeFiles(options, results, bundle->manifest().model.vocab); !written.ok())
    return fail(tool, written.error());
  print(stdout, options.json ? toJson(options, results).dump(2) + "\n" : toText(options, results));
  print(stdout, costs);
  return judge(results);
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
    print(stdout, options->help ? usage : fmt::format("plan-run {}\n", planrt_version()));
    return 0;
  }
  try {
    return options->countersDiff ? diffCounters(*options) : run(*options);
  } catch (const std::bad_alloc &) {
    return fail(tool, {"out of memory", ErrorKind::Memory});
  }
}

int main(int argc, char **argv) { return finish(tool, run({argv + 1, argv + argc})); }
