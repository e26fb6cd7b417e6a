//===- Assembler.h - PTX to a cubin ----------------------------------------===//
//
// Private to lib/Codegen: finds and drives ptxas, or nvJitLink where there is no ptxas.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_CODEGEN_ASSEMBLER_H
#define PLANC_LIB_CODEGEN_ASSEMBLER_H

#include "lib/Codegen/Codegen.h"

namespace planc {

class Assembler {
public:
  struct Output {
    std::string cubin;
    CubinFigures figures;
  };

  /// `toolkit` as in CodegenOptions. Null if there is none and none was asked for by name.
  static llvm::Expected<std::unique_ptr<Assembler>> find(llvm::StringRef toolkit);
  virtual ~Assembler() = default;

  /// Any number of threads at once.
  virtual llvm::Expected<Output> assemble(llvm::StringRef ptx, const Target &target) const = 0;

  /// Name and version; two assemblers with the same one make the same bytes.
  std::string version;
};

/// The figures in the text that ptxas prints with `-v`, and nvJitLink with `-verbose`.
CubinFigures parseAssemblerLog(llvm::StringRef log);

/// Bytes of machine code in a cubin: its `.text.*` sections.
llvm::Expected<uint32_t> cubinCodeBytes(llvm::StringRef cubin);

} // namespace planc

#endif // PLANC_LIB_CODEGEN_ASSEMBLER_H
