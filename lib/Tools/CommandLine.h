//===- CommandLine.h - what the small tools' command lines have in common --===//
//
// For the tools that do not link LLVM: `--name value` or `--name=value`, a table of options whose
// rows say how to take a value, one meaning for every exit code.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_TOOLS_COMMANDLINE_H
#define PLANC_LIB_TOOLS_COMMANDLINE_H

#include "lib/Support/Error.h"

#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planc::tools {

template <class... Args> Error usageError(fmt::format_string<Args...> text, Args &&...args) {
  return makeError(ErrorKind::Usage, text, std::forward<Args>(args)...);
}

/// A whole number that fits, without anything before or after it, or nothing.
template <class T> std::optional<T> number(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// The value of an option that takes one number.
template <class T> Status takeNumber(const char *name, std::string_view text, T &value) {
  std::optional<T> parsed = number<T>(text);
  if (!parsed && std::is_integral_v<T>)
    return usageError("{} has \"{:.40}\", expected a number from {} to {}", name, text,
                      std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  if (!parsed)
    return usageError("{} has \"{:.40}\", expected a number", name, text);
  value = *parsed;
  return {};
}

std::vector<std::string_view> split(std::string_view text, char separator);

/// A union of planemu_check from "mem,init,race,sync,reads"; "all" is the first four.
Result<uint32_t> parseChecks(std::string_view text);
/// The names of those checks, in that order.
std::vector<std::string> checkNames(uint32_t checks);

/// One argument as it was given: an option's row and its value ("" for a flag), or a plain word.
struct Given {
  size_t option; // npos: none
  std::string value;
};

/// What the reader has to know of an option.
struct OptionForm {
  std::string_view name;
  bool isFlag = false;
  bool repeats = false;
};

Result<std::vector<Given>> readArguments(const std::vector<std::string> &arguments,
                                         std::span<const OptionForm> forms);

/// A row of a tool's table. `set` is not called for a flag with `flag`.
template <class Options> struct Option {
  const char *name;
  Status (*set)(const std::string &value, Options &options) = nullptr;
  bool Options::*flag = nullptr;
  bool repeats = false;
};

/// Gives every argument to its row, and plain words to `word`.
template <class Options, size_t Count>
Status
parseArguments(const std::vector<std::string> &arguments, const Option<Options> (&table)[Count],
               Status (*word)(const std::string &value, Options &options), Options &options) {
  std::vector<OptionForm> forms;
  for (const Option<Options> &row : table)
    forms.push_back({row.name, row.flag != nullptr, row.repeats});
  Result<std::vector<Given>> given = readArguments(arguments, forms);
  if (!given.ok())
    return given.takeError();
  for (const Given &argument : *given) {
    Status status;
    if (argument.option == std::string::npos)
      status = word(argument.value, options);
    else if (table[argument.option].flag)
      options.*table[argument.option].flag = true;
    else
      status = table[argument.option].set(argument.value, options);
    if (!status.ok())
      return status;
  }
  return {};
}

void print(std::FILE *file, const std::string &text);

/// Prints the error, with the tool's name where no file is at fault, and gives the exit code.
int fail(const char *tool, const Error &error);

/// What main returns: `code`, unless standard output could not be written.
int finish(const char *tool, int code);

} // namespace planc::tools

#endif // PLANC_LIB_TOOLS_COMMANDLINE_H
