//===- Target.cpp - the target table in memory -----------------------------===//
//
// Joins the two kinds of rows of Targets.def, architectures and products, once.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Target.h"

using namespace planc;

static constexpr uint32_t featureBit(Feature feature) { return uint32_t(1) << unsigned(feature); }

namespace {
struct Arch {
  unsigned sm, ptxVersion, sharedKiB;
  uint32_t features;
};
} // namespace

static constexpr Arch archs[] = {
#define PLANC_ARCH(sm, ptx, sharedKiB, features) {sm, ptx, sharedKiB, features},
#include "lib/Target/Targets.def"
};

/// A product's row without a row for its architecture does not compile: the result is needed at
/// compile time.
static consteval Arch archOf(unsigned sm) {
  for (const Arch &arch : archs)
    if (arch.sm == sm)
      return arch;
  throw "Targets.def: a PLANC_TARGET names an architecture that has no PLANC_ARCH";
}

static constexpr Target makeTarget(std::string_view name, const Arch &arch, unsigned smCount,
                                   uint32_t dramGBps) {
  return {name, arch.sm, arch.ptxVersion, smCount, arch.sharedKiB * 1024, dramGBps, arch.features};
}

const std::vector<Target> &planc::allTargets() {
  static const std::vector<Target> targets = {
#define PLANC_TARGET(name, sm, smCount, dramGBps) makeTarget(name, archOf(sm), smCount, dramGBps),
#include "lib/Target/Targets.def"
  };
  return targets;
}

const Target *planc::lookupTarget(std::string_view name) {
  for (const Target &target : allTargets())
    if (target.name == name)
      return &target;
  return nullptr;
}

std::string planc::targetNames() {
  std::string names;
  for (const Target &target : allTargets()) {
    names += names.empty() ? "" : ", ";
    names += target.name;
  }
  return names;
}

std::string_view planc::describe(Feature feature) {
  static constexpr std::string_view texts[] = {
#define PLANC_FEATURE(Name, text) text,
#include "lib/Target/Targets.def"
  };
  return texts[unsigned(feature)];
}
