//===- Emulator.cpp - libplanemu, loaded by name ----------------------------===//
//
// Loaded and not linked, so that a missing or an old library is an error that says so.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-emu/Emulator.h"

#include <dlfcn.h>
#include <filesystem>

using namespace planc;
using namespace planemutool;

Status Emulator::bind(void *library, const std::string &path) {
  std::string missing;
  auto find = [&](auto &function, const char *symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
    if (!function)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", symbol);
  };
#define PLANEMU_FIND(Name, Params) find(Name, #Name);
  PLAN_CUDA_FUNCTIONS(PLANEMU_FIND)
  PLANEMU_MORE_FUNCTIONS(PLANEMU_FIND)
#undef PLANEMU_FIND
#define PLANEMU_FIND(Name) find(Name, #Name);
  PLANEMU_EXTENSIONS(PLANEMU_FIND)
#undef PLANEMU_FIND
  if (!missing.empty())
    return makeError(ErrorKind::Environment, "{} is too old: it lacks {}", path, missing);
  return {};
}

Result<Emulator> Emulator::load() {
  Emulator emulator;
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string name = "libplanemu.so", tried;
  for (const char *folder : {"", "../lib", "../lib64"}) {
    if (error)
      break;
    std::string path = (program.parent_path() / folder / name).lexically_normal();
    if (void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      Status status = emulator.bind(library, path);
      return status.ok() ? Result<Emulator>(emulator) : status.takeError();
    }
    tried += path + ", ";
  }
  void *library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(ErrorKind::Environment, "cannot load the emulator (tried {}{}): {}", tried,
                     name, ::dlerror());
  Status status = emulator.bind(library, name);
  return status.ok() ? Result<Emulator>(emulator) : status.takeError();
}

Status Emulator::check(CUresult result, const std::string &what, const std::string &where) const {
  if (result == CUDA_SUCCESS)
    return {};
  const char *name = nullptr;
  cuGetErrorName(result, &name);
  std::string_view detail = planemu_last_error();
  // The file is named by the tool.
  if (detail.starts_with("ptx: error: "))
    detail.remove_prefix(std::string_view("ptx: error: ").size());
  ErrorKind kind = result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorKind::Memory : ErrorKind::Input;
  return Error{fmt::format("{}: {}{}{}", what, name ? name : fmt::format("error {}", int(result)),
                           detail.empty() ? "" : "\n", detail),
               kind, where};
}
