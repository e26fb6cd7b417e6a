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
  /// `start` is where the text lies in the file.
  HeaderScanner(std::string_view text, size_t start) : whole(text), rest(text), start(start) {}

  Status scan(NpyArray &array) {
    bool descr = false, order = false, shape = false;
    if (!take('{'))
      return expected("a dictionary");
    while (!take('}')) {
      std::string_view key, value;
      skip();
      size_t at = offset();
      if (!string(key) || !take(':'))
        return expected("a key in single quotes and a colon");
      if ((key == "descr" && descr) || (key == "fortran_order" && order) ||
          (key == "shape" && shape))
        return inputError("the .npy header at offset {}: key '{:.20}' occurs twice", at, key);
      if (key == "descr") {
        if (!(descr = string(value)))
          return expected("an element type in single quotes; arrays of records are not read");
        array.descr = value;
      } else if (key == "fortran_order") {
        skip();
        at = offset();
        if (word("True"))
          return inputError("the .npy header at offset {}: fortran_order is True, expected an "
                            "array in C order",
                            at);
        if (!(order = word("False")))
          return expected("False");
      } else if (key == "shape") {
        if (!(shape = tuple(array.shape)))
          return expected("a tuple of numbers from 0");
      } else {
        return inputError("the .npy header at offset {}: unknown key '{:.20}'", at, key);
      }
      if (!take(',') && !peek('}'))
        return expected("a comma or a closing brace");
    }
    skip();
    if (!rest.empty())
      return expected("nothing after the closing brace");
    for (auto [found, key] :
         {std::pair(descr, "descr"), {order, "fortran_order"}, {shape, "shape"}})
      if (!found)
        return inputError("the .npy header at offset {}: key '{}' is missing", start, key);
    return {};
  }

private:
  size_t offset() const { return start + whole.size() - rest.size(); }
  Error expected(std::string_view what) {
    skip();
    return inputError("the .npy header at offset {}: expected {}", offset(), what);
  }
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
    if (!peek('\''))
      return false;
    size_t end = rest.find('\'', 1);
    if (end == std::string_view::npos)
      return false;
    value = rest.substr(1, end - 1);
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

  std::string_view whole, rest;
  size_t start;
};
} // namespace

Result<NpyArray> planc::readNpy(const std::string &path) {
  Result<Bytes> content = readFile(path, uint64_t(1) << 36);
  if (!content.ok())
    return content.takeError();
  std::string_view text = asText(*content);
  if (!text.starts_with(std::string_view(magic, magicBytes)))
    return fileError(path, "is not a .npy file: the first {} bytes are not \"\\x93NUMPY\"",
                     magicBytes);
  auto truncated = [&](const char *what, uint64_t bytes, size_t at) {
    return fileError(path, "truncated: {} needs {} bytes at offset {}, but the file ends at {}",
                     what, bytes, at, text.size());
  };
  if (text.size() < magicBytes + 2)
    return truncated("the version", 2, magicBytes);
  unsigned char version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    return fileError(path, "has .npy version {}.{} at offset {}, expected 1 to 3", version,
                     static_cast<unsigned char>(text[7]), magicBytes);
  size_t lengthBytes = version == 1 ? 2 : 4;
  size_t start = magicBytes + 2 + lengthBytes;
  if (text.size() < start)
    return truncated("the header's length", lengthBytes, magicBytes + 2);
  uint64_t headerBytes = 0;
  for (size_t i = lengthBytes; i-- > 0;)
    headerBytes = headerBytes << 8 | static_cast<unsigned char>(text[magicBytes + 2 + i]);
  if (headerBytes > text.size() - start)
    return truncated("the header", headerBytes, start);

  NpyArray array;
  HeaderScanner scanner(text.substr(start, headerBytes), start);
  if (Status status = scanner.scan(array); !status.ok())
    return fileError(path, "{}", status.error().message);
  uint64_t element = elementBytes(array.descr), expected = 0;
  if (!element)
    return fileError(path, "has elements of type '{:.20}', expected {}", array.descr,
                     array.descr.starts_with('>') ? "little-endian numbers"
                                                  : "integers of 1 to 8 bytes or floats of 2 to 8");
  std::optional<uint64_t> count = elementCount(array.shape);
  uint64_t found = text.size() - start - headerBytes;
  if (!count || __builtin_mul_overflow(*count, element, &expected))
    return fileError(path, "has the impossible shape {:.80}", shapeText(array.shape));
  if (expected > found)
    return truncated(fmt::format("{} of shape {:.80}", array.descr, shapeText(array.shape)).c_str(),
                     expected, start + headerBytes);
  if (expected < found)
    return fileError(path, "{} of shape {:.80} has {} bytes, but {} follow at offset {}",
                     array.descr, shapeText(array.shape), expected, found, start + headerBytes);
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
