//===- Mutate.cpp - mutations that keep PTX mostly well-formed ------------===//
//
// Flipped bytes die in the lexer. Half of the time the text is changed in larger pieces instead:
// lines are deleted, doubled, moved, and words replaced by other words of the text, so that
// statements stay statements and the decoder sees combinations that nobody writes.
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t most);

using Pieces = std::vector<std::string_view>;

static Pieces linesOf(std::string_view text) {
  Pieces lines;
  while (!text.empty()) {
    std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// Words and single marks; a word may begin with a dot or a percent sign.
static Pieces wordsOf(std::string_view text) {
  auto inWord = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == ':';
  };
  Pieces words;
  while (!text.empty()) {
    std::size_t length = 1;
    if (inWord(text[0]) || text[0] == '.' || text[0] == '%')
      while (length < text.size() && inWord(text[length]))
        ++length;
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

static std::string join(const Pieces &pieces) {
  std::string text;
  for (std::string_view piece : pieces)
    text += piece;
  return text;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  if (size < 8 || random() % 2)
    return LLVMFuzzerMutate(data, size, most);
  std::string before(reinterpret_cast<const char *>(data), size);
  bool byLine = random() % 3 == 0;
  Pieces pieces = byLine ? linesOf(before) : wordsOf(before);
  auto any = [&] { return static_cast<std::ptrdiff_t>(random() % pieces.size()); };
  for (unsigned rounds = 1 + random() % 3; rounds > 0 && pieces.size() > 1; --rounds) {
    std::string_view piece = pieces[static_cast<std::size_t>(any())];
    switch (random() % 4) {
    case 0:
      pieces.erase(pieces.begin() + any());
      break;
    case 1:
      pieces.insert(pieces.begin() + any(), piece);
      break;
    default:
      pieces[static_cast<std::size_t>(any())] = piece;
      break;
    }
  }
  std::string after = join(pieces);
  std::size_t length = std::min(after.size(), most);
  std::memcpy(data, after.data(), length);
  return length;
}
