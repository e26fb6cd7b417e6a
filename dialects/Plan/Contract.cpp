//===- Contract.cpp - what a node or a group promises of its numbers -------===//

#include "dialects/Plan/Contract.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace plan;

std::optional<Contract> plan::contractOf(llvm::StringRef text) {
  return llvm::StringSwitch<std::optional<Contract>>(
             text.take_until([](char c) { return c == '('; }))
      .Case("differs", Contract::Differs)
      .Case("reference", Contract::Reference)
      .Case("bit_identical", Contract::BitIdentical)
      .Default(std::nullopt);
}

llvm::StringRef plan::toString(Contract contract) {
  switch (contract) {
  case Contract::Differs:
    return "differs";
  case Contract::Reference:
    return "reference";
  case Contract::BitIdentical:
    return "bit_identical";
  }
  llvm_unreachable("all contracts are handled");
}
