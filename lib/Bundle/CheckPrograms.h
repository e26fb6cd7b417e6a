//===- CheckPrograms.h - between the two files of check() ------------------===//
//
// Private to lib/Bundle: the name tables, and what both files use.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_BUNDLE_CHECKPROGRAMS_H
#define PLANC_LIB_BUNDLE_CHECKPROGRAMS_H

#include "lib/Bundle/Manifest.h"

#include <span>
#include <string_view>
#include <unordered_map>

namespace planc::bundle {

/// No object of a model is larger; below this, sums and strides of offsets cannot overflow.
inline constexpr uint64_t maxObjectBytes = uint64_t(1) << 42;

struct Names {
  std::unordered_map<std::string_view, const Section *> sections;
  std::unordered_map<std::string_view, const Kernel *> kernels;
  std::unordered_map<std::string_view, const Weight *> weights;
  std::unordered_map<std::string_view, const State *> states;
};

std::optional<uint64_t> shapeBytes(std::span<const int64_t> shape, uint64_t elementBytes);
Status checkBytes(const std::string &who, std::span<const int64_t> shape, Dtype dtype,
                  uint64_t bytes);
Status checkProgram(const Names &names, const Manifest &manifest, const Program &program);

} // namespace planc::bundle

#endif // PLANC_LIB_BUNDLE_CHECKPROGRAMS_H
