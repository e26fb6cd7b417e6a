//===- ModuleLoad.cpp - modules and functions -----------------------------===//
//
// Loading parses the PTX, places its variables and decodes every kernel, so whatever a module holds
// that the emulator does not know is an error here and not in the middle of a run.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstring>

using namespace planemu;

// The newest PTX version whose instructions were looked at (CUDA 13.0 prints 9.0, LLVM 22 up
// to 9.0).
constexpr unsigned NewestPtx = 90;

/// sm_NNa runs on exactly that device, sm_NNf on later ones of its major version, sm_NN on all
/// later ones.
static bool targetRuns(const PtxModule &ptx, int sm) {
  int target = static_cast<int>(ptx.target);
  if (ptx.targetSuffix == "a")
    return target == sm;
  if (ptx.targetSuffix == "f")
    return target / 10 == sm / 10 && target <= sm;
  return target <= sm;
}

static void placeVariables(Driver &driver, Module &module, ModuleLayout &layout) {
  for (const Variable &variable : module.ptx->variables) {
    if (variable.space == Space::Shared || variable.external)
      continue;
    std::uint64_t address = 0;
    if (variable.bytes == 0)
      throw PtxError("line " + std::to_string(variable.line) + ": variable '" + variable.name +
                     "' has no size");
    if (driver.memory->allocate(variable.bytes, address) != Memory::Result::Ok)
      throw PtxError("line " + std::to_string(variable.line) + ": no memory for variable '" +
                     variable.name + "'");
    driver.memory->name(address, variable.bytes, variable.name);
    layout.globals[variable.name] = address;
    module.globals[variable.name] = {address, variable.bytes};
  }
  for (const Variable &variable : module.ptx->variables) {
    auto placed = module.globals.find(variable.name);
    if (placed == module.globals.end())
      continue;
    char *at = reinterpret_cast<char *>(placed->second.address);
    driver.memory->wrote(placed->second.address, placed->second.bytes);
    if (!variable.init.empty())
      std::memcpy(at, variable.init.data(), variable.init.size());
    for (const Relocation &relocation : variable.relocations) {
      auto target = layout.globals.find(relocation.symbol);
      if (target == layout.globals.end())
        throw PtxError("line " + std::to_string(variable.line) + ": initial value of '" +
                       variable.name + "': unknown variable '" + relocation.symbol + "'");
      std::uint64_t value = target->second + static_cast<std::uint64_t>(relocation.addend);
      std::memcpy(at + relocation.offset, &value, relocation.bytes);
    }
  }
}

static void freeVariables(Driver &driver, Module &module) {
  for (auto &[name, global] : module.globals)
    driver.memory->free(global.address);
}

static void load(Driver &driver, Module &module, std::string text) {
  module.ptx = parsePtx(std::move(text));
  const PtxModule &ptx = *module.ptx;
  if (ptx.version > NewestPtx)
    throw PtxError("PTX version " + std::to_string(ptx.version / 10) + "." +
                       std::to_string(ptx.version % 10) + " is newer than " +
                       std::to_string(NewestPtx / 10) + "." + std::to_string(NewestPtx % 10),
                   PtxError::Version);
  if (!targetRuns(ptx, driver.model->sm))
    throw PtxError("the module is for sm_" + std::to_string(ptx.target) + ptx.targetSuffix +
                       ", the device is sm_" + std::to_string(driver.model->sm),
                   PtxError::Target);
  ModuleLayout layout;
  placeVariables(driver, module, layout);
  for (const auto &function : ptx.functions) {
    if (!function->entry || function->external)
      continue;
    auto handle = std::make_unique<FunctionHandle>();
    handle->module = &module;
    handle->kernel = Decoder(ptx, layout, *driver.instructions).decode(*function);
    std::uint32_t limit = 48u << 10;
    handle->dynamicSharedLimit = limit - std::min(limit, handle->kernel->staticShared);
    if (handle->kernel->staticShared > limit)
      throw PtxError("line " + std::to_string(function->line) + ": kernel '" + function->name +
                     "': " + std::to_string(handle->kernel->staticShared) +
                     " bytes of static shared memory, at most " + std::to_string(limit) +
                     " are allowed");
    module.functions[function->name] = std::move(handle);
  }
}

/// Copies a message into a log buffer of the caller, if there is one.
static void writeLog(const std::string &text, CUjit_option bufferOption, CUjit_option sizeOption,
                     unsigned count, CUjit_option *options, void **values) {
  char *buffer = nullptr;
  std::size_t size = 0, sizeIndex = count;
  for (unsigned n = 0; n < count; ++n) {
    if (options[n] == bufferOption)
      buffer = static_cast<char *>(values[n]);
    if (options[n] == sizeOption) {
      size = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[n]));
      sizeIndex = n;
    }
  }
  if (!buffer || size == 0)
    return;
  std::size_t copied = std::min(size - 1, text.size());
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = 0;
  values[sizeIndex] = reinterpret_cast<void *>(copied);
}

/// One line for each kernel whose results ptxas may change by contraction.
static std::string warningsOf(const Module &module) {
  std::string text;
  for (auto &[name, function] : module.functions) {
    const Kernel::Contractible &count = function->kernel->contractible;
    std::string counts;
    for (auto [number, type] : {std::pair(count.f32, "f32"),
                                {count.f64, "f64"},
                                {count.f16, "f16"},
                                {count.bf16, "bf16"}})
      if (number)
        counts += (counts.empty() ? "" : ", ") + std::to_string(number) +
                  (counts.empty() ? " additions and multiplications on " : " on ") + type;
    if (!counts.empty())
      text += "ptx: warning: kernel '" + name + "': " + counts +
              " without .rn, which ptxas may contract\n";
  }
  return text;
}

PLANEMU_EXPORT cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                                  CUjit_option *options, void **values) {
  PLANEMU_ENTER(true);
  if (!handle || !image || (count && (!options || !values)))
    return CUDA_ERROR_INVALID_VALUE;
  std::uint32_t magic;
  std::memcpy(&magic, image, 1);
  magic &= 0xff;
  if (magic == 0x7f || magic == 0x50 || magic == 0xed) {
    std::memcpy(&magic, image, sizeof(magic));
    if (magic == 0x464c457f)
      return failWith(CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "the image is a cubin; the emulator runs PTX only");
    if (magic == 0xba55ed50)
      return failWith(CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "the image is a fatbin; the emulator runs plain PTX only");
  }
  auto module = std::make_shared<Module>();
  try {
    load(driver, *module, static_cast<const char *>(image));
  } catch (const PtxError &error) {
    freeVariables(driver, *module);
    std::string text = std::string("ptx: error: ") + error.what();
    writeLog(text, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, options,
             values);
    return failWith(error.reason == PtxError::Version ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                      : CUDA_ERROR_INVALID_PTX,
                    std::move(text));
  } catch (const std::bad_alloc &) {
    freeVariables(driver, *module);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (auto &[name, function] : module->functions)
    driver.functions[function.get()] = module.get();
  writeLog(warningsOf(*module), CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count,
           options, values);
  *handle = reinterpret_cast<CUmodule>(module.get());
  driver.modules[module.get()] = module;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleUnload(CUmodule handle) {
  PLANEMU_ENTER(true);
  auto found = driver.modules.find(reinterpret_cast<Module *>(handle));
  if (found == driver.modules.end())
    return CUDA_ERROR_INVALID_HANDLE;
  for (auto &[name, function] : found->second->functions)
    driver.functions.erase(function.get());
  freeVariables(driver, *found->second);
  driver.modules.erase(found);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  PLANEMU_ENTER(true);
  if (!function || !name)
    return CUDA_ERROR_INVALID_VALUE;
  auto module = driver.modules.find(reinterpret_cast<Module *>(handle));
  if (module == driver.modules.end())
    return CUDA_ERROR_INVALID_HANDLE;
  auto found = module->second->functions.find(name);
  if (found == module->second->functions.end())
    return failWith(CUDA_ERROR_NOT_FOUND, std::string("the module has no kernel '") + name + "'");
  *function = reinterpret_cast<CUfunction>(found->second.get());
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleGetGlobal_v2(CUdeviceptr *address, std::size_t *bytes, CUmodule handle,
                                    const char *name) {
  PLANEMU_ENTER(true);
  if (!name)
    return CUDA_ERROR_INVALID_VALUE;
  auto module = driver.modules.find(reinterpret_cast<Module *>(handle));
  if (module == driver.modules.end())
    return CUDA_ERROR_INVALID_HANDLE;
  auto found = module->second->globals.find(name);
  if (found == module->second->globals.end())
    return CUDA_ERROR_NOT_FOUND;
  if (address)
    *address = found->second.address;
  if (bytes)
    *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  PLANEMU_ENTER(true);
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  auto found = driver.functions.find(reinterpret_cast<FunctionHandle *>(handle));
  if (found == driver.functions.end())
    return CUDA_ERROR_INVALID_HANDLE;
  const FunctionHandle &function = *found->first;
  const Kernel &kernel = *function.kernel;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = static_cast<int>(kernel.maxThreads);
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = static_cast<int>(kernel.staticShared);
    break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
  case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    *value = 0;
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = static_cast<int>(kernel.localBytes);
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = static_cast<int>(std::min(255u, kernel.registersUsed));
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value = static_cast<int>(function.module->ptx->target);
    break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = driver.model->sm;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = static_cast<int>(function.dynamicSharedLimit);
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    *value = -1;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  PLANEMU_ENTER(true);
  auto found = driver.functions.find(reinterpret_cast<FunctionHandle *>(handle));
  if (found == driver.functions.end())
    return CUDA_ERROR_INVALID_HANDLE;
  FunctionHandle &function = *found->first;
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; // a hint
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  int most = driver.model->sharedPerBlockOptin - static_cast<int>(function.kernel->staticShared);
  if (value < 0 || value > most)
    return failWith(CUDA_ERROR_INVALID_VALUE,
                    "kernel '" + function.kernel->name + "': " + std::to_string(value) +
                        " bytes of dynamic shared memory, at most " + std::to_string(most) +
                        " fit on sm_" + std::to_string(driver.model->sm));
  function.dynamicSharedLimit = static_cast<std::uint32_t>(value);
  return CUDA_SUCCESS;
}
