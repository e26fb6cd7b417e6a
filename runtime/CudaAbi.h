//===- CudaAbi.h - the part of the CUDA driver ABI in use -----------------===//
//
// Our own declarations of the driver functions that planrt calls, so that it needs no CUDA toolkit
// to build and no libcuda to start. Names, values and layouts are those of the driver ABI (CUDA
// 13.0); test/runtime/emulator/CudaAbiTest.cpp compares every one with cuda.h where a toolkit is
// installed. The emulator has a list of its own, of all it exports: runtime/emulator/driver.
//
// Everything lives in a namespace, so that a file may include cuda.h beside it. Function names are
// the *exported* symbols, version suffix included, as dlsym needs them.
//===----------------------------------------------------------------------===//

#ifndef PLANRT_CUDAABI_H
#define PLANRT_CUDAABI_H

#include <cstddef>
#include <cstdint>

namespace cudaabi {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUcontext = struct CtxOpaque *;
using CUmodule = struct ModOpaque *;
using CUfunction = struct FuncOpaque *;
using CUstream = struct StreamOpaque *;
using CUevent = struct EventOpaque *;
using CUgraph = struct GraphOpaque *;
using CUgraphExec = struct GraphExecOpaque *;

/// X(name, value) for every status in use.
#define PLAN_CUDA_RESULTS(X)                                                                       \
  X(CUDA_SUCCESS, 0)                                                                               \
  X(CUDA_ERROR_INVALID_VALUE, 1)                                                                   \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                   \
  X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                                 \
  X(CUDA_ERROR_DEINITIALIZED, 4)                                                                   \
  X(CUDA_ERROR_STUB_LIBRARY, 34)                                                                   \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                                             \
  X(CUDA_ERROR_NO_DEVICE, 100)                                                                     \
  X(CUDA_ERROR_INVALID_DEVICE, 101)                                                                \
  X(CUDA_ERROR_INVALID_IMAGE, 200)                                                                 \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                               \
  X(CUDA_ERROR_MAP_FAILED, 205)                                                                    \
  X(CUDA_ERROR_UNMAP_FAILED, 206)                                                                  \
  X(CUDA_ERROR_ALREADY_MAPPED, 208)                                                                \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                             \
  X(CUDA_ERROR_NOT_MAPPED, 211)                                                                    \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                             \
  X(CUDA_ERROR_INVALID_PTX, 218)                                                                   \
  X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                                        \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                       \
  X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                                                      \
  X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                              \
  X(CUDA_ERROR_INVALID_HANDLE, 400)                                                                \
  X(CUDA_ERROR_ILLEGAL_STATE, 401)                                                                 \
  X(CUDA_ERROR_NOT_FOUND, 500)                                                                     \
  X(CUDA_ERROR_NOT_READY, 600)                                                                     \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                               \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                       \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                                \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                          \
  X(CUDA_ERROR_ASSERT, 710)                                                                        \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                          \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                           \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                            \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                         \
  X(CUDA_ERROR_INVALID_PC, 718)                                                                    \
  X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                                 \
  X(CUDA_ERROR_NOT_PERMITTED, 800)                                                                 \
  X(CUDA_ERROR_NOT_SUPPORTED, 801)                                                                 \
  X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                                                              \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                                        \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                    \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                    \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                      \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                       \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                       \
  X(CUDA_ERROR_CAPTURED_EVENT, 907)                                                                \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                   \
  X(CUDA_ERROR_UNKNOWN, 999)

/// X(name, value) for every device attribute in use.
#define PLAN_CUDA_DEVICE_ATTRIBUTES(X)                                                             \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                                                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                                                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                                                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                                                         \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                                                         \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                                                         \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                                            \
  X(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9)                                                  \
  X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                                             \
  X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)                                               \
  X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                                            \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                  \
  X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                                            \
  X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                                                   \
  X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                                                    \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                                     \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                                               \
  X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                                         \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                                        \
  X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                                                    \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                              \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                              \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                      \
  X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                                                    \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                     \
  X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)                                        \
  X(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111)

/// X(name, value) for every function attribute in use.
#define PLAN_CUDA_FUNCTION_ATTRIBUTES(X)                                                           \
  X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                    \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                        \
  X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                                                         \
  X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                                         \
  X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                                 \
  X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                                              \
  X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                                           \
  X(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 7)                                                            \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                            \
  X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)

/// X(name, value) for the just-in-time compiler options of cuModuleLoadDataEx in use.
#define PLAN_CUDA_JIT_OPTIONS(X)                                                                   \
  X(CU_JIT_INFO_LOG_BUFFER, 3)                                                                     \
  X(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)                                                          \
  X(CU_JIT_ERROR_LOG_BUFFER, 5)                                                                    \
  X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                                         \
  X(CU_JIT_OPTIMIZATION_LEVEL, 7)                                                                  \
  X(CU_JIT_LOG_VERBOSE, 12)                                                                        \
  X(CU_JIT_GENERATE_LINE_INFO, 13)

/// X(name, value) for the flags and small enumerations in use.
#define PLAN_CUDA_FLAGS(X)                                                                         \
  X(CU_STREAM_DEFAULT, 0)                                                                          \
  X(CU_STREAM_NON_BLOCKING, 1)                                                                     \
  X(CU_EVENT_DEFAULT, 0)                                                                           \
  X(CU_EVENT_BLOCKING_SYNC, 1)                                                                     \
  X(CU_EVENT_DISABLE_TIMING, 2)                                                                    \
  X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                                              \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                        \
  X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                             \
  X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                                              \
  X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                                \
  X(CU_MEM_HANDLE_TYPE_NONE, 0)                                                                    \
  X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0)                                                              \
  X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)                                                              \
  X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                                         \
  X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                                           \
  X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)

#define PLAN_CUDA_ENUMERATOR(Name, Value) Name = Value,
enum CUresult : int { PLAN_CUDA_RESULTS(PLAN_CUDA_ENUMERATOR) };
enum CUdevice_attribute : int { PLAN_CUDA_DEVICE_ATTRIBUTES(PLAN_CUDA_ENUMERATOR) };
enum CUfunction_attribute : int { PLAN_CUDA_FUNCTION_ATTRIBUTES(PLAN_CUDA_ENUMERATOR) };
enum CUjit_option : unsigned { PLAN_CUDA_JIT_OPTIONS(PLAN_CUDA_ENUMERATOR) };
enum : unsigned { PLAN_CUDA_FLAGS(PLAN_CUDA_ENUMERATOR) };
#undef PLAN_CUDA_ENUMERATOR

using CUstreamCaptureMode = unsigned;
using CUmemAllocationGranularity_flags = unsigned;

// Macros in cuda.h, so they cannot keep their names here.
constexpr unsigned MemHostAllocPortable = 1;           // CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned MemHostAllocDeviceMap = 2;          // CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned MemHostAllocWriteCombined = 4;      // CU_MEMHOSTALLOC_WRITECOMBINED
constexpr std::uintptr_t LaunchParamEnd = 0;           // CU_LAUNCH_PARAM_END
constexpr std::uintptr_t LaunchParamBufferPointer = 1; // CU_LAUNCH_PARAM_BUFFER_POINTER
constexpr std::uintptr_t LaunchParamBufferSize = 2;    // CU_LAUNCH_PARAM_BUFFER_SIZE

struct CUmemLocation {
  unsigned type; // CU_MEM_LOCATION_TYPE_*
  int id;        // device ordinal
};

struct CUmemAllocationProp {
  unsigned type;                 // CU_MEM_ALLOCATION_TYPE_*
  unsigned requestedHandleTypes; // CU_MEM_HANDLE_TYPE_*
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  unsigned flags; // CU_MEM_ACCESS_FLAGS_PROT_*
};

} // namespace cudaabi

/// X(exported symbol, (parameters)) for every function in use; all return CUresult. The parameter
/// types are those of namespace cudaabi. A table of pointers is one line:
///   #define MEMBER(Name, Params) cudaabi::CUresult(*Name) Params;
#define PLAN_CUDA_FUNCTIONS(X)                                                                     \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDriverGetVersion, (int *version))                                                            \
  X(cuGetErrorName, (CUresult error, const char **text))                                           \
  X(cuGetErrorString, (CUresult error, const char **text))                                         \
  X(cuDeviceGetCount, (int *count))                                                                \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                 \
  X(cuDeviceGetName, (char *name, int length, CUdevice device))                                    \
  X(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))             \
  X(cuDeviceTotalMem_v2, (std::size_t *bytes, CUdevice device))                                    \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                              \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                               \
  X(cuCtxSetCurrent, (CUcontext context))                                                          \
  X(cuCtxGetCurrent, (CUcontext * context))                                                        \
  X(cuCtxSynchronize, ())                                                                          \
  X(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned optionCount,               \
                         CUjit_option *options, void **optionValues))                              \
  X(cuModuleUnload, (CUmodule module))                                                             \
  X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))               \
  X(cuModuleGetGlobal_v2,                                                                          \
    (CUdeviceptr * address, std::size_t *bytes, CUmodule module, const char *name))                \
  X(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function))         \
  X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))          \
  X(cuMemGetInfo_v2, (std::size_t *free, std::size_t *total))                                      \
  X(cuMemAlloc_v2, (CUdeviceptr * address, std::size_t bytes))                                     \
  X(cuMemFree_v2, (CUdeviceptr address))                                                           \
  X(cuMemHostAlloc, (void **pointer, std::size_t bytes, unsigned flags))                           \
  X(cuMemFreeHost, (void *pointer))                                                                \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, std::size_t bytes))                        \
  X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, std::size_t bytes))                              \
  X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes))                        \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, std::size_t bytes, CUstream stream))  \
  X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, std::size_t bytes, CUstream stream))        \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))  \
  X(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, std::size_t count))                       \
  X(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, std::size_t count))                           \
  X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream))    \
  X(cuMemsetD32Async, (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream))        \
  X(cuMemAddressReserve, (CUdeviceptr * address, std::size_t bytes, std::size_t alignment,         \
                          CUdeviceptr hint, unsigned long long flags))                             \
  X(cuMemAddressFree, (CUdeviceptr address, std::size_t bytes))                                    \
  X(cuMemCreate, (CUmemGenericAllocationHandle * handle, std::size_t bytes,                        \
                  const CUmemAllocationProp *properties, unsigned long long flags))                \
  X(cuMemRelease, (CUmemGenericAllocationHandle handle))                                           \
  X(cuMemMap, (CUdeviceptr address, std::size_t bytes, std::size_t offset,                         \
               CUmemGenericAllocationHandle handle, unsigned long long flags))                     \
  X(cuMemUnmap, (CUdeviceptr address, std::size_t bytes))                                          \
  X(cuMemSetAccess, (CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc *descriptions,  \
                     std::size_t count))                                                           \
  X(cuMemGetAllocationGranularity,                                                                 \
    (std::size_t *granularity, const CUmemAllocationProp *properties,                              \
     CUmemAllocationGranularity_flags option))                                                     \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                           \
  X(cuStreamDestroy_v2, (CUstream stream))                                                         \
  X(cuStreamSynchronize, (CUstream stream))                                                        \
  X(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                          \
  X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                        \
  X(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))    \
  X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                            \
  X(cuGraphExecDestroy, (CUgraphExec exec))                                                        \
  X(cuGraphDestroy, (CUgraph graph))                                                               \
  X(cuEventCreate, (CUevent * event, unsigned flags))                                              \
  X(cuEventRecord, (CUevent event, CUstream stream))                                               \
  X(cuEventQuery, (CUevent event))                                                                 \
  X(cuEventSynchronize, (CUevent event))                                                           \
  X(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end))                      \
  X(cuEventDestroy_v2, (CUevent event))                                                            \
  X(cuLaunchKernel, (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,          \
                     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,      \
                     CUstream stream, void **parameters, void **extra))

#endif // PLANRT_CUDAABI_H
