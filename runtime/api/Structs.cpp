//===- Structs.cpp - structs that carry their size --------------------------===//
//
// See Structs.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/api/Structs.h"

#include <algorithm>

using namespace planc;

/// No struct of planrt will ever be as large; a size beyond it is one that nobody has set.
static constexpr size_t largest = 1024;

Status planrt::api::checkSize(const char *name, size_t size, std::span<const size_t> right) {
  bool known = std::find(right.begin(), right.end(), size) != right.end();
  if (known || (size > right.back() && size <= largest))
    return {};
  return makeError(ErrorKind::Usage,
                   "the `size` of a {} is {}; expected {}, or less of an older planrt.h: {}", name,
                   size, right.back(), fmt::join(right.first(right.size() - 1), ", "));
}

Status planrt::api::checkRest(const char *name, const void *given, size_t size, size_t known) {
  auto *bytes = static_cast<const char *>(given);
  for (size_t i = known; i < size; ++i)
    if (bytes[i])
      return makeError(ErrorKind::Usage,
                       "a {} of {} bytes sets what this planrt does not know, at byte {}; it knows "
                       "{} bytes",
                       name, size, i, known);
  return {};
}
