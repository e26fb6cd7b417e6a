//===- SourceLine.cpp - where a line of PTX came from ---------------------===//
//
// nvcc -lineinfo, clang -g and Triton write `.loc FILE LINE COLUMN` before the instructions of a line.
// Only messages ask for it, so the text is looked through when one is written, and nothing is kept.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/SourceLine.h"
#include "runtime/emulator/Ptx.h"

#include <array>
#include <charconv>
#include <map>

using namespace planemu;

constexpr std::string_view Blanks = " \t\r\f\v";

static std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(Blanks);
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// The first line of `rest`, without the blanks before it; `rest` goes on behind it.
static std::string_view takeLine(std::string_view &rest) {
  std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return trimmed(line);
}

/// A number that `text` begins with, which is taken off it; 0 if there is none.
static unsigned takeNumber(std::string_view &text) {
  text = trimmed(text);
  unsigned value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? value : 0;
}

/// The last part of the name that `.file` gives to `number`: `.file 1 "name"`, or with its folder first.
static std::string_view fileName(std::string_view rest, unsigned number) {
  while (!rest.empty()) {
    std::string_view line = takeLine(rest);
    if (!line.starts_with(".file"))
      continue;
    line.remove_prefix(5);
    if (takeNumber(line) != number)
      continue;
    std::size_t begin = line.find('"');
    std::size_t end = line.find('"', begin + 1);
    if (begin == std::string_view::npos || end == std::string_view::npos)
      return {};
    if (std::size_t second = line.find('"', end + 1);
        trimmed(line.substr(end + 1)).starts_with('"'))
      end = line.find('"', (begin = second) + 1);
    std::string_view name = line.substr(begin + 1, end - begin - 1);
    return name.substr(name.find_last_of('/') + 1);
  }
  return {};
}

namespace {
/// File, line and column, as .loc has them.
using Place = std::array<unsigned, 3>;
} // namespace

static Place takePlace(std::string_view &text) {
  Place place;
  for (unsigned &number : place)
    number = takeNumber(text);
  return place;
}

static std::string describe(const PtxModule &module, const Place &place) {
  std::string_view name = fileName(module.text, place[0]);
  return name.empty() ? std::string() : std::string(name) + ":" + std::to_string(place[1]);
}

std::string planemu::sourceOf(const PtxModule &module, unsigned line) {
  static constexpr std::string_view InlinedAt = "inlined_at";
  std::string_view rest = module.text;
  Place place = {};
  std::map<Place, Place> callers; // of what was inlined, in this function
  for (; line && !rest.empty(); --line) {
    std::string_view text = takeLine(rest);
    if (text.starts_with(".loc") && text.find_first_of(Blanks) == 4) {
      text.remove_prefix(4);
      Place here = takePlace(text);
      if (!here[1]) // what the compiler made up
        continue;
      place = here;
      callers.erase(here);
      if (std::size_t at = text.find(InlinedAt); at != std::string_view::npos) {
        text.remove_prefix(at + InlinedAt.size());
        callers[here] = takePlace(text);
      }
    } else if (text.starts_with('.') && (text.find(".entry") != std::string_view::npos ||
                                         text.find(".func") != std::string_view::npos)) {
      place = {};
      callers.clear();
    }
  }
  std::string text = describe(module, place);
  if (text.empty())
    return text;
  Place outermost = place;
  // Each step uses up a caller, so that lines which lead to each other end too.
  for (auto found = callers.find(place); found != callers.end(); found = callers.find(outermost)) {
    outermost = found->second;
    callers.erase(found);
  }
  std::string user = outermost == place ? std::string() : describe(module, outermost);
  return " (" + text + (user.empty() ? "" : ", inlined at " + user) + ")";
}
