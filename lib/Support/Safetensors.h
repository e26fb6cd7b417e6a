//===- Safetensors.h - tensors of a safetensors file by name --------------===//
//
// A safetensors file is an 8-byte little-endian header length, a JSON header that maps each tensor
// name to its dtype, shape and byte range, and the data. open() reads the header once and believes
// nothing: ranges must lie inside the file, cover it without overlap or hole, and have the size
// that dtype and shape ask for. Data is read by pread; no page of the file is mapped.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_SAFETENSORS_H
#define PLANC_LIB_SUPPORT_SAFETENSORS_H

#include "lib/Support/File.h"

#include <unordered_map>

namespace planc {

struct TensorInfo {
  std::string dtype; // as the file spells it: "BF16", "F32", "F8_E4M3", "I32", ...
  std::vector<int64_t> shape;
  uint64_t offset = 0; // in the file
  uint64_t bytes = 0;
};

class SafetensorsFile {
public:
  static Result<SafetensorsFile> open(const std::string &path);

  const std::string &path() const { return file.path(); }
  const std::unordered_map<std::string, TensorInfo> &tensors() const { return infos; }
  const TensorInfo *find(const std::string &name) const;

  /// Fills `out` from byte `offset` of the tensor.
  Status read(const TensorInfo &tensor, uint64_t offset, std::span<std::byte> out) const;
  /// The whole tensor.
  Result<Bytes> read(const TensorInfo &tensor) const;

private:
  explicit SafetensorsFile(InputFile file) : file(std::move(file)) {}
  Status readHeader();

  InputFile file;
  std::unordered_map<std::string, TensorInfo> infos;
};

/// Bytes of one element of a safetensors dtype, 0 if there is no such dtype.
uint64_t safetensorsElementBytes(std::string_view dtype);

/// The product of a shape, or nothing if it does not fit or a dimension is negative.
std::optional<uint64_t> elementCount(std::span<const int64_t> shape);

/// "[8192, 2048]"
std::string shapeText(std::span<const int64_t> shape);

} // namespace planc

#endif // PLANC_LIB_SUPPORT_SAFETENSORS_H
