//===- LinkImages.cpp - one PTX module of several -------------------------===//
//
// Works on the text: what stands outside of braces are declarations, each of which is kept, dropped or
// gets another name. Lines stay lines, so that messages quote what was written.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/LinkImages.h"
#include "runtime/emulator/Lexer.h"
#include "runtime/emulator/Ptx.h"

#include <algorithm>
#include <map>
#include <set>

using namespace planemu;

namespace {
enum class Linkage { Own, Visible, Weak, External };

struct Declaration {
  std::string_view name, text; // of the whole declaration
  Linkage linkage = Linkage::Own;
  bool isFunction = false, isKernel = false, hasBody = false;
  bool defines() const { return linkage != Linkage::External && (!isFunction || hasBody); }
};

struct Image {
  std::string_view text;
  std::vector<Token> tokens;
  std::vector<Declaration> declarations;
  std::vector<std::string_view> dropped; // parts of `text`
  std::set<std::string_view> renamed;
};
} // namespace

static bool isHeader(const Token &token) {
  return token.is(".version") || token.is(".target") || token.is(".address_size");
}

/// Where the line of `token` ends.
static std::size_t endOfLine(std::string_view text, const Token &token) {
  std::size_t at = static_cast<std::size_t>(token.text.data() - text.data());
  return std::min(text.find('\n', at), text.size());
}

static Image readImage(std::string_view text) {
  Image image{text, {}, {}, {}, {}};
  Lexer lexer(text);
  while (lexer.peek().kind != Token::End)
    image.tokens.push_back(lexer.take());
  const std::vector<Token> &tokens = image.tokens;
  auto offsetOf = [&](std::size_t n) {
    return static_cast<std::size_t>(tokens[n].text.data() - text.data());
  };
  for (std::size_t n = 0; n < tokens.size();) {
    std::size_t first = n;
    if (isHeader(tokens[n])) {
      std::size_t end = endOfLine(text, tokens[n]);
      image.dropped.push_back(text.substr(offsetOf(n), end - offsetOf(n)));
      while (n < tokens.size() && offsetOf(n) < end)
        ++n;
      continue;
    }
    Declaration found;
    bool declares = false, initialises = false;
    int round = 0, braces = 0;
    for (; n < tokens.size(); ++n) {
      const Token &token = tokens[n];
      if (token.is('('))
        ++round;
      else if (token.is(')'))
        --round;
      else if (token.is('{'))
        ++braces;
      else if (token.is('}'))
        --braces;
      if (braces == 0 && round == 0 && found.name.empty()) {
        if (token.is(".visible"))
          found.linkage = Linkage::Visible;
        else if (token.is(".weak") || token.is(".common"))
          found.linkage = Linkage::Weak;
        else if (token.is(".extern"))
          found.linkage = Linkage::External;
        else if (token.is(".func") || token.is(".entry"))
          declares = found.isFunction = true, found.isKernel = token.is(".entry");
        else if (token.is(".global") || token.is(".const") || token.is(".shared"))
          declares = true;
        else if (token.kind == Token::Word && declares)
          found.name = token.text;
      }
      initialises |= braces == 0 && token.is('=');
      bool closes = token.is('}') && braces == 0 && !initialises;
      if (closes)
        found.hasBody = found.isFunction;
      if (closes || (token.is(';') && braces == 0 && round == 0)) {
        ++n;
        break;
      }
    }
    std::size_t from = offsetOf(first);
    std::size_t to = offsetOf(n - 1) + tokens[n - 1].text.size();
    found.text = text.substr(from, to - from);
    if (declares && !found.name.empty())
      image.declarations.push_back(found);
  }
  return image;
}

/// Decides which definition of each symbol counts, and drops the others.
static void resolve(std::vector<Image> &images) {
  struct Symbol {
    const Declaration *definition = nullptr;
    std::set<const Image *> users;
  };
  std::map<std::string_view, Symbol> shared;
  for (Image &image : images)
    for (const Declaration &declaration : image.declarations) {
      if (declaration.linkage == Linkage::Own && !declaration.isKernel)
        continue;
      Symbol &symbol = shared[declaration.name];
      symbol.users.insert(&image);
      if (!declaration.defines())
        continue;
      bool weak = declaration.linkage == Linkage::Weak;
      if (symbol.definition && !weak && symbol.definition->linkage != Linkage::Weak)
        throw PtxError("'" + std::string(declaration.name) + "' is defined by two images");
      if (!symbol.definition || (!weak && symbol.definition->linkage == Linkage::Weak))
        symbol.definition = &declaration;
    }
  std::map<std::string_view, const Image *> owners;
  std::set<std::string_view> declared; // variables that nobody defines
  for (Image &image : images)
    for (const Declaration &declaration : image.declarations) {
      auto found = shared.find(declaration.name);
      if (declaration.linkage == Linkage::Own && !declaration.isKernel) {
        auto [owner, isNew] = owners.try_emplace(declaration.name, &image);
        if (found != shared.end() || (!isNew && owner->second != &image))
          image.renamed.insert(declaration.name);
        continue;
      }
      const Declaration *definition = found->second.definition;
      // Functions may be declared as often as one likes.
      if (declaration.defines() ? definition != &declaration
                                : !declaration.isFunction &&
                                      (definition || !declared.insert(declaration.name).second))
        image.dropped.push_back(declaration.text);
    }
}

/// The image's text without what is dropped, of which the lines are left, and with the new names.
static void append(std::string &result, const Image &image, std::size_t number) {
  auto isDropped = [&](const char *at) {
    return std::any_of(image.dropped.begin(), image.dropped.end(), [&](std::string_view part) {
      return at >= part.data() && at < part.data() + part.size();
    });
  };
  const char *done = image.text.data();
  auto copyTo = [&](const char *end, bool drop) {
    for (; done != end; ++done)
      if (!drop || *done == '\n')
        result += *done;
  };
  for (const Token &token : image.tokens) {
    bool drop = isDropped(token.text.data());
    copyTo(token.text.data(), drop && isDropped(done));
    copyTo(token.text.data() + token.text.size(), drop);
    if (!drop && token.kind == Token::Word && image.renamed.count(token.text))
      result += "$image" + std::to_string(number);
  }
  copyTo(image.text.data() + image.text.size(), false);
  result += '\n';
}

std::string planemu::linkImages(const std::vector<std::string> &images) {
  if (images.size() == 1)
    return images.front();
  unsigned version = 0, target = 0;
  std::string suffix;
  std::vector<Image> read;
  for (const std::string &text : images) {
    std::unique_ptr<PtxModule> module = parsePtx(text);
    version = std::max(version, module->version);
    if (module->target >= target) {
      if (module->target > target || !module->targetSuffix.empty())
        suffix = module->targetSuffix;
      target = module->target;
    }
    read.push_back(readImage(text));
  }
  resolve(read);
  std::string result = ".version " + std::to_string(version / 10) + "." +
                       std::to_string(version % 10) + "\n.target sm_" + std::to_string(target) +
                       suffix + "\n.address_size 64\n";
  for (std::size_t n = 0; n < read.size(); ++n)
    append(result, read[n], n);
  return result;
}
