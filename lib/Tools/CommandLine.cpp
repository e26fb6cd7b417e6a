//===- CommandLine.cpp - what the small tools' command lines have in common ===//
//
// See CommandLine.h.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/CommandLine.h"

#include "include/planemu/planemu.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace planc;
using namespace planc::tools;

std::vector<std::string_view> tools::split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos)
      return parts;
    text.remove_prefix(at + 1);
  }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static constexpr std::pair<const char *, uint32_t> checks[] = {
    {"mem", PLANEMU_CHECK_MEM},
    {"init", PLANEMU_CHECK_INIT},
    {"race", PLANEMU_CHECK_RACE},
    {"sync", PLANEMU_CHECK_SYNC},
    {"reads", PLANEMU_CHECK_INIT | PLANEMU_CHECK_READS}};

Result<uint32_t> tools::parseChecks(std::string_view text) {
  uint32_t chosen = 0;
  for (std::string_view word : split(text, ',')) {
    if (word == "all") { // that correct code of any compiler passes
      chosen |= PLANEMU_CHECK_MEM | PLANEMU_CHECK_INIT | PLANEMU_CHECK_RACE | PLANEMU_CHECK_SYNC;
      continue;
    }
    auto row = std::find_if(std::begin(checks), std::end(checks),
                            [&](const auto &check) { return check.first == word; });
    if (row == std::end(checks))
      return usageError(
          "there is no check \"{:.40}\", there are mem, init, race, sync, reads and all", word);
    chosen |= row->second;
  }
  return chosen;
}

std::vector<std::string> tools::checkNames(uint32_t chosen) {
  std::vector<std::string> names;
  for (auto [name, bits] : checks)
    if ((chosen & bits) == bits)
      names.emplace_back(name);
  return names;
}

//===----------------------------------------------------------------------===//
// Reading arguments
//===----------------------------------------------------------------------===//

Result<std::vector<Given>> tools::readArguments(const std::vector<std::string> &arguments,
                                                std::span<const OptionForm> forms) {
  std::vector<Given> all;
  std::set<std::string> seen;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (!name.starts_with("-")) {
      all.push_back({std::string::npos, name});
      continue;
    }
    std::optional<std::string> value;
    if (size_t at = name.find('='); at != std::string::npos) {
      value = name.substr(at + 1);
      name.resize(at);
    }
    auto form = std::find_if(forms.begin(), forms.end(),
                             [&](const OptionForm &row) { return row.name == name; });
    if (form == forms.end())
      return usageError("there is no option {:.40}", name);
    if (!seen.insert(name).second && !form->repeats)
      return usageError("{:.40} is given twice", name);
    size_t option = size_t(form - forms.begin());
    if (form->isFlag) {
      if (value)
        return usageError("{} takes no value", name);
      all.push_back({option, ""});
      continue;
    }
    if (!value && ++i < arguments.size())
      value = arguments[i];
    if (!value || value->empty())
      return usageError("{} needs a value", name);
    all.push_back({option, *value});
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

/// Of the first write to standard output that failed.
static int outputError = 0;

void tools::print(std::FILE *file, const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), file) < text.size() && file == stdout)
    outputError = outputError ? outputError : errno;
}

int tools::fail(const char *tool, const Error &error) {
  print(stderr, (error.where.empty() ? std::string(tool) + ": " : "") + error.text() + "\n");
  switch (error.kind) {
  case ErrorKind::Usage:
    return 2;
  case ErrorKind::Environment:
  case ErrorKind::Memory:
    return 3;
  default:
    return 1;
  }
}

int tools::finish(const char *tool, int code) {
  if (std::fflush(stdout) != 0 && !outputError)
    outputError = errno;
  if (!outputError)
    return code;
  int failed = fail(tool, makeError(ErrorKind::Environment, "cannot write to standard output: {}",
                                    std::strerror(outputError)));
  return code ? code : failed;
}
