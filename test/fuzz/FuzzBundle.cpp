//===- FuzzBundle.cpp - any bytes as a bundle -----------------------------===//
//
// Reads the input as planrt and `planc inspect` do, and prints what is inside. Lengths and checksums
// stand before everything else, so seven of eight mutants get right ones again: what changes is the
// manifest, or its sections, or a field of the header.
//===----------------------------------------------------------------------===//

#include "lib/Bundle/Inspect.h"
#include "lib/Support/Hash.h"
#include "test/fuzz/Mutators.h"

#include <cstdlib>
#include <cstring>

using namespace planc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto *bytes = reinterpret_cast<const std::byte *>(data);
  Result<bundle::Bundle> bundle = bundle::Bundle::parse("fuzzed", Bytes(bytes, bytes + size));
  if (!bundle.ok()) {
    if (bundle.error().message.empty())
      std::abort(); // each refusal says why
    return 0;
  }
  (void)bundle::inspectJson(*bundle).dump(-1, ' ', false, Json::error_handler_t::replace);
  (void)bundle::inspectText(*bundle);
  for (const bundle::Section &section : bundle->manifest().sections)
    if (bundle->section(section.name).size() != section.bytes)
      std::abort();
  // What was read, written, and read again is the same.
  std::string once = bundle::toJson(bundle->manifest()).dump();
  Result<Json> json = parseJson(once, 12);
  Result<bundle::Manifest> again = json.ok() ? bundle::fromJson(*json) : json.takeError();
  if (!again.ok() || bundle::toJson(*again).dump() != once)
    std::abort();
  return 0;
}

static std::uint64_t get(std::string_view bytes, std::size_t at) {
  std::uint64_t value;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}
static void put(std::string &bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(&bytes[at], &value, 8);
}

/// Puts another manifest into a bundle and makes lengths and checksums right.
static std::string reseal(std::string_view bundle, std::string_view manifest) {
  std::uint64_t oldEnd = 64 + get(bundle, 16);
  std::uint64_t sections = std::min<std::uint64_t>(bundle.size(), (oldEnd + 63) / 64 * 64);
  std::string result(bundle.substr(0, 64));
  result += manifest;
  if (sections < bundle.size()) {
    result.resize((result.size() + 63) / 64 * 64, '\0');
    result += bundle.substr(sections);
  }
  put(result, 16, manifest.size());
  put(result, 24, xxh3(asBytes(manifest)));
  put(result, 32, result.size());
  put(result, 56, xxh3(asBytes(result).first(56)));
  return result;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  fuzz::Random random(seed);
  std::string bundle(reinterpret_cast<const char *>(data), size);
  if (size < 64 || get(bundle, 16) > size - 64 || random.oneIn(8))
    return fuzz::store(fuzz::mutateBytes(bundle, most), data, size, most);
  std::string manifest = bundle.substr(64, get(bundle, 16));
  if (random.oneIn(8)) // a field of the header, which is then sealed
    put(bundle, 8 * random.below(7),
        random.oneIn(2) ? ~std::uint64_t(0) >> random.below(64) : random.below(256));
  else if (random.oneIn(16))
    manifest = fuzz::mutateBytes(manifest, manifest.size() + 64);
  else
    manifest = fuzz::mutateJson(manifest, random);
  if (get(bundle, 16) > size - 64)
    return fuzz::store(bundle, data, size, most);
  return fuzz::store(reseal(bundle, manifest), data, size, most);
}
