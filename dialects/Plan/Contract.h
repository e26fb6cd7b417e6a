//===- Contract.h - what a node or a group promises of its numbers ---------===//

#ifndef PLANC_DIALECTS_PLAN_CONTRACT_H
#define PLANC_DIALECTS_PLAN_CONTRACT_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace plan {

/// Each promises more than the one before.
enum class Contract {
  Differs,      ///< nothing
  Reference,    ///< a rounding of what its steps say, within their bound
  BitIdentical, ///< the bytes of its nodes run one by one
};

/// As plans spell it: `differs`, `reference`, `bit_identical` or `bit_identical(test)`.
std::optional<Contract> contractOf(llvm::StringRef text);
/// The spelling without a test.
llvm::StringRef toString(Contract contract);

} // namespace plan

#endif // PLANC_DIALECTS_PLAN_CONTRACT_H
