//===- Options.cpp - plan-run's command line -------------------------------===//
//
// The table of options, and what makes no sense together.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-run/Options.h"

#include "lib/Tools/CommandLine.h"

#include <algorithm>

using namespace planc;
using namespace planc::tools;
using namespace planrun;

const char *const planrun::usage =
    R"(usage: plan-run M.bundle --weights DIR|FILE.safetensors|random[:SEED] --tokens 5,17,3[;9,2,4]
  --weights W        a checkpoint folder or file, or random weights
  --tokens LISTS     token ids to feed, one list a sequence, lists separated by ';'
  --generate N       then generate N tokens a sequence, each the argmax
  --device D         emulator (default), cuda, cuda:N, or reference
  --program NAME     of a bundle with several programs; default: the first
  --logits F.npy     write the logits as float32 [steps, lists, vocabulary]
  --dump EDGE,..     write stored edges as .npy [steps, lists, rows, dim]; needs --dump-dir
  --dump-dir DIR     where to write them
  --compare reference  judge every launch by the reference, on the device's own inputs
  --threads N        of the emulator or the reference; default: one a core
  --check LIST       mem, init, race, sync or all (these), reads: what the emulator checks in every launch
  --schedule-seed S  permutes the order in which the emulator runs CTAs and warps
  --counters F.json  count what the emulator does, write it, and print what the kernels cost
  --trace F.json     write when each group ran, for ui.perfetto.dev or chrome://tracing
  --verbose          say on stderr what planrt chooses: the device, the image of every kernel
  --json             print one JSON object
       plan-run --counters-diff A.json B.json [--json]
  --counters-diff    compare two files of --counters, launch by launch; exit code 1 if they differ
  --help, --version
exit code: 0 ok, 1 an input is wrong or a check failed, 2 usage, 3 the environment is wrong
)";

static Status parseTokens(std::string_view text, std::vector<std::vector<int64_t>> &lists) {
  for (std::string_view list : split(text, ';')) {
    std::vector<int64_t> &ids = lists.emplace_back();
    for (std::string_view id : split(list, ',')) {
      id.remove_prefix(std::min(id.find_first_not_of(' '), id.size()));
      std::optional<int64_t> value = number<int64_t>(id);
      if (!value)
        return usageError("--tokens has \"{:.40}\" where a token id is expected", id);
      ids.push_back(*value);
    }
  }
  for (size_t i = 1; i < lists.size(); ++i)
    if (lists[i].size() != lists[0].size())
      return inputError("--tokens has lists of {} and of {} tokens, expected equal lengths",
                        lists[0].size(), lists[i].size());
  return {};
}

static Status parseWeights(const std::string &text, Options &options) {
  if (text == "random") {
    options.seed = 0;
  } else if (text.starts_with("random:")) {
    options.seed = number<uint64_t>(std::string_view(text).substr(7));
    if (!options.seed)
      return usageError("--weights has the seed \"{:.40}\", expected a number", text.substr(7));
  } else {
    options.weights = text;
  }
  return {};
}

static Status parseDump(const std::string &text, Options &options) {
  for (std::string_view edge : split(text, ','))
    options.dump.emplace_back(edge);
  if (std::find(options.dump.begin(), options.dump.end(), "") != options.dump.end())
    return usageError("--dump names no edge");
  return {};
}

template <std::string Options::*Member>
static Status setText(const std::string &value, Options &options) {
  options.*Member = value;
  return {};
}

static constexpr tools::Option<Options> table[] = {
    {"--weights", parseWeights},
    {"--tokens", [](const std::string &v, Options &o) { return parseTokens(v, o.tokens); }},
    {"--generate",
     [](const std::string &v, Options &o) { return takeNumber("--generate", v, o.generate); }},
    {"--device", setText<&Options::device>},
    {"--program", setText<&Options::program>},
    {"--logits", setText<&Options::logits>},
    {"--dump", parseDump},
    {"--dump-dir", setText<&Options::dumpDir>},
    {"--compare",
     [](const std::string &v, Options &o) -> Status {
       o.compare = v == "reference";
       return o.compare ? Status() : usageError("--compare takes reference, not \"{:.40}\"", v);
     }},
    {"--threads",
     [](const std::string &v, Options &o) { return takeNumber("--threads", v, o.threads); }},
    {"--check",
     [](const std::string &v, Options &o) -> Status {
       Result<uint32_t> checks = parseChecks(v);
       if (!checks.ok())
         return checks.takeError();
       o.checks = *checks;
       return {};
     }},
    {"--schedule-seed",
     [](const std::string &v, Options &o) {
       return takeNumber("--schedule-seed", v, o.scheduleSeed);
     }},
    {"--counters", setText<&Options::counters>},
    {"--trace", setText<&Options::trace>},
    {"--counters-diff", nullptr, &Options::countersDiff},
    {"--verbose", nullptr, &Options::verbose},
    {"--json", nullptr, &Options::json},
    {"--help", nullptr, &Options::help},
    {"--version", nullptr, &Options::version},
};

/// What must be there, and what makes no sense together.
static Status checkOptions(const Options &options) {
  if (options.countersDiff)
    return {};
  if (options.bundle.empty())
    return usageError("no bundle is named");
  if (options.weights.empty() && !options.seed)
    return usageError("--weights is missing");
  if (options.tokens.empty())
    return usageError("--tokens is missing");
  if (options.dump.empty() != options.dumpDir.empty())
    return usageError("--dump and --dump-dir go together");
  if (options.device == "reference" &&
      (options.checks || options.scheduleSeed || !options.counters.empty()))
    return usageError("--check, --schedule-seed and --counters are the emulator's, the reference "
                      "runs no kernels");
  if (!options.trace.empty() && options.device == "reference")
    return usageError("--trace shows when a device ran its kernels, the reference runs none");
  if (options.verbose && options.device == "reference")
    return usageError("--verbose says what planrt chooses, the reference does without it");
  if (options.compare && options.device == "reference")
    return usageError("--compare reference with --device reference compares it with itself");
  return {};
}

Result<Options> planrun::parseOptions(const std::vector<std::string> &arguments) {
  Options options;
  std::vector<std::string> &files = options.counterFiles;
  auto takeFile = [](const std::string &word, Options &o) -> Status {
    o.counterFiles.push_back(word);
    return {};
  };
  if (Status status = parseArguments<Options>(arguments, table, takeFile, options); !status.ok())
    return status.takeError();
  if (options.countersDiff && files.size() != 2)
    return usageError("--counters-diff compares two files, {} are named", files.size());
  if (!options.countersDiff && !files.empty()) {
    if (files.size() > 1)
      return usageError("two bundles are named, \"{:.200}\" and \"{:.200}\"", files[0], files[1]);
    options.bundle = files[0];
  }
  if (!options.help && !options.version)
    if (Status status = checkOptions(options); !status.ok())
      return status.takeError();
  return options;
}
