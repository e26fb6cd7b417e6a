//===- Options.cpp - plan-emu's command line --------------------------------===//
//
// The table of options, and what makes no sense together.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-emu/Options.h"

#include "lib/Tools/CommandLine.h"

using namespace planc;
using namespace planc::tools;
using namespace planemutool;

const char *const planemutool::usage =
    R"(usage: plan-emu K.ptx [--kernel NAME] --grid X,Y,Z --block X,Y,Z --arg A --arg A ...
       plan-emu K.ptx --list [--json]
  --kernel NAME      which kernel of the file; may be left out if there is one
  --grid X[,Y[,Z]]   CTAs; default 1
  --block X[,Y[,Z]]  threads of a CTA; default 1
  --shared BYTES     dynamic shared memory
  --arg A            the kernel's next argument:
                       in:FILE.npy              a buffer with the file's elements
                       out:DTYPE[SHAPE]:F.npy   a buffer of zeros, written to the file
                       inout:IN.npy:OUT.npy     both
                       value:FILE.npy           the elements themselves, as a struct by value
                       i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64, then :NUMBER
                     DTYPE is one of those or e4m3; bf16 and e4m3 are files of u16 and u8
  --repeat N         launch N times
  --cooperative      a cooperative launch: refused if the CTAs do not fit on the GPU at once
  --target T         the GPU to report: gb10, h200, sm_NN; default: the one the file is for
  --threads N        of the emulator; default: one a core
  --max-steps N      warp instructions a warp may execute before the launch is given up
  --seed S           permutes the order of CTAs and warps
  --check LIST       mem, init, race, sync or all (these), reads; with init an `out` buffer is not cleared
  --counters F.json  write what the launches did; - is the standard output
  --list             print the file's kernels
  --json             print one JSON object
  --help, --version
exit code: 0 ok, 1 an input is wrong, a check or the kernel failed, 2 usage, 3 the environment is wrong
)";

static Status takeExtents(const char *name, std::string_view text,
                          std::array<uint32_t, 3> &extents) {
  std::vector<std::string_view> parts = split(text, ',');
  for (size_t i = 0; i < parts.size(); ++i) {
    std::optional<uint32_t> extent = number<uint32_t>(parts[i]);
    if (parts.size() > 3 || !extent || *extent == 0)
      return usageError("{} has \"{:.40}\", expected one to three numbers above 0", name, text);
    extents[i] = *extent;
  }
  return {};
}

static Status takeChecks(const std::string &text, Options &options) {
  Result<uint32_t> checks = parseChecks(text);
  if (!checks.ok())
    return checks.takeError();
  options.checks = *checks;
  return {};
}

static Status takeArgument(const std::string &text, Options &options) {
  Result<Argument> argument = parseArgument(text, options.arguments.size());
  if (!argument.ok())
    return argument.takeError();
  options.arguments.push_back(std::move(*argument));
  return {};
}

template <auto Member> static Status setText(const std::string &value, Options &options) {
  options.*Member = value;
  return {};
}

static constexpr tools::Option<Options> table[] = {
    {"--kernel", setText<&Options::kernel>},
    {"--grid", [](const std::string &v, Options &o) { return takeExtents("--grid", v, o.grid); }},
    {"--block",
     [](const std::string &v, Options &o) { return takeExtents("--block", v, o.block); }},
    {"--shared",
     [](const std::string &v, Options &o) { return takeNumber("--shared", v, o.sharedBytes); }},
    {"--arg", takeArgument, nullptr, true},
    {"--repeat",
     [](const std::string &v, Options &o) { return takeNumber("--repeat", v, o.repeat); }},
    {"--cooperative", nullptr, &Options::cooperative},
    {"--target", setText<&Options::target>},
    {"--threads",
     [](const std::string &v, Options &o) { return takeNumber("--threads", v, o.threads); }},
    {"--max-steps",
     [](const std::string &v, Options &o) { return takeNumber("--max-steps", v, o.maxSteps); }},
    {"--seed", [](const std::string &v, Options &o) { return takeNumber("--seed", v, o.seed); }},
    {"--check", takeChecks},
    {"--counters", setText<&Options::counters>},
    {"--list", nullptr, &Options::list},
    {"--json", nullptr, &Options::json},
    {"--help", nullptr, &Options::help},
    {"--version", nullptr, &Options::version},
};

/// What must be there, and what makes no sense together.
static Status checkOptions(const Options &options) {
  if (options.file.empty())
    return usageError("no PTX file is named");
  if (options.repeat == 0)
    return usageError("--repeat has 0, expected at least 1");
  if (options.list && !options.arguments.empty())
    return usageError("--list runs nothing, so --arg makes no sense");
  if (options.json && options.counters == "-")
    return usageError("--json and --counters - both want the standard output");
  for (size_t i = 0; i < options.arguments.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (const std::string &file = options.arguments[i].output;
          !file.empty() && file == options.arguments[j].output)
        return usageError("arguments {} and {} are both written to \"{:.200}\"", j, i, file);
  for (size_t i = 0; i < options.arguments.size(); ++i)
    if (!options.counters.empty() && options.counters == options.arguments[i].output)
      return usageError("argument {} and --counters are both written to \"{:.200}\"", i,
                        options.counters);
  return {};
}

Result<Options> planemutool::parseOptions(const std::vector<std::string> &arguments) {
  Options options;
  auto takeFile = [](const std::string &word, Options &o) -> Status {
    if (!o.file.empty())
      return usageError("two PTX files are named, \"{:.200}\" and \"{:.200}\"", o.file, word);
    o.file = word;
    return {};
  };
  if (Status status = parseArguments<Options>(arguments, table, takeFile, options); !status.ok())
    return status.takeError();
  if (!options.help && !options.version)
    if (Status status = checkOptions(options); !status.ok())
      return status.takeError();
  return options;
}
