//===- Images.cpp - which image of a kernel a device takes ------------------===//
//
// Which driver takes which PTX: the release notes at the end of the PTX ISA manual ("PTX Release
// History").
//
//===----------------------------------------------------------------------===//
#include "runtime/Images.h"

#include <charconv>

using namespace planc;
using namespace planrt;

/// Can PTX of this target become code for `sm`? Names that end in `a` are for one architecture
/// only, names that end in `f` for the later ones of its family.
static bool ptxRunsOn(const bundle::Target &target, unsigned sm) {
  if (target.name.ends_with('a'))
    return target.sm == sm;
  return target.sm <= sm && (!target.name.ends_with('f') || target.sm / 10 == sm / 10);
}

const bundle::Target *planrt::choosePtx(const bundle::Manifest &manifest, unsigned sm) {
  const bundle::Target *best = nullptr;
  for (const bundle::Target &target : manifest.targets)
    if (ptxRunsOn(target, sm) &&
        (!best || std::pair(best->sm, best->name) < std::pair(target.sm, target.name)))
      best = &target;
  return best;
}

std::vector<const bundle::Target *>
planrt::cubinTargets(const bundle::Manifest &manifest, const bundle::Kernel &kernel, unsigned sm) {
  std::vector<const bundle::Target *> targets;
  for (const bundle::Target &target : manifest.targets)
    if (target.sm == sm && kernel.targets.at(target.name).cubin)
      targets.push_back(&target);
  return targets;
}

//===----------------------------------------------------------------------===//
// PTX and driver versions
//===----------------------------------------------------------------------===//

namespace {
/// 10 * major + minor of PTX, and the first CUDA release whose driver takes it, as
/// cuDriverGetVersion counts.
struct PtxRelease {
  int ptx, cuda;
};
} // namespace

static constexpr PtxRelease releases[] = {
    {70, 11000}, {71, 11010}, {72, 11020}, {73, 11030}, {74, 11040}, {75, 11050}, {76, 11060},
    {77, 11070}, {78, 11080}, {80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040},
    {85, 12050}, {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}, {91, 13010}};

/// 10 * major + minor of the `.version` directive; 0 if there is none.
static int ptxVersion(std::string_view ptx) {
  size_t at = ptx.find(".version ");
  if (at == std::string_view::npos)
    return 0;
  const char *begin = ptx.data() + at + 9, *end = ptx.data() + ptx.size();
  int major = 0, minor = 0;
  auto [dot, error] = std::from_chars(begin, end, major);
  if (error != std::errc() || dot == end || *dot != '.' ||
      std::from_chars(dot + 1, end, minor).ec != std::errc() || major > 99 || minor > 9)
    return 0;
  return 10 * major + minor;
}

static std::string cudaText(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

Status planrt::checkPtxVersion(const bundle::Bundle &bundle, const Device &device,
                               const bundle::Kernel &kernel, const bundle::Target &target) {
  int version = ptxVersion(asText(bundle.section(kernel.targets.at(target.name).ptx)));
  int driver = 0;
  if (Status status = device.check(device.driver()->cuDriverGetVersion(&driver),
                                   "cannot ask for the driver's version");
      !status.ok())
    return status;
  for (const PtxRelease &release : releases) {
    if (release.ptx < version)
      continue;
    // A version of which nothing is known is the driver's to judge.
    if (release.ptx > version || release.cuda <= driver)
      return {};
    return makeError(
        ErrorKind::Environment,
        "kernel \"{}\", {} ptx: PTX {}.{} needs a driver of {} or newer, the driver of "
        "device {} is of {}; a newer driver, or a cubin for sm_{}, would help",
        kernel.name, target.name, version / 10, version % 10, cudaText(release.cuda), device.name(),
        cudaText(driver), device.sm());
  }
  return {};
}

Error planrt::noImage(const bundle::Manifest &manifest, const Device &device) {
  std::string targets;
  for (const bundle::Target &target : manifest.targets)
    targets += (targets.empty() ? "" : ", ") + target.name;
  return makeError(ErrorKind::Environment,
                   "the bundle has images for {}, none runs on sm_{}, which device {} ({}) is; "
                   "compile the plan with --target sm_{}",
                   targets, device.sm(), device.name(), device.product(), device.sm());
}

Status planrt::checkImage(const bundle::Bundle &bundle, const Device &device,
                          const bundle::Kernel &kernel) {
  if (!cubinTargets(bundle.manifest(), kernel, device.sm()).empty())
    return {};
  const bundle::Target *target = choosePtx(bundle.manifest(), device.sm());
  if (!target)
    return noImage(bundle.manifest(), device);
  return checkPtxVersion(bundle, device, kernel, *target);
}
