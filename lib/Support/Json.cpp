//===- Json.cpp - a strict JSON parser ------------------------------------===//
//
// A SAX handler over nlohmann's lexer builds the value and refuses what the library lets pass.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Discard.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <vector>

using namespace planc;

namespace {

/// Builds one value. What an open container has so far lies at the end of `values` and `keys`, and
/// moves into the container when that closes: grown in place, a vector of members would be copied,
/// since their keys are constant.
class Builder : public nlohmann::json_sax<Json> {
public:
  Builder(Json &root, unsigned maxDepth) : root(root), maxDepth(maxDepth) {}
  Builder(const Builder &) = delete;
  ~Builder() override {
    for (Json &value : values)
      discard(value);
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override { return add(value); }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return refuse("a binary value"); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }

  bool end_object() override {
    Json::object_t members;
    members.reserve(values.size() - levels.back().value);
    for (size_t value = levels.back().value, key = levels.back().key; key < keys.size();)
      members.emplace_back(std::move(keys[key++]), std::move(values[value++]));
    return close(std::move(members));
  }
  bool end_array() override {
    auto first = values.begin() + ptrdiff_t(levels.back().value);
    return close(Json::array_t(std::move_iterator(first), std::move_iterator(values.end())));
  }

  bool key(string_t &value) override {
    if (occurs(value))
      return refuse(fmt::format("key \"{}\" occurs twice", abbreviate(value)));
    keys.push_back(std::move(value));
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::json::exception &) override {
    // Position counts the bytes read, so the byte at fault is the one before.
    return refuse(fmt::format("not JSON at byte {}", position ? position - 1 : 0));
  }

  std::string problem;

private:
  /// An open container: where in `values` and `keys` its own begin.
  struct Level {
    size_t value, key;
    std::unordered_set<std::string> many; ///< The keys, of an object with `manyKeys` and more.
  };
  static constexpr size_t manyKeys = 32;

  /// Messages name a key, they do not echo a megabyte of it.
  static std::string abbreviate(const std::string &text) {
    return text.size() <= 80 ? text : text.substr(0, 77) + "...";
  }

  bool refuse(std::string what) {
    if (problem.empty())
      problem = std::move(what);
    return false;
  }

  /// Few keys are compared one by one, many go into a set: to hash all would take most of the time.
  bool occurs(const std::string &key) {
    auto first = keys.begin() + ptrdiff_t(levels.back().key);
    if (size_t(keys.end() - first) < manyKeys)
      return std::find(first, keys.end(), key) != keys.end();
    auto &many = levels.back().many;
    if (many.empty())
      many.insert(first, keys.end());
    return !many.insert(key).second;
  }

  template <class T> bool add(T &&value) {
    if (levels.empty())
      root = Json(std::forward<T>(value));
    else
      values.emplace_back(std::forward<T>(value));
    return true;
  }

  bool open() {
    if (levels.size() >= maxDepth)
      return refuse(fmt::format("nested deeper than {} levels", maxDepth));
    levels.push_back({values.size(), keys.size(), {}});
    return true;
  }

  template <class Container> bool close(Container container) {
    values.resize(levels.back().value);
    keys.resize(levels.back().key);
    levels.pop_back();
    return add(std::move(container));
  }

  Json &root;
  unsigned maxDepth;
  std::vector<Json> values;
  std::vector<std::string> keys;
  std::vector<Level> levels;
};

} // namespace

void planc::discard(Json &json) noexcept {
  if (!json.is_structured())
    return;
  for (Json &value : json)
    discard(value);
  json.clear();
}

Result<Json> planc::parseJson(std::string_view text, unsigned maxDepth) {
  // The lexer takes a NUL byte for the end of the input, inside JSON it is legal nowhere.
  if (size_t nul = text.find('\0'); nul != std::string_view::npos)
    return inputError("not JSON at byte {}: a NUL byte", nul);
  Json root;
  Builder builder(root, maxDepth);
  if (Json::sax_parse(text.begin(), text.end(), &builder))
    return root;
  return Error{builder.problem.empty() ? "not JSON" : builder.problem};
}
