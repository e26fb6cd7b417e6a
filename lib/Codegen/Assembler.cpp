//===- Assembler.cpp - find and drive ptxas or nvJitLink --------------------===//
//
// ptxas is the first choice: nvJitLink always makes relocatable code, which is larger where a
// kernel divides. Nothing here is built against CUDA; nvJitLink's functions are declared below and
// looked up by name.
//
// ptxas stores its options in the cubin, though no file names, so the command line is the same for
// every kernel of an architecture: file names are relative to a fresh folder in which it is
// started.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/Assembler.h"
#include "lib/Target/Target.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

using namespace llvm;
using planc::Assembler;
using planc::CubinFigures;

extern char **environ;

//===----------------------------------------------------------------------===//
// What they print and what they make
//===----------------------------------------------------------------------===//

/// The number before `unit` in `log`, or 0: "Used 12 registers", "0 bytes spill stores".
static uint32_t numberBefore(StringRef log, StringRef unit) {
  size_t at = log.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = log.substr(0, at).rtrim();
  uint32_t number = 0;
  before.substr(before.find_last_not_of("0123456789") + 1).getAsInteger(10, number);
  return number;
}

CubinFigures planc::parseAssemblerLog(StringRef log) {
  CubinFigures figures;
  figures.registers = numberBefore(log, "registers");
  figures.stackBytes = numberBefore(log, "bytes stack frame");
  figures.spillStoreBytes = numberBefore(log, "bytes spill stores");
  figures.spillLoadBytes = numberBefore(log, "bytes spill loads");
  figures.staticSharedBytes = numberBefore(log, "bytes smem");
  return figures;
}

Expected<uint32_t> planc::cubinCodeBytes(StringRef cubin) {
  auto file = object::ELFFile<object::ELF64LE>::create(cubin);
  if (!file)
    return file.takeError();
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  uint32_t bytes = 0;
  for (const auto &section : *sections) {
    auto name = file->getSectionName(section);
    if (!name)
      return name.takeError();
    if (name->starts_with(".text."))
      bytes += section.sh_size;
  }
  return bytes;
}

static Expected<Assembler::Output> finish(std::string cubin, StringRef log) {
  Assembler::Output output{std::move(cubin), planc::parseAssemblerLog(log)};
  auto bytes = planc::cubinCodeBytes(output.cubin);
  if (!bytes)
    return bytes.takeError();
  output.figures.codeBytes = *bytes;
  return output;
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

/// Runs a program in `folder`, its output going to `folder`/log. The exit status, or -1 if it did
/// not start.
static int run(const std::string &program, ArrayRef<std::string> arguments,
               const std::string &folder) {
  SmallVector<char *> argv{const_cast<char *>("ptxas")};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  llvm::scope_exit cleanup([&] { posix_spawn_file_actions_destroy(&actions); });
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "log", O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);

  pid_t pid;
  if (posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ))
    return -1;
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static std::string readAll(const Twine &path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// A new folder under the system's own for temporary files, removed with the object.
namespace {
struct ScratchFolder {
  SmallString<128> path;
  std::error_code error = sys::fs::createUniqueDirectory("planc", path);

  ~ScratchFolder() {
    if (!error)
      sys::fs::remove_directories(path);
  }
};

class Ptxas final : public Assembler {
public:
  explicit Ptxas(std::string program) : program(std::move(program)) {}

  /// False if the program does not run.
  bool readVersion() {
    ScratchFolder folder;
    if (folder.error || run(program, {"--version"}, folder.path.str().str()) != 0)
      return false;
    // "Cuda compilation tools, release 13.0, V13.0.88"
    std::string log = readAll(folder.path + "/log");
    StringRef number = StringRef(log).split(", V").second;
    version = "ptxas V" + number.take_until([](char c) { return isSpace(c); }).str();
    return !number.empty();
  }

  Expected<Output> assemble(StringRef ptx, const planc::Target &target) const override {
    ScratchFolder folder;
    if (folder.error)
      return createStringError("cannot create a folder for ptxas: " + folder.error.message());
    std::error_code error;
    raw_fd_ostream input((folder.path + "/kernel.ptx").str(), error);
    input << ptx;
    input.close();
    if (error || input.has_error())
      return createStringError("cannot write PTX for ptxas to " + folder.path);
    int status =
        run(program, {"-v", "-O3", "-arch=" + target.arch(), "kernel.ptx", "-o", "kernel.cubin"},
            folder.path.str().str());
    std::string log = readAll(folder.path + "/log");
    if (status < 0)
      return createStringError("cannot run " + program);
    if (status != 0)
      return createStringError(version + " fails (exit status " + Twine(status) +
                               "): " + StringRef(log).trim() +
                               "; --toolkit=none makes a bundle without cubins");
    return finish(readAll(folder.path + "/kernel.cubin"), log);
  }

private:
  std::string program;
};

//===----------------------------------------------------------------------===//
// nvJitLink
//===----------------------------------------------------------------------===//

/// The part of nvJitLink's C interface in use (nvJitLink documentation, "User Interface").
class NvJitLink final : public Assembler {
public:
  /// False if `library` cannot be loaded or is not what it should be.
  bool load(const std::string &path) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return false;
    unsigned major, minor;
    bool complete =
        find(getVersion, "nvJitLinkVersion") && find(create, "nvJitLinkCreate") &&
        find(destroy, "nvJitLinkDestroy") && find(addData, "nvJitLinkAddData") &&
        find(link, "nvJitLinkComplete") && find(getSize, "nvJitLinkGetLinkedCubinSize") &&
        find(getCubin, "nvJitLinkGetLinkedCubin") &&
        find(getErrorSize, "nvJitLinkGetErrorLogSize") && find(getError, "nvJitLinkGetErrorLog") &&
        find(getInfoSize, "nvJitLinkGetInfoLogSize") && find(getInfo, "nvJitLinkGetInfoLog");
    if (!complete || getVersion(&major, &minor) != 0)
      return false;
    version = "nvJitLink " + std::to_string(major) + "." + std::to_string(minor);
    return true;
  }

  Expected<Output> assemble(StringRef ptx, const planc::Target &target) const override {
    std::string arch = "-arch=" + target.arch();
    const char *options[] = {arch.c_str(), "-O3", "-verbose"};
    void *handle = nullptr;
    if (create(&handle, std::size(options), options) != 0)
      return createStringError(version + " does not know " + target.arch());
    llvm::scope_exit cleanup([&] { destroy(&handle); });
    size_t size = 0;
    if (addData(handle, inputPtx, ptx.data(), ptx.size(), "kernel") != 0 || link(handle) != 0 ||
        getSize(handle, &size) != 0)
      return createStringError(version +
                               " fails: " + StringRef(log(handle, getErrorSize, getError)).trim());
    std::string cubin(size, '\0');
    if (getCubin(handle, cubin.data()) != 0)
      return createStringError(version + " keeps its result");
    return finish(std::move(cubin), log(handle, getInfoSize, getInfo));
  }

private:
  static constexpr int inputPtx = 2; // NVJITLINK_INPUT_PTX

  using SizeFn = int (*)(void *, size_t *);
  using TextFn = int (*)(void *, char *);

  template <typename Fn> bool find(Fn &function, const char *name) {
    function = reinterpret_cast<Fn>(dlsym(library, name));
    return function;
  }

  static std::string log(void *handle, SizeFn getSize, TextFn getText) {
    size_t size = 0;
    if (getSize(handle, &size) != 0)
      return {};
    std::string text(size, '\0');
    getText(handle, text.data());
    return StringRef(text).rtrim('\0').str();
  }

  void *library = nullptr; // never closed: threads of it may be alive
  int (*getVersion)(unsigned *, unsigned *);
  int (*create)(void **, uint32_t, const char **);
  int (*destroy)(void **);
  int (*addData)(void *, int, const void *, size_t, const char *);
  int (*link)(void *);
  SizeFn getSize, getErrorSize, getInfoSize;
  TextFn getCubin, getError, getInfo;
};
} // namespace

//===----------------------------------------------------------------------===//
// Where they are
//===----------------------------------------------------------------------===//

static std::unique_ptr<Assembler> ptxasAt(const Twine &path) {
  if (!sys::fs::can_execute(path))
    return nullptr;
  auto ptxas = std::make_unique<Ptxas>(path.str());
  return ptxas->readVersion() ? std::move(ptxas) : nullptr;
}

/// nvJitLink in `folder`, or on the loader's path if that is empty.
static std::unique_ptr<Assembler> nvJitLinkAt(StringRef folder) {
  for (StringRef name : {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"}) {
    auto library = std::make_unique<NvJitLink>();
    if (library->load(folder.empty() ? name.str() : (folder + "/" + name).str()))
      return library;
  }
  return nullptr;
}

Expected<std::unique_ptr<Assembler>> Assembler::find(StringRef toolkit) {
  if (toolkit == "none")
    return nullptr;
  SmallVector<std::string> roots;
  if (!toolkit.empty()) {
    roots.push_back(toolkit.str());
  } else {
    for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
      if (const char *value = std::getenv(variable); value && *value)
        roots.push_back(value);
    roots.push_back("/usr/local/cuda");
  }
  for (const std::string &root : roots)
    if (auto ptxas = ptxasAt(root + "/bin/ptxas"))
      return ptxas;
  if (toolkit.empty())
    if (auto path = sys::findProgramByName("ptxas"))
      if (auto ptxas = ptxasAt(*path))
        return ptxas;
  for (const std::string &root : roots)
    for (StringRef folder : {"/lib64", "/lib", "/targets/x86_64-linux/lib"})
      if (auto library = nvJitLinkAt((root + folder).str()))
        return library;
  if (toolkit.empty())
    return nvJitLinkAt("");
  return createStringError("no toolkit in \"" + toolkit +
                           "\": neither bin/ptxas nor lib64/libnvJitLink.so is there or works");
}
