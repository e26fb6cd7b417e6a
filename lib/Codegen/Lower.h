//===- Lower.h - one gpu module to PTX text --------------------------------===//
//
// Private to lib/Codegen. A lowerer belongs to one thread: it owns an MLIR and an LLVM context,
// which a backend failure may leave in any state and which are then replaced.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_CODEGEN_LOWER_H
#define PLANC_LIB_CODEGEN_LOWER_H

#include "lib/Codegen/Codegen.h"

namespace planc {

class Lowerer {
public:
  Lowerer();
  ~Lowerer();

  /// The text of `module`, lowered for `target` as far as `stage` says (a cubin's PTX included).
  /// Errors carry no kernel name; the caller knows it.
  llvm::Expected<std::string> lower(const std::string &module, const Target &target,
                                    CodegenStage stage);

private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts;
};

/// Checks what Codegen.h promises about PTX: rounding is spelled out and nothing outside is
/// referred to.
llvm::Error checkPtx(llvm::StringRef ptx, llvm::StringRef entry);

} // namespace planc

#endif // PLANC_LIB_CODEGEN_LOWER_H
