//===- Arguments.cpp - a kernel's arguments, from the command line ---------===//
//
// See Arguments.h; usage text in Options.cpp.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-emu/Arguments.h"

#include "lib/Tools/CommandLine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace planc;
using namespace planc::tools;
using namespace planemutool;

namespace {
/// An element type: NumPy's name of what a file holds, and how to read a number.
struct Type {
  const char *name;
  const char *descr;
  enum Kind { Signed, Unsigned, Float, RawOnly } kind;
  // Of floats narrower than 32 bits, which C++ does not read.
  unsigned exponentBits = 0, fractionBits = 0;

  unsigned bytes() const { return unsigned(descr[2] - '0'); }
};
} // namespace

static constexpr Type types[] = {
    {"i8", "|i1", Type::Signed},        {"u8", "|u1", Type::Unsigned},
    {"i16", "<i2", Type::Signed},       {"u16", "<u2", Type::Unsigned},
    {"i32", "<i4", Type::Signed},       {"u32", "<u4", Type::Unsigned},
    {"i64", "<i8", Type::Signed},       {"u64", "<u8", Type::Unsigned},
    {"f16", "<f2", Type::Float, 5, 10}, {"bf16", "<u2", Type::Float, 8, 7},
    {"f32", "<f4", Type::Float},        {"f64", "<f8", Type::Float},
    {"e4m3", "|u1", Type::RawOnly},
};

static const Type *findType(std::string_view name) {
  auto found = std::find_if(std::begin(types), std::end(types),
                            [&](const Type &type) { return type.name == name; });
  return found == std::end(types) ? nullptr : found;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Rounds to nearest, ties to even, to a float with these fields; nothing if it does not fit.
static std::optional<uint64_t> roundTo(double value, unsigned exponentBits, unsigned fractionBits) {
  uint64_t sign = uint64_t(std::signbit(value)) << (exponentBits + fractionBits);
  uint64_t infinity = ((uint64_t(1) << exponentBits) - 1) << fractionBits;
  if (std::isnan(value))
    return sign | infinity | uint64_t(1) << (fractionBits - 1);
  if (std::isinf(value))
    return sign | infinity;
  if (value == 0)
    return sign;
  int bias = (1 << (exponentBits - 1)) - 1;
  int exponent = std::max(std::ilogb(value), 1 - bias);
  // A multiple of the last place: nearbyint rounds ties to even in the default mode.
  double units = std::nearbyint(std::ldexp(std::fabs(value), int(fractionBits) - exponent));
  // Adding to the exponent field lets a carry, and the step from subnormal to normal, fall out.
  uint64_t bits = (uint64_t(exponent + bias - 1) << fractionBits) + uint64_t(units);
  if (bits >= infinity)
    return std::nullopt;
  return sign | bits;
}

/// A whole number, decimal or with 0x, that fits in `bits`.
static std::optional<uint64_t> integer(std::string_view text, unsigned bits, bool isSigned) {
  bool negative = isSigned && text.starts_with('-');
  text.remove_prefix(negative);
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  uint64_t most = ~uint64_t(0) >> (64 - bits + isSigned);
  if (value > most + negative)
    return std::nullopt;
  return negative ? -value : value;
}

static std::optional<uint64_t> numberBits(const Type &type, std::string_view text) {
  uint64_t bits = 0;
  if (type.kind != Type::Float)
    return integer(text, 8 * type.bytes(), type.kind == Type::Signed);
  if (type.bytes() == 4) {
    std::optional<float> value = number<float>(text);
    if (!value)
      return std::nullopt;
    std::memcpy(&bits, &*value, 4);
    return bits;
  }
  std::optional<double> value = number<double>(text);
  if (!value)
    return std::nullopt;
  if (type.bytes() == 2)
    return roundTo(*value, type.exponentBits, type.fractionBits);
  std::memcpy(&bits, &*value, 8);
  return bits;
}

//===----------------------------------------------------------------------===//
// The forms of --arg
//===----------------------------------------------------------------------===//

std::string Argument::name(size_t position) const {
  const std::string &file = input.empty() ? output : input;
  return fmt::format("arg {} ({})", position, file.substr(file.find_last_of('/') + 1));
}

static std::string typeNames(bool raw) {
  std::string names;
  for (const Type &type : types)
    if (raw || type.kind != Type::RawOnly)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  return names;
}

/// `DTYPE[SHAPE]:FILE`
static Status parseOutput(std::string_view rest, const std::string &who, Argument &argument) {
  size_t open = rest.find('['), close = rest.find("]:");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 == rest.size())
    return usageError("{}: expected out:DTYPE[SHAPE]:FILE.npy", who);
  const Type *type = findType(rest.substr(0, open));
  if (!type)
    return usageError("{}: there is no type \"{:.40}\", there are {}", who, rest.substr(0, open),
                      typeNames(true));
  argument.descr = type->descr;
  argument.bytes = type->bytes();
  std::string_view shape = rest.substr(open + 1, close - open - 1);
  if (!shape.empty()) // [] is one element
    for (std::string_view part : split(shape, ',')) {
      std::optional<int64_t> extent = number<int64_t>(part);
      if (!extent || *extent < 0)
        return usageError("{}: the shape has \"{:.40}\", expected a number", who, part);
      argument.shape.push_back(*extent);
      if (__builtin_mul_overflow(argument.bytes, uint64_t(*extent), &argument.bytes))
        return usageError("{}: the shape is too large", who);
    }
  argument.output = rest.substr(close + 2);
  return {};
}

/// `IN.npy:OUT.npy`; a name with another colon needs the ending to be told from it.
static Status parseBoth(std::string_view rest, const std::string &who, Argument &argument) {
  size_t ending = rest.find(".npy:");
  size_t colon = ending == std::string_view::npos ? rest.find(':') : ending + 4;
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == rest.size())
    return usageError("{}: expected inout:IN.npy:OUT.npy", who);
  argument.input = rest.substr(0, colon);
  argument.output = rest.substr(colon + 1);
  return {};
}

Result<Argument> planemutool::parseArgument(const std::string &text, size_t position) {
  std::string who = fmt::format("argument {}, \"{:.120}\"", position, text);
  size_t colon = text.find(':');
  std::string_view kind = std::string_view(text).substr(0, colon);
  std::string_view rest =
      colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
  Argument argument;
  argument.text = text;
  argument.isBuffer = kind == "in" || kind == "out" || kind == "inout";
  if (rest.empty())
    return usageError("{}: expected a kind, a colon and what it takes; see --help", who);
  if (kind == "in" || kind == "value") {
    argument.input = rest;
    return argument;
  }
  if (argument.isBuffer) {
    Status status =
        kind == "out" ? parseOutput(rest, who, argument) : parseBoth(rest, who, argument);
    if (!status.ok())
      return status.takeError();
    return argument;
  }
  const Type *type = findType(kind);
  if (!type || type->kind == Type::RawOnly)
    return usageError("{}: there is no kind \"{:.40}\", there are in, out, inout, value, {}", who,
                      kind, typeNames(false));
  std::optional<uint64_t> bits = numberBits(*type, rest);
  if (!bits)
    return usageError("{}: \"{:.40}\" is not a number of type {}", who, rest, type->name);
  argument.data.resize(type->bytes());
  std::memcpy(argument.data.data(), &*bits, type->bytes());
  return argument;
}

Status planemutool::readArgument(Argument &argument) {
  if (argument.input.empty())
    return {};
  Result<NpyArray> array = readNpy(argument.input);
  if (!array.ok())
    return array.takeError();
  argument.descr = std::move(array->descr);
  argument.shape = std::move(array->shape);
  argument.data = std::move(array->data);
  argument.bytes = argument.data.size();
  return {};
}
