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
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

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
