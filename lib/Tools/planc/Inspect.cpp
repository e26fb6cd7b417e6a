//===- Inspect.cpp - planc inspect ------------------------------------------===//
//
// Prints what is in a bundle: for people, or with --json for programs; with --explain how its kernels
// round. It has no options of MLIR's, so it reads its own.
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/planc/Inspect.h"
#include "lib/Bundle/Inspect.h"

#include "lib/Tools/CommandLine.h"

using namespace planc;
using namespace planc::tools;

static constexpr const char *tool = "planc inspect";

static const char *const usage = "usage: planc inspect OUT.bundle [--json]\n"
                                 "       planc inspect --explain OUT.bundle [KERNEL]\n";

namespace {
struct Options {
  std::string bundle, kernel;
  bool json = false, explain = false, help = false;
};
} // namespace

static constexpr Option<Options> table[] = {
    {"--json", nullptr, &Options::json},
    {"--explain", nullptr, &Options::explain},
    {"--help", nullptr, &Options::help},
};

static Status takeWord(const std::string &word, Options &options) {
  if (options.bundle.empty())
    options.bundle = word;
  else if (options.kernel.empty())
    options.kernel = word;
  else
    return usageError("\"{:.40}\" is one word too many", word);
  return {};
}

static Status checkOptions(const Options &options) {
  if (options.bundle.empty())
    return usageError("no bundle is given");
  if (!options.kernel.empty() && !options.explain)
    return usageError("more than one bundle is given");
  if (options.json && options.explain)
    return usageError("--explain has no JSON form: the numbers are in --json's \"arithmetic\"");
  return {};
}

static int run(const Options &options) {
  Result<bundle::Bundle> opened = bundle::Bundle::open(options.bundle);
  if (!opened.ok())
    return fail(tool, opened.error());
  if (options.explain) {
    Result<std::string> text = bundle::explainText(*opened, options.kernel);
    if (!text.ok())
      return fail(tool, text.error());
    print(stdout, *text);
  } else {
    print(stdout, options.json ? bundle::inspectJson(*opened).dump(2) + "\n"
                               : bundle::inspectText(*opened));
  }
  return 0;
}

int inspectMain(int argc, char **argv) {
  Options options;
  Status status = parseArguments<Options>({argv + 1, argv + argc}, table, takeWord, options);
  if (status.ok() && options.help) {
    print(stdout, usage);
    return finish(tool, 0);
  }
  if (status.ok())
    status = checkOptions(options);
  if (!status.ok()) {
    int code = fail(tool, status.error());
    print(stderr, usage);
    return code;
  }
  return finish(tool, run(options));
}
