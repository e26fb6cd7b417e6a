//===- Fatbin.cpp - PTX out of images -------------------------------------===//
//
// An image is PTX text, an ELF file (a cubin, which is refused), or a fatbin: what nvcc and
// fatbinary make of code for several devices. The layout was found by looking at their output:
//
//   header   u32 magic 0xba55ed50, u16 version 1, u16 bytes of the header, u64 bytes that follow
//   entries  u16 kind (1: PTX, 2: ELF), u16 version, u32 bytes of the entry's header, u64 bytes of
//            the payload, u32 bytes of it before padding if it is compressed, ..., at 28 u32 sm
//            number, at 40 u64 flags, at 56 u64 bytes after decompression
//
// A program that nvcc linked has a wrapper: u32 magic 0x466243b1, u32 version, pointer to the
// header. Nothing of an image is trusted.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Decompress.h"
#include "runtime/emulator/driver/Driver.h"

#include <cctype>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/uio.h>
#include <unistd.h>

using namespace planemu;

static constexpr std::uint32_t ElfMagic = 0x464c457f, FatbinMagic = 0xba55ed50,
                               WrapperMagic = 0x466243b1;
static constexpr std::uint64_t MostBytes = 1u << 30; // of a fatbin, and of PTX in it
static constexpr std::uint64_t Lz4Flag = 0x2000, ZstdFlag = 0x8000;

static CUresult bad(const std::string &why) {
  return failWith(CUDA_ERROR_INVALID_IMAGE, "fatbin: " + why);
}

template <class T> static T readAt(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

/// The device that PTX is for: the number and the letter of `.target sm_NNx`; 0 if none is found.
static int targetOf(std::string_view ptx, char &letter) {
  std::size_t at = ptx.find(".target");
  if (at == std::string_view::npos || (at = ptx.find("sm_", at)) == std::string_view::npos)
    return 0;
  int number = 0;
  for (at += 3; at < ptx.size() && ptx[at] >= '0' && ptx[at] <= '9' && number < 10000; ++at)
    number = 10 * number + ptx[at] - '0';
  letter = at < ptx.size() && (ptx[at] == 'a' || ptx[at] == 'f') ? ptx[at] : 0;
  return number;
}

/// Unpacks an entry's payload.
static CUresult unpack(std::string_view payload, std::uint32_t packedBytes, std::uint64_t flags,
                       std::uint64_t bytes, std::string &ptx) {
  if (!(flags & (Lz4Flag | ZstdFlag))) {
    ptx = payload;
  } else {
    if (bytes > MostBytes || packedBytes > payload.size())
      return bad("the sizes of a compressed entry are wrong");
    std::string_view packed = payload.substr(0, packedBytes);
    ptx.resize(bytes);
    bool good = flags & ZstdFlag ? decompressZstd(packed, ptx) : decompressLz4(packed, ptx);
    if (!good)
      return bad("a compressed entry cannot be decompressed; `nvcc --no-compress` avoids it");
  }
  // PTX is padded with zeros.
  if (std::size_t end = ptx.find('\0'); end != std::string::npos)
    ptx.resize(end);
  return CUDA_SUCCESS;
}

/// Picks the PTX for the newest device that runs here; of equal ones, that which is for exactly it.
static CUresult readFatbin(const DeviceModel &model, std::string_view image, std::string &best) {
  std::uint64_t begin = readAt<std::uint16_t>(image, 6), bytes = readAt<std::uint64_t>(image, 8);
  if (begin < 16 || begin > image.size() || bytes > image.size() - begin)
    return bad("the header tells a size of " + std::to_string(bytes) + " bytes, there are " +
               std::to_string(image.size()));
  image = image.substr(begin, bytes);
  int bestTarget = 0;
  char bestLetter = 0;
  std::string found; // what there is, for the message
  auto add = [&](const char *what, std::uint32_t sm, char letter) {
    found += (found.empty() ? "" : ", ") + std::string(what) + std::to_string(sm);
    if (letter)
      found += letter;
  };
  for (std::uint64_t at = 0; image.size() - at >= 64;) {
    std::string_view entry = image.substr(at);
    std::uint16_t kind = readAt<std::uint16_t>(entry, 0);
    std::uint64_t header = readAt<std::uint32_t>(entry, 4),
                  payload = readAt<std::uint64_t>(entry, 8);
    if (header < 64 || header > entry.size() || payload > entry.size() - header)
      return bad("entry at offset " + std::to_string(begin + at) + ": its sizes are wrong");
    std::uint32_t sm = readAt<std::uint32_t>(entry, 28);
    if (kind != 1) {
      add(kind == 2 ? "machine code for sm_" : "other sm_", sm, 0);
    } else {
      // Also where it is too new for the device: only the text tells sm_90a from sm_90.
      std::string ptx;
      PLANEMU_TRY(unpack(entry.substr(header, payload), readAt<std::uint32_t>(entry, 16),
                         readAt<std::uint64_t>(entry, 40), readAt<std::uint64_t>(entry, 56), ptx));
      char letter = 0;
      int target = targetOf(ptx, letter);
      add("PTX for sm_", sm, letter);
      bool runs = letter == 'a'   ? target == model.sm
                  : letter == 'f' ? target / 10 == model.sm / 10 && target <= model.sm
                                  : target <= model.sm;
      if (target && runs &&
          (target > bestTarget || (target == bestTarget && letter && !bestLetter))) {
        bestTarget = target;
        bestLetter = letter;
        best = std::move(ptx);
      }
    }
    at += header + payload;
  }
  if (!bestTarget)
    return failWith(CUDA_ERROR_NO_BINARY_FOR_GPU, "the fatbin has no PTX for sm_" +
                                                      std::to_string(model.sm) + "; it has " +
                                                      (found.empty() ? "nothing" : found));
  return CUDA_SUCCESS;
}

/// Copies memory that may not be there; an image comes without its size.
static bool copyFrom(const void *from, void *to, std::size_t bytes) {
  iovec local{to, bytes}, remote{const_cast<void *>(from), bytes};
  ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied < 0 && errno != EFAULT) { // not permitted in this sandbox
    std::memcpy(to, from, bytes);
    return true;
  }
  return copied == static_cast<ssize_t>(bytes);
}

CUresult planemu::readPtxImage(const DeviceModel &model, const void *image, std::string &ptx) {
  // The first byte tells text from the rest, which is longer than any text need be.
  unsigned char first;
  std::memcpy(&first, image, 1);
  std::uint32_t magic = 0;
  if (first == 0x7f || first == 0x50 || first == 0xb1)
    copyFrom(image, &magic, sizeof(magic));
  if (magic == ElfMagic)
    return failWith(CUDA_ERROR_NO_BINARY_FOR_GPU,
                    "the image is a cubin; the emulator runs PTX only");
  if (magic == WrapperMagic) {
    const void *data = nullptr;
    if (!copyFrom(static_cast<const char *>(image) + 8, &data, sizeof(data)) || !data ||
        !copyFrom(data, &magic, sizeof(magic)) || magic != FatbinMagic)
      return bad("the wrapper does not point at one");
    image = data;
  }
  if (magic == FatbinMagic) {
    char header[16];
    if (!copyFrom(image, header, sizeof(header)))
      return bad("the header is cut off");
    std::uint64_t begin = readAt<std::uint16_t>({header, sizeof(header)}, 6);
    std::uint64_t bytes = readAt<std::uint64_t>({header, sizeof(header)}, 8);
    if (bytes > MostBytes)
      return bad("the header tells a size of " + std::to_string(bytes) + " bytes");
    // The last byte first: a wrong size shall not make us allocate as much.
    char last;
    if (begin + bytes < sizeof(header) ||
        !copyFrom(static_cast<const char *>(image) + begin + bytes - 1, &last, 1))
      return bad("it is shorter than its header tells");
    std::string copy(begin + bytes, '\0');
    if (!copyFrom(image, copy.data(), copy.size()))
      return bad("it is shorter than its header tells");
    return readFatbin(model, copy, ptx);
  }
  ptx = static_cast<const char *>(image);
  return CUDA_SUCCESS;
}

bool planemu::startsAsPtx(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    std::string_view rest = text.substr(at);
    const char *end = rest.starts_with("//") ? "\n" : rest.starts_with("/*") ? "*/" : nullptr;
    if (!end)
      return rest.starts_with(".version");
    at = text.find(end, at + 2);
    if (at != text.npos)
      at += std::strlen(end);
  }
  return false;
}

CUresult planemu::readPtxFile(const DeviceModel &model, const char *name, std::string &ptx) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(name, "rb"), std::fclose);
  if (!file)
    return failWith(CUDA_ERROR_FILE_NOT_FOUND, std::string("cannot open ") + name);
  std::string bytes;
  char part[1 << 16];
  while (std::size_t count = std::fread(part, 1, sizeof(part), file.get()))
    bytes.append(part, count);
  if (std::ferror(file.get())) // a folder can be opened, too
    return failWith(CUDA_ERROR_FILE_NOT_FOUND, std::string("cannot read ") + name);
  std::uint32_t magic = bytes.size() >= 16 ? readAt<std::uint32_t>(bytes, 0) : 0;
  if (magic == FatbinMagic)
    return readFatbin(model, bytes, ptx);
  if (magic == WrapperMagic)
    return bad("a file cannot hold the wrapper of one");
  return readPtxImage(model, bytes.c_str(), ptx);
}
