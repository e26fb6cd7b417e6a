//===- Container.h - the bundle file --------------------------------------===//
//
//   0    8   magic "planbndl"
//   8    4   format version               16   8   bytes of the manifest
//   12   4   64, where the manifest is    24   8   xxh3 of the manifest
//   32   8   bytes of the file            40  16   zero
//   56   8   xxh3 of bytes 0..55
//   64       manifest, JSON; then the sections, in the order of the manifest's list, each at the
//   next
//            multiple of 64; what lies between is zero
//
// Numbers are little-endian. Every byte of the file is covered by a checksum or has to be zero. The
// same content gives the same bytes, whatever the file is called.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_BUNDLE_CONTAINER_H
#define PLANC_LIB_BUNDLE_CONTAINER_H

#include "lib/Bundle/Manifest.h"
#include "lib/Support/File.h"

namespace planc::bundle {

/// A section to be written: a kernel's PTX or cubin, or the plan dialect.
struct SectionData {
  std::string name;
  std::string bytes;
};

/// The bytes of a bundle. Fills `manifest.sections` from `sections`, then checks the whole.
Result<std::string> serialize(Manifest manifest, std::span<const SectionData> sections);

/// Writes the file whole or not at all.
Status writeBundle(const std::string &path, Manifest manifest,
                   std::span<const SectionData> sections);

/// A bundle in memory, everything in it checked. It is read, not mapped: a bundle is a few MB, and
/// a file that changes under a mapping would crash its readers.
class Bundle {
public:
  static Result<Bundle> open(const std::string &path);
  /// `name` is for messages.
  static Result<Bundle> parse(std::string name, Bytes content);

  const std::string &path() const { return name; }
  const Manifest &manifest() const { return data; }

  /// The section's bytes; empty if there is none of this name. PTX has no NUL byte behind it.
  ByteView section(std::string_view name) const;

private:
  Bundle() = default;
  Status read();

  std::string name;
  Bytes content;
  Manifest data;
  uint64_t sectionsStart = 0;
};

} // namespace planc::bundle

#endif // PLANC_LIB_BUNDLE_CONTAINER_H
