//===- PtxMutator.cpp - mutations of PTX statements -----------------------===//
//
// A module is taken as lines of words. A register is replaced by one of the same prefix, which has
// the same type by every compiler's habit, and a modifier by one of its family, so that most mutants
// reach the select functions, and many the interpreter.
//===----------------------------------------------------------------------===//

#include "test/fuzz/Mutators.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <vector>

using namespace fuzz;

using Words = std::vector<std::string>;

static bool inWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == ':';
}

/// Words and single marks; a word may begin with a dot or a percent sign. `ld.global.v4.u32` is four.
static Words wordsOf(std::string_view text) {
  Words words;
  while (!text.empty()) {
    std::size_t length = 1;
    if (inWord(text[0]) || text[0] == '.' || text[0] == '%')
      while (length < text.size() && inWord(text[length]))
        ++length;
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

static std::string join(const Words &words) {
  std::string text;
  for (const std::string &word : words)
    text += word;
  return text;
}

static Words linesOf(std::string_view text) {
  Words lines;
  while (!text.empty()) {
    std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// An instruction, not a directive, label or brace.
static bool isStatement(std::string_view line) {
  std::size_t first = line.find_first_not_of(" \t");
  return first != line.npos &&
         (std::isalpha(static_cast<unsigned char>(line[first])) || line[first] == '@') &&
         line.find(';') != line.npos;
}

static bool isRegister(std::string_view word) {
  return word.size() > 2 && word[0] == '%' && std::isdigit(static_cast<unsigned char>(word.back()));
}
static bool isModifier(std::string_view word) { return word.size() > 1 && word[0] == '.'; }
static bool isNumber(std::string_view word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0]));
}
static bool isLabel(std::string_view word) {
  return word.starts_with("$L") || word.starts_with("L_");
}

/// "%rd" of "%rd12".
static std::string_view prefixOf(std::string_view word) {
  while (!word.empty() && std::isdigit(static_cast<unsigned char>(word.back())))
    word.remove_suffix(1);
  return word;
}

/// Modifiers that stand for each other.
static constexpr std::string_view Families[] = {
    ".u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .b8 .b16 .b32 .b64 .f16 .f16x2 .bf16 .bf16x2 .f32 .f64 "
    ".pred .b128 "
    ".e4m3x2 .e5m2x2 .tf32 .u16x2 .s16x2",
    ".rn .rz .rm .rp .rna .rni .rzi .rmi .rpi .ftz .sat .satfinite .relu .approx .full",
    ".global .shared .local .const .param .shared::cta .shared::cluster",
    ".eq .ne .lt .le .gt .ge .lo .ls .hi .hs .equ .neu .ltu .leu .gtu .geu .num .nan",
    ".add .min .max .and .or .xor .exch .cas .inc .dec .popc",
    ".v2 .v4 .v8 .x1 .x2 .x4 .trans",
    ".cta .gpu .sys .cluster .relaxed .acquire .release .acq_rel .volatile .weak .sc",
    ".ca .cg .cs .lu .cv .wb .wt .nc .L1::no_allocate .L2::128B",
    ".bfly .up .down .idx .ballot .any .all .uni .sync .aligned .wide .hi .lo",
    ".f4e .b4e .rc8 .ecl .ecr .rc16 .l .r .clamp .wrap .shiftamt",
    ".m16n8k8 .m16n8k16 .m16n8k32 .m8n8k4 .m8n8k16 .m16n16k16 .m32n8k16 .m8n32k16 .row .col .m8n8"};

static std::string otherModifier(const std::string &word, Random &random) {
  for (std::string_view family : Families) {
    Words members = wordsOf(family);
    std::erase(members, " ");
    if (std::find(members.begin(), members.end(), word) != members.end())
      return random.pick(members);
  }
  Words members = wordsOf(random.pick(Families));
  std::erase(members, " ");
  return random.oneIn(2) ? std::string() : random.pick(members);
}

static std::string otherNumber(std::string_view word, Random &random) {
  static constexpr std::string_view Edges[] = {"0",
                                               "1",
                                               "2",
                                               "3",
                                               "4",
                                               "7",
                                               "8",
                                               "16",
                                               "31",
                                               "32",
                                               "33",
                                               "63",
                                               "64",
                                               "128",
                                               "255",
                                               "256",
                                               "1024",
                                               "4096",
                                               "65535",
                                               "65536",
                                               "2147483647",
                                               "-1",
                                               "2147483648",
                                               "4294967295",
                                               "4294967296",
                                               "-2147483648",
                                               "0x7fffffffffffffff",
                                               "0x8000000000000000",
                                               "0xffffffffffffffff",
                                               "0f7F800000",
                                               "0f7FC00000",
                                               "0f80000000",
                                               "0f00000001",
                                               "0d7FF0000000000000",
                                               "0d0000000000000001",
                                               "18446744073709551616"};
  if (!word.empty() && word.size() < 10 &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); }) &&
      random.oneIn(2)) {
    long value = std::stol(std::string(word));
    long changed[] = {value + 1, value - 1, value * 2, value / 2, value + 4, value * 16};
    return std::to_string(random.pick(changed));
  }
  return std::string(random.pick(Edges));
}

namespace {
class PtxMutator {
public:
  PtxMutator(std::string_view text, Random &random) : lines(linesOf(text)), random(random) {
    index();
  }

  void change();
  /// Inserts a statement of another module.
  void insert(const std::string &line);
  bool hasStatements() const { return !statements.empty(); }
  std::string text() const { return join(lines); }

private:
  void index();
  std::string &statement() { return lines[random.pick(statements)]; }
  /// A word of all text that is of the same kind.
  std::string alike(const std::string &word, bool (*kind)(std::string_view)) {
    Words all;
    for (const std::string &line : lines)
      for (std::string &other : wordsOf(line))
        if (kind(other) && prefixOf(other) == prefixOf(word))
          all.push_back(std::move(other));
    return all.empty() ? word : random.pick(all);
  }
  /// Replaces one of the words for which `kind` holds.
  template <class Make> bool replace(std::string &line, bool (*kind)(std::string_view), Make make) {
    Words words = wordsOf(line);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (kind(words[i]))
        places.push_back(i);
    if (places.empty())
      return false;
    std::string &word = words[random.pick(places)];
    word = make(word);
    line = join(words);
    return true;
  }

  Words lines;
  std::vector<std::size_t> statements; // their lines
  Random &random;
};
} // namespace

void PtxMutator::index() {
  statements.clear();
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (isStatement(lines[i]))
      statements.push_back(i);
}

void PtxMutator::insert(const std::string &line) {
  Words words = wordsOf(line);
  for (std::string &word : words) {
    if (isRegister(word))
      word = alike(word, isRegister);
    else if (isLabel(word))
      word = alike(word, isLabel);
  }
  std::string changed = join(words);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(random.pick(statements)), changed);
  index();
}

void PtxMutator::change() {
  auto number = [&](const std::string &word) { return otherNumber(word, random); };
  switch (random.below(12)) {
  case 0:
  case 1:
  case 2:
    replace(statement(), isRegister,
            [&](const std::string &word) { return alike(word, isRegister); });
    break;
  case 3:
  case 4:
    replace(statement(), isModifier,
            [&](const std::string &word) { return otherModifier(word, random); });
    break;
  case 5:
  case 6:
    replace(statement(), isNumber, number);
    break;
  case 7: // directives too: counts, sizes, alignments, initial values, the launch
    replace(random.pick(lines), isNumber, number);
    break;
  case 8: { // an immediate instead of a register, or the other way round
    std::string &line = statement();
    if (random.oneIn(2))
      replace(line, isRegister, [&](const std::string &) { return otherNumber("", random); });
    else
      replace(line, isNumber, [&](const std::string &) { return alike("%r1", isRegister); });
    break;
  }
  case 9: // the instruction of one statement on the operands of another
  {
    std::string &to = statement(), from = statement();
    std::size_t a = to.find_first_not_of(" \t"), b = from.find_first_not_of(" \t");
    std::size_t aEnd = to.find_first_of(" \t;", a), bEnd = from.find_first_of(" \t;", b);
    if (to[a] != '@' && from[b] != '@')
      to.replace(a, aEnd - a, from, b, bEnd - b);
    break;
  }
  case 10:
    if (statements.size() > 1) {
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(random.pick(statements)));
      index();
    }
    break;
  default:
    insert(std::string(statement()));
    break;
  }
}

std::string fuzz::mutatePtx(std::string_view text, Random &random) {
  PtxMutator mutator(text, random);
  for (std::size_t rounds = 1 + random.below(4); rounds > 0 && mutator.hasStatements(); --rounds)
    mutator.change();
  return mutator.text();
}

std::string fuzz::crossPtx(std::string_view text, std::string_view other, Random &random) {
  PtxMutator mutator(text, random);
  Words donors = linesOf(other);
  std::erase_if(donors, [](const std::string &line) { return !isStatement(line); });
  for (std::size_t rounds = 1 + random.below(3);
       rounds > 0 && mutator.hasStatements() && !donors.empty(); --rounds)
    mutator.insert(random.pick(donors));
  return mutator.text();
}
