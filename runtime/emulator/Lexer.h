//===- Lexer.h - PTX tokens -----------------------------------------------===//
//
// Splits PTX text into tokens and remembers lines. `.loc`, `.file` and `.section` end with their
// line or brace and say nothing about execution: the parser skips them by line through `skipLine`.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_LEXER_H
#define PLANEMU_LEXER_H

#include <cstdint>
#include <string_view>

namespace planemu {

struct Token {
  enum Kind : std::uint8_t {
    End,
    Word,    // add, %r1, $L__BB0_1, _
    Dotted,  // .s32, .L2::128B, .reg
    Integer, // bits
    Float32, // 0f...: bits
    Float64, // 0d... or a decimal: bits
    String,
    Punctuation, // one character
  };
  Kind kind = End;
  std::string_view text;
  std::uint64_t bits = 0;
  unsigned line = 1;

  bool is(char c) const { return kind == Punctuation && text[0] == c; }
  bool is(std::string_view s) const { return (kind == Word || kind == Dotted) && text == s; }
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { advance(); }

  const Token &peek() const { return current; }
  Token take() {
    Token token = current;
    advance();
    return token;
  }
  /// Drops the rest of the current token's line.
  void skipLine();
  /// Where the next token will be read from and the way back there: one token of lookahead more.
  Token peekSecond();

private:
  void advance();
  Token next();
  void skipBlanks();
  Token number();
  Token make(Token::Kind kind, std::size_t begin) const;

  std::string_view text;
  std::size_t position = 0;
  unsigned line = 1;
  Token current;
};

} // namespace planemu

#endif // PLANEMU_LEXER_H
