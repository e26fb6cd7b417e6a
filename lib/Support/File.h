//===- File.h - reading and writing whole files safely --------------------===//
//
// Readers use pread and check every length, so that a file that shrinks under them is an error and
// not a SIGBUS. Writers fill a temporary file beside the target and rename it: who looks at the
// target sees the old file or the new one, never a part of it.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_LIB_SUPPORT_FILE_H
#define PLANC_LIB_SUPPORT_FILE_H

#include "lib/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace planc {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView asBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view asText(ByteView bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// A regular file, open for reading at any offset and from any thread.
class InputFile {
public:
  static Result<InputFile> open(const std::string &path);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) noexcept;
  ~InputFile();

  const std::string &path() const { return name; }
  /// The size when it was opened.
  uint64_t size() const { return bytes; }

  /// Fills `out` from `offset`; less than that is an error.
  Status read(uint64_t offset, std::span<std::byte> out) const;

private:
  InputFile() = default;
  std::string name;
  int descriptor = -1;
  uint64_t bytes = 0;
};

/// The whole file; refused when it is larger than `limit`.
Result<Bytes> readFile(const std::string &path, uint64_t limit = uint64_t(1) << 32);

/// Writes a file in pieces; it appears under its name only with commit().
class OutputFile {
public:
  static Result<OutputFile> create(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) = delete;
  ~OutputFile();

  Status write(ByteView piece);
  Status commit();

private:
  OutputFile() = default;
  std::string name;
  std::string temporary;
  int descriptor = -1;
};

/// create, write and commit in one.
Status writeFile(const std::string &path, ByteView content);

} // namespace planc

#endif // PLANC_LIB_SUPPORT_FILE_H
