//===- Codegen.h - from gpu modules to PTX and cubins ----------------------===//
//
// The door of lib/Codegen. It knows GPU modules and targets, nothing of the plan: a caller hands
// over jobs, each one kernel for one target, and gets their images back in the order of the jobs.
// Jobs are compiled in parallel and looked up in a cache on disk first; neither changes a byte of
// the result.
//
// What a kernel must be: one `gpu.module` with one `gpu.func ... kernel` in direct style (global
// pointers, i32 index arithmetic, gpu, nvvm, llvm, arith, scf, cf and vector operations). What is
// promised about the PTX: every f32 operation is printed with its rounding, so that no later
// compiler contracts it; the instructions differ between targets only where the module does;
// nothing outside the kernel is called; no file name or path is in it.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_CODEGEN_CODEGEN_H
#define PLANC_LIB_CODEGEN_CODEGEN_H

#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace planc {

struct Target;

/// Where compilation stops.
enum class CodegenStage {
  Nvvm,  ///< the module in the LLVM and NVVM dialects
  Ptx,   ///< PTX text
  Cubin, ///< PTX text, and a cubin made from exactly that text if an assembler is at hand
};

struct CodegenOptions {
  CodegenStage stage = CodegenStage::Cubin;
  /// A CUDA toolkit's folder, "none" for PTX alone, or "" to look at the usual places.
  std::string toolkit;
  /// Folder of the cache; "" for the user's own, `$XDG_CACHE_HOME/planc` or `~/.cache/planc`.
  std::string cacheDir;
  bool useCache = true;
  /// Threads that compile; 0 for one per core.
  unsigned threads = 0;
};

/// What only an assembler knows about a kernel.
struct CubinFigures {
  uint32_t registers = 0;
  uint32_t stackBytes = 0;
  uint32_t spillStoreBytes = 0;
  uint32_t spillLoadBytes = 0;
  uint32_t staticSharedBytes = 0;
  uint32_t codeBytes = 0;
};

struct KernelImage {
  std::string entry; ///< name of the PTX entry
  std::string ptx;   ///< the NVVM module's text if that is the stage
  std::string cubin; ///< ELF bytes; empty without an assembler
  std::optional<CubinFigures> figures;
  std::string
      facts; ///< `KernelSource::facts` of this compilation or of the one that filled the cache
  bool fromCache = false;
};

/// A kernel's IR and what its maker wants to know about it again when the image comes from the
/// cache.
struct KernelSource {
  std::string module; ///< text of a `builtin.module`; `printForCodegen` makes it
  std::string entry;  ///< name of the kernel in it
  std::string facts;  ///< opaque
};

struct KernelJob {
  std::string name;     ///< of the kernel, for messages
  const Target *target; ///< borrowed
  /// Everything that `emit` depends on besides the compiler's own code and the target; the key to
  /// the cache. Two jobs with the same identity and target have the same image. Empty: `emit` is
  /// always called, its module is the key.
  std::string identity;
  /// Makes the source; called on the thread of `compile` and only if the image is not in the cache.
  /// Nothing on failure, after it reported why.
  std::function<std::optional<KernelSource>()> emit;
};

struct KernelResult {
  std::optional<KernelImage> image;
  std::string
      error; ///< what went wrong, with the kernel and the target; empty if `emit` said so itself
};

class Codegen {
public:
  /// Fails if `options.toolkit` names a folder that holds no assembler.
  static llvm::Expected<std::unique_ptr<Codegen>> create(const CodegenOptions &options);
  ~Codegen();

  /// One result per job, in their order. All jobs are tried, whatever becomes of one.
  std::vector<KernelResult> compile(const std::vector<KernelJob> &jobs);

  /// "ptxas V13.0.88", or "" if there is none or the stage does not ask for one.
  const std::string &assembler() const;

  /// "LLVM 22.1.8".
  static std::string backend();

  /// What the user should know, once: a cache that cannot be written. Empty if nothing.
  std::string warning() const;

private:
  struct Impl;
  explicit Codegen(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Static shared memory that a kernel's PTX declares, laid out in its order. An assembler may find
/// a tighter order: its figure goes first where there is one.
uint32_t declaredSharedBytes(llvm::StringRef ptx);

/// The module's text without locations, as `KernelSource::module` wants it.
std::string printForCodegen(mlir::ModuleOp module);

} // namespace planc

#endif // PLANC_LIB_CODEGEN_CODEGEN_H
