//===- Parser.cpp - PTX modules: directives, variables, functions ---------===//
//
// The module level of PTX ISA, "Directives". What only serves debuggers and optimisers (.file,
// .section, .pragma, register and CTA hints) is read and dropped; anything unknown is an error.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Parser.h"

#include <bit>
#include <cctype>
#include <cstring>

using namespace planemu;

unsigned planemu::bitsOf(Type type) {
  switch (type) {
#define PLANEMU_TYPE(Name, Text, Bits)                                                             \
  case Type::Name:                                                                                 \
    return Bits;
    PLANEMU_TYPES(PLANEMU_TYPE)
#undef PLANEMU_TYPE
  case Type::None:
    break;
  }
  return 0;
}

const char *planemu::nameOf(Type type) {
  switch (type) {
#define PLANEMU_TYPE(Name, Text, Bits)                                                             \
  case Type::Name:                                                                                 \
    return Text;
    PLANEMU_TYPES(PLANEMU_TYPE)
#undef PLANEMU_TYPE
  case Type::None:
    break;
  }
  return "none";
}

Type planemu::typeNamed(std::string_view text) {
#define PLANEMU_TYPE(Name, Text, Bits)                                                             \
  if (text == "." Text)                                                                            \
    return Type::Name;
  PLANEMU_TYPES(PLANEMU_TYPE)
#undef PLANEMU_TYPE
  return Type::None;
}

const Label *Function::findLabel(std::string_view wanted, unsigned scope) const {
  for (;;) {
    for (const Label &label : labels)
      if (label.scope == scope && label.name == wanted)
        return &label;
    if (scope == 0)
      return nullptr;
    scope = scopeParents[scope];
  }
}

const Function *PtxModule::findFunction(std::string_view name) const {
  const Function *found = nullptr;
  for (const auto &function : functions)
    if (function->name == name && (!found || found->external))
      found = function.get();
  return found;
}

const Variable *PtxModule::findVariable(std::string_view name) const {
  for (const Variable &variable : variables)
    if (variable.name == name)
      return &variable;
  return nullptr;
}

std::string_view planemu::lineText(const PtxModule &module, unsigned line) {
  std::string_view rest = module.text;
  for (; line > 1 && !rest.empty(); --line) {
    std::size_t end = rest.find('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  constexpr std::string_view Blanks = " \t\r\f\v";
  std::size_t first = rest.find_first_not_of(Blanks);
  if (line != 1 || first == std::string_view::npos)
    return {};
  return rest.substr(first, rest.find_last_not_of(Blanks) + 1 - first);
}

std::string planemu::quoted(std::string_view text) {
  constexpr std::size_t Most = 160;
  std::string shown = "'";
  for (char c : text) {
    bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (blank && shown.back() == ' ')
      continue;
    if (shown.size() > Most) {
      shown += " ...";
      break;
    }
    shown += blank ? ' ' : c;
  }
  return shown + "'";
}

void Parser::fail(const Token &at, const std::string &message) const {
  std::string text = "line " + std::to_string(at.line) + ": " + where + message;
  if (std::string_view written = lineText(module, at.line); !written.empty())
    text += " in " + quoted(written);
  throw PtxError(text);
}

Token Parser::expect(Token::Kind kind, const char *what) {
  if (lexer.peek().kind != kind)
    fail(lexer.peek(),
         std::string("expected ") + what + ", found '" + std::string(lexer.peek().text) + "'");
  return lexer.take();
}

void Parser::expect(char c) {
  if (!accept(c))
    fail(lexer.peek(),
         std::string("expected '") + c + "', found '" + std::string(lexer.peek().text) + "'");
}

bool Parser::accept(char c) {
  if (!lexer.peek().is(c))
    return false;
  lexer.take();
  return true;
}

std::uint64_t Parser::expectInteger(const char *what) { return expect(Token::Integer, what).bits; }

void Parser::parse() {
  if (!lexer.peek().is(".version"))
    fail(lexer.peek(), "a PTX module starts with .version");
  while (lexer.peek().kind != Token::End)
    parseTopLevel();
  if (module.version == 0 || module.target == 0)
    fail(lexer.peek(), "no .version or no .target");
}

void Parser::parseVersion() {
  lexer.take();
  Token number = expect(Token::Float64, "a version such as 8.8");
  double version = std::bit_cast<double>(number.bits);
  if (!(version >= 1 && version < 100))
    fail(number, "bad version '" + std::string(number.text) + "'");
  std::size_t dot = number.text.find('.');
  unsigned minor = dot + 1 < number.text.size() ? number.text[dot + 1] - '0' : 0;
  module.version = static_cast<unsigned>(version) * 10 + minor;
}

void Parser::parseTarget() {
  lexer.take();
  do {
    Token word = expect(Token::Word, "a target such as sm_80");
    if (word.text.starts_with("sm_")) {
      std::string_view digits = word.text.substr(3);
      unsigned sm = 0;
      while (!digits.empty() && digits[0] >= '0' && digits[0] <= '9' && sm < 10000) {
        sm = 10 * sm + (digits[0] - '0');
        digits.remove_prefix(1);
      }
      if (sm == 0 || (digits != "" && digits != "a" && digits != "f"))
        fail(word, "unknown target '" + std::string(word.text) + "'");
      module.target = sm;
      module.targetSuffix = digits;
    } else if (word.text != "debug" && word.text != "texmode_independent" &&
               word.text != "texmode_unified") {
      fail(word, "unknown target option '" + std::string(word.text) + "'");
    }
  } while (accept(','));
}

void Parser::skipSection() {
  lexer.take(); // .section
  if (lexer.peek().kind != Token::Punctuation)
    lexer.take(); // its name
  expect('{');
  while (!lexer.peek().is('}') && lexer.peek().kind != Token::End)
    lexer.take();
  expect('}');
}

void Parser::parseTopLevel() {
  const Token &token = lexer.peek();
  if (token.is(".version"))
    return parseVersion();
  if (token.is(".target"))
    return parseTarget();
  if (token.is(".address_size")) {
    lexer.take();
    Token size = expect(Token::Integer, "64");
    if (size.bits != 64)
      fail(size, "only .address_size 64 is supported");
    return;
  }
  if (token.is(".file") || token.is(".loc"))
    return lexer.skipLine();
  if (token.is(".section"))
    return skipSection();
  if (token.is(".pragma")) {
    while (!lexer.peek().is(';') && lexer.peek().kind != Token::End)
      lexer.take();
    return expect(';');
  }
  if (token.is(';')) {
    lexer.take();
    return;
  }

  bool external = false;
  for (;;) {
    Token word = lexer.take();
    if (word.is(".extern"))
      external = true;
    else if (word.is(".visible") || word.is(".weak") || word.is(".common"))
      continue;
    else if (word.is(".entry") || word.is(".func"))
      return parseFunction(word.is(".entry"), external);
    else if (word.is(".global") || word.is(".const") || word.is(".shared")) {
      Space space = word.is(".global")  ? Space::Global
                    : word.is(".const") ? Space::Const
                                        : Space::Shared;
      const Variable *before = nullptr;
      do {
        Variable variable = parseVariable(space, external, before);
        if (module.findVariable(variable.name))
          fail(word, "variable '" + variable.name + "' is declared twice");
        if (accept('='))
          parseInitializer(variable);
        module.variables.push_back(std::move(variable));
        before = &module.variables.back();
      } while (accept(','));
      return expect(';');
    } else
      fail(word, "unknown directive '" + std::string(word.text) + "'");
  }
}

/// After the space: [.align N] [.v2|.v4] .type [.ptr ...] name [dims]. What follows a comma has but a
/// name and is otherwise like the one `before`.
Variable Parser::parseVariable(Space space, bool external, const Variable *before) {
  Variable variable;
  variable.space = space;
  variable.external = external;
  if (before && lexer.peek().kind == Token::Word) {
    variable.type = before->type;
    variable.align = before->align;
    parseName(variable, vectorOfList, external);
    return variable;
  }
  unsigned vector = 1, ptrAlign = 0;
  bool pointer = false, aligned = false;
  for (;;) {
    Token token = lexer.peek();
    if (token.kind != Token::Dotted)
      break;
    lexer.take();
    if (token.is(".align")) {
      std::uint64_t align = expectInteger("an alignment");
      if (align == 0 || align > (1u << 20) || (align & (align - 1)))
        fail(token, "alignment " + std::to_string(align) + " is not a power of two");
      if (pointer) {
        ptrAlign = static_cast<unsigned>(align);
      } else {
        variable.align = static_cast<unsigned>(align);
        aligned = true;
      }
    } else if (token.is(".v2") || token.is(".v4")) {
      vector = token.text[2] - '0';
    } else if (token.is(".attribute") && space == Space::Global) {
      // All memory is the host's too, so managed variables are like any others.
      expect('(');
      if (Token attribute = lexer.take(); !attribute.is(".managed"))
        fail(attribute, "only '.managed' is supported");
      expect(')');
    } else if (token.is(".ptr")) {
      pointer = true;
    } else if (pointer && (token.is(".global") || token.is(".shared") || token.is(".const") ||
                           token.is(".local"))) {
      // What the pointer points to matters to optimisers only.
    } else if (Type type = typeNamed(token.text); type != Type::None && type != Type::Pred) {
      variable.type = type;
    } else {
      fail(token, "unknown attribute '" + std::string(token.text) + "' of a variable");
    }
  }
  (void)ptrAlign;
  if (!aligned)
    variable.align = std::max(1u, vector * bitsOf(variable.type) / 8);
  vectorOfList = vector;
  parseName(variable, vector, external);
  return variable;
}

/// name [dims]
void Parser::parseName(Variable &variable, unsigned vector, bool external) {
  Token name = expect(Token::Word, "a name");
  variable.name = name.text;
  variable.line = name.line;
  if (variable.type == Type::None)
    fail(name, "variable '" + variable.name + "' has no type");
  std::uint64_t elements = vector;
  while (accept('[')) {
    if (accept(']')) {
      if (!external && !lexer.peek().is('='))
        elements = 0;
      else
        elements = 0; // sized by the launch (.extern .shared) or by the initial value
      continue;
    }
    Token dimension = expect(Token::Integer, "an array size");
    if (dimension.bits > (1ull << 32) || elements * dimension.bits > (1ull << 34))
      fail(dimension, "array '" + variable.name + "' is too large");
    elements *= dimension.bits;
    expect(']');
  }
  variable.bytes = elements * bitsOf(variable.type) / 8;
}

void Parser::parseInitializer(Variable &variable) {
  bool unsized = variable.bytes == 0;
  if (accept('{')) {
    int depth = 1;
    while (depth > 0) {
      if (accept('{'))
        ++depth;
      else if (accept('}'))
        --depth;
      else if (accept(','))
        continue;
      else
        parseInitialValue(variable);
    }
  } else {
    parseInitialValue(variable);
  }
  if (unsized)
    variable.bytes = variable.init.size();
  if (variable.init.size() > variable.bytes)
    fail(lexer.peek(), "too many initial values for '" + variable.name + "'");
  variable.init.resize(variable.bytes);
}

void Parser::parseInitialValue(Variable &variable) {
  unsigned bytes = std::max(1u, bitsOf(variable.type) / 8);
  std::uint64_t bits = 0;
  bool negative = accept('-');
  Token token = lexer.take();
  if (token.kind == Token::Integer) {
    bits = negative ? 0 - token.bits : token.bits;
  } else if (token.kind == Token::Float32) {
    bits = token.bits ^ (negative ? 1ull << 31 : 0);
    if (variable.type == Type::F64)
      bits = std::bit_cast<std::uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  } else if (token.kind == Token::Float64) {
    bits = token.bits ^ (negative ? 1ull << 63 : 0);
    if (variable.type == Type::F32)
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (token.kind == Token::Word) {
    // sym, sym+4, generic(sym), generic(sym)+4. Global and constant space coincide with generic
    // addresses.
    Token name = token;
    if (token.text == "generic") {
      expect('(');
      name = expect(Token::Word, "a variable");
      expect(')');
    }
    std::int64_t addend = 0;
    if (lexer.peek().is('+') || lexer.peek().is('-')) {
      bool minus = lexer.take().is('-');
      addend = static_cast<std::int64_t>(expectInteger("an offset"));
      addend = minus ? -addend : addend;
    }
    variable.relocations.push_back({variable.init.size(), std::string(name.text), addend, bytes});
  } else {
    fail(token, "expected an initial value, found '" + std::string(token.text) + "'");
  }
  for (unsigned byte = 0; byte < bytes; ++byte)
    variable.init.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
  if (variable.init.size() > (1u << 28))
    fail(token, "initial value of '" + variable.name + "' is too large");
}

/// .reg .type name: a parameter in a register of `function`, or of whatever a prototype stands for.
Variable Parser::parseRegisterParameter(Function *function) {
  Token typeToken = lexer.take();
  Variable variable;
  variable.space = Space::Param;
  variable.type = typeNamed(typeToken.text);
  if (variable.type == Type::None || variable.type == Type::B128)
    fail(typeToken, "no registers of type '" + std::string(typeToken.text) + "'");
  Token name = expect(Token::Word, "a name");
  variable.name = name.text;
  variable.line = name.line;
  variable.bytes = std::max(1u, bitsOf(variable.type) / 8);
  variable.reg = 0;
  if (function) {
    variable.reg = static_cast<int>(function->registers.size());
    function->registers.push_back(variable.type);
    function->registerNames.push_back(variable.name);
  }
  return variable;
}

/// `function`: whose they are; null for a prototype's.
std::vector<Variable> Parser::parseParameters(Function *function) {
  std::vector<Variable> parameters;
  expect('(');
  while (!accept(')')) {
    Token space = lexer.take();
    if (space.is(".reg") && (!function || !function->entry))
      parameters.push_back(parseRegisterParameter(function));
    else if (space.is(".param"))
      parameters.push_back(parseVariable(Space::Param, false));
    else
      fail(space, "expected .param, found '" + std::string(space.text) + "'");
    if (!lexer.peek().is(')'))
      expect(',');
  }
  return parameters;
}

void Parser::parseFunction(bool entry, bool external) {
  auto function = std::make_unique<Function>();
  function->entry = entry;
  if (!entry && lexer.peek().is('('))
    function->results = parseParameters(function.get());
  Token name = expect(Token::Word, "a function name");
  function->name = name.text;
  function->line = name.line;
  where = std::string(entry ? "kernel '" : "function '") + function->name + "': ";
  if (lexer.peek().is('('))
    function->parameters = parseParameters(function.get());
  parseDirectives(*function);
  if (accept(';')) {
    function->external = true;
  } else {
    if (external)
      fail(lexer.peek(), "an .extern function has no body");
    const Function *previous = module.findFunction(function->name);
    if (previous && !previous->external)
      fail(name, "declared twice");
    parseBody(*function);
  }
  where.clear();
  module.functions.push_back(std::move(function));
}

void Parser::parseDirectives(Function &function) {
  while (lexer.peek().kind == Token::Dotted) {
    Token token = lexer.take();
    if (token.is(".maxntid") || token.is(".reqntid")) {
      std::uint64_t dims[3] = {1, 1, 1};
      unsigned count = 0;
      do {
        if (count == 3)
          fail(token, "more than three dimensions");
        dims[count] = expectInteger("a thread count");
        if (dims[count] == 0 || dims[count] > 1024)
          fail(token, "bad thread count " + std::to_string(dims[count]));
        ++count;
      } while (accept(','));
      if (token.is(".maxntid"))
        function.maxNtid = dims[0] * dims[1] * dims[2];
      else
        for (unsigned dim = 0; dim < 3; ++dim)
          function.reqNtid[dim] = static_cast<unsigned>(dims[dim]);
    } else if (token.is(".reqnctapercluster")) {
      std::uint64_t ctas = 1;
      do
        if ((ctas *= expectInteger("a CTA count")) != 1)
          fail(token, "clusters of several CTAs are not supported");
      while (accept(','));
    } else if (token.is(".minnctapersm") || token.is(".maxnreg") || token.is(".maxnctapersm") ||
               token.is(".maxclusterrank")) {
      expectInteger("a number");
    } else if (token.is(".pragma")) {
      expect(Token::String, "a string");
      expect(';');
    } else if (!token.is(".noreturn") && !token.is(".explicitcluster")) {
      fail(token, "unknown directive '" + std::string(token.text) + "'");
    }
  }
}

std::unique_ptr<PtxModule> planemu::parsePtx(std::string text) {
  auto module = std::make_unique<PtxModule>();
  module->text = std::move(text);
  Parser(*module).parse();
  return module;
}
