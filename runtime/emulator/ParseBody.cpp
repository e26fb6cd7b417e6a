//===- ParseBody.cpp - PTX function bodies --------------------------------===//
//
// Statements, scopes and operands. Scopes nest because LLVM opens one for every inline asm and
// every call sequence, and each may redeclare a name.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Parser.h"

#include <bit>
#include <charconv>

using namespace planemu;

void Parser::parseBody(Function &function) {
  scopes.clear();
  expect('{');
  function.scopeParents.push_back(0);
  scopes.push_back({0, {}, {}, {}});
  for (const auto *list : {&function.results, &function.parameters})
    for (const Variable &variable : *list)
      if (variable.reg >= 0)
        scopes[0].registers.emplace(variable.name, static_cast<unsigned>(variable.reg));
  while (!scopes.empty()) {
    const Token &token = lexer.peek();
    if (token.kind == Token::End)
      fail(token, "the body has no end");
    if (token.is('{')) {
      lexer.take();
      if (scopes.size() > 256)
        fail(token, "scopes nest too deeply");
      unsigned id = static_cast<unsigned>(function.scopeParents.size());
      function.scopeParents.push_back(scopes.back().id);
      scopes.push_back({id, {}, {}, {}});
    } else if (token.is('}')) {
      lexer.take();
      scopes.pop_back();
    } else if (token.is(';')) {
      lexer.take();
    } else if (token.kind == Token::Dotted) {
      parseBodyDirective(function);
    } else if (token.kind == Token::Word && lexer.peekSecond().is(':')) {
      Token name = lexer.take();
      lexer.take();
      for (const Label &label : function.labels)
        if (label.name == name.text && label.scope == scopes.back().id)
          fail(name, "label '" + std::string(name.text) + "' is declared twice");
      Label label{name.text, scopes.back().id, static_cast<unsigned>(function.statements.size()),
                  {},        nullptr,          false};
      if (lexer.peek().is(".branchtargets") || lexer.peek().is(".calltargets"))
        parseTargets(label);
      else if (lexer.peek().is(".callprototype"))
        parsePrototype(label);
      function.labels.push_back(std::move(label));
    } else {
      parseStatement(function);
    }
  }
}

void Parser::parseTargets(Label &label) {
  label.callTargets = lexer.take().is(".calltargets");
  do
    label.targets.push_back(expect(Token::Word, "a name").text);
  while (accept(','));
  expect(';');
}

/// .callprototype {(results)} _ {(parameters)} {.noreturn};
void Parser::parsePrototype(Label &label) {
  lexer.take();
  label.prototype = std::make_shared<Prototype>();
  if (lexer.peek().is('('))
    label.prototype->results = parseParameters(nullptr);
  expect(Token::Word, "'_'");
  if (lexer.peek().is('('))
    label.prototype->parameters = parseParameters(nullptr);
  if (lexer.peek().is(".noreturn"))
    lexer.take();
  expect(';');
}

void Parser::parseBodyDirective(Function &function) {
  Token token = lexer.peek();
  if (token.is(".loc") || token.is(".file"))
    return lexer.skipLine();
  if (token.is(".section"))
    return skipSection();
  lexer.take();
  if (token.is(".reg"))
    return parseRegisters(function);
  if (token.is(".pragma")) {
    expect(Token::String, "a string");
    return expect(';');
  }
  Space space;
  if (token.is(".local"))
    space = Space::Local;
  else if (token.is(".shared"))
    space = Space::Shared;
  else if (token.is(".param"))
    space = Space::Param;
  else if (token.is(".const"))
    space = Space::Const;
  else if (token.is(".global"))
    space = Space::Global;
  else
    fail(token, "unknown directive '" + std::string(token.text) + "'");
  const Variable *before = nullptr;
  do {
    Variable variable = parseVariable(space, false, before);
    if (accept('='))
      parseInitializer(variable);
    function.variables.push_back(std::move(variable));
    before = &function.variables.back();
    unsigned index = static_cast<unsigned>(function.variables.size() - 1);
    const std::string &name = function.variables.back().name;
    if (!scopes.back().variables.emplace(name, index).second)
      fail(token, "variable '" + name + "' is declared twice");
  } while (accept(','));
  expect(';');
}

void Parser::parseRegisters(Function &function) {
  Token typeToken = lexer.take();
  Type type = typeNamed(typeToken.text);
  if (type == Type::None)
    fail(typeToken, "no registers of type '" + std::string(typeToken.text) + "'");
  Scope &scope = scopes.back();
  do {
    Token name = expect(Token::Word, "a register name");
    unsigned first = static_cast<unsigned>(function.registers.size());
    bool fresh;
    if (accept('<')) {
      Token count = expect(Token::Integer, "a register count");
      expect('>');
      if (count.bits > (1u << 20) || function.registers.size() + count.bits > (1u << 21))
        fail(count, "too many registers");
      fresh =
          scope.ranges.emplace(name.text, Scope::Range{first, static_cast<unsigned>(count.bits)})
              .second;
      for (std::uint64_t n = 0; n < count.bits; ++n) {
        function.registers.push_back(type);
        function.registerNames.push_back(std::string(name.text) + std::to_string(n));
      }
    } else {
      fresh = scope.registers.emplace(name.text, first).second;
      function.registers.push_back(type);
      function.registerNames.emplace_back(name.text);
    }
    if (!fresh)
      fail(name, "register '" + std::string(name.text) + "' is declared twice");
  } while (accept(','));
  expect(';');
}

bool Parser::findRegister(std::string_view name, unsigned &index) const {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (auto found = scope->registers.find(name); found != scope->registers.end()) {
      index = found->second;
      return true;
    }
    // A prefix may itself end in digits (%p1<3>): try every split.
    for (std::size_t split = digits; split < name.size(); ++split) {
      auto found = scope->ranges.find(name.substr(0, split));
      if (found == scope->ranges.end())
        continue;
      std::uint64_t number = 0;
      auto [end, error] =
          std::from_chars(name.data() + split, name.data() + name.size(), number, 10);
      if (error == std::errc() && number < found->second.count &&
          (name[split] != '0' || split + 1 == name.size())) {
        index = found->second.first + static_cast<unsigned>(number);
        return true;
      }
    }
  }
  return false;
}

void Parser::parseStatement(Function &function) {
  Statement statement;
  statement.line = lexer.peek().line;
  const char *begin = lexer.peek().text.data();
  statement.scope = scopes.back().id;
  if (accept('@')) {
    statement.guarded = true;
    statement.guardNegated = accept('!');
    Token name = expect(Token::Word, "a predicate");
    if (!findRegister(name.text, statement.guard) ||
        function.registers[statement.guard] != Type::Pred)
      fail(name, "'" + std::string(name.text) + "' is not a predicate register");
  }
  Token opcode = expect(Token::Word, "an instruction");
  statement.opcode = opcode.text;
  while (lexer.peek().kind == Token::Dotted)
    statement.modifiers.push_back(lexer.take().text);
  while (!lexer.peek().is(';')) {
    statement.operands.push_back(parseOperand(function));
    if (!lexer.peek().is(';'))
      expect(',');
  }
  statement.text = {begin, static_cast<std::size_t>(lexer.take().text.data() - begin)};
  function.statements.push_back(std::move(statement));
}

Operand Parser::parseOperand(Function &function) {
  Operand operand = parsePrimary(function);
  if (accept('|'))
    operand.also.push_back(parsePrimary(function));
  return operand;
}

Operand Parser::parsePrimary(Function &function) {
  Token token = lexer.peek();
  Operand operand;
  operand.text = token.text;
  if (token.is('[') || token.is('{') || token.is('(')) {
    lexer.take();
    if (token.is('['))
      return parseAddress(function);
    char close = token.is('{') ? '}' : ')';
    operand.kind = token.is('{') ? Operand::Vector : Operand::List;
    while (!accept(close)) {
      Token at = lexer.peek();
      if (at.is('{') || at.is('(') || at.is('[') || operand.parts.size() >= 64)
        fail(at, "unexpected '" + std::string(at.text) + "' in a vector operand");
      operand.parts.push_back(parsePrimary(function));
      if (!lexer.peek().is(close))
        expect(',');
    }
    return operand;
  }
  if (token.is('!')) {
    lexer.take();
    Token name = expect(Token::Word, "a predicate");
    operand = parseName(function, name);
    operand.negated = true;
    return operand;
  }
  bool minus = accept('-');
  token = lexer.take();
  switch (token.kind) {
  case Token::Integer:
    operand.kind = Operand::Immediate;
    operand.bits = minus ? 0 - token.bits : token.bits;
    return operand;
  case Token::Float32:
    operand.kind = Operand::Float32;
    operand.bits = token.bits ^ (minus ? 1ull << 31 : 0);
    return operand;
  case Token::Float64:
    operand.kind = Operand::Float64;
    operand.bits = token.bits ^ (minus ? 1ull << 63 : 0);
    return operand;
  case Token::Word:
    if (!minus)
      return parseName(function, token);
    [[fallthrough]];
  default:
    fail(token, "expected an operand, found '" + std::string(token.text) + "'");
  }
}

Operand Parser::parseName(Function &function, Token name) {
  Operand operand;
  operand.text = name.text;
  if (name.text == "_")
    return operand;
  if (name.text == "WARP_SZ") {
    operand.kind = Operand::Immediate;
    operand.bits = 32;
    return operand;
  }
  if (findRegister(name.text, operand.index)) {
    operand.kind = Operand::Register;
    return operand;
  }
  bool resolved = false;
  for (auto scope = scopes.rbegin(); scope != scopes.rend() && !resolved; ++scope)
    if (auto found = scope->variables.find(name.text); found != scope->variables.end()) {
      operand.kind = Operand::Local;
      operand.index = found->second;
      resolved = true;
    }
  for (unsigned n = 0; n < function.parameters.size() && !resolved; ++n)
    if (function.parameters[n].name == name.text) {
      operand.kind = Operand::Parameter;
      operand.index = n;
      resolved = true;
    }
  for (unsigned n = 0; n < function.results.size() && !resolved; ++n)
    if (function.results[n].name == name.text) {
      operand.kind = Operand::Result;
      operand.index = n;
      resolved = true;
    }
  if (!resolved && name.text[0] == '%') {
    operand.kind = Operand::Special;
    if (lexer.peek().kind == Token::Dotted) {
      Token component = lexer.take();
      operand.text = std::string_view(
          name.text.data(), component.text.data() + component.text.size() - name.text.data());
    }
    return operand;
  }
  if (!resolved)
    operand.kind = Operand::Symbol;
  if (lexer.peek().is('+')) {
    lexer.take();
    bool minus = accept('-');
    operand.offset = parseOffset(minus);
  }
  return operand;
}

/// PTX ISA, "Addresses as Operands": an offset has 32 bits. Whether they mean a negative one is left
/// open here: compilers print both -4 and 4294967292.
std::int64_t Parser::parseOffset(bool minus) {
  Token token = lexer.peek();
  std::uint64_t number = expectInteger("an offset");
  auto offset = static_cast<std::int64_t>(minus ? 0 - number : number);
  if (offset > std::int64_t(UINT32_MAX) || offset < -std::int64_t(UINT32_MAX))
    fail(token, "offset " + std::string(token.text) + " does not fit 32 bits");
  return offset;
}

Operand Parser::parseAddress(Function &function) {
  Operand operand;
  operand.kind = Operand::Address;
  operand.text = lexer.peek().text;
  operand.parts.push_back(parsePrimary(function));
  operand.offset = operand.parts[0].offset;
  operand.parts[0].offset = 0;
  while (lexer.peek().is('+') || lexer.peek().is('-')) {
    bool minus = lexer.take().is('-');
    minus ^= accept('-');
    operand.offset += parseOffset(minus);
  }
  // Coordinates, of instructions that are refused by name.
  while (accept(',')) {
    if (lexer.peek().is('[') || lexer.peek().is('(') || operand.parts.size() >= 4)
      fail(lexer.peek(), "unexpected '" + std::string(lexer.peek().text) + "' in an address");
    operand.parts.push_back(parsePrimary(function));
  }
  expect(']');
  return operand;
}
