//===- compile.cpp - the installed compiler library, used by a program ------===//
//
// compile PLAN.json CONFIG.json OUT.bundle, with the initial options.
//
//===----------------------------------------------------------------------===//
#include <planc/Compiler.h>

#include <fstream>
#include <iostream>
#include <sstream>

static planc::Source read(const char *path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return {path, text.str()};
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  planc::Compiler compiler({}, [](const planc::Diagnostic &diagnostic) {
    std::cerr << planc::toText(diagnostic) << '\n';
  });
  std::string bundle;
  planc::Outcome outcome = compiler.compile({read(argv[1])}, read(argv[2]), bundle);
  if (outcome == planc::Outcome::Ok)
    std::ofstream(argv[3], std::ios::binary) << bundle;
  return int(outcome);
}
