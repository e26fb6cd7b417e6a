//===- File.cpp - reading and writing whole files safely ------------------===//
//
// POSIX calls with their errors turned into messages that name the file.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/File.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace planc;

static Error systemError(const std::string &path, const char *what) {
  return fileError(path, "{}: {}", what, std::strerror(errno));
}

//===----------------------------------------------------------------------===//
// InputFile
//===----------------------------------------------------------------------===//

Result<InputFile> InputFile::open(const std::string &path) {
  InputFile file;
  file.name = path;
  // O_NONBLOCK: a FIFO in the place of a file must not hang us before it is refused.
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file.descriptor < 0 || ::fstat(file.descriptor, &info) != 0)
    return systemError(path, "cannot open");
  if (!S_ISREG(info.st_mode))
    return fileError(path, "is not a regular file");
  file.bytes = uint64_t(info.st_size);
  return file;
}

InputFile::InputFile(InputFile &&other) noexcept { *this = std::move(other); }

InputFile &InputFile::operator=(InputFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(descriptor, other.descriptor);
  std::swap(bytes, other.bytes);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Status InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t count = ::pread(descriptor, out.data() + done, out.size() - done, off_t(offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError(name, "cannot read");
    if (count == 0)
      return fileError(name, "needs {} bytes at offset {}, but the file ends at {}", out.size(),
                       offset, offset + done);
    done += size_t(count);
  }
  return {};
}

Result<Bytes> planc::readFile(const std::string &path, uint64_t limit) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok())
    return file.takeError();
  if (file->size() > limit)
    return fileError(path, "has {} bytes, more than the {} expected at most", file->size(), limit);
  Bytes content(file->size());
  if (Status status = file->read(0, content); !status.ok())
    return status.takeError();
  return content;
}

//===----------------------------------------------------------------------===//
// OutputFile
//===----------------------------------------------------------------------===//

Result<OutputFile> OutputFile::create(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fileError(path, "is not a regular file, it would be replaced");
  OutputFile file;
  file.name = path;
  file.temporary = path + ".XXXXXX";
  file.descriptor = ::mkstemp(file.temporary.data());
  if (file.descriptor < 0) {
    file.temporary.clear();
    return systemError(path, "cannot write");
  }
  // mkstemp makes the file private; give it the mode that open would have.
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file.descriptor, 0666 & ~mask);
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(temporary, other.temporary);
  std::swap(descriptor, other.descriptor);
}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status OutputFile::write(ByteView piece) {
  while (!piece.empty()) {
    ssize_t count = ::write(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError(name, "cannot write");
    piece = piece.subspan(size_t(count));
  }
  return {};
}

Status OutputFile::commit() {
  int closing = std::exchange(descriptor, -1);
  // close reports what a network file system or a quota refused late.
  if (::close(closing) != 0 || ::rename(temporary.c_str(), name.c_str()) != 0)
    return systemError(name, "cannot write");
  temporary.clear();
  return {};
}

Status planc::writeFile(const std::string &path, ByteView content) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeError();
  if (Status status = file->write(content); !status.ok())
    return status;
  return file->commit();
}
