//===- Problems.h - the errors of the files that are read -----------------===//
//
// Private to lib/Import. An error's location is the file and the path inside it, as one name:
// `plan.json#/nodes/12`. It goes through MLIR's diagnostics like the errors of all later stages.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_IMPORT_PROBLEMS_H
#define PLANC_LIB_IMPORT_PROBLEMS_H

#include "lib/Import/Json.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include <optional>

namespace planc {

/// `file#path`, as the location of a diagnostic or an op.
mlir::Location locationIn(mlir::MLIRContext *context, llvm::StringRef file, llvm::StringRef path);

/// "'a', 'b' or 'c'"
std::string alternatives(llvm::ArrayRef<llvm::StringRef> words);

/// What to offer for an unknown word: the one that was probably meant, or all there are.
std::string suggestion(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

/// The errors of one file.
class Problems {
public:
  Problems(mlir::MLIRContext *context, std::string file)
      : context(context), fileName(std::move(file)) {}

  mlir::MLIRContext *getContext() const { return context; }
  llvm::StringRef file() const { return fileName; }

  void error(const JsonValue &at, const llvm::Twine &message) { errorAt(at.path(), message); }
  void errorAt(llvm::StringRef path, const llvm::Twine &message);
  /// With a second place that is party to it.
  void errorAt(llvm::StringRef path, const llvm::Twine &message, mlir::Location other,
               const llvm::Twine &note);
  void error(const JsonValue &at, const llvm::Twine &message, const JsonValue &other,
             const llvm::Twine &note) {
    errorAt(at.path(), message, location(other), note);
  }

  mlir::Location location(const JsonValue &at) const {
    return locationIn(context, fileName, at.path());
  }

  bool any() const { return count != 0; }
  /// True when further errors are only counted; their messages need not be made.
  bool full() const { return count >= kShown; }
  /// Says how many errors were held back, if any.
  void finish();

private:
  /// A file that is wrong everywhere is told so often enough.
  static constexpr unsigned kShown = 100;

  mlir::MLIRContext *context;
  std::string fileName;
  unsigned count = 0;
};

/// Reads the members of an object by key: a missing key, a value of another type and a key that
/// nobody asked for are errors.
class ObjectReader {
public:
  /// `who` begins every message, e.g. `node "l0.gdn.add" (group 8, layer 0): `.
  ObjectReader(Problems &problems, const JsonValue &value, std::string who = {});

  bool valid() const { return isObject; }
  void setWho(std::string text) { who = std::move(text); }

  /// The member, or null after an error.
  const JsonValue *require(llvm::StringRef key);
  /// The member, or null.
  const JsonValue *optional(llvm::StringRef key);

  std::optional<std::string> string(llvm::StringRef key);
  /// Empty for null.
  std::optional<std::string> stringOrNull(llvm::StringRef key);
  std::optional<bool> boolean(llvm::StringRef key);
  std::optional<int64_t> integer(llvm::StringRef key, int64_t min, int64_t max);
  /// -1 for null.
  std::optional<int64_t> integerOrNull(llvm::StringRef key, int64_t min, int64_t max);
  const JsonValue *array(llvm::StringRef key);
  const JsonValue *object(llvm::StringRef key);

  /// An error about a member.
  void error(llvm::StringRef key, const llvm::Twine &message);
  /// Reports keys that nobody asked for.
  void finish();

private:
  std::optional<int64_t> toInteger(const JsonValue &value, llvm::StringRef key, int64_t min,
                                   int64_t max);
  void mismatch(const JsonValue &value, llvm::StringRef key, const llvm::Twine &expected);

  Problems &problems;
  const JsonValue &value;
  std::string who;
  bool isObject;
  llvm::SmallVector<llvm::StringRef> known;
};

} // namespace planc

#endif // PLANC_LIB_IMPORT_PROBLEMS_H
