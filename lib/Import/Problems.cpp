//===- Problems.cpp - the errors of the files that are read ---------------===//

#include "lib/Import/Problems.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"

using namespace planc;
using llvm::StringRef;
using llvm::Twine;

mlir::Location planc::locationIn(mlir::MLIRContext *context, StringRef file, StringRef path) {
  std::string name = file.str();
  if (!path.empty())
    name += "#" + path.str();
  return mlir::FileLineColLoc::get(context, name, 0, 0);
}

std::string planc::alternatives(llvm::ArrayRef<StringRef> words) {
  std::string text;
  for (auto [i, word] : llvm::enumerate(words))
    text += (i == 0 ? "'" : i + 1 == words.size() ? " or '" : ", '") + word.str() + "'";
  return text;
}

std::string planc::suggestion(StringRef word, llvm::ArrayRef<StringRef> known) {
  StringRef best;
  unsigned distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (StringRef candidate : known)
    if (unsigned d = word.take_front(64).edit_distance(candidate, true, distance); d < distance) {
      best = candidate;
      distance = d;
    }
  if (!best.empty())
    return "did you mean '" + best.str() + "'?";
  return "expected " + alternatives(known);
}

void Problems::errorAt(StringRef path, const Twine &message) {
  if (++count <= kShown)
    mlir::emitError(locationIn(context, fileName, path)) << message;
}

void Problems::errorAt(StringRef path, const Twine &message, mlir::Location other,
                       const Twine &note) {
  if (++count > kShown)
    return;
  mlir::InFlightDiagnostic diag = mlir::emitError(locationIn(context, fileName, path)) << message;
  diag.attachNote(other) << note;
}

void Problems::finish() {
  if (count > kShown)
    mlir::emitError(locationIn(context, fileName, ""))
        << "and " << count - kShown << " more errors";
}

ObjectReader::ObjectReader(Problems &problems, const JsonValue &value, std::string who)
    : problems(problems), value(value), who(std::move(who)),
      isObject(value.kind == JsonKind::Object) {
  if (!isObject)
    problems.error(value, this->who + "expected an object, found " + value.describe());
}

const JsonValue *ObjectReader::optional(StringRef key) {
  known.push_back(key);
  return value.find(key);
}

const JsonValue *ObjectReader::require(StringRef key) {
  const JsonValue *member = optional(key);
  if (!member && isObject)
    problems.error(value, who + "key '" + key + "' is missing");
  return member;
}

void ObjectReader::mismatch(const JsonValue &found, StringRef key, const Twine &expected) {
  problems.error(found, who + "'" + key + "' is " + found.describe() + ", expected " + expected);
}

std::optional<std::string> ObjectReader::string(StringRef key) {
  const JsonValue *member = require(key);
  if (!member)
    return std::nullopt;
  if (member->kind == JsonKind::String)
    return member->text;
  mismatch(*member, key, "a string");
  return std::nullopt;
}

std::optional<std::string> ObjectReader::stringOrNull(StringRef key) {
  const JsonValue *member = require(key);
  if (!member)
    return std::nullopt;
  if (member->kind == JsonKind::Null)
    return std::string();
  if (member->kind == JsonKind::String && !member->text.empty())
    return member->text;
  mismatch(*member, key, "a string or null");
  return std::nullopt;
}

std::optional<bool> ObjectReader::boolean(StringRef key) {
  const JsonValue *member = require(key);
  if (!member)
    return std::nullopt;
  if (member->kind == JsonKind::Bool)
    return member->boolean;
  mismatch(*member, key, "true or false");
  return std::nullopt;
}

std::optional<int64_t> ObjectReader::toInteger(const JsonValue &member, StringRef key, int64_t min,
                                               int64_t max) {
  if (member.kind == JsonKind::Integer && member.integer >= min && member.integer <= max)
    return member.integer;
  mismatch(member, key, "an integer from " + Twine(min) + " to " + Twine(max));
  return std::nullopt;
}

std::optional<int64_t> ObjectReader::integer(StringRef key, int64_t min, int64_t max) {
  const JsonValue *member = require(key);
  return member ? toInteger(*member, key, min, max) : std::nullopt;
}

std::optional<int64_t> ObjectReader::integerOrNull(StringRef key, int64_t min, int64_t max) {
  const JsonValue *member = require(key);
  if (!member)
    return std::nullopt;
  return member->kind == JsonKind::Null ? std::optional<int64_t>(-1)
                                        : toInteger(*member, key, min, max);
}

const JsonValue *ObjectReader::array(StringRef key) {
  const JsonValue *member = require(key);
  if (!member || member->kind == JsonKind::Array)
    return member;
  mismatch(*member, key, "an array");
  return nullptr;
}

const JsonValue *ObjectReader::object(StringRef key) {
  const JsonValue *member = require(key);
  if (!member || member->kind == JsonKind::Object)
    return member;
  mismatch(*member, key, "an object");
  return nullptr;
}

void ObjectReader::error(StringRef key, const Twine &message) {
  const JsonValue *member = value.find(key);
  problems.error(member ? *member : value, who + message);
}

void ObjectReader::finish() {
  for (auto [key, member] : llvm::zip(value.keys, value.items))
    if (!llvm::is_contained(known, StringRef(key)))
      problems.error(*member, problems.full() ? ""
                                              : who + "unknown key " + inQuotes(key) + ", " +
                                                    suggestion(key, known));
}
