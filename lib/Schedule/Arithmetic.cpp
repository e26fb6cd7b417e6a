//===- Arithmetic.cpp - how a kernel's members round ------------------------===//
//
// Schedules note it beside the code that they emit. The errors of functions are those that
// KernelBuilder.h states for Math.cpp, in units of 2^-24: an ulp is two of them.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Liveness.h"
#include "lib/Schedule/KernelBuilder.h"

using namespace mlir;
using namespace planc;

void KernelBuilder::note(Operation *member, numerics::Part part) {
  std::vector<numerics::Part> &parts = notes[member];
  for (numerics::Part &known : parts)
    if (known.name == part.name) {
      if (numerics::roundings(part) > numerics::roundings(known))
        known = std::move(part);
      return;
    }
  parts.push_back(std::move(part));
}

static numerics::Part partOf(KernelBuilder::Function function) {
  using enum KernelBuilder::Function;
  switch (function) {
  case Exp:
    return numerics::rounding("exp", 6, "3 ulp: ex2.approx 2, an fma, the split product");
  case Log1p:
    return numerics::rounding("log1p", 6, "3 ulp: rcp.approx 1, the series, an fma");
  case Sigmoid:
    return numerics::rounding("sigmoid", 10, "5 ulp: exp 3, rcp.approx 1, an addition, a product");
  case Rcp:
    return numerics::rounding("rcp", 2, "rcp.approx, 1 ulp");
  case Rsqrt:
    return numerics::rounding("rsqrt", 4, "rsqrt.approx, 2 ulp");
  case SinCos:
    return {"sincos", {}, 0, 23, "reduction in three parts, Taylor to r^10"};
  }
  llvm_unreachable("all functions are handled");
}

void KernelBuilder::note(Operation *member, Function function, llvm::StringRef name) {
  numerics::Part part = partOf(function);
  if (!name.empty())
    part.name = name.str();
  note(member, std::move(part));
}

std::vector<numerics::Node> KernelBuilder::arithmetic() const {
  std::vector<numerics::Node> nodes;
  plan::KernelOp op = kernel;
  for (Operation &member : op.getBody().front().without_terminator()) {
    numerics::Node &node = nodes.emplace_back();
    node.op = member.getName().stripDialect().str();
    if (auto parts = notes.find(&member); parts != notes.end())
      node.parts = parts->second;
    // Who computes a value has said how; one that nobody reads is not computed.
    if (llvm::all_of(member.getResults(), [](Value result) { return plan::isRead(result); }))
      continue;
    std::vector<std::string_view> names = numerics::partsOf(node.op).value();
    for (std::string_view name : names)
      if (!numerics::findPart(node, name))
        node.parts.push_back(numerics::rounding(std::string(name), 0, "nobody reads it"));
  }
  return nodes;
}
