//===- Numerics.cpp - roundings of levels and parts ------------------------===//

#include "lib/Numerics/Numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

using namespace planc;
using namespace planc::numerics;

//===----------------------------------------------------------------------===//
// Roundings
//===----------------------------------------------------------------------===//

/// Halvings until one is left.
static uint32_t levelsOfTree(uint64_t terms) {
  return terms < 2 ? 0 : uint32_t(std::bit_width(terms - 1));
}

uint32_t numerics::roundings(const Level &level, uint64_t count) {
  auto terms = uint32_t(std::min<uint64_t>(level.terms, count));
  switch (level.kind) {
  case LevelKind::product:
    return 1;
  case LevelKind::fused:
    return terms;
  case LevelKind::mma:
    // Every addition may truncate at 24 bits, which is two units; the first one is to zero.
    return terms ? 2 * (terms - 1) : 0;
  case LevelKind::chain:
    return terms ? terms - 1 : 0;
  case LevelKind::tree:
    return levelsOfTree(terms);
  case LevelKind::scale:
    return level.terms;
  case LevelKind::merge: {
    // A piece alone has the weight 1 and stays as it is.
    uint32_t total = 0;
    for (uint64_t pieces = (count + level.span - 1) / level.span; pieces > 1;
         pieces = (pieces + level.terms - 1) / level.terms)
      total += uint32_t(std::min<uint64_t>(level.terms, pieces));
    return total;
  }
  }
  return 0;
}

uint32_t numerics::roundings(const Part &part, uint64_t count) {
  uint32_t total = part.units;
  for (const Level &level : part.levels)
    total += roundings(level, count);
  return total;
}

uint32_t numerics::merges(const Part &part, uint64_t count) {
  uint32_t total = 0;
  for (const Level &level : part.levels)
    if (level.kind == LevelKind::merge)
      for (uint64_t pieces = (count + level.span - 1) / level.span; pieces > 1;
           pieces = (pieces + level.terms - 1) / level.terms)
        ++total;
  return total;
}

//===----------------------------------------------------------------------===//
// Ops and their parts
//===----------------------------------------------------------------------===//

namespace {
struct Row {
  std::string_view op, parts, bound;
};
} // namespace

static constexpr Row rows[] = {
#define PLANC_NUMERICS_OP(op, parts, bound) {op, parts, bound},
#include "lib/Numerics/Ops.def"
};

static const Row *findRow(std::string_view op) {
  auto row = std::ranges::find(rows, op, &Row::op);
  return row == std::end(rows) ? nullptr : row;
}

std::optional<std::vector<std::string_view>> numerics::partsOf(std::string_view op) {
  const Row *row = findRow(op);
  if (!row)
    return std::nullopt;
  std::vector<std::string_view> names;
  for (std::string_view rest = row->parts; !rest.empty();) {
    size_t end = std::min(rest.find(' '), rest.size());
    names.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

const Part *numerics::findPart(const Node &node, std::string_view name) {
  auto part = std::ranges::find(node.parts, name, &Part::name);
  return part == node.parts.end() ? nullptr : &*part;
}

std::string numerics::problemOf(const Node &node) {
  auto names = partsOf(node.op);
  if (!names)
    return fmt::format("\"{:.60}\" is no op whose arithmetic is known", node.op);
  for (std::string_view name : *names)
    if (!findPart(node, name))
      return fmt::format("{} does not say how its \"{}\" is computed", node.op, name);
  for (const Part &part : node.parts) {
    if (std::ranges::find(*names, part.name) == names->end())
      return fmt::format("{} has no part \"{:.60}\"", node.op, part.name);
    if (std::ranges::count(node.parts, part.name, &Part::name) > 1)
      return fmt::format("{} has its part \"{}\" twice", node.op, part.name);
    for (const Level &level : part.levels) {
      bool isMerge = level.kind == LevelKind::merge;
      if (level.terms == 0 || (isMerge ? level.span == 0 || level.terms < 2 : level.span != 0))
        return fmt::format("{}, \"{}\": {} of {} terms and a span of {} is impossible", node.op,
                           part.name, toString(level.kind), level.terms, level.span);
    }
  }
  return "";
}

Part numerics::sum(std::string name, std::vector<Level> levels, std::string source) {
  // One term alone is no level.
  std::erase_if(levels, [](const Level &level) {
    return level.terms < 2 && (level.kind == LevelKind::chain || level.kind == LevelKind::tree);
  });
  return {std::move(name), std::move(levels), 0, std::nullopt, std::move(source)};
}

Part numerics::rounding(std::string name, uint32_t units, std::string source) {
  return {std::move(name), {}, units, std::nullopt, std::move(source)};
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

const char *numerics::toString(LevelKind kind) {
  for (const LevelKindWord &word : levelKindWords)
    if (word.value == kind)
      return word.text;
  return "";
}

static std::string describe(const Level &level) {
  switch (level.kind) {
  case LevelKind::product:
    return "each product rounded";
  case LevelKind::fused:
    return fmt::format("{} products by fma, one after the other", level.terms);
  case LevelKind::mma:
    return fmt::format("{} products by mma, any order, additions truncate", level.terms);
  case LevelKind::chain:
    return fmt::format("{} added in order", level.terms);
  case LevelKind::tree:
    return fmt::format("{} added pairwise", level.terms);
  case LevelKind::scale:
    return fmt::format("times a factor");
  case LevelKind::merge:
    return fmt::format("pieces of {} weighed and added, {} at a time", level.span, level.terms);
  }
  return "";
}

std::string numerics::explain(const Node &node) {
  const Row *row = findRow(node.op);
  std::string text = fmt::format("{}: |error| <= {}\n", node.op, row ? row->bound : "?");
  for (const Part &part : node.parts) {
    uint32_t total = 0;
    bool grows = false;
    std::string steps;
    for (const Level &level : part.levels) {
      // The length of a merged sum is known at run time; here, one piece.
      bool isMerge = level.kind == LevelKind::merge;
      grows |= isMerge;
      uint32_t own = isMerge ? 0 : roundings(level);
      total += own;
      steps +=
          fmt::format("\n      {:>4}  {}", isMerge ? "+" : fmt::format("{}", own), describe(level));
    }
    total += part.units;
    text += fmt::format("    {:<10} {} roundings{}, {:.3g}", part.name, total,
                        grows ? " or more" : "", total * 0x1p-24);
    if (part.absolute)
      text += fmt::format(" and 2^-{}", *part.absolute);
    if (!part.source.empty())
      text += fmt::format("  ({})", part.source);
    text += steps + "\n";
  }
  return text;
}
