//===- Safetensors.cpp - tensors of a safetensors file by name ------------===//
//
// The header checks follow the format's own rules: every byte of the data belongs to exactly one
// tensor, the header is an object of objects with three known keys.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Safetensors.h"

#include "lib/Support/Discard.h"

#include <algorithm>
#include <limits>

using namespace planc;

/// The format's own limit; larger headers are refused before anything is allocated.
static constexpr uint64_t maxHeaderBytes = 100'000'000;

uint64_t planc::safetensorsElementBytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, uint64_t> sizes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8}};
  for (const auto &[name, bytes] : sizes)
    if (name == dtype)
      return bytes;
  return 0;
}

std::optional<uint64_t> planc::elementCount(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, uint64_t(extent), &count))
      return std::nullopt;
  return count;
}

std::string planc::shapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  Result<InputFile> input = InputFile::open(path);
  if (!input.ok())
    return input.takeError();
  SafetensorsFile file(std::move(*input));
  if (Status status = file.readHeader(); !status.ok())
    return status.takeError();
  return file;
}

/// A number of a header: a non-negative integer that a file offset can be.
static bool isSize(const Json &json) {
  return json.is_number_unsigned() &&
         json.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max());
}

/// One entry of the header, `offset` still relative to the data; the error's text follows the name.
static Result<TensorInfo> readEntry(const Json &entry) {
  if (!entry.is_object())
    return Error{"expected an object"};
  for (const auto &[key, value] : entry.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return inputError("unknown key \"{:.60}\"", key);
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key))
      return inputError("key \"{}\" is missing", key);

  TensorInfo info;
  const Json &dtype = entry["dtype"], &shape = entry["shape"], &range = entry["data_offsets"];
  uint64_t elementBytes =
      dtype.is_string() ? safetensorsElementBytes(dtype.get_ref<const std::string &>()) : 0;
  if (!elementBytes)
    return inputError("unknown dtype {:.60}", dtype.dump());
  info.dtype = dtype.get<std::string>();
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), isSize))
    return Error{"shape is not a list of non-negative integers"};
  info.shape = shape.get<std::vector<int64_t>>();
  if (!range.is_array() || range.size() != 2 || !isSize(range[0]) || !isSize(range[1]))
    return Error{"data_offsets is not a pair of non-negative integers"};
  uint64_t begin = range[0].get<uint64_t>(), end = range[1].get<uint64_t>();
  if (end < begin)
    return inputError("data_offsets [{}, {}] end before they begin", begin, end);

  std::optional<uint64_t> count = elementCount(info.shape);
  uint64_t expected;
  if (!count || __builtin_mul_overflow(*count, elementBytes, &expected))
    return inputError("shape {:.80} is larger than any file", shapeText(info.shape));
  if (expected != end - begin)
    return inputError("{} {:.80} has {} bytes, but data_offsets [{}, {}] are {}", info.dtype,
                      shapeText(info.shape), expected, begin, end, end - begin);
  info.offset = begin;
  info.bytes = end - begin;
  return info;
}

Status SafetensorsFile::readHeader() {
  const std::string &name = path();
  if (file.size() < 8)
    return fileError(name, "has {} bytes, a safetensors file has at least 8", file.size());
  unsigned char raw[8];
  if (Status status = file.read(0, std::as_writable_bytes(std::span(raw))); !status.ok())
    return status;
  uint64_t headerBytes = 0;
  for (int i = 7; i >= 0; --i)
    headerBytes = headerBytes << 8 | raw[i];
  if (headerBytes > maxHeaderBytes)
    return fileError(name, "header of {} bytes, at most {} are allowed", headerBytes,
                     maxHeaderBytes);
  if (headerBytes > file.size() - 8)
    return fileError(name, "header needs {} bytes at offset 8, but the file ends at {}",
                     headerBytes, file.size());
  std::string text(headerBytes, '\0');
  if (Status status = file.read(8, std::as_writable_bytes(std::span(text))); !status.ok())
    return status;
  // Two levels of objects and the lists inside are all there is.
  Result<Json> header = parseJson(text, 4);
  if (!header.ok())
    return fileError(name, "header: {}", header.error().message);
  Discard discard(*header);
  if (!header->is_object())
    return fileError(name, "header: expected an object");

  uint64_t dataStart = 8 + headerBytes, dataBytes = file.size() - dataStart;
  std::vector<std::pair<const std::string *, const TensorInfo *>> inOrder;
  infos.reserve(header->size());
  for (const auto &[key, entry] : header->items()) {
    if (key == "__metadata__") {
      if (!entry.is_object() ||
          !std::all_of(entry.begin(), entry.end(), [](const Json &v) { return v.is_string(); }))
        return fileError(name, "header: __metadata__ is not an object of strings");
      continue;
    }
    Result<TensorInfo> info = readEntry(entry);
    if (!info.ok())
      return fileError(name, "tensor \"{:.200}\": {}", key, info.error().message);
    if (info->offset > dataBytes || info->bytes > dataBytes - info->offset)
      return fileError(name,
                       "tensor \"{:.200}\" needs {} bytes at offset {}, but the file ends at {}",
                       key, info->bytes, dataStart + info->offset, file.size());
    info->offset += dataStart;
    auto [at, inserted] = infos.emplace(key, std::move(*info));
    inOrder.emplace_back(&at->first, &at->second);
  }

  std::sort(inOrder.begin(), inOrder.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second->offset, a.second->bytes) <
           std::pair(b.second->offset, b.second->bytes);
  });
  uint64_t next = dataStart;
  const std::string *before = nullptr;
  for (const auto &[key, info] : inOrder) {
    if (info->offset < next)
      return fileError(name,
                       "tensor \"{:.200}\" at offset {} overlaps \"{:.200}\", which ends at {}",
                       *key, info->offset, *before, next);
    if (info->offset > next)
      return fileError(name, "bytes {} to {} before tensor \"{:.200}\" belong to no tensor", next,
                       info->offset, *key);
    next = info->offset + info->bytes;
    before = key;
  }
  if (next != file.size())
    return fileError(name, "bytes {} to {} at the end belong to no tensor", next, file.size());
  return {};
}

const TensorInfo *SafetensorsFile::find(const std::string &name) const {
  auto at = infos.find(name);
  return at == infos.end() ? nullptr : &at->second;
}

Status SafetensorsFile::read(const TensorInfo &tensor, uint64_t offset,
                             std::span<std::byte> out) const {
  assert(offset <= tensor.bytes && out.size() <= tensor.bytes - offset);
  return file.read(tensor.offset + offset, out);
}

Result<Bytes> SafetensorsFile::read(const TensorInfo &tensor) const {
  Bytes content(tensor.bytes);
  if (Status status = read(tensor, 0, content); !status.ok())
    return status.takeError();
  return content;
}
