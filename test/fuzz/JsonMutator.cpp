//===- JsonMutator.cpp - mutations of JSON values -------------------------===//
//
// One scan finds where values, members and elements lie; a mutation replaces, removes, doubles or
// moves one of those spans. So the text stays JSON as long as it was, and may get what no writer
// makes: a key twice, a number no type holds, a value of another type.
//===----------------------------------------------------------------------===//

#include "test/fuzz/Mutators.h"

#include <cctype>
#include <vector>

using namespace fuzz;

namespace {
struct Span {
  std::size_t begin, end;
};

/// Collects the spans of a text; stops where it is no JSON.
class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) { value(0); }

  std::vector<Span> values, keys, items; // items: members and elements

private:
  void space() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool string() {
    for (++at; at < text.size(); ++at) {
      if (text[at] == '\\')
        ++at;
      else if (text[at] == '"') {
        ++at;
        return true;
      }
    }
    at = text.size();
    return false;
  }
  bool container(char close, unsigned depth) {
    ++at;
    for (space(); at < text.size() && text[at] != close; space()) {
      std::size_t begin = at;
      if (close == '}') {
        if (text[at] != '"' || !string())
          return false;
        keys.push_back({begin, at});
        space();
        if (at == text.size() || text[at++] != ':')
          return false;
      }
      if (!value(depth + 1))
        return false;
      items.push_back({begin, at});
      space();
      if (at < text.size() && text[at] == ',')
        ++at;
    }
    return at++ < text.size();
  }
  bool value(unsigned depth) {
    space();
    if (at >= text.size() || depth > 100)
      return false;
    std::size_t begin = at;
    bool good = true;
    if (text[at] == '{' || text[at] == '[')
      good = container(text[at] == '{' ? '}' : ']', depth);
    else if (text[at] == '"')
      good = string();
    else
      while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) ||
                                  text[at] == '-' || text[at] == '+' || text[at] == '.'))
        ++at;
    if (at == begin)
      return false;
    at = std::min(at, text.size());
    values.push_back({begin, at});
    return good;
  }

  std::string_view text;
  std::size_t at = 0;
};
} // namespace

static std::string constant(Random &random) {
  static constexpr std::string_view Constants[] = {"0",
                                                   "1",
                                                   "2",
                                                   "-1",
                                                   "3",
                                                   "64",
                                                   "127",
                                                   "256",
                                                   "65536",
                                                   "65537",
                                                   "2147483647",
                                                   "2147483648",
                                                   "4294967295",
                                                   "4294967296",
                                                   "4398046511104",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "18446744073709551615",
                                                   "18446744073709551616",
                                                   "1.5",
                                                   "1e308",
                                                   "-0.0",
                                                   "null",
                                                   "true",
                                                   "false",
                                                   "\"\"",
                                                   "\"x\"",
                                                   "\"a\\u0000b\"",
                                                   "\"{e:0..255}\"",
                                                   "\"\\ud800\"",
                                                   "[]",
                                                   "{}",
                                                   "[0]",
                                                   "[1,2,3]",
                                                   "{\"a\":1}"};
  return std::string(random.pick(Constants));
}

static std::string changedNumber(std::string_view digits, Random &random) {
  std::uint64_t value = 0;
  for (char c : digits) {
    if (!std::isdigit(static_cast<unsigned char>(c)))
      return constant(random);
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  const std::uint64_t changed[] = {value + 1,   value - 1,   value * 2, value / 2, value + 64,
                                   value + 256, value * 256, ~value,    -value};
  return std::to_string(random.pick(changed));
}

static void change(std::string &text, Random &random) {
  Scanner scanner(text);
  if (scanner.values.empty())
    return;
  auto content = [&](Span span) { return text.substr(span.begin, span.end - span.begin); };
  auto replace = [&](Span span, const std::string &by) {
    text.replace(span.begin, span.end - span.begin, by);
  };
  Span value = random.pick(scanner.values);
  switch (random.below(8)) {
  case 0:
    return replace(value, constant(random));
  case 1:
    return replace(value, content(random.pick(scanner.values)));
  case 2:
  case 3: // numbers are most of what a reader has to doubt
    for (unsigned tries = 0; tries < 20; ++tries)
      if (Span number = random.pick(scanner.values);
          std::isdigit(static_cast<unsigned char>(text[number.begin])))
        return replace(number, changedNumber(content(number), random));
    return;
  case 4:
    if (!scanner.keys.empty())
      return replace(random.pick(scanner.keys), content(random.pick(scanner.keys)));
    return;
  case 5: // a string's value by another string's
    for (unsigned tries = 0; tries < 20; ++tries) {
      Span to = random.pick(scanner.values), from = random.pick(scanner.values);
      if (text[to.begin] == '"' && text[from.begin] == '"')
        return replace(to, content(from));
    }
    return;
  case 6: { // a member or element is gone, with its comma
    if (scanner.items.empty())
      return;
    Span item = random.pick(scanner.items);
    if (item.end < text.size() && text[item.end] == ',')
      ++item.end;
    else if (item.begin > 0 && text[item.begin - 1] == ',')
      --item.begin;
    return replace(item, "");
  }
  default: // or there twice, perhaps elsewhere
    if (scanner.items.empty())
      return;
    Span item = random.pick(scanner.items);
    std::string doubled = content(item) + ",";
    if (random.oneIn(4))
      item = random.pick(scanner.items);
    text.insert(item.begin, doubled);
  }
}

std::string fuzz::mutateJson(std::string_view text, Random &random) {
  std::string result(text);
  for (std::size_t rounds = 1 + random.below(4); rounds > 0; --rounds)
    change(result, random);
  return result;
}
