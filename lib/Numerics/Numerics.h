//===- Numerics.h - how a kernel carried out its arithmetic ----------------===//
//
// A plain description of the roundings that a kernel commits, node by node: in which tree each sum
// was formed, how far an approximate function may be off, how many roundings a product passes. A
// schedule writes it while it emits, the bundle carries it, and the reference turns it into a bound
// for every element. README.md derives the formulas.
//
// Everything is counted in units of u = 2^-24, the unit roundoff of f32: a value that passed d of
// them is off by at most gamma(d) = d*u / (1 - d*u) of its magnitude.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_NUMERICS_NUMERICS_H
#define PLANC_LIB_NUMERICS_NUMERICS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planc::numerics {

/// How the values of one level of a sum's tree become one.
enum class LevelKind : uint8_t {
  product, ///< each is a product that is rounded by itself
  fused,   ///< products, one after the other, each added by an fma
  mma,     ///< products, 16 an mma.sync, one instruction after the other from zero
  chain,   ///< added one after the other
  tree,    ///< added pairwise
  scale, ///< multiplied by a factor: `terms` roundings, one of them the factor's own if it has one
  merge, ///< pieces of `span` terms, `terms` at a time, each times a weight and added by an fma
};

/// A kind as text and in manifests.
struct LevelKindWord {
  LevelKind value;
  const char *text;
};
inline constexpr LevelKindWord levelKindWords[] = {
    {LevelKind::product, "product"}, {LevelKind::fused, "fused"}, {LevelKind::mma, "mma"},
    {LevelKind::chain, "chain"},     {LevelKind::tree, "tree"},   {LevelKind::scale, "scale"},
    {LevelKind::merge, "merge"}};
const char *toString(LevelKind kind);

struct Level {
  LevelKind kind = LevelKind::chain;
  uint32_t terms = 0;
  uint32_t span = 0; ///< of `merge`, else 0

  bool operator==(const Level &) const = default;
};

/// One step of a node that rounds.
struct Part {
  std::string name;                 ///< as the node's row in Ops.def has it
  std::vector<Level> levels;        ///< of a sum, leaves first
  uint32_t units = 0;               ///< of anything else: relative error, in units of 2^-24
  std::optional<uint32_t> absolute; ///< a function's absolute error, 2^-absolute
  std::string source;               ///< whose statement that is

  bool operator==(const Part &) const = default;
};

/// A node of a kernel. A kernel's nodes are in the order of its members.
struct Node {
  std::string op; ///< the plan's word: "rms_norm"
  std::vector<Part> parts;

  bool operator==(const Node &) const = default;
};

/// Roundings on the longest way of a term through a level or a whole part. A sum whose length is
/// only known at run time has `count` terms.
uint32_t roundings(const Level &level, uint64_t count = UINT32_MAX);
uint32_t roundings(const Part &part, uint64_t count = UINT32_MAX);

/// Levels of merging in which several pieces met, of a sum of `count` terms.
uint32_t merges(const Part &part, uint64_t count);

/// The part of that name, or null.
const Part *findPart(const Node &node, std::string_view name);

/// The names of the parts that a node of this op has, in order; nothing if no such op is known.
std::optional<std::vector<std::string_view>> partsOf(std::string_view op);

/// What is missing or too much in a node, or "".
std::string problemOf(const Node &node);

/// A sum's part and a function's or product's.
Part sum(std::string name, std::vector<Level> levels, std::string source = "");
Part rounding(std::string name, uint32_t units, std::string source = "");

/// Lines of text: each part, where its roundings come from, and the bound that follows.
std::string explain(const Node &node);

} // namespace planc::numerics

#endif // PLANC_LIB_NUMERICS_NUMERICS_H
