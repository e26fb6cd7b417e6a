//===- Json.h - a JSON file as values that know their place ---------------===//
//
// Private to lib/Import. A plan is refused with all its errors at once, each with the path of the
// value at fault; so values keep a link to their parent, and a path is spelled only when an error
// needs it.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_IMPORT_JSON_H
#define PLANC_LIB_IMPORT_JSON_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace planc {

enum class JsonKind { Null, Bool, Integer, Real, String, Array, Object };

struct JsonValue {
  JsonKind kind = JsonKind::Null;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  /// The string, or how a number is spelled in the file when it is no int64.
  std::string text;
  /// Elements of an array or, beside `keys`, members of an object.
  std::vector<JsonValue *> items;
  std::vector<std::string> keys;
  const JsonValue *parent = nullptr;
  size_t position = 0;

  const JsonValue *find(llvm::StringRef key) const;
  /// JSON pointer from the root, e.g. "/nodes/12/op"; empty for the root.
  std::string path() const;
  /// What it is, for a message: `"abc"`, `12`, `an object`; long values are shortened.
  std::string describe() const;
  /// The value as compact JSON.
  std::string dump() const;
};

struct JsonProblem {
  /// Path of the value the problem is in, or of the container where reading stopped.
  std::string path;
  std::string message;
};

class JsonFile {
public:
  /// Reads `text`. With problems the values may be incomplete.
  llvm::SmallVector<JsonProblem> parse(llvm::StringRef text);
  const JsonValue &root() const { return values.front(); }

private:
  friend class JsonBuilder;
  std::deque<JsonValue> values; // addresses stay valid
};

/// `text` in double quotes, safe to print and short.
std::string inQuotes(llvm::StringRef text);

} // namespace planc

#endif // PLANC_LIB_IMPORT_JSON_H
