//===- Parser.h - PTX text to statements ----------------------------------===//

#ifndef PLANEMU_PARSER_H
#define PLANEMU_PARSER_H

#include "runtime/emulator/Lexer.h"
#include "runtime/emulator/Ptx.h"

#include <unordered_map>

namespace planemu {

class Parser {
public:
  Parser(PtxModule &module) : module(module), lexer(module.text) {}
  void parse();

private:
  /// Names of one `{ }`. Registers declared as a range (`%r<9>`) are found by prefix and number.
  struct Scope {
    struct Range {
      unsigned first, count;
    };
    unsigned id;
    std::unordered_map<std::string_view, unsigned> registers;
    std::unordered_map<std::string_view, Range> ranges;
    std::map<std::string, unsigned, std::less<>> variables;
  };

  // Parser.cpp: the module
  void parseVersion();
  void parseTarget();
  void parseTopLevel();
  void parseFunction(bool entry, bool external);
  std::vector<Variable> parseParameters(Function *function);
  Variable parseRegisterParameter(Function *function);
  Variable parseVariable(Space space, bool external, const Variable *before = nullptr);
  void parseName(Variable &variable, unsigned vector, bool external);
  void parseInitializer(Variable &variable);
  void parseInitialValue(Variable &variable);
  void parseDirectives(Function &function);
  void skipSection();

  // ParseBody.cpp: inside a function
  void parseBody(Function &function);
  void parseBodyDirective(Function &function);
  void parseRegisters(Function &function);
  void parseStatement(Function &function);
  void parseTargets(Label &label);
  void parsePrototype(Label &label);
  Operand parseOperand(Function &function);
  Operand parsePrimary(Function &function);
  Operand parseAddress(Function &function);
  std::int64_t parseOffset(bool minus);
  Operand parseName(Function &function, Token name);
  bool findRegister(std::string_view name, unsigned &index) const;

  [[noreturn]] void fail(const Token &at, const std::string &message) const;
  Token expect(Token::Kind kind, const char *what);
  void expect(char c);
  bool accept(char c);
  std::uint64_t expectInteger(const char *what);

  PtxModule &module;
  Lexer lexer;
  unsigned vectorOfList = 1; // elements of what the list of variables being read declares
  std::string where;         // "kernel 'k': " inside a function
  std::vector<Scope> scopes;
};

} // namespace planemu

#endif // PLANEMU_PARSER_H
