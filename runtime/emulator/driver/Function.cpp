//===- Function.cpp - functions: attributes, parameters, lookup -----------===//
//
// Functions belong to a module; a library's kernel stands for one function per context.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>

using namespace planemu;

std::shared_ptr<FunctionHandle> planemu::findFunction(Driver &driver, CUfunction handle) {
  if (std::shared_ptr<FunctionHandle> function = driver.functions.find(handle))
    return function;
  std::shared_ptr<LibraryKernel> kernel = driver.kernels.find(reinterpret_cast<CUkernel>(handle));
  Context *context = Driver::current();
  std::shared_ptr<FunctionHandle> function;
  if (kernel && context && context->alive)
    kernelFunction(driver, *kernel, *context, function);
  return function;
}

CUresult planemu::getFunctionAttribute(Driver &driver, const FunctionHandle &function,
                                       CUfunction_attribute attribute, int &value) {
  const Kernel &kernel = *function.kernel;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    value = static_cast<int>(kernel.maxThreads);
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    value = static_cast<int>(kernel.staticShared);
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    value = static_cast<int>(kernel.localBytes);
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    value = static_cast<int>(std::min(255u, kernel.registersUsed));
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    value = static_cast<int>(function.module->ptx->target);
    break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    value = driver.model->sm;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    value = static_cast<int>(function.dynamicSharedLimit);
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    value = function.carveout;
    break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
  case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
  case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: // clusters are one block
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    value = 0;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult planemu::setFunctionAttribute(Driver &driver, FunctionHandle &function,
                                       CUfunction_attribute attribute, int value) {
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: // a hint
    if (value < -1 || value > 100)
      return CUDA_ERROR_INVALID_VALUE;
    function.carveout = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    return value == 0 ? CUDA_SUCCESS : failWith(CUDA_ERROR_NOT_SUPPORTED, "clusters");
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  int most = driver.model->sharedPerBlockOptin - static_cast<int>(function.kernel->staticShared);
  if (value < 0 || value > most)
    return failWith(CUDA_ERROR_INVALID_VALUE,
                    "kernel '" + function.name + "': " + std::to_string(value) +
                        " bytes of dynamic shared memory, at most " + std::to_string(most) +
                        " fit on sm_" + std::to_string(driver.model->sm));
  function.dynamicSharedLimit = static_cast<std::uint32_t>(value);
  return CUDA_SUCCESS;
}

CUresult planemu::parameterInfo(const Kernel &kernel, std::size_t index, std::size_t *offset,
                                std::size_t *bytes) {
  if (!offset || index >= kernel.parameters.size())
    return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.parameters[index].offset;
  if (bytes)
    *bytes = kernel.parameters[index].bytes;
  return CUDA_SUCCESS;
}

/// For functions about one function.
#define ENTER_FUNCTION(Good)                                                                       \
  PLANEMU_ENTER_CONTEXT;                                                                           \
  if (!(Good))                                                                                     \
    return CUDA_ERROR_INVALID_VALUE;                                                               \
  std::shared_ptr<FunctionHandle> function = findFunction(driver, handle);                         \
  if (!function)                                                                                   \
  return CUDA_ERROR_INVALID_HANDLE

PLANEMU_EXPORT cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  ENTER_FUNCTION(value);
  return getFunctionAttribute(driver, *function, attribute, *value);
}

PLANEMU_EXPORT cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  ENTER_FUNCTION(true);
  return setFunctionAttribute(driver, *function, attribute, value);
}

PLANEMU_EXPORT cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  ENTER_FUNCTION(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
  return CUDA_SUCCESS; // a hint
}

PLANEMU_EXPORT cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  ENTER_FUNCTION(config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                 config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  return CUDA_SUCCESS; // without effect since Maxwell
}

PLANEMU_EXPORT cuFuncGetModule(CUmodule *module, CUfunction handle) {
  ENTER_FUNCTION(module);
  *module = reinterpret_cast<CUmodule>(function->module->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuFuncGetName(const char **name, CUfunction handle) {
  ENTER_FUNCTION(name);
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t *offset,
                                  std::size_t *bytes) {
  ENTER_FUNCTION(offset);
  return parameterInfo(*function->kernel, index, offset, bytes);
}

PLANEMU_EXPORT cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle) {
  ENTER_FUNCTION(state);
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuFuncLoad(CUfunction handle) {
  ENTER_FUNCTION(true);
  return CUDA_SUCCESS; // all of a module is decoded when it is loaded
}
