//===- Config.h - a model's config.json as dims and parameters ------------===//
//
// Private to lib/Import.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_IMPORT_CONFIG_H
#define PLANC_LIB_IMPORT_CONFIG_H

#include "lib/Import/Problems.h"

namespace planc {

struct ModelConfig {
  /// Dims of the plan by name, in the order of semantics.md section 4.
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<std::string> layerTypes;
  double rmsNormEps = 0;
  double ropeTheta = 0;
  int64_t rotaryDim = 0;
  llvm::SmallVector<int64_t> mropeSection;
  /// Nothing when the config does not say.
  std::optional<int64_t> maxPositions;

  std::optional<int64_t> dim(llvm::StringRef name) const;
};

/// Reads and checks `root`; errors go to `problems`.
ModelConfig readConfig(Problems &problems, const JsonValue &root);

} // namespace planc

#endif // PLANC_LIB_IMPORT_CONFIG_H
