//===- Inspect.cpp - planc inspect ------------------------------------------===//
//
// Prints what is in a bundle: for people, or with --json for programs; with --explain how its kernels
// round. It has no options of MLIR's, so it reads its own.
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/planc/Inspect.h"
#include "lib/Bundle/Inspect.h"

#include <iostream>
#include <string_view>

static int usageError(const std::string &message) {
  std::cerr << "planc: error: " << message
            << "\nusage: planc inspect OUT.bundle [--json]\n"
               "       planc inspect --explain OUT.bundle "
               "[KERNEL]\n";
  return 2;
}

int inspectMain(int argc, char **argv) {
  std::string path, kernel;
  bool json = false, explain = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--json")
      json = true;
    else if (argument == "--explain")
      explain = true;
    else if (argument.starts_with("-"))
      return usageError("unknown option \"" + std::string(argument) + "\"");
    else if (path.empty())
      path = argument;
    else if (explain && kernel.empty())
      kernel = argument;
    else
      return usageError("more than one bundle is given");
  }
  if (path.empty())
    return usageError("no bundle is given");
  if (json && explain)
    return usageError("--explain has no JSON form: the numbers are in --json's \"arithmetic\"");
  auto bundle = planc::bundle::Bundle::open(path);
  if (!bundle.ok()) {
    std::cerr << bundle.error().text() << '\n';
    return 1;
  }
  if (explain) {
    auto text = planc::bundle::explainText(*bundle, kernel);
    if (!text.ok()) {
      std::cerr << text.error().text() << '\n';
      return 1;
    }
    std::cout << *text;
    return 0;
  }
  if (json)
    std::cout << planc::bundle::inspectJson(*bundle).dump(2) << '\n';
  else
    std::cout << planc::bundle::inspectText(*bundle);
  return 0;
}
