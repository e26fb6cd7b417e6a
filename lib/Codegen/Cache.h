//===- Cache.h - compiled kernels on disk ----------------------------------===//
//
// Private to lib/Codegen. A folder of files named after the hash of all that went into them. A file
// is written under another name and renamed, so that a reader sees a whole entry or none; it
// carries a checksum, and one that does not match counts as absent and is written again. A folder
// that cannot be used makes compilation slower, never wrong.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_CODEGEN_CACHE_H
#define PLANC_LIB_CODEGEN_CACHE_H

#include "lib/Codegen/Codegen.h"

#include <mutex>

namespace planc {

class KernelCache {
public:
  /// `dir` as in CodegenOptions.
  explicit KernelCache(llvm::StringRef dir);

  /// The file name of an entry: the hash of `material`, in hexadecimal.
  static std::string key(llvm::StringRef material);

  std::optional<KernelImage> load(llvm::StringRef key) const;
  void store(llvm::StringRef key, const KernelImage &image);

  /// The first reason why nothing could be stored; empty if all is well.
  std::string warning() const;

private:
  bool prepare();
  void fail(const llvm::Twine &reason);

  std::string dir; // empty: no place for a cache
  mutable std::mutex mutex;
  std::string problem; // guarded by mutex
  bool prepared = false;
};

} // namespace planc

#endif // PLANC_LIB_CODEGEN_CACHE_H
