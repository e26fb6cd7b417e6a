//===- Container.cpp - the bundle file ------------------------------------===//
//
// The writer lays out, the reader checks in the order in which things can be believed: size, magic,
// version, header checksum, lengths, manifest checksum, JSON, fields, sections, and last what the
// manifest says about itself.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/Container.h"

#include "lib/Support/Discard.h"
#include "lib/Support/Hash.h"

#include <algorithm>
#include <cstring>

using namespace planc;
using namespace planc::bundle;

static constexpr std::string_view magic = "planbndl";
static constexpr uint64_t headerBytes = 64;
static constexpr uint64_t sectionAlignment = 64;
static constexpr uint64_t maxBundleBytes = uint64_t(1) << 30;
/// Nothing nests deeper: programs, launch list, host ops, inputs.
static constexpr unsigned maxManifestDepth = 12;

static uint64_t alignUp(uint64_t value) {
  return (value + sectionAlignment - 1) / sectionAlignment * sectionAlignment;
}

static void put(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += char(value >> 8 * i);
}

static uint64_t get(ByteView bytes, size_t offset, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;)
    value = value << 8 | uint64_t(bytes[offset + size_t(i)]);
  return value;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Result<std::string> bundle::serialize(Manifest manifest, std::span<const SectionData> sections) {
  manifest.sections.clear();
  uint64_t end = 0;
  for (const SectionData &section : sections) {
    uint64_t offset = alignUp(end);
    manifest.sections.push_back(
        {section.name, offset, section.bytes.size(), xxh3Hex(asBytes(section.bytes))});
    end = offset + section.bytes.size();
  }
  if (Status status = check(manifest); !status.ok())
    return status.takeError();

  std::string json = toJson(manifest).dump();
  uint64_t sectionsStart = alignUp(headerBytes + json.size());
  std::string out(magic);
  put(out, manifest.format_version, 4);
  put(out, headerBytes, 4);
  put(out, json.size(), 8);
  put(out, xxh3(asBytes(json)), 8);
  put(out, sections.empty() ? headerBytes + json.size() : sectionsStart + end, 8);
  put(out, 0, 8);
  put(out, 0, 8);
  put(out, xxh3(asBytes(out)), 8);
  out += json;
  for (const SectionData &section : sections) {
    out.resize(alignUp(out.size()), '\0');
    out += section.bytes;
  }
  return out;
}

Status bundle::writeBundle(const std::string &path, Manifest manifest,
                           std::span<const SectionData> sections) {
  Result<std::string> bytes = serialize(std::move(manifest), sections);
  if (!bytes.ok())
    return bytes.takeError();
  return writeFile(path, asBytes(*bytes));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Result<Bundle> Bundle::open(const std::string &path) {
  Result<Bytes> content = readFile(path, maxBundleBytes);
  if (!content.ok())
    return content.takeError();
  return parse(path, std::move(*content));
}

Result<Bundle> Bundle::parse(std::string name, Bytes content) {
  Bundle bundle;
  bundle.name = std::move(name);
  bundle.content = std::move(content);
  Status status = bundle.read();
  if (status.ok())
    return bundle;
  Error error = status.takeError();
  error.where = bundle.name;
  return error;
}

/// A run of padding: all zero?
static bool isZero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte(0); });
}

/// Sections lie in order, at the next multiple of 64 after the one before, and end with the file.
static Status checkSections(const std::vector<Section> &sections, ByteView content,
                            uint64_t start) {
  uint64_t end = start;
  for (size_t i = 0; i < sections.size(); ++i) {
    const Section &section = sections[i];
    std::string who = fmt::format("section {} ({:.80})", i, section.name);
    uint64_t room = content.size() - std::min<uint64_t>(content.size(), start);
    if (section.offset > room || section.bytes > room - section.offset)
      return inputError("{} needs {} bytes at offset {}, but the file ends at {}", who,
                        section.bytes, start + section.offset, content.size());
    uint64_t offset = start + section.offset, expected = i ? alignUp(end) : start;
    if (offset < end)
      return inputError("{} at offset {} overlaps what ends at {}", who, offset, end);
    if (offset != expected)
      return inputError("{} is at offset {}, expected at {}", who, offset, expected);
    if (!isZero(content.subspan(end, offset - end)))
      return inputError("bytes {} to {} before {} are not zero", end, offset, who);
    std::string found = xxh3Hex(content.subspan(offset, section.bytes));
    if (found != section.xxh3)
      return inputError("{} is damaged: its checksum is {}, expected {:.20}", who, found,
                        section.xxh3);
    end = offset + section.bytes;
  }
  if (end != content.size())
    return inputError("the last section ends at {}, but the file ends at {}", end, content.size());
  return {};
}

Status Bundle::read() {
  ByteView bytes = content;
  if (bytes.size() < headerBytes)
    return inputError("has {} bytes, a bundle has at least {}", bytes.size(), headerBytes);
  if (asText(bytes.first(magic.size())) != magic)
    return inputError("is not a bundle: the first {} bytes are not \"{}\"", magic.size(), magic);
  if (uint64_t version = get(bytes, 8, 4); version > formatVersion || version == 0)
    return inputError("has bundle format version {}, this program reads versions 1 to {}", version,
                      formatVersion);
  if (uint64_t found = xxh3(bytes.first(56)), expected = get(bytes, 56, 8); found != expected)
    return inputError("header is damaged: its checksum is {:016x}, expected {:016x}", found,
                      expected);
  if (get(bytes, 12, 4) != headerBytes || !isZero(bytes.subspan(40, 16)))
    return inputError("header is not one of format version {}", get(bytes, 8, 4));
  uint64_t manifestBytes = get(bytes, 16, 8);
  if (uint64_t expected = get(bytes, 32, 8); bytes.size() != expected)
    return inputError("{}: the header says {} bytes, but the file ends at {}",
                      bytes.size() < expected ? "truncated" : "too long", expected, bytes.size());
  if (manifestBytes > bytes.size() - headerBytes)
    return inputError("manifest needs {} bytes at offset {}, but the file ends at {}",
                      manifestBytes, headerBytes, bytes.size());
  ByteView json = bytes.subspan(headerBytes, manifestBytes);
  if (uint64_t found = xxh3(json), expected = get(bytes, 24, 8); found != expected)
    return inputError("manifest is damaged: its checksum is {:016x}, expected {:016x}", found,
                      expected);

  Result<Json> parsed = parseJson(asText(json), maxManifestDepth);
  if (!parsed.ok())
    return inputError("manifest: {}", parsed.error().message);
  Discard discard(*parsed);
  Result<Manifest> manifest = fromJson(*parsed);
  if (!manifest.ok())
    return manifest.takeError();
  data = std::move(*manifest);
  if (data.format_version != get(bytes, 8, 4))
    return inputError("header has format version {}, but its manifest {}", get(bytes, 8, 4),
                      data.format_version);

  uint64_t manifestEnd = headerBytes + manifestBytes;
  sectionsStart = data.sections.empty() ? manifestEnd : alignUp(manifestEnd);
  if (sectionsStart > bytes.size() ||
      !isZero(bytes.subspan(manifestEnd, sectionsStart - manifestEnd)))
    return inputError("bytes {} to {} after the manifest are not zero", manifestEnd, sectionsStart);
  if (Status status = checkSections(data.sections, bytes, sectionsStart); !status.ok())
    return status;
  return check(data);
}

ByteView Bundle::section(std::string_view wanted) const {
  for (const Section &section : data.sections)
    if (section.name == wanted)
      return ByteView(content).subspan(sectionsStart + section.offset, section.bytes);
  return {};
}
