//===- Npy.h - arrays as .npy files ---------------------------------------===//
//
// NumPy's array file: a magic, a version, a header that is a Python dict literal, the data. Only
// little-endian C-order arrays of plain numbers are read or written.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_NPY_H
#define PLANC_LIB_SUPPORT_NPY_H

#include "lib/Support/File.h"

namespace planc {

struct NpyArray {
  std::string descr; // "<f4", "<i4", "<i8", "<f8", "<u2", "|u1", ...
  std::vector<int64_t> shape;
  Bytes data;

  /// The elements, if `descr` is the one of T.
  template <class T> std::span<const T> as() const {
    return {reinterpret_cast<const T *>(data.data()), data.size() / sizeof(T)};
  }
};

Result<NpyArray> readNpy(const std::string &path);

/// `data` holds the elements of `shape` in C order; the file appears whole or not at all.
Status writeNpy(const std::string &path, std::string_view descr, std::span<const int64_t> shape,
                ByteView data);

} // namespace planc

#endif // PLANC_LIB_SUPPORT_NPY_H
