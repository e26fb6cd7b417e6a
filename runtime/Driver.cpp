//===- Driver.cpp - the CUDA driver API, found at run time -----------------===//
//
// dlopen, dlsym and the texts of errors.
//
//===----------------------------------------------------------------------===//
#include "runtime/Driver.h"

#include <dlfcn.h>

using namespace planc;
using namespace planrt;
using namespace cudaabi;

Result<std::shared_ptr<const Driver>> Driver::cuda() {
  void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(ErrorKind::Environment,
                     "cannot load the CUDA driver: {}; without a GPU use the device \"emulator\"",
                     ::dlerror());
  return bind(library, "libcuda.so.1");
}

Result<std::shared_ptr<const Driver>> Driver::emulator() {
  // The emulator that was built with this planrt comes first.
  Dl_info self;
  static const char here = 0;
  std::string failures;
  if (::dladdr(&here, &self) && self.dli_fname) {
    std::string beside = self.dli_fname;
    beside = beside.substr(0, beside.find_last_of('/') + 1) + "libplanemu.so";
    if (beside.find('/') != std::string::npos) {
      if (void *library = ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL))
        return bind(library, beside);
      // It may be there and fail for another reason, which the next failure does not tell.
      failures = fmt::format("{}; ", ::dlerror());
    }
  }
  void *library = ::dlopen("libplanemu.so", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(ErrorKind::Environment, "cannot load the emulator: {}{}", failures,
                     ::dlerror());
  return bind(library, "libplanemu.so");
}

Result<std::shared_ptr<const Driver>> Driver::bind(void *library, const std::string &name) {
  auto driver = std::make_shared<Driver>();
  std::string missing;
  auto find = [&](auto &function, const char *symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
    return function != nullptr;
  };
  auto require = [&](auto &function, const char *symbol) {
    // planrt measures no events; drivers before 12.8 have no such function.
    if (!find(function, symbol) && std::string_view(symbol) != "cuEventElapsedTime_v2")
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", symbol);
  };
#define PLANRT_FIND(Name, Params) require(driver->functions.Name, #Name);
  PLAN_CUDA_FUNCTIONS(PLANRT_FIND)
#undef PLANRT_FIND
  if (!missing.empty())
    return makeError(ErrorKind::Environment, "{} is too old: it lacks {}", name, missing);
#define PLANRT_FIND(Name) find(driver->extensions.Name, #Name);
  PLANRT_EXTENSIONS(PLANRT_FIND)
#undef PLANRT_FIND
  driver->name = name;
  return std::shared_ptr<const Driver>(driver);
}

Status Driver::configure(const EmulatorSettings &settings) const {
  auto lacks = [&](const char *function) {
    return makeError(ErrorKind::Environment, "{} is too old: it lacks {}", name, function);
  };
  const Extensions &e = extensions;
  if (!settings.target.empty()) {
    if (!e.planemu_set_target)
      return lacks("planemu_set_target");
    if (int result = e.planemu_set_target(settings.target.c_str())) {
      Error refused =
          error(CUresult(result),
                fmt::format("the emulator cannot report target \"{:.40}\"", settings.target));
      refused.kind = ErrorKind::Usage;
      return refused;
    }
  }
  if (settings.checks && !e.planemu_set_checks)
    return lacks("planemu_set_checks");
  if (settings.counters && !e.planemu_set_counters)
    return lacks("planemu_set_counters");
  if (settings.scheduleSeed && !e.planemu_set_schedule_seed)
    return lacks("planemu_set_schedule_seed");

  if (settings.threads && e.planemu_set_threads)
    e.planemu_set_threads(settings.threads);
  if (e.planemu_set_schedule_seed)
    e.planemu_set_schedule_seed(settings.scheduleSeed);
  if (e.planemu_set_checks) {
    e.planemu_set_checks(settings.checks);
    e.planemu_clear_findings();
  }
  if (e.planemu_set_counters) {
    e.planemu_set_counters(settings.counters);
    e.planemu_clear_counters();
  }
  return {};
}

size_t Driver::findingCount() const {
  return extensions.planemu_finding_count ? extensions.planemu_finding_count() : 0;
}

const char *Driver::finding(size_t index) const {
  return extensions.planemu_finding ? extensions.planemu_finding(index) : nullptr;
}

const char *Driver::counters() const {
  return extensions.planemu_counters ? extensions.planemu_counters() : nullptr;
}

void Driver::nameRange(CUdeviceptr address, size_t bytes, const std::string &text) const {
  if (extensions.planemu_name_range)
    extensions.planemu_name_range(address, bytes, text.c_str());
}

void Driver::setInterrupt(int (*asked)(void *user), void *user) const {
  if (extensions.planemu_set_interrupt)
    extensions.planemu_set_interrupt(asked, user);
}

void Driver::labelLaunch(const std::string &label) const {
  if (extensions.planemu_label_launch)
    extensions.planemu_label_launch(label.c_str());
}

std::string Driver::describe(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  functions.cuGetErrorName(result, &name);
  functions.cuGetErrorString(result, &text);
  if (!name)
    return fmt::format("error {}", int(result));
  return text && *text ? fmt::format("{} ({})", name, text) : name;
}

bool Driver::losesContext(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

Error Driver::error(CUresult result, std::string_view what) const {
  ErrorKind kind = ErrorKind::Device;
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    kind = ErrorKind::Memory;
    break;
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_STUB_LIBRARY:
  case CUDA_ERROR_OPERATING_SYSTEM:
  case CUDA_ERROR_SYSTEM_NOT_READY:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    kind = ErrorKind::Environment;
    break;
  default:
    if (losesContext(result))
      kind = ErrorKind::DeviceLost;
  }
  // The emulator knows the PTX line, the thread and the address.
  const char *detail = extensions.planemu_last_error ? extensions.planemu_last_error() : "";
  return makeError(kind, "{}: {}{}{}", what, describe(result), *detail ? "\n" : "", detail);
}
