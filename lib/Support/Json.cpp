//===- Json.cpp - a strict JSON parser ------------------------------------===//
//
// A SAX handler over nlohmann's lexer builds the value and refuses what the library lets pass.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Json.h"

#include <unordered_set>
#include <vector>

using namespace planc;

namespace {

/// Builds one value; `stack` holds the containers that are open.
class Builder : public nlohmann::json_sax<Json> {
public:
  Builder(Json &root, unsigned maxDepth) : root(root), maxDepth(maxDepth) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override { return add(value); }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return refuse("a binary value"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &value) override {
    if (!keys.back().insert(value).second)
      return refuse(fmt::format("key \"{}\" occurs twice", abbreviate(value)));
    pendingKey = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::json::exception &) override {
    // Position counts the bytes read, so the byte at fault is the one before.
    return refuse(fmt::format("not JSON at byte {}", position ? position - 1 : 0));
  }

  std::string problem;

private:
  /// Messages name a key, they do not echo a megabyte of it.
  static std::string abbreviate(const std::string &text) {
    return text.size() <= 80 ? text : text.substr(0, 77) + "...";
  }

  bool refuse(std::string what) {
    if (problem.empty())
      problem = std::move(what);
    return false;
  }

  template <class T> bool add(T &&value) {
    place(Json(std::forward<T>(value)));
    return true;
  }

  Json *place(Json value) {
    if (stack.empty())
      return &(root = std::move(value));
    Json &parent = *stack.back();
    if (!parent.is_object()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // ordered_json looks keys up linearly; uniqueness is known, so append to its vector directly.
    auto &members = parent.get_ref<Json::object_t &>();
    members.push_back({std::move(pendingKey), std::move(value)});
    return &members.back().second;
  }

  bool open(Json container) {
    if (stack.size() >= maxDepth)
      return refuse(fmt::format("nested deeper than {} levels", maxDepth));
    // The parent does not grow while this container is open, so the pointer stays valid.
    stack.push_back(place(std::move(container)));
    keys.emplace_back();
    return true;
  }

  bool close() {
    stack.pop_back();
    keys.pop_back();
    return true;
  }

  Json &root;
  unsigned maxDepth;
  std::vector<Json *> stack;
  std::vector<std::unordered_set<std::string>> keys;
  std::string pendingKey;
};

} // namespace

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
