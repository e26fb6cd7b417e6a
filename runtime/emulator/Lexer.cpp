//===- Lexer.cpp - PTX tokens ---------------------------------------------===//
//
// PTX ISA, "Syntax": identifiers, integer constants (decimal, octal, hexadecimal, binary, with a
// U), floating-point constants (0f, 0d or decimal) and punctuation.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Lexer.h"
#include "runtime/emulator/Ptx.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>

using namespace planemu;

static bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}
static bool isWordPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

void Lexer::advance() { current = next(); }

Token Lexer::make(Token::Kind kind, std::size_t begin) const {
  Token token;
  token.kind = kind;
  token.text = text.substr(begin, position - begin);
  token.line = line;
  return token;
}

void Lexer::skipBlanks() {
  while (position < text.size()) {
    char c = text[position];
    if (c == '\n')
      ++line;
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++position;
    } else if (c == '/' && text.substr(position, 2) == "//") {
      while (position < text.size() && text[position] != '\n')
        ++position;
    } else if (c == '/' && text.substr(position, 2) == "/*") {
      std::size_t end = text.find("*/", position + 2);
      if (end == std::string_view::npos)
        throw PtxError("line " + std::to_string(line) + ": comment without end");
      std::size_t stop = end + 2;
      for (; position < stop; ++position)
        line += text[position] == '\n';
    } else {
      return;
    }
  }
}

void Lexer::skipLine() {
  // `current` is already read; if it lies on a later line the skipped one had ended.
  unsigned skipped = current.line;
  while (current.kind != Token::End && current.line == skipped)
    advance();
}

Token Lexer::peekSecond() {
  std::size_t savedPosition = position;
  unsigned savedLine = line;
  Token token = next();
  position = savedPosition;
  line = savedLine;
  return token;
}

Token Lexer::number() {
  std::size_t begin = position;
  auto digitsWhile = [&](auto predicate) {
    while (position < text.size() && predicate(static_cast<unsigned char>(text[position])))
      ++position;
  };
  auto isHex = [](unsigned char c) { return std::isxdigit(c) != 0; };
  auto isDigit = [](unsigned char c) { return std::isdigit(c) != 0; };
  auto parse = [&](std::size_t from, int base) {
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data() + from, text.data() + position, value, base);
    if (error != std::errc() || end != text.data() + position)
      throw PtxError("line " + std::to_string(line) + ": bad number '" +
                     std::string(text.substr(begin, position - begin)) + "'");
    return value;
  };

  char second = position + 1 < text.size() ? text[position + 1] : ' ';
  if (text[position] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    position += 2;
    digitsWhile(isHex);
    bool single = second == 'f' || second == 'F';
    if (position - begin - 2 != (single ? 8u : 16u))
      throw PtxError("line " + std::to_string(line) + ": bad floating-point constant '" +
                     std::string(text.substr(begin, position - begin)) + "'");
    Token token = make(single ? Token::Float32 : Token::Float64, begin);
    token.bits = parse(begin + 2, 16);
    return token;
  }

  std::uint64_t value;
  if (text[position] == '0' && (second == 'x' || second == 'X')) {
    position += 2;
    digitsWhile(isHex);
    value = parse(begin + 2, 16);
  } else if (text[position] == '0' && (second == 'b' || second == 'B')) {
    position += 2;
    digitsWhile(isDigit);
    value = parse(begin + 2, 2);
  } else {
    digitsWhile(isDigit);
    bool decimal = false;
    if (position < text.size() && text[position] == '.') {
      decimal = true;
      ++position;
      digitsWhile(isDigit);
    }
    if (position < text.size() && (text[position] == 'e' || text[position] == 'E')) {
      decimal = true;
      ++position;
      if (position < text.size() && (text[position] == '+' || text[position] == '-'))
        ++position;
      digitsWhile(isDigit);
    }
    if (decimal) {
      Token token = make(Token::Float64, begin);
      token.bits =
          std::bit_cast<std::uint64_t>(std::strtod(std::string(token.text).c_str(), nullptr));
      return token;
    }
    bool octal = text[begin] == '0' && position - begin > 1;
    value = parse(octal ? begin + 1 : begin, octal ? 8 : 10);
  }
  if (position < text.size() && (text[position] == 'U' || text[position] == 'u'))
    ++position;
  Token token = make(Token::Integer, begin);
  token.bits = value;
  return token;
}

Token Lexer::next() {
  skipBlanks();
  std::size_t begin = position;
  if (position >= text.size())
    return make(Token::End, begin);
  char c = text[position];
  if (std::isdigit(static_cast<unsigned char>(c)))
    return number();
  if (isWordStart(c)) {
    ++position;
    while (position < text.size() && isWordPart(text[position]))
      ++position;
    return make(Token::Word, begin);
  }
  if (c == '.') {
    ++position;
    while (position < text.size() &&
           (isWordPart(text[position]) || text.substr(position, 2) == "::" ||
            (text[position] == ':' && text[position - 1] == ':')))
      ++position;
    return make(Token::Dotted, begin);
  }
  if (c == '"') {
    std::size_t end = text.find('"', position + 1);
    if (end == std::string_view::npos)
      throw PtxError("line " + std::to_string(line) + ": string without end");
    position = end + 1;
    Token token = make(Token::String, begin);
    for (char in : token.text)
      line += in == '\n';
    return token;
  }
  ++position;
  return make(Token::Punctuation, begin);
}
