//===- Library.cpp - code without a context -------------------------------===//
//
// A library keeps PTX and loads it into a context when a function of it is first asked for there.
// If a context is current when the library is loaded, it is loaded into that one at once, so that
// what is wrong with it is told then.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

using namespace planemu;

/// The library's module in the context.
static CUresult moduleIn(Driver &driver, Library &library, Context &context, unsigned count,
                         CUjit_option *options, void **values, std::shared_ptr<Module> &module) {
  std::shared_ptr<Module> &loaded = library.modules[&context];
  if (!loaded) {
    if (CUresult result = loadModule(driver, context, library.ptx, count, options, values, loaded);
        result != CUDA_SUCCESS) {
      library.modules.erase(&context);
      return result;
    }
    loaded->library = &library;
    for (auto &[name, kernel] : library.kernels)
      if (auto function = loaded->functions.find(name); function != loaded->functions.end())
        for (auto [attribute, value] : kernel->attributes)
          setFunctionAttribute(driver, *function->second, attribute, value);
  }
  module = loaded;
  return CUDA_SUCCESS;
}

CUresult planemu::kernelFunction(Driver &driver, LibraryKernel &kernel, Context &context,
                                 std::shared_ptr<FunctionHandle> &function) {
  std::shared_ptr<Module> module;
  PLANEMU_TRY(moduleIn(driver, *kernel.library, context, 0, nullptr, nullptr, module));
  function = module->functions[kernel.name];
  return function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/// The names of the kernels, without decoding them.
static CUresult listKernels(Driver &driver, Library &library) {
  try {
    std::unique_ptr<PtxModule> ptx = parsePtx(library.ptx);
    for (const auto &function : ptx->functions)
      if (function->entry && !function->external) {
        auto kernel = std::make_shared<LibraryKernel>();
        kernel->name = function->name;
        kernel->library = &library;
        library.kernels[function->name] = std::move(kernel);
      }
  } catch (const PtxError &error) {
    return failWith(startsAsPtx(library.ptx) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE,
                    std::string("ptx: error: ") + error.what());
  }
  for (auto &[name, kernel] : library.kernels)
    driver.kernels.add(kernel);
  return CUDA_SUCCESS;
}

static void unload(Driver &driver, Library &library) {
  for (auto &[context, module] : library.modules)
    unloadModule(driver, *module);
  for (auto &[name, kernel] : library.kernels)
    driver.kernels.remove(reinterpret_cast<CUkernel>(kernel->handle));
}

template <class Read>
static CUresult load(CUlibrary *handle, Read read, unsigned count, CUjit_option *options,
                     void **values, CUlibraryOption *libraryOptions, unsigned libraryCount) {
  PLANEMU_ENTER(false);
  if (!handle || (count && (!options || !values)) || (libraryCount && !libraryOptions))
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned n = 0; n < libraryCount; ++n)
    if (libraryOptions[n] != CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE &&
        libraryOptions[n] != CU_LIBRARY_BINARY_IS_PRESERVED)
      return CUDA_ERROR_INVALID_VALUE;
  auto library = std::make_shared<Library>();
  PLANEMU_TRY(read(driver, library->ptx));
  Context *context = Driver::current();
  std::shared_ptr<Module> module;
  CUresult result = CUDA_SUCCESS;
  if (context && context->alive)
    result = moduleIn(driver, *library, *context, count, options, values, module);
  if (result == CUDA_SUCCESS)
    result = listKernels(driver, *library);
  if (result != CUDA_SUCCESS) {
    unload(driver, *library);
    return result;
  }
  *handle = driver.libraries.add(std::move(library));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                                 void **values, unsigned count, CUlibraryOption *libraryOptions,
                                 void **, unsigned libraryCount) {
  return load(
      library,
      [&](Driver &driver, std::string &ptx) {
        return code ? readPtxImage(*driver.model, code, ptx) : CUDA_ERROR_INVALID_VALUE;
      },
      count, options, values, libraryOptions, libraryCount);
}

PLANEMU_EXPORT cuLibraryLoadFromFile(CUlibrary *library, const char *name, CUjit_option *options,
                                     void **values, unsigned count, CUlibraryOption *libraryOptions,
                                     void **, unsigned libraryCount) {
  return load(
      library,
      [&](Driver &driver, std::string &ptx) {
        return name ? readPtxFile(*driver.model, name, ptx) : CUDA_ERROR_INVALID_VALUE;
      },
      count, options, values, libraryOptions, libraryCount);
}

/// For functions about one library.
#define ENTER_LIBRARY(NeedsContext, Good)                                                          \
  PLANEMU_ENTER(NeedsContext);                                                                     \
  if (!(Good))                                                                                     \
    return CUDA_ERROR_INVALID_VALUE;                                                               \
  std::shared_ptr<Library> library = driver.libraries.find(handle);                                \
  if (!library)                                                                                    \
  return CUDA_ERROR_INVALID_HANDLE

PLANEMU_EXPORT cuLibraryUnload(CUlibrary handle) {
  ENTER_LIBRARY(false, true);
  for (auto &[context, module] : std::map(library->modules))
    driver.drain(lock, *context);
  unload(driver, *library);
  driver.libraries.remove(handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name) {
  ENTER_LIBRARY(false, kernel && name);
  auto found = library->kernels.find(name);
  if (found == library->kernels.end())
    return failWith(CUDA_ERROR_NOT_FOUND, std::string("the library has no kernel '") + name + "'");
  *kernel = reinterpret_cast<CUkernel>(found->second->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryGetKernelCount(unsigned *count, CUlibrary handle) {
  ENTER_LIBRARY(false, count);
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryEnumerateKernels(CUkernel *kernels, unsigned most, CUlibrary handle) {
  ENTER_LIBRARY(false, kernels);
  unsigned n = 0;
  for (auto &[name, kernel] : library->kernels)
    if (n < most)
      kernels[n++] = reinterpret_cast<CUkernel>(kernel->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryGetModule(CUmodule *out, CUlibrary handle) {
  ENTER_LIBRARY(true, out);
  std::shared_ptr<Module> module;
  PLANEMU_TRY(moduleIn(driver, *library, *Driver::current(), 0, nullptr, nullptr, module));
  *out = reinterpret_cast<CUmodule>(module->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryGetGlobal(CUdeviceptr *address, std::size_t *bytes, CUlibrary handle,
                                  const char *name) {
  ENTER_LIBRARY(true, name && (address || bytes));
  std::shared_ptr<Module> module;
  PLANEMU_TRY(moduleIn(driver, *library, *Driver::current(), 0, nullptr, nullptr, module));
  auto found = module->globals.find(name);
  if (found == module->globals.end())
    return failWith(CUDA_ERROR_NOT_FOUND,
                    std::string("the library has no variable '") + name + "'");
  if (address)
    *address = found->second.address;
  if (bytes)
    *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLibraryGetManaged(CUdeviceptr *address, std::size_t *bytes, CUlibrary handle,
                                   const char *name) {
  ENTER_LIBRARY(false, name && (address || bytes));
  return CUDA_ERROR_NOT_FOUND; // the PTX reader knows no managed variables
}

// --- Kernels --------------------------------------------------------------------

/// For functions about a kernel's function in the current context.
#define ENTER_KERNEL(Good)                                                                         \
  PLANEMU_ENTER_CONTEXT;                                                                           \
  if (!(Good))                                                                                     \
    return CUDA_ERROR_INVALID_VALUE;                                                               \
  std::shared_ptr<LibraryKernel> kernel = driver.kernels.find(handle);                             \
  if (!kernel)                                                                                     \
    return CUDA_ERROR_INVALID_HANDLE;                                                              \
  std::shared_ptr<FunctionHandle> function;                                                        \
  PLANEMU_TRY(kernelFunction(driver, *kernel, context, function))

PLANEMU_EXPORT cuKernelGetFunction(CUfunction *out, CUkernel handle) {
  ENTER_KERNEL(out);
  *out = reinterpret_cast<CUfunction>(function->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuKernelGetLibrary(CUlibrary *out, CUkernel handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<LibraryKernel> kernel = driver.kernels.find(handle);
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  if (!kernel)
    return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUlibrary>(kernel->library->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuKernelGetName(const char **name, CUkernel handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<LibraryKernel> kernel = driver.kernels.find(handle);
  if (!name)
    return CUDA_ERROR_INVALID_VALUE;
  if (!kernel)
    return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel handle,
                                    CUdevice device) {
  ENTER_KERNEL(value);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  return getFunctionAttribute(driver, *function, attribute, *value);
}

PLANEMU_EXPORT cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                    CUdevice device) {
  ENTER_KERNEL(true);
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  PLANEMU_TRY(setFunctionAttribute(driver, *function, attribute, value));
  // It holds for the device, so in its other contexts too.
  kernel->attributes[attribute] = value;
  for (auto &[other, module] : kernel->library->modules)
    setFunctionAttribute(driver, *module->functions[kernel->name], attribute, value);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  ENTER_KERNEL(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

PLANEMU_EXPORT cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t *offset,
                                    std::size_t *bytes) {
  ENTER_KERNEL(offset);
  return parameterInfo(*function->kernel, index, offset, bytes);
}
