//===- ModuleLoad.cpp - modules and functions -----------------------------===//
//
// Loading parses the PTX, places its variables and decodes every kernel, so whatever a module holds
// that the emulator does not know is an error here and not in the middle of a run.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstring>

using namespace planemu;

// The instructions are those of PTX 9.0. Later 9.x only add to it, and whatever of that a module uses
// is refused by name.
constexpr unsigned NewestPtx = 99;

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

static void placeVariables(Module &module, ModuleLayout &layout) {
  for (const Variable &variable : module.ptx->variables) {
    if (variable.space == Space::Shared || variable.external)
      continue;
    std::uint64_t address = 0;
    if (variable.bytes == 0)
      throw PtxError("line " + std::to_string(variable.line) + ": variable '" + variable.name +
                     "' has no size");
    if (module.context->memory->allocate(variable.bytes, address, variable.space == Space::Const) !=
        Memory::Result::Ok)
      throw PtxError("line " + std::to_string(variable.line) + ": no memory for variable '" +
                     variable.name + "'");
    module.context->memory->name(address, variable.bytes, variable.name);
    layout.globals[variable.name] = address;
    module.globals[variable.name] = {address, variable.bytes};
  }
  for (const Variable &variable : module.ptx->variables) {
    auto placed = module.globals.find(variable.name);
    if (placed == module.globals.end())
      continue;
    char *at = reinterpret_cast<char *>(placed->second.address);
    module.context->memory->wrote(placed->second.address, placed->second.bytes);
    if (!variable.init.empty())
      std::memcpy(at, variable.init.data(), variable.init.size());
    for (const Relocation &relocation : variable.relocations) {
      auto target = layout.globals.find(relocation.symbol);
      const Function *function = module.ptx->findFunction(relocation.symbol);
      if (target == layout.globals.end() && (!function || function->external))
        throw PtxError("line " + std::to_string(variable.line) + ": initial value of '" +
                       variable.name + "': " +
                       (function
                            ? "function '" + relocation.symbol + "' is declared, but not defined"
                            : "unknown variable '" + relocation.symbol + "'"));
      std::uint64_t value =
          (target == layout.globals.end() ? functionAddress(*module.ptx, *function)
                                          : target->second) +
          static_cast<std::uint64_t>(relocation.addend);
      std::memcpy(at + relocation.offset, &value, relocation.bytes);
    }
  }
}

static void freeVariables(Module &module) {
  if (!module.context->alive)
    return;
  for (auto &[name, global] : module.globals)
    module.context->memory->free(global.address);
}

static void load(Driver &driver, Module &module, std::string text) {
  module.ptx = parsePtx(std::move(text));
  const PtxModule &ptx = *module.ptx;
  if (ptx.version > NewestPtx)
    throw PtxError("PTX version " + std::to_string(ptx.version / 10) + "." +
                       std::to_string(ptx.version % 10) + " is newer than " +
                       std::to_string(NewestPtx / 10) + ".x",
                   PtxError::Version);
  if (!targetRuns(ptx, driver.model->sm))
    throw PtxError("the module is for sm_" + std::to_string(ptx.target) + ptx.targetSuffix +
                       ", the device is sm_" + std::to_string(driver.model->sm) +
                       " (PLANEMU_TARGET chooses it)",
                   PtxError::Target);
  ModuleLayout layout;
  placeVariables(module, layout);
  for (const auto &function : ptx.functions) {
    if (!function->entry || function->external)
      continue;
    auto handle = std::make_shared<FunctionHandle>();
    handle->name = function->name;
    handle->module = &module;
    handle->kernel = decodeKernel(ptx, layout, *driver.instructions, *function);
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

void planemu::writeLog(const std::string &text, CUjit_option bufferOption, CUjit_option sizeOption,
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

CUresult planemu::loadModule(Driver &driver, Context &context, std::string ptx, unsigned count,
                             CUjit_option *options, void **values,
                             std::shared_ptr<Module> &module) {
  if (count && (!options || !values))
    return CUDA_ERROR_INVALID_VALUE;
  module = std::make_shared<Module>();
  module->context = &context;
  CUresult refusal = startsAsPtx(ptx) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
  try {
    load(driver, *module, std::move(ptx));
  } catch (const PtxError &error) {
    freeVariables(*module);
    std::string text = std::string("ptx: error: ") + error.what();
    writeLog(text, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, options,
             values);
    return failWith(error.reason == PtxError::Version ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                      : refusal,
                    std::move(text));
  } catch (const std::bad_alloc &) {
    freeVariables(*module);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (auto &[name, function] : module->functions)
    driver.functions.add(function);
  writeLog(warningsOf(*module), CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count,
           options, values);
  driver.modules.add(module);
  return CUDA_SUCCESS;
}

void planemu::unloadModule(Driver &driver, Module &module) {
  for (auto &[name, function] : module.functions)
    driver.functions.remove(reinterpret_cast<CUfunction>(function->handle));
  freeVariables(module);
  driver.modules.remove(reinterpret_cast<CUmodule>(module.handle));
}

// --- Exported -----------------------------------------------------------------

PLANEMU_EXPORT cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                                  CUjit_option *options, void **values) {
  PLANEMU_ENTER_CONTEXT;
  if (!handle || !image || (count && (!options || !values)))
    return CUDA_ERROR_INVALID_VALUE;
  std::string ptx;
  PLANEMU_TRY(readPtxImage(*driver.model, image, ptx));
  std::shared_ptr<Module> module;
  PLANEMU_TRY(loadModule(driver, context, std::move(ptx), count, options, values, module));
  *handle = reinterpret_cast<CUmodule>(module->handle);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuModuleLoadData(CUmodule *handle, const void *image) {
  return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}
PLANEMU_EXPORT cuModuleLoadFatBinary(CUmodule *handle, const void *image) {
  return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

PLANEMU_EXPORT cuModuleLoad(CUmodule *handle, const char *name) {
  PLANEMU_ENTER_CONTEXT;
  if (!handle || !name)
    return CUDA_ERROR_INVALID_VALUE;
  std::string ptx;
  PLANEMU_TRY(readPtxFile(*driver.model, name, ptx));
  std::shared_ptr<Module> module;
  PLANEMU_TRY(loadModule(driver, context, std::move(ptx), 0, nullptr, nullptr, module));
  *handle = reinterpret_cast<CUmodule>(module->handle);
  return CUDA_SUCCESS;
}

/// For functions about one module.
#define ENTER_MODULE(Good)                                                                         \
  PLANEMU_ENTER_CONTEXT;                                                                           \
  if (!(Good))                                                                                     \
    return CUDA_ERROR_INVALID_VALUE;                                                               \
  std::shared_ptr<Module> module = driver.modules.find(handle);                                    \
  if (!module)                                                                                     \
  return CUDA_ERROR_INVALID_HANDLE

PLANEMU_EXPORT cuModuleUnload(CUmodule handle) {
  ENTER_MODULE(true);
  if (module->library)
    return failWith(CUDA_ERROR_NOT_PERMITTED, "the module goes when its library is unloaded");
  driver.drain(lock, context);
  unloadModule(driver, *module);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
  PLANEMU_ENTER(false);
  if (!mode)
    return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  ENTER_MODULE(function && name && *name);
  auto found = module->functions.find(name);
  if (found == module->functions.end())
    return failWith(CUDA_ERROR_NOT_FOUND, std::string("the module has no kernel '") + name + "'");
  *function = reinterpret_cast<CUfunction>(found->second->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleGetFunctionCount(unsigned *count, CUmodule handle) {
  ENTER_MODULE(count);
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleEnumerateFunctions(CUfunction *functions, unsigned most, CUmodule handle) {
  ENTER_MODULE(functions);
  unsigned n = 0;
  for (auto &[name, function] : module->functions)
    if (n < most)
      functions[n++] = reinterpret_cast<CUfunction>(function->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuModuleGetGlobal_v2(CUdeviceptr *address, std::size_t *bytes, CUmodule handle,
                                    const char *name) {
  ENTER_MODULE(name && (address || bytes));
  auto found = module->globals.find(name);
  if (found == module->globals.end())
    return failWith(CUDA_ERROR_NOT_FOUND, std::string("the module has no variable '") + name + "'");
  if (address)
    *address = found->second.address;
  if (bytes)
    *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}
