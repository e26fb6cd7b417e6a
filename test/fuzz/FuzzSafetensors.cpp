//===- FuzzSafetensors.cpp - any bytes as a safetensors file --------------===//
//
// Opens the input and reads every tensor. Most mutants have a header of the length that their first
// bytes name.
//===----------------------------------------------------------------------===//

#include "lib/Support/Safetensors.h"
#include "test/fuzz/Mutators.h"

#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

using namespace planc;

static void read(const std::string &path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok()) {
    if (file.error().message.empty())
      std::abort();
    return;
  }
  for (const auto &[name, info] : file->tensors()) {
    Result<Bytes> content = file->read(info);
    if (file->find(name) != &info || !content.ok() || content->size() != info.bytes)
      std::abort();
    (void)shapeText(info.shape);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  int file = ::memfd_create("fuzzed", 0);
  if (file < 0 || ::write(file, data, size) != ssize_t(size))
    std::abort();
  read("/proc/self/fd/" + std::to_string(file));
  ::close(file);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  fuzz::Random random(seed);
  std::string file(reinterpret_cast<const char *>(data), size);
  std::uint64_t length = 0;
  if (size >= 8)
    std::memcpy(&length, file.data(), 8);
  if (size < 8 || length > size - 8 || random.oneIn(8))
    return fuzz::store(fuzz::mutateBytes(file, most), data, size, most);
  std::string header = fuzz::mutateJson(file.substr(8, length), random),
              content = file.substr(8 + length);
  if (random.oneIn(8))
    content.resize(random.below(2 * content.size() + 8));
  length = header.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &length, 8);
  return fuzz::store(result + header + content, data, size, most);
}
