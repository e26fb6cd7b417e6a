//===- PtxCheck.cpp - hold PTX to what Codegen.h promises -------------------===//
//
//   X1  a floating-point add, sub, mul or mad names its rounding: without one a later compiler may
//   contract it, and
//       the same PTX gives other bits on another machine
//   X2  no function or variable from outside; above all none of libdevice (`__nv_*`): kernels are
//   the same with and
//       without a toolkit
//
// PTX is free of comments that could confuse a scan by statements: what is scanned is what LLVM
// just printed.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/Lower.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

static bool isContractible(StringRef head) {
  return head == "add" || head == "sub" || head == "mul" || head == "mad";
}

static bool isFloat(StringRef type) {
  return StringSwitch<bool>(type)
      .Cases({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"}, true)
      .Default(false);
}

static bool isRounding(StringRef part) {
  return part == "rn" || part == "rz" || part == "rm" || part == "rp";
}

/// X1 on `add.rn.f32` and the like.
static bool namesItsRounding(StringRef opcode) {
  SmallVector<StringRef, 6> parts;
  opcode.split(parts, '.');
  return !isContractible(parts.front()) || !isFloat(parts.back()) || any_of(parts, isRounding);
}

/// The name declared by `.extern .func (.param .b32 r) name(`, or by `.extern .global .b32 name;`.
static StringRef declaredName(StringRef rest) {
  rest = rest.trim();
  if (rest.consume_front(".func")) {
    rest = rest.ltrim();
    if (rest.starts_with("("))
      rest = rest.drop_front(rest.find(')') + 1);
    return rest.take_until([](char c) { return c == '('; }).trim();
  }
  return rest.rsplit(' ').second.take_until([](char c) { return c == '['; });
}

Error planc::checkPtx(StringRef ptx, StringRef entry) {
  bool hasEntry = false;
  for (StringRef rest = ptx; !rest.empty();) {
    size_t end = rest.find_first_of(";{}\n");
    StringRef statement = rest.substr(0, end).trim();
    StringRef next = end == StringRef::npos ? StringRef() : rest.drop_front(end + 1);
    if (statement.starts_with("//")) {
      rest = rest.drop_front(std::min(rest.find('\n'), rest.size() - 1) + 1);
      continue;
    }
    StringRef external = statement;
    if (external.consume_front(".extern") && !external.ltrim().starts_with(".shared"))
      return createStringError("internal error: the generated PTX needs \"" +
                               declaredName(external) + "\" from outside, which no kernel may");
    if (statement.consume_front(".visible"))
      if (statement = statement.ltrim(); statement.consume_front(".entry"))
        hasEntry |= statement.ltrim().take_until([](char c) { return c == '('; }) == entry;
    if (statement.starts_with("@"))
      statement = statement.drop_until([](char c) { return c == ' ' || c == '\t'; }).ltrim();
    StringRef opcode = statement.take_until([](char c) { return c == ' ' || c == '\t'; });
    if (!opcode.empty() && !namesItsRounding(opcode))
      return createStringError("internal error: \"" + opcode +
                               "\" in the generated PTX names no rounding and may be contracted");
    rest = next;
  }
  if (!hasEntry)
    return createStringError("internal error: the generated PTX has no entry \"" + entry + "\"");
  return Error::success();
}

/// Bytes of `.shared .align 16 .b8 tile[512]` and its alignment, of `.shared .align 4 .b32 flag`
/// too.
static uint32_t declaredBytes(StringRef statement, uint32_t &alignment) {
  SmallVector<StringRef, 6> words;
  SplitString(statement, words);
  uint32_t bits = 8, count = 1;
  for (auto [word, next] : zip(words, drop_begin(words)))
    if (word == ".align")
      (void)next.getAsInteger(10, alignment);
  // The type is the word before the name: ".b8".
  if (words.size() >= 2)
    (void)words[words.size() - 2]
        .drop_while([](char c) { return !isDigit(c); })
        .getAsInteger(10, bits);
  (void)words.back().split('[').second.split(']').first.getAsInteger(10, count);
  return bits / 8 * count;
}

uint32_t planc::declaredSharedBytes(StringRef ptx) {
  uint32_t bytes = 0;
  for (StringRef line : split(ptx, '\n')) {
    line = line.trim();
    if (!line.starts_with(".shared") || !line.consume_back(";"))
      continue;
    uint32_t alignment = 1;
    uint32_t size = declaredBytes(line, alignment);
    bytes = alignTo(bytes, std::max(alignment, 1u)) + size;
  }
  return bytes;
}
