//===- Npy.cpp - arrays as .npy files -------------------------------------===//
//
// The header is a Python literal with three known keys; a small scanner reads exactly that form.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Npy.h"

#include "lib/Support/Safetensors.h"

#include <charconv>
#include <cstring>

using namespace planc;

static constexpr char magic[] = "\x93NUMPY";
static constexpr size_t magicBytes = 6;

/// Bytes of one element, 0 for a descr that is not a little-endian number.
static uint64_t elementBytes(std::string_view descr) {
  for (std::string_view known :
       {"|b1", "|i1", "|u1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<i8", "<u8", "<f8"})
    if (descr == known)
      return uint64_t(descr[2] - '0');
  return 0;
}

namespace {
/// Scans `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` with keys in any order.
class HeaderScanner {
public:
  explicit HeaderScanner(std::string_view text) : rest(text) {}

  bool scan(NpyArray &array) {
    bool descr = false, order = false, shape = false;
    if (!take('{'))
      return false;
    while (!take('}')) {
      std::string_view key;
      if (!string(key) || !take(':'))
        return false;
      if (key == "descr" && !descr) {
        std::string_view value;
        if (!(descr = string(value)))
          return false;
        array.descr = value;
      } else if (key == "fortran_order" && !order) {
        if (!(order = word("False")))
          return false;
      } else if (key == "shape" && !shape) {
        if (!(shape = tuple(array.shape)))
          return false;
      } else {
        return false;
      }
      if (!take(',') && !peek('}'))
        return false;
    }
    skip();
    return rest.empty() && descr && order && shape;
  }

private:
  void skip() {
    size_t at = rest.find_first_not_of(" \n");
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at);
  }
  bool peek(char c) {
    skip();
    return !rest.empty() && rest[0] == c;
  }
  bool take(char c) {
    if (!peek(c))
      return false;
    rest.remove_prefix(1);
    return true;
  }
  bool word(std::string_view expected) {
    skip();
    if (!rest.starts_with(expected))
      return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  bool string(std::string_view &value) {
    if (!take('\''))
      return false;
    size_t end = rest.find('\'');
    if (end == std::string_view::npos)
      return false;
    value = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return true;
  }
  bool tuple(std::vector<int64_t> &shape) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skip();
      int64_t extent = 0;
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
      if (error != std::errc() || extent < 0)
        return false;
      rest.remove_prefix(size_t(end - rest.data()));
      shape.push_back(extent);
      if (!take(',') && !peek(')'))
        return false;
    }
    return true;
  }

  std::string_view rest;
};
} // namespace

Result<NpyArray> planc::readNpy(const std::string &path) {
  Result<Bytes> content = readFile(path, uint64_t(1) << 36);
  if (!content.ok())
    return content.takeError();
  std::string_view text = asText(*content);
  if (!text.starts_with(std::string_view(magic, magicBytes)) || text.size() < 10)
    return fileError(path, "is not a .npy file");
  unsigned char version = static_cast<unsigned char>(text[6]);
  size_t lengthBytes = version == 1 ? 2 : 4;
  size_t start = magicBytes + 2 + lengthBytes;
  if (version < 1 || version > 3 || text.size() < start)
    return fileError(path, ".npy version {}, expected 1 to 3", version);
  uint64_t headerBytes = 0;
  for (size_t i = lengthBytes; i-- > 0;)
    headerBytes = headerBytes << 8 | static_cast<unsigned char>(text[magicBytes + 2 + i]);
  if (headerBytes > text.size() - start)
    return fileError(path, "header needs {} bytes at offset {}, but the file ends at {}",
                     headerBytes, start, text.size());

  NpyArray array;
  if (!HeaderScanner(text.substr(start, headerBytes)).scan(array))
    return fileError(path, "the .npy header is not a C-order array's");
  uint64_t element = elementBytes(array.descr), expected = 0;
  if (!element)
    return fileError(path, "unknown element type '{:.20}'", array.descr);
  std::optional<uint64_t> count = elementCount(array.shape);
  uint64_t found = text.size() - start - headerBytes;
  if (!count || __builtin_mul_overflow(*count, element, &expected) || expected != found)
    return fileError(path, "shape {:.80} of '{}' does not match {} bytes of data",
                     shapeText(array.shape), array.descr, found);
  array.data.assign(content->end() - ptrdiff_t(found), content->end());
  return array;
}

Status planc::writeNpy(const std::string &path, std::string_view descr,
                       std::span<const int64_t> shape, ByteView data) {
  assert(elementBytes(descr) && elementCount(shape) &&
         *elementCount(shape) * elementBytes(descr) == data.size());
  std::string tuple;
  for (int64_t extent : shape)
    tuple += fmt::format("{}{}", tuple.empty() ? "" : ", ", extent);
  if (shape.size() == 1)
    tuple += ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, tuple);
  // Version 1.0: the data starts at a multiple of 64, the header ends with a newline.
  header.append(63 - (magicBytes + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::string prefix(magic, magicBytes);
  prefix += {'\1', '\0', char(header.size() & 0xff), char(header.size() >> 8)};

  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeError();
  for (ByteView piece : {asBytes(prefix), asBytes(header), data})
    if (Status status = file->write(piece); !status.ok())
      return status;
  return file->commit();
}
