//===- VerdictCache.h - verdicts that hold as long as nothing has changed ---===//
//
// Private to lib/Verify. A verdict's key is the kernel's text, what was asked for, and the bytes of
// this program and of the emulator; so a verdict is found again only where the same would be
// computed. Only verdicts without a failure are kept.
//
//===----------------------------------------------------------------------===//

#ifndef PLANC_LIB_VERIFY_VERDICTCACHE_H
#define PLANC_LIB_VERIFY_VERDICTCACHE_H

#include "dialects/Plan/PlanOps.h"
#include "lib/Verify/Verify.h"

namespace planc::verify {

class VerdictCache {
public:
  explicit VerdictCache(const Options &options);

  std::string keyOf(plan::KernelOp kernel, const Options &options) const;
  /// Nothing if there is none, or a file that is damaged.
  std::optional<Verdict> find(const std::string &key) const;
  /// A cache that cannot be written is no failure.
  void store(const std::string &key, const Verdict &verdict) const;

private:
  std::string folder;  // "": no cache
  std::string program; // digest of the code that verifies
};

Json toJson(const Verdict &verdict);
Verdict verdictFromJson(const Json &json);

} // namespace planc::verify

#endif // PLANC_LIB_VERIFY_VERDICTCACHE_H
