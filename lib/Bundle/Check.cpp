//===- Check.cpp - a manifest held against itself --------------------------===//
//
// What planrt relies on, so that it needs no checks of its own while it runs:
//
//   C1  names are unique in their list and every reference resolves
//   C2  sizes follow from dtypes and shapes
//   C3  every kernel has an image for every target, and its section is there
//   C4  the parts of a weight cover it without overlap or hole
//   C5  buffers lie inside the workspace; no two that are live together share a byte
//   C6  a launch passes what its kernel's parameters ask for, and reads nothing before it is made
//   C7  host ops have the form that planrt executes
//   C8  a kernel says of each member how it rounds
//
// The checks of programs are in CheckPrograms.cpp.
//===----------------------------------------------------------------------===//
#include "lib/Bundle/CheckPrograms.h"

#include "lib/Support/Safetensors.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace planc;
using namespace planc::bundle;

/// Token ids and positions are 32-bit integers on the device.
static constexpr int64_t maxIndex = INT32_MAX;
/// Of a KV block; lib/Import takes no more.
static constexpr int64_t maxBlockPositions = 4096;
/// More than any GPU has for a block of threads.
static constexpr uint64_t maxSharedBytes = 1 << 20;
/// No operand is made of more tensors (256 experts times gate and up, and far more).
static constexpr uint64_t maxPartTensors = 1 << 20;

/// Bytes of a shape, or nothing when they do not fit.
std::optional<uint64_t> bundle::shapeBytes(std::span<const int64_t> shape, uint64_t elementBytes) {
  std::optional<uint64_t> count = elementCount(shape);
  uint64_t bytes;
  if (!count || __builtin_mul_overflow(*count, elementBytes, &bytes))
    return std::nullopt;
  return bytes;
}

/// C2: does `bytes` follow from the shape, and is no extent zero?
Status bundle::checkBytes(const std::string &who, std::span<const int64_t> shape, Dtype dtype,
                          uint64_t bytes) {
  std::optional<uint64_t> expected = shapeBytes(shape, byteSize(dtype));
  if (!expected || *expected == 0 || *expected > maxObjectBytes)
    return inputError("{} has the impossible shape {:.80}", who, shapeText(shape));
  if (*expected != bytes)
    return inputError("{} has {} bytes, but {} {} are {}", who, bytes, toString(dtype),
                      shapeText(shape), *expected);
  return {};
}

/// C1: names of a list, unique and not empty.
template <class T>
static Status indexNames(const char *what, const std::vector<T> &list,
                         std::unordered_map<std::string_view, const T *> &index) {
  for (const T &item : list) {
    if (item.name.empty())
      return inputError("a {} has no name", what);
    if (!index.emplace(item.name, &item).second)
      return inputError("{} \"{:.200}\" occurs twice", what, item.name);
  }
  return {};
}

static Status checkModel(const Model &model) {
  if (model.vocab <= 0 || model.max_context <= 0 || model.vocab > maxIndex ||
      model.max_context > maxIndex)
    return inputError("model has a vocabulary of {} and a context of {}, expected 1 to {}",
                      model.vocab, model.max_context, maxIndex);
  if (model.kv_block <= 0 || model.kv_block > maxBlockPositions ||
      (model.kv_block & (model.kv_block - 1)) != 0)
    return inputError("model has a kv_block of {}, expected a power of two up to {}",
                      model.kv_block, maxBlockPositions);
  return {};
}

static Status checkTargets(const Manifest &manifest) {
  std::set<std::string_view> names;
  for (const Target &target : manifest.targets) {
    std::string plain = fmt::format("sm_{}", target.sm);
    if (target.name != plain && target.name != plain + "a" && target.name != plain + "f")
      return inputError("target \"{:.40}\" has sm {}", target.name, target.sm);
    if (!names.insert(target.name).second)
      return inputError("target \"{}\" occurs twice", target.name);
  }
  return {};
}

/// C3 of one kernel and target.
static Status checkImage(const Names &names, const Kernel &kernel, const std::string &targetName,
                         const KernelTarget &image) {
  std::string who = fmt::format("kernel \"{}\" on {}", kernel.name, targetName);
  uint64_t threads = 1;
  // CUDA C++ Programming Guide, "Compute Capabilities": the same for all.
  constexpr Dim3 mostBlocks = {INT32_MAX, 65535, 65535}, mostThreads = {1024, 1024, 64};
  for (size_t i = 0; i < 3; ++i) {
    if (image.grid[i] == 0 || image.grid[i] > mostBlocks[i] || image.block[i] == 0 ||
        image.block[i] > mostThreads[i])
      return inputError("{} has grid [{}] and block [{}]", who, fmt::join(image.grid, ", "),
                        fmt::join(image.block, ", "));
    threads *= image.block[i];
  }
  if (threads > 1024)
    return inputError("{} has {} threads a block, at most 1024 are possible", who, threads);
  for (auto [bytes, most, what] :
       {std::tuple(uint64_t(image.shared_bytes) + image.static_shared_bytes, maxSharedBytes,
                   "shared memory"),
        std::tuple(uint64_t(image.scratch_bytes), maxObjectBytes, "scratch"),
        std::tuple(uint64_t(image.counters), maxObjectBytes / 4, "counters")})
    if (bytes > most)
      return inputError("{} has {} bytes of {}, at most {} are possible", who, bytes, what, most);
  if (image.entry.empty())
    return inputError("{} has no entry", who);
  auto ptx = names.sections.find(image.ptx);
  if (ptx == names.sections.end())
    return inputError("{} needs section \"{:.200}\", which is not in the bundle", who, image.ptx);
  if (ptx->second->bytes != image.ptx_bytes || image.ptx_bytes == 0)
    return inputError("{} has {} bytes of PTX, but its section {}", who, image.ptx_bytes,
                      ptx->second->bytes);
  if (image.cubin && !names.sections.count(*image.cubin))
    return inputError("{} needs section \"{:.200}\", which is not in the bundle", who,
                      *image.cubin);
  auto wants = [&](ArgKind kind) {
    return std::count_if(kernel.params.begin(), kernel.params.end(),
                         [&](const Param &param) { return param.kind == kind; });
  };
  if (wants(ArgKind::scratch) != (image.scratch_bytes > 0))
    return inputError("{} has {} bytes of scratch, but {} parameters for it", who,
                      image.scratch_bytes, wants(ArgKind::scratch));
  if (wants(ArgKind::counters) != (image.counters > 0))
    return inputError("{} has {} counters, but {} parameters for them", who, image.counters,
                      wants(ArgKind::counters));
  return {};
}

static Status checkKernel(const Names &names, const Manifest &manifest, const Kernel &kernel) {
  // Pointers of 8 bytes, and 4 KiB of parameters on every target.
  if (kernel.params.size() > 512)
    return inputError("kernel \"{}\" has {} parameters, at most 512 are possible", kernel.name,
                      kernel.params.size());
  for (const Target &target : manifest.targets)
    if (!kernel.targets.count(target.name))
      return inputError("kernel \"{}\" has no image for target {}", kernel.name, target.name);
  // C8
  if (kernel.arithmetic.empty())
    return inputError("kernel \"{}\" does not say how its members round", kernel.name);
  for (const numerics::Node &node : kernel.arithmetic)
    if (std::string problem = numerics::problemOf(node); !problem.empty())
      return inputError("kernel \"{}\": {}", kernel.name, problem);
  for (const auto &[name, image] : kernel.targets) {
    if (std::none_of(manifest.targets.begin(), manifest.targets.end(),
                     [&](const Target &target) { return target.name == name; }))
      return inputError("kernel \"{}\" has an image for {:.40}, which is not a target", kernel.name,
                        name);
    if (Status status = checkImage(names, kernel, name, image); !status.ok())
      return status;
  }
  return {};
}

/// C4 for the data or the scales of a weight.
static Status checkParts(const Weight &weight, const char *target, Dtype dtype, uint64_t bytes) {
  std::string who = fmt::format("weight \"{}\", {}", weight.name, target);
  struct Range {
    uint64_t begin, end;
    const Part *part;
  };
  std::vector<Range> ranges;
  for (const Part &part : weight.parts) {
    if (part.target != target)
      continue;
    Result<Pattern> pattern = parsePattern(part.pattern);
    if (!pattern.ok())
      return inputError("{}: {}", who, pattern.error().message);
    if (pattern->indices.size() != part.strides.size())
      return inputError("{}: part \"{}\" has {} indices, but {} strides", who, part.pattern,
                        pattern->indices.size(), part.strides.size());
    std::optional<uint64_t> partBytes = shapeBytes(part.shape, byteSize(dtype));
    if (!partBytes || *partBytes == 0 || *partBytes > bytes)
      return inputError("{}: part \"{}\" of shape {:.80} does not fit into {} bytes", who,
                        part.pattern, shapeText(part.shape), bytes);
    if (part.dtypes.empty())
      return inputError("{}: part \"{}\" accepts no dtype", who, part.pattern);
    for (const std::string &accepted : part.dtypes)
      if (accepted != safetensorsName(dtype) &&
          (dtype == Dtype::e4m3 || (accepted != "BF16" && accepted != "F32")))
        return inputError("{}: part \"{}\" accepts {:.20}, which does not become {}", who,
                          part.pattern, accepted, toString(dtype));
    if (ranges.size() + pattern->count() > std::min(bytes / *partBytes, maxPartTensors))
      return inputError("{}: part \"{}\" has more tensors than fit into {} bytes", who,
                        part.pattern, bytes);
    if (part.offset > bytes)
      return inputError("{}: part \"{}\" has offset {} in {} bytes", who, part.pattern, part.offset,
                        bytes);
    for (uint64_t stride : part.strides)
      if (stride > bytes)
        return inputError("{}: part \"{}\" has a stride of {} in {} bytes", who, part.pattern,
                          stride, bytes);
    for (uint64_t n = 0; n < pattern->count(); ++n) {
      uint64_t begin = pattern->offset(n, part);
      if (begin > bytes || *partBytes > bytes - begin)
        return inputError("{}: tensor {} of part \"{}\" needs {} bytes at offset {} of {}", who, n,
                          part.pattern, *partBytes, begin, bytes);
      ranges.push_back({begin, begin + *partBytes, &part});
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  uint64_t end = 0;
  for (const Range &range : ranges) {
    if (range.begin != end)
      return inputError("{}: part \"{}\" starts at {}, but what is before it ends at {}", who,
                        range.part->pattern, range.begin, end);
    end = range.end;
  }
  if (end != bytes)
    return inputError("{}: bytes {} to {} belong to no part", who, end, bytes);
  return {};
}

Result<Dtype> bundle::dataDtype(const Weight &weight) {
  if (weight.format == "bf16")
    return Dtype::bf16;
  if (weight.format == "f32")
    return Dtype::f32;
  if (weight.format == fp8Block128)
    return Dtype::e4m3;
  return inputError("weight \"{}\" has the unknown format \"{:.40}\"", weight.name, weight.format);
}

static Status checkWeight(const Weight &weight) {
  std::string who = fmt::format("weight \"{}\"", weight.name);
  Result<Dtype> dtype = dataDtype(weight);
  if (!dtype.ok())
    return dtype.takeError();
  if (weight.layout != "row_major")
    return inputError("{} has the unknown layout \"{:.40}\"", who, weight.layout);
  if (Status status = checkBytes(who, weight.shape, *dtype, weight.bytes); !status.ok())
    return status;
  Shape scales;
  if (*dtype == Dtype::e4m3) {
    scales = weight.shape;
    size_t rank = scales.size();
    if (rank < 2 || scales[rank - 1] % 128 || scales[rank - 2] % 128)
      return inputError("{} of shape {} does not divide into blocks of 128 x 128", who,
                        shapeText(weight.shape));
    scales[rank - 1] /= 128;
    scales[rank - 2] /= 128;
  }
  uint64_t scaleBytes = scales.empty() ? 0 : *shapeBytes(scales, 4);
  if (weight.scale_shape != scales || weight.scale_bytes != scaleBytes)
    return inputError("{} has {} bytes of scales {:.80}, expected {} of {}", who,
                      weight.scale_bytes, shapeText(weight.scale_shape), scaleBytes,
                      shapeText(scales));
  for (const Part &part : weight.parts)
    if (part.target != "data" && part.target != "scales")
      return inputError("{}: part \"{:.200}\" goes to \"{:.40}\", expected data or scales", who,
                        part.pattern, part.target);
  if (Status status = checkParts(weight, "data", *dtype, weight.bytes); !status.ok())
    return status;
  return checkParts(weight, "scales", Dtype::f32, weight.scale_bytes);
}

static Status checkState(const Model &model, const State &state) {
  std::string who = fmt::format("state \"{}\"", state.name);
  if (state.kind != "slots" && state.kind != "paged")
    return inputError("{} is of kind \"{:.40}\", expected slots or paged", who, state.kind);
  if (state.kind == "paged" && (state.shape.empty() || state.shape[0] != model.kv_block))
    return inputError("{} has blocks of shape {:.80}, expected {} positions", who,
                      shapeText(state.shape), model.kv_block);
  return checkBytes(who, state.shape, state.dtype, state.bytes);
}

Status bundle::check(const Manifest &manifest) {
  if (manifest.format_version != formatVersion)
    return inputError("manifest has format version {}, expected {}", manifest.format_version,
                      formatVersion);
  Names names;
  for (Status status : {checkModel(manifest.model), checkTargets(manifest),
                        indexNames("section", manifest.sections, names.sections),
                        indexNames("kernel", manifest.kernels, names.kernels),
                        indexNames("weight", manifest.weights, names.weights),
                        indexNames("state", manifest.states, names.states)})
    if (!status.ok())
      return status;
  if (manifest.targets.empty())
    return Error{"the bundle is for no target"};
  for (const Kernel &kernel : manifest.kernels)
    if (Status status = checkKernel(names, manifest, kernel); !status.ok())
      return status;
  for (const Weight &weight : manifest.weights)
    if (Status status = checkWeight(weight); !status.ok())
      return status;
  for (const State &state : manifest.states)
    if (Status status = checkState(manifest.model, state); !status.ok())
      return status;

  if (manifest.programs.empty())
    return Error{"the bundle has no program"};
  std::set<std::string_view> programs;
  for (const Program &program : manifest.programs) {
    if (program.name.empty() || !programs.insert(program.name).second)
      return inputError("program \"{:.200}\" has no name or occurs twice", program.name);
    if (Status status = checkProgram(names, manifest, program); !status.ok()) {
      Error error = status.takeError();
      error.message = fmt::format("program {}: {}", program.name, error.message);
      return error;
    }
  }
  return {};
}
