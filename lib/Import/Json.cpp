//===- Json.cpp - a JSON file as values that know their place -------------===//
//
// nlohmann's SAX parser finds the tokens; what it lets pass is refused here: duplicate keys, deep
// nesting, a NUL byte, a byte order mark, integers that leave int64.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <nlohmann/json.hpp>

using namespace planc;

/// Deeper than any plan or config, shallow enough for every recursion over values.
static constexpr size_t kMaxDepth = 64;

std::string planc::inQuotes(llvm::StringRef text) {
  constexpr size_t limit = 60;
  std::string shown = "\"";
  for (unsigned char c : text.take_front(limit)) {
    if (c < 0x20 || c == 0x7f)
      shown += "\\x" + llvm::toHex(llvm::StringRef(reinterpret_cast<char *>(&c), 1), true);
    else
      shown += char(c);
  }
  if (text.size() > limit) {
    // Do not cut a character of several bytes in half.
    while (shown.size() > 1 && (static_cast<unsigned char>(shown.back()) & 0xc0) == 0x80)
      shown.pop_back();
    if (static_cast<unsigned char>(shown.back()) >= 0xc0)
      shown.pop_back();
    shown += "...";
  }
  return shown + '"';
}

const JsonValue *JsonValue::find(llvm::StringRef key) const {
  for (auto [name, value] : llvm::zip(keys, items))
    if (name == key)
      return value;
  return nullptr;
}

/// A key as a segment of a JSON pointer.
static std::string segment(llvm::StringRef key) {
  std::string text;
  for (char c : key.take_front(60)) {
    if (c == '~')
      text += "~0";
    else if (c == '/')
      text += "~1";
    else
      text += llvm::isPrint(c) ? c : '?';
  }
  return text;
}

std::string JsonValue::path() const {
  if (!parent)
    return {};
  std::string last =
      parent->kind == JsonKind::Object ? segment(parent->keys[position]) : std::to_string(position);
  return parent->path() + "/" + last;
}

std::string JsonValue::describe() const {
  switch (kind) {
  case JsonKind::Null:
    return "null";
  case JsonKind::Bool:
    return boolean ? "true" : "false";
  case JsonKind::Integer:
    return std::to_string(integer);
  case JsonKind::Real:
    return text.size() <= 40 ? text : text.substr(0, 40) + "...";
  case JsonKind::String:
    return inQuotes(text);
  case JsonKind::Array:
    return items.empty() ? "an empty array" : "an array";
  case JsonKind::Object:
    return "an object";
  }
  return {};
}

std::string JsonValue::dump() const {
  auto join = [&](char open, char close) {
    std::string all(1, open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i)
        all += ',';
      if (!keys.empty())
        all += nlohmann::json(keys[i]).dump() + ":";
      all += items[i]->dump();
    }
    return all + close;
  };
  switch (kind) {
  case JsonKind::String:
    return nlohmann::json(text).dump();
  case JsonKind::Array:
    return join('[', ']');
  case JsonKind::Object:
    return join('{', '}');
  case JsonKind::Real:
    return text;
  default:
    return describe();
  }
}

namespace planc {
/// Receives tokens and builds values; `open` holds the containers that are not closed yet.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  JsonBuilder(JsonFile &file, llvm::StringRef text) : file(file), text(text) {}

  llvm::SmallVector<JsonProblem> problems;

  bool null() override {
    add(JsonKind::Null);
    return true;
  }
  bool boolean(bool value) override {
    add(JsonKind::Bool).boolean = value;
    return true;
  }
  bool number_integer(int64_t value) override {
    add(JsonKind::Integer).integer = value;
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (value > uint64_t(INT64_MAX))
      return number_float(double(value), std::to_string(value));
    return number_integer(int64_t(value));
  }
  bool number_float(double value, const std::string &spelling) override {
    JsonValue &real = add(JsonKind::Real);
    real.real = value;
    real.text = spelling;
    // An integer too large for 64 bits arrives as a rounded double.
    if (llvm::StringRef(spelling).find_first_of(".eE") == llvm::StringRef::npos)
      problems.push_back({real.path(), "integer " + real.describe() + " does not fit 64 bits"});
    return true;
  }
  bool string(std::string &value) override {
    add(JsonKind::String).text = std::move(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t &) override { return false; }
  bool start_object(size_t) override { return push(JsonKind::Object); }
  bool start_array(size_t) override { return push(JsonKind::Array); }
  bool end_object() override { return pop(); }
  bool end_array() override { return pop(); }

  bool key(std::string &name) override {
    JsonValue &object = *open.back();
    if (!names.back().insert(name).second)
      problems.push_back({object.path(), "key " + inQuotes(name) + " occurs twice"});
    object.keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(size_t position, const std::string &token,
                   const nlohmann::json::exception &error) override {
    // The position counts the bytes read, so the byte at fault is the one before.
    size_t byte = position ? position - 1 : 0;
    llvm::StringRef before = text.take_front(byte);
    std::string where = "at byte " + std::to_string(byte) + " (line " +
                        std::to_string(before.count('\n') + 1) + ", column " +
                        std::to_string(byte - (before.rfind('\n') + 1) + 1) + ")";
    std::string found = byte >= text.size() ? "the file ends too early"
                        : error.id == 406   ? "a number that does not fit"
                                            : "unexpected " + tail(token);
    problems.push_back(
        {open.empty() ? "" : open.back()->path(), "invalid JSON " + where + ": " + found});
    return false;
  }

private:
  /// The end of the token that was read last: the byte at fault is there, the rest may be long.
  static std::string tail(llvm::StringRef token) {
    token = token.take_back(24);
    std::string printable;
    for (char c : token)
      printable += llvm::isPrint(c) ? c : '?';
    return inQuotes(printable);
  }

  /// Appends a value to the innermost container.
  JsonValue &add(JsonKind kind) {
    JsonValue &value = file.values.emplace_back();
    value.kind = kind;
    if (!open.empty()) {
      value.parent = open.back();
      value.position = open.back()->items.size();
      open.back()->items.push_back(&value);
    }
    return value;
  }

  bool push(JsonKind kind) {
    JsonValue &value = add(kind);
    if (open.size() >= kMaxDepth) {
      problems.push_back(
          {"", "values are nested deeper than " + std::to_string(kMaxDepth) + " levels"});
      return false;
    }
    open.push_back(&value);
    names.emplace_back();
    return true;
  }

  bool pop() {
    open.pop_back();
    names.pop_back();
    return true;
  }

  JsonFile &file;
  llvm::StringRef text;
  std::vector<JsonValue *> open;
  std::vector<llvm::StringSet<>> names;
};
} // namespace planc

llvm::SmallVector<JsonProblem> JsonFile::parse(llvm::StringRef text) {
  values.clear();
  // The lexer takes a NUL byte for the end of the input and skips a byte order mark.
  if (size_t nul = text.find('\0'); nul != llvm::StringRef::npos)
    return {{"", "invalid JSON at byte " + std::to_string(nul) + ": a NUL byte"}};
  if (text.starts_with("\xef\xbb\xbf"))
    return {{"", "invalid JSON at byte 0: a byte order mark"}};
  JsonBuilder builder(*this, text);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (values.empty() && builder.problems.empty())
    builder.problems.push_back({"", "invalid JSON: the file is empty"});
  return std::move(builder.problems);
}
