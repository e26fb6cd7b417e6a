//===- Error.h - errors as values for the code without MLIR ---------------===//
//
// The bundle, the runtime and the file readers report errors as values: a message that names the
// culprit, and a kind that a caller can turn into an exit or status code. `Result<T>` is the value
// or the error. Exceptions stay inside a function, they never cross one of these interfaces.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_ERROR_H
#define PLANC_LIB_SUPPORT_ERROR_H

#include <fmt/format.h>

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace planc {

/// Who can do something about an error; tools map it to an exit code, planrt to a status.
enum class ErrorKind {
  Input,       // a file or an argument's content is wrong
  Usage,       // a call or an option that makes no sense
  Weights,     // tensors are missing or have another dtype or shape
  Environment, // no such device, a library is missing
  Memory,      // the host or the device has no more of it
  Device,      // the device refused or failed a call
  DeviceLost,  // the device's context is gone
  Cancelled,   // somebody wanted it to end
  Exhausted,   // a session has no more sequences, slots or blocks
};

/// What was found and what was expected, without final period; `where` is the file (or the like) at
/// fault, and may be empty.
struct [[nodiscard]] Error {
  std::string message;
  ErrorKind kind = ErrorKind::Input;
  std::string where = {};

  /// "m.bundle: error: section 3 ...", as tools print it.
  std::string text() const {
    return where.empty() ? "error: " + message : where + ": error: " + message;
  }
};

/// Nothing, or why it failed.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}
  bool ok() const { return !failure; }
  const Error &error() const { return *failure; }
  Error takeError() { return std::move(*failure); }

private:
  std::optional<Error> failure;
};

/// A value, or why there is none.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::move(value)) {}
  Result(Error error) : state(std::move(error)) {}
  bool ok() const { return state.index() == 0; }
  T &operator*() { return std::get<0>(state); }
  const T &operator*() const { return std::get<0>(state); }
  T *operator->() { return &std::get<0>(state); }
  const T *operator->() const { return &std::get<0>(state); }
  const Error &error() const { return std::get<1>(state); }
  Error takeError() { return std::move(std::get<1>(state)); }

private:
  std::variant<T, Error> state;
};

/// An error about the content of an input, formatted.
template <class... Args> Error inputError(fmt::format_string<Args...> text, Args &&...args) {
  return {fmt::format(text, std::forward<Args>(args)...), ErrorKind::Input};
}

/// An error about the content of a file, formatted.
template <class... Args>
Error fileError(std::string file, fmt::format_string<Args...> text, Args &&...args) {
  return {fmt::format(text, std::forward<Args>(args)...), ErrorKind::Input, std::move(file)};
}

/// An error of a given kind, formatted.
template <class... Args>
Error makeError(ErrorKind kind, fmt::format_string<Args...> text, Args &&...args) {
  return {fmt::format(text, std::forward<Args>(args)...), kind};
}

} // namespace planc

#endif // PLANC_LIB_SUPPORT_ERROR_H
