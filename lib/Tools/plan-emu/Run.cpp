//===- Run.cpp - one kernel on the emulator ---------------------------------===//
//
// The program that one would write against the driver API, once. Nothing is freed: the process ends
// when the kernel has run.
//
//===----------------------------------------------------------------------===//
#include "lib/Tools/plan-emu/Run.h"

#include "lib/Tools/CommandLine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace planc;
using namespace planemutool;

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// The GPU that `.target sm_90a` asks for, sm_90; empty if the text has no such line.
static std::string targetOf(std::string_view text) {
  static constexpr std::string_view directive = ".target", prefix = "sm_";
  for (std::string_view line : tools::split(text, '\n')) {
    line = line.substr(0, line.find("//"));
    size_t at = line.find(directive);
    if (at == line.npos)
      continue;
    line.remove_prefix(at + directive.size());
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
    if (!line.starts_with(prefix))
      return {};
    size_t end = line.find_first_not_of("0123456789", prefix.size());
    return std::string(line.substr(0, end));
  }
  return {};
}

Status Run::configure(std::string_view text) {
  if (!options.target.empty()) {
    if (CUresult result = CUresult(emulator.planemu_set_target(options.target.c_str()));
        result != CUDA_SUCCESS)
      return emulator.check(result, fmt::format("there is no target \"{:.40}\"", options.target));
  } else if (std::string target = targetOf(text); !target.empty()) {
    // What is for sm_90a runs on sm_90 alone, and what is for sm_80 may want its shared memory. Of a GPU
    // that is not known the default has to do.
    emulator.planemu_set_target(target.c_str());
  }
  if (options.threads)
    emulator.planemu_set_threads(options.threads);
  if (options.maxSteps)
    emulator.planemu_set_max_steps(options.maxSteps);
  emulator.planemu_set_schedule_seed(options.seed);
  emulator.planemu_set_checks(options.checks);
  emulator.planemu_set_counters(!options.counters.empty());
  CUdevice device = 0;
  CUcontext context = nullptr;
  for (auto call :
       {+[](const Emulator &e, CUdevice *, CUcontext *) { return e.cuInit(0); },
        +[](const Emulator &e, CUdevice *d, CUcontext *) { return e.cuDeviceGet(d, 0); },
        +[](const Emulator &e, CUdevice *d, CUcontext *c) {
          return e.cuDevicePrimaryCtxRetain(c, *d);
        },
        +[](const Emulator &e, CUdevice *, CUcontext *c) { return e.cuCtxSetCurrent(*c); }})
    if (CUresult result = call(emulator, &device, &context); result != CUDA_SUCCESS) {
      Error error = emulator.check(result, "cannot use the emulator").takeError();
      error.kind = ErrorKind::Environment;
      return error;
    }
  return {};
}

/// The driver takes an image by its first bytes, and text up to a NUL byte: with a file of another
/// kind it would read past the end, or ignore the rest.
static Status checkText(const std::string &file, std::string_view text) {
  if (text.starts_with("\x7f"
                       "ELF") ||
      text.starts_with("\x50\xed\x55\xba"))
    return fileError(file, "is a {}, expected PTX text", text[0] == 0x7f ? "cubin" : "fatbin");
  if (size_t at = text.find('\0'); at != std::string_view::npos)
    return fileError(file, "has a NUL byte at offset {}, expected PTX text", at);
  return {};
}

Status Run::load(Bytes content, CUmodule &module) {
  content.insert(content.end(), 16, std::byte(0)); // also if the file is empty
  std::vector<char> text(1 << 16);
  CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {text.data(), reinterpret_cast<void *>(text.size())};
  CUresult result = emulator.cuModuleLoadDataEx(&module, content.data(), 2, names, values);
  if (result == CUDA_SUCCESS)
    log.assign(text.data(), strnlen(text.data(), text.size()));
  return emulator.check(result, "cannot be loaded", options.file);
}

std::string Run::warnings(const std::string &kernel) const {
  std::string text;
  for (std::string_view line : tools::split(log, '\n')) {
    static constexpr std::string_view prefix = "ptx: ";
    if (line.starts_with(prefix) && line.find(fmt::format("kernel '{}':", kernel)) != line.npos)
      text += fmt::format("{}: {}\n", options.file, line.substr(prefix.size()));
  }
  return text;
}

Result<KernelInfo> Run::describe(CUfunction function) const {
  KernelInfo info;
  info.function = function;
  const char *name = "";
  CUresult result = emulator.cuFuncGetName(&name, function);
  for (auto [value, attribute] :
       {std::pair(&info.maxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        std::pair(&info.sharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        std::pair(&info.localBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)})
    if (result == CUDA_SUCCESS)
      result = emulator.cuFuncGetAttribute(value, attribute, function);
  if (Status status = emulator.check(result, "cannot describe a kernel", options.file);
      !status.ok())
    return status.takeError();
  info.name = name;
  size_t offset = 0, bytes = 0;
  // An index past the last parameter is refused.
  while (emulator.cuFuncGetParamInfo(function, info.parameters.size(), &offset, &bytes) ==
         CUDA_SUCCESS)
    info.parameters.push_back({offset, bytes});
  return info;
}

Result<std::vector<KernelInfo>> Run::open() {
  CUmodule module = nullptr;
  unsigned count = 0;
  Result<Bytes> content = readFile(options.file);
  if (!content.ok())
    return content.takeError();
  if (Status status = checkText(options.file, asText(*content)); !status.ok())
    return status.takeError();
  if (Status status = configure(asText(*content)); !status.ok())
    return status.takeError();
  if (Status status = load(std::move(*content), module); !status.ok())
    return status.takeError();
  CUresult result = emulator.cuModuleGetFunctionCount(&count, module);
  std::vector<CUfunction> functions(count);
  if (result == CUDA_SUCCESS && count)
    result = emulator.cuModuleEnumerateFunctions(functions.data(), count, module);
  if (Status status = emulator.check(result, "cannot list the kernels", options.file); !status.ok())
    return status.takeError();
  std::vector<KernelInfo> kernels;
  for (CUfunction function : functions) {
    Result<KernelInfo> info = describe(function);
    if (!info.ok())
      return info.takeError();
    kernels.push_back(std::move(*info));
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelInfo &a, const KernelInfo &b) { return a.name < b.name; });
  return kernels;
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

Status Run::checkArguments(const KernelInfo &kernel, const std::vector<Argument> &arguments) const {
  if (arguments.size() != kernel.parameters.size())
    return inputError("kernel \"{}\" has {} parameters, {} arguments are given", kernel.name,
                      kernel.parameters.size(), arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    uint64_t bytes = arguments[i].isBuffer ? sizeof(CUdeviceptr) : arguments[i].data.size();
    if (bytes != kernel.parameters[i].bytes)
      return inputError("argument {}, \"{:.120}\": parameter {} of kernel \"{}\" has {} bytes, {} "
                        "has {}",
                        i, arguments[i].text, i, kernel.name, kernel.parameters[i].bytes,
                        arguments[i].isBuffer ? "an address" : "the value", bytes);
  }
  return {};
}

/// Each buffer is an allocation of its own, so that an overrun of one is not an access to another.
Status Run::allocate(std::vector<Argument> &arguments, std::vector<CUdeviceptr> &addresses) {
  addresses.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    Argument &argument = arguments[i];
    if (!argument.isBuffer)
      continue;
    // An array without elements has an address too.
    uint64_t bytes = std::max<uint64_t>(argument.bytes, 1);
    std::string who = argument.name(i);
    if (Status status =
            emulator.check(emulator.cuMemAlloc_v2(&addresses[i], bytes),
                           fmt::format("cannot allocate {} bytes for {}", argument.bytes, who));
        !status.ok())
      return status;
    emulator.planemu_name_range(addresses[i], bytes, who.c_str());
    CUresult result = CUDA_SUCCESS;
    if (!argument.input.empty())
      result = emulator.cuMemcpyHtoD_v2(addresses[i], argument.data.data(), argument.bytes);
    else if (!(options.checks & PLANEMU_CHECK_INIT))
      result = emulator.cuMemsetD8_v2(addresses[i], 0, bytes);
    if (Status status = emulator.check(result, "cannot fill " + who); !status.ok())
      return status;
  }
  return {};
}

Status Run::execute(const KernelInfo &kernel, std::vector<void *> &pointers) {
  CUresult result = CUDA_SUCCESS;
  // Above what a kernel gets without asking.
  if (options.sharedBytes)
    result = emulator.cuFuncSetAttribute(kernel.function,
                                         CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         int(std::min(options.sharedBytes, uint32_t(INT32_MAX))));
  if (Status status = emulator.check(
          result, fmt::format("kernel \"{}\" cannot have {} bytes of dynamic shared memory",
                              kernel.name, options.sharedBytes));
      !status.ok())
    return status;
  auto [gridX, gridY, gridZ] = options.grid;
  auto [blockX, blockY, blockZ] = options.block;
  for (uint32_t i = 0; i < options.repeat; ++i) {
    result =
        options.cooperative
            ? emulator.cuLaunchCooperativeKernel(kernel.function, gridX, gridY, gridZ, blockX,
                                                 blockY, blockZ, options.sharedBytes, nullptr,
                                                 pointers.data())
            : emulator.cuLaunchKernel(kernel.function, gridX, gridY, gridZ, blockX, blockY, blockZ,
                                      options.sharedBytes, nullptr, pointers.data(), nullptr);
    if (Status status =
            emulator.check(result, fmt::format("kernel \"{}\" cannot be started", kernel.name));
        !status.ok())
      return status;
    if (Status status = emulator.check(emulator.cuCtxSynchronize(),
                                       fmt::format("kernel \"{}\" failed", kernel.name));
        !status.ok())
      return status;
  }
  return {};
}

Status Run::launch(const KernelInfo &kernel, std::vector<Argument> &arguments,
                   RunResults &results) {
  if (Status status = checkArguments(kernel, arguments); !status.ok())
    return status;
  std::vector<CUdeviceptr> addresses;
  if (Status status = allocate(arguments, addresses); !status.ok())
    return status;
  std::vector<void *> pointers;
  for (size_t i = 0; i < arguments.size(); ++i)
    pointers.push_back(arguments[i].isBuffer ? static_cast<void *>(&addresses[i])
                                             : arguments[i].data.data());
  uint64_t before = emulator.planemu_warp_instructions();
  auto start = std::chrono::steady_clock::now();
  Status executed = execute(kernel, pointers);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  results.ms = elapsed.count();
  results.warpInstructions = emulator.planemu_warp_instructions() - before;
  for (size_t i = 0; i < emulator.planemu_finding_count(); ++i)
    results.findings.emplace_back(emulator.planemu_finding(i));
  if (!options.counters.empty())
    results.counters = emulator.planemu_counters();
  if (!executed.ok())
    return executed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Argument &argument = arguments[i];
    if (argument.output.empty())
      continue;
    argument.data.resize(argument.bytes);
    if (Status status = emulator.check(
            emulator.cuMemcpyDtoH_v2(argument.data.data(), addresses[i], argument.bytes),
            "cannot read " + argument.name(i));
        !status.ok())
      return status;
  }
  return {};
}
