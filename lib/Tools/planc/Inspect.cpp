//===- Inspect.cpp - planc inspect ------------------------------------------===//
//
// Prints what is in a bundle: for people, or with --json for programs. It has no options of MLIR's,
// so it reads its own.
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/planc/Inspect.h"
#include "lib/Bundle/Inspect.h"

#include <iostream>
#include <string_view>

static int usageError(const std::string &message) {
  std::cerr << "planc: error: " << message << "\nusage: planc inspect OUT.bundle [--json]\n";
  return 2;
}

int inspectMain(int argc, char **argv) {
  std::string path;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--json")
      json = true;
    else if (argument.starts_with("-"))
      return usageError("unknown option \"" + std::string(argument) + "\"");
    else if (!path.empty())
      return usageError("more than one bundle is given");
    else
      path = argument;
  }
  if (path.empty())
    return usageError("no bundle is given");
  auto bundle = planc::bundle::Bundle::open(path);
  if (!bundle.ok()) {
    std::cerr << bundle.error().text() << '\n';
    return 1;
  }
  if (json)
    std::cout << planc::bundle::inspectJson(*bundle).dump(2) << '\n';
  else
    std::cout << planc::bundle::inspectText(*bundle);
  return 0;
}
