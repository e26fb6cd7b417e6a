//===- Cache.cpp - compiled kernels on disk ---------------------------------===//
//
// An entry, all numbers little-endian: magic (8 bytes), xxh3-128 of the rest (16 bytes), then the
// fields of a KernelImage, each a u64 length and that many bytes: entry, PTX, cubin, facts, figures
// (six u32, or nothing).
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/Cache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>

using namespace llvm;
using namespace planc;

static constexpr StringLiteral magic = "plancK2\n";
static constexpr size_t hashBytes = 16;

static std::string hash(StringRef data) {
  XXH128_hash_t value = xxh3_128bits(ArrayRef(data.bytes_begin(), data.size()));
  std::string bytes(hashBytes, '\0');
  support::endian::write64le(bytes.data(), value.low64);
  support::endian::write64le(bytes.data() + 8, value.high64);
  return bytes;
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

static std::string userCacheDir() {
  // The XDG base directory specification: a relative path is to be ignored.
  if (const char *base = std::getenv("XDG_CACHE_HOME"); base && sys::path::is_absolute(base))
    return std::string(base) + "/planc";
  if (const char *home = std::getenv("HOME"); home && sys::path::is_absolute(home))
    return std::string(home) + "/.cache/planc";
  return {};
}

KernelCache::KernelCache(StringRef dir) : dir(dir.empty() ? userCacheDir() : dir.str()) {}

void KernelCache::fail(const Twine &reason) {
  std::lock_guard<std::mutex> lock(mutex);
  if (problem.empty())
    problem = ("kernels are not cached: " + reason).str();
}

std::string KernelCache::warning() const {
  std::lock_guard<std::mutex> lock(mutex);
  return problem;
}

/// Makes the folder at the first store, for its owner alone: what is in it becomes code.
bool KernelCache::prepare() {
  if (dir.empty())
    return false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (prepared || !problem.empty())
      return prepared;
  }
  sys::fs::create_directories(sys::path::parent_path(dir));
  std::error_code error = sys::fs::create_directory(dir, true, sys::fs::owner_all);
  if (error) {
    fail("cannot create \"" + dir + "\": " + error.message());
    return false;
  }
  std::lock_guard<std::mutex> lock(mutex);
  return prepared = true;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// Covers the key as well: an entry under another entry's name is none.
static std::string checksum(StringRef key, StringRef body) { return hash((key + body).str()); }

std::string KernelCache::key(StringRef material) { return toHex(hash(material), true); }

static void appendField(std::string &body, StringRef bytes) {
  char length[8];
  support::endian::write64le(length, bytes.size());
  body.append(length, sizeof(length));
  body += bytes;
}

static bool takeField(StringRef &body, std::string &bytes) {
  if (body.size() < 8)
    return false;
  uint64_t length = support::endian::read64le(body.data());
  body = body.drop_front(8);
  if (length > body.size())
    return false;
  bytes = body.take_front(length).str();
  body = body.drop_front(length);
  return true;
}

static constexpr uint32_t CubinFigures::*figureFields[] = {
    &CubinFigures::registers,      &CubinFigures::stackBytes,        &CubinFigures::spillStoreBytes,
    &CubinFigures::spillLoadBytes, &CubinFigures::staticSharedBytes, &CubinFigures::codeBytes};

static std::string packFigures(const std::optional<CubinFigures> &figures) {
  std::string bytes;
  if (!figures)
    return bytes;
  for (auto field : figureFields) {
    char word[4];
    support::endian::write32le(word, *figures.*field);
    bytes.append(word, sizeof(word));
  }
  return bytes;
}

static bool unpackFigures(StringRef bytes, std::optional<CubinFigures> &figures) {
  if (bytes.empty())
    return true;
  if (bytes.size() != 4 * std::size(figureFields))
    return false;
  figures.emplace();
  for (auto field : figureFields) {
    *figures.*field = support::endian::read32le(bytes.data());
    bytes = bytes.drop_front(4);
  }
  return true;
}

std::optional<KernelImage> KernelCache::load(StringRef key) const {
  if (dir.empty())
    return std::nullopt;
  // Whatever else lies there (a pipe, a device) could keep a reader for ever.
  std::string path = (dir + "/" + key).str();
  if (!sys::fs::is_regular_file(path))
    return std::nullopt;
  auto file = MemoryBuffer::getFile(path, false, false);
  if (!file)
    return std::nullopt;
  StringRef body = (*file)->getBuffer();
  if (!body.consume_front(magic) || body.size() < hashBytes)
    return std::nullopt;
  StringRef expected = body.take_front(hashBytes);
  body = body.drop_front(hashBytes);
  if (expected != checksum(key, body))
    return std::nullopt;
  KernelImage image;
  std::string figures;
  if (!takeField(body, image.entry) || !takeField(body, image.ptx) ||
      !takeField(body, image.cubin) || !takeField(body, image.facts) || !takeField(body, figures) ||
      !body.empty() || !unpackFigures(figures, image.figures))
    return std::nullopt;
  image.fromCache = true;
  return image;
}

void KernelCache::store(StringRef key, const KernelImage &image) {
  if (!prepare())
    return;
  std::string body;
  appendField(body, image.entry);
  appendField(body, image.ptx);
  appendField(body, image.cubin);
  appendField(body, image.facts);
  appendField(body, packFigures(image.figures));

  auto temporary =
      sys::fs::TempFile::create(dir + "/.%%%%%%%%%%%%", sys::fs::owner_read | sys::fs::owner_write);
  if (!temporary) {
    consumeError(temporary.takeError());
    return fail("cannot write to \"" + dir + "\"");
  }
  raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
  stream << magic << checksum(key, body) << body;
  stream.flush();
  if (stream.has_error()) {
    fail("cannot write to \"" + dir + "\": " + stream.error().message());
    stream.clear_error();
    return consumeError(temporary->discard());
  }
  if (Error error = temporary->keep(dir + "/" + key)) {
    consumeError(std::move(error));
    fail("cannot write to \"" + dir + "\"");
  }
}
