//===- Checkpoint.cpp - a model's tensors, in one file or many -------------===//
//
// Opening checks names and headers; data is read later, by pread, so that a file that shrinks in
// between is an error. Conversions are the three that a checkpoint may ask for: bf16 to f32
// (exact), f32 to bf16 (nearest even), and none.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/Checkpoint.h"

#include "lib/Support/Discard.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

using namespace planc;
using namespace planc::bundle;
namespace fs = std::filesystem;

/// 62,303 tensors are 5 MB of index; this is far above any.
static constexpr uint64_t maxIndexBytes = uint64_t(1) << 28;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// A shard of an index must lie inside the folder.
static bool staysInside(const std::string &name) {
  fs::path path(name);
  return !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path &step) { return step == ".."; });
}

/// "a, b, c and 12 more", sorted: what a folder holds.
static std::string listFolder(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  if (names.empty())
    return "it is empty";
  size_t shown = std::min<size_t>(names.size(), 20);
  std::string more = shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "";
  return fmt::format("there are: {}{}", fmt::join(names.begin(), names.begin() + long(shown), ", "),
                     more);
}

/// Whether the folder has such an entry, be it a link that leads nowhere: opening it says so.
static bool isListed(const std::string &path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

Result<Checkpoint> Checkpoint::open(const std::string &path) {
  Checkpoint checkpoint;
  checkpoint.root = path;
  std::error_code error;
  Status status;
  if (!fs::is_directory(path, error)) {
    status = checkpoint.addFile(path);
  } else {
    std::string folder = path.ends_with('/') ? path : path + "/";
    std::string index = folder + "model.safetensors.index.json",
                single = folder + "model.safetensors";
    if (isListed(index))
      status = checkpoint.addIndex(folder, index);
    else if (isListed(single))
      status = checkpoint.addFile(single);
    else
      status = fileError(path, "has neither model.safetensors.index.json nor model.safetensors; {}",
                         listFolder(path));
  }
  if (!status.ok())
    return status.takeError();
  return checkpoint;
}

Status Checkpoint::addFile(const std::string &path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok())
    return file.takeError();
  files.push_back(std::make_unique<SafetensorsFile>(std::move(*file)));
  for (const auto &[name, info] : files.back()->tensors())
    tensors.emplace(name, Tensor{files.back().get(), &info});
  return {};
}

Status Checkpoint::addIndex(const std::string &folder, const std::string &path) {
  Result<Bytes> text = readFile(path, maxIndexBytes);
  if (!text.ok())
    return text.takeError();
  Result<Json> json = parseJson(asText(*text), 4);
  if (!json.ok())
    return fileError(path, "{}", json.error().message);
  Discard discard(*json);
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object())
    return fileError(path, "expected an object with the object \"weight_map\"");

  std::unordered_map<std::string, const SafetensorsFile *> shards;
  for (const auto &[tensor, shard] : (*json)["weight_map"].items()) {
    if (!shard.is_string())
      return fileError(path, "the shard of tensor \"{:.200}\" is not a string", tensor);
    const auto &name = shard.get_ref<const std::string &>();
    if (!staysInside(name))
      return fileError(path, "tensor \"{:.200}\" is in \"{:.200}\", which is outside the folder",
                       tensor, name);
    const SafetensorsFile *&file = shards[name];
    if (!file) {
      Result<SafetensorsFile> opened = SafetensorsFile::open(folder + name);
      if (!opened.ok())
        return opened.takeError();
      files.push_back(std::make_unique<SafetensorsFile>(std::move(*opened)));
      file = files.back().get();
    }
    const TensorInfo *info = file->find(tensor);
    if (!info)
      return fileError(path, "tensor \"{:.200}\" is not in its shard \"{:.200}\"", tensor, name);
    tensors.emplace(tensor, Tensor{file, info});
  }
  return {};
}

Checkpoint::Tensor Checkpoint::find(const std::string &name) const {
  auto at = tensors.find(name);
  return at == tensors.end() ? Tensor{nullptr, nullptr} : at->second;
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

Result<size_t> bundle::checkCheckpoint(const Manifest &manifest, const Checkpoint &checkpoint) {
  std::vector<std::string> problems;
  std::set<const TensorInfo *> read;
  for (const Weight &weight : manifest.weights)
    for (const Part &part : weight.parts) {
      Result<Pattern> pattern = parsePattern(part.pattern);
      if (!pattern.ok())
        return pattern.takeError();
      for (uint64_t n = 0; n < pattern->count(); ++n) {
        std::string name = pattern->name(n);
        const TensorInfo *info = checkpoint.find(name).info;
        if (!info) {
          problems.push_back(fmt::format("{} is missing, expected {} {}", name,
                                         fmt::join(part.dtypes, " or "), shapeText(part.shape)));
          continue;
        }
        read.insert(info);
        bool known =
            std::find(part.dtypes.begin(), part.dtypes.end(), info->dtype) != part.dtypes.end();
        if (!known || info->shape != part.shape)
          problems.push_back(fmt::format("{} is {} {:.80}, expected {} {}", name, info->dtype,
                                         shapeText(info->shape), fmt::join(part.dtypes, " or "),
                                         shapeText(part.shape)));
      }
    }
  if (problems.empty())
    return checkpoint.size() - read.size();
  Error error =
      makeError(ErrorKind::Weights, "{} {} missing or different:\n  {}", problems.size(),
                problems.size() == 1 ? "tensor is" : "tensors are", fmt::join(problems, "\n  "));
  error.where = checkpoint.path();
  return error;
}

/// Elements of `from` (bf16) as f32, which is exact.
static void widen(std::span<const std::byte> from, std::byte *to) {
  for (size_t i = 0; i < from.size() / 2; ++i) {
    uint16_t half;
    std::memcpy(&half, &from[i * 2], 2);
    uint32_t word = uint32_t(half) << 16;
    std::memcpy(to + i * 4, &word, 4);
  }
}

/// Elements of `from` (f32) as bf16, to nearest even; NaN stays NaN.
static void narrow(std::span<const std::byte> from, std::byte *to) {
  for (size_t i = 0; i < from.size() / 4; ++i) {
    uint32_t word;
    std::memcpy(&word, &from[i * 4], 4);
    bool nan = (word & 0x7fffffff) > 0x7f800000;
    uint16_t half =
        nan ? uint16_t(word >> 16 | 0x40) : uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
    std::memcpy(to + i * 2, &half, 2);
  }
}

/// Reads one tensor piece by piece through the sink's staging memory.
static Status placeTensor(const Checkpoint::Tensor &tensor, const Weight &weight, bool scales,
                          Dtype dtype, uint64_t offset, OperandSink &sink) {
  uint64_t fromSize = safetensorsElementBytes(tensor.info->dtype), toSize = byteSize(dtype);
  bool converts = tensor.info->dtype != safetensorsName(dtype);
  uint64_t elements = tensor.info->bytes / fromSize;
  Bytes source;
  for (uint64_t done = 0; done < elements;) {
    std::span<std::byte> staging = sink.staging();
    uint64_t count = std::min(elements - done, staging.size() / std::max(fromSize, toSize));
    std::span<std::byte> target = staging.first(count * fromSize);
    if (converts) {
      source.resize(count * fromSize);
      target = source;
    }
    if (Status status = tensor.file->read(*tensor.info, done * fromSize, target); !status.ok())
      return status;
    if (converts && toSize == 4)
      widen(source, staging.data());
    else if (converts)
      narrow(source, staging.data());
    if (Status status = sink.put(weight, scales, offset + done * toSize, count * toSize);
        !status.ok())
      return status;
    done += count;
  }
  return {};
}

Status bundle::placeWeights(const Manifest &manifest, const Checkpoint &checkpoint,
                            OperandSink &sink) {
  for (const Weight &weight : manifest.weights)
    for (const Part &part : weight.parts) {
      bool scales = part.target == "scales";
      Result<Dtype> dtype = dataDtype(weight);
      Result<Pattern> pattern = parsePattern(part.pattern);
      if (!dtype.ok())
        return dtype.takeError();
      if (!pattern.ok())
        return pattern.takeError();
      for (uint64_t n = 0; n < pattern->count(); ++n) {
        Checkpoint::Tensor tensor = checkpoint.find(pattern->name(n));
        assert(tensor.info && "checkCheckpoint comes first");
        if (Status status = placeTensor(tensor, weight, scales, scales ? Dtype::f32 : *dtype,
                                        pattern->offset(n, part), sink);
            !status.ok())
          return status;
      }
    }
  return {};
}
