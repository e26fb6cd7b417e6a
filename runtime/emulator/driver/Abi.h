//===- Abi.h - the CUDA driver ABI that libplanemu exports ----------------===//
//
// Our own declarations of the driver API's types and functions (CUDA 13.0), so that the emulator
// needs no toolkit to build. Names, values and layouts are the ABI's;
// test/runtime/emulator/driver/AbiTest.cpp compares all of them with cuda.h.
//
// Function names are the exported symbols, version suffix included. Enumerations are plain
// integers here: a program may pass any value.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_ABI_H
#define PLANEMU_DRIVER_ABI_H

#include <cstddef>
#include <cstdint>

namespace planemu {
inline namespace abi {

enum CUresult : int {
#define PLANEMU_RESULT(Name, Value, Text) Name = Value,
#include "runtime/emulator/driver/Results.def"
};

enum : int {
#define PLANEMU_ENUMERATOR(Name, Value) Name = Value,
#include "runtime/emulator/driver/Enums.def"
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUcontext = struct ContextOpaque *;
using CUmodule = struct ModuleOpaque *;
using CUlibrary = struct LibraryOpaque *;
using CUkernel = struct KernelOpaque *;
using CUfunction = struct FunctionOpaque *;
using CUstream = struct StreamOpaque *;
using CUevent = struct EventOpaque *;
using CUgraph = struct GraphOpaque *;
using CUgraphNode = struct GraphNodeOpaque *;
using CUgraphExec = struct GraphExecOpaque *;
using CUmemoryPool = struct MemoryPoolOpaque *;
using CUarray = struct ArrayOpaque *;
using CUlinkState = struct LinkStateOpaque *;

using CUdevice_attribute = int;
using CUdevice_P2PAttribute = int;
using CUdriverProcAddressQueryResult = int;
using CUfunc_cache = int;
using CUfunction_attribute = int;
using CUfunctionLoadingState = int;
using CUgraphExecUpdateResult = int;
using CUgraphInstantiateResult = int;
using CUgraphNodeType = int;
using CUjit_option = int;
using CUjitInputType = int;
using CUkernelNodeAttrID = int;
using CUlibraryOption = int;
using CUlimit = int;
using CUmem_advise = int;
using CUmemAccess_flags = int;
using CUmemAllocationGranularity_flags = int;
using CUmemorytype = int;
using CUmemPool_attribute = int;
using CUmoduleLoadingMode = int;
using CUoutput_mode = int;
using CUpointer_attribute = int;
using CUsharedconfig = int;
using CUstreamAttrID = int;
using CUstreamCaptureMode = int;
using CUstreamCaptureStatus = int;

using CUhostFn = void (*)(void *userData);
using CUstreamCallback = void (*)(CUstream stream, CUresult status, void *userData);
using CUoccupancyB2DSize = std::size_t (*)(int blockSize);

// Macros in cuda.h, so they cannot keep their names where it is included too.
constexpr unsigned MemHostAllocPortable = 1;           // CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned MemHostAllocDeviceMap = 2;          // CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned MemHostAllocWriteCombined = 4;      // CU_MEMHOSTALLOC_WRITECOMBINED
constexpr unsigned MemHostRegisterPortable = 1;        // CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned MemHostRegisterDeviceMap = 2;       // CU_MEMHOSTREGISTER_DEVICEMAP
constexpr unsigned MemHostRegisterIoMemory = 4;        // CU_MEMHOSTREGISTER_IOMEMORY
constexpr unsigned MemHostRegisterReadOnly = 8;        // CU_MEMHOSTREGISTER_READ_ONLY
constexpr std::uintptr_t LaunchParamEnd = 0;           // CU_LAUNCH_PARAM_END
constexpr std::uintptr_t LaunchParamBufferPointer = 1; // CU_LAUNCH_PARAM_BUFFER_POINTER
constexpr std::uintptr_t LaunchParamBufferSize = 2;    // CU_LAUNCH_PARAM_BUFFER_SIZE
constexpr std::uintptr_t StreamLegacy = 1;             // CU_STREAM_LEGACY
constexpr std::uintptr_t StreamPerThread = 2;          // CU_STREAM_PER_THREAD

struct CUuuid {
  char bytes[16];
};

struct CUdevprop {
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int sharedMemPerBlock;
  int totalConstantMemory;
  int SIMDWidth;
  int memPitch;
  int regsPerBlock;
  int clockRate;
  int textureAlign;
};

struct CUexecAffinityParam; // no affinity is supported
struct CUctxCreateParams {
  CUexecAffinityParam *execAffinityParams;
  int numExecAffinityParams;
  void *cigParams;
};

struct CUmemLocation {
  int type; // CU_MEM_LOCATION_TYPE_*
  int id;   // device ordinal
};

struct CUmemAllocationProp {
  int type;                 // CU_MEM_ALLOCATION_TYPE_*
  int requestedHandleTypes; // CU_MEM_HANDLE_TYPE_*
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
  int flags; // CU_MEM_ACCESS_FLAGS_PROT_*
};

struct CUmemPoolProps {
  int allocType;   // CU_MEM_ALLOCATION_TYPE_*
  int handleTypes; // CU_MEM_HANDLE_TYPE_*
  CUmemLocation location;
  void *win32SecurityAttributes;
  std::size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

struct CUDA_MEMCPY2D {
  std::size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  std::size_t srcPitch;
  std::size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  std::size_t dstPitch;
  std::size_t WidthInBytes, Height;
};

struct CUDA_MEMCPY3D {
  std::size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void *reserved0;
  std::size_t srcPitch, srcHeight;
  std::size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void *reserved1;
  std::size_t dstPitch, dstHeight;
  std::size_t WidthInBytes, Height, Depth;
};

/// CUDA_MEMCPY3D, with contexts where that has reserved fields.
struct CUDA_MEMCPY3D_PEER {
  std::size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  CUcontext srcContext;
  std::size_t srcPitch, srcHeight;
  std::size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  CUcontext dstContext;
  std::size_t dstPitch, dstHeight;
  std::size_t WidthInBytes, Height, Depth;
};

union CUlaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
  unsigned sharedMemCarveout;
};

using CUstreamAttrValue = CUlaunchAttributeValue;
using CUkernelNodeAttrValue = CUlaunchAttributeValue;

struct CUlaunchAttribute {
  int id; // CU_LAUNCH_ATTRIBUTE_*
  char pad[4];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void **kernelParams;
  void **extra;
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void **kernelParams;
  void **extra;
  CUkernel kern;
  CUcontext ctx;
};

struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  std::size_t pitch;
  unsigned value;
  unsigned elementSize;
  std::size_t width, height;
};

struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void *userData;
};

struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps poolProps;
  const CUmemAccessDesc *accessDescs;
  std::size_t accessDescCount;
  std::size_t bytesize;
  CUdeviceptr dptr;
};

struct CUgraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    struct {
      int flags, reserved;
      CUcontext copyCtx;
      CUDA_MEMCPY3D copyParams;
    } memcpy;
    CUDA_MEMSET_NODE_PARAMS memset; // followed by a context
    CUDA_HOST_NODE_PARAMS host;
    struct {
      CUgraph graph;
      int ownership; // CU_GRAPH_CHILD_GRAPH_OWNERSHIP_*
    } graph;
    struct {
      CUevent event;
    } eventWait, eventRecord;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    struct {
      CUdeviceptr dptr;
    } free;
  };
  long long reserved2;
};

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  std::uint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  CUgraphInstantiateResult result_out;
};

struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode errorNode, errorFromNode;
};

} // namespace abi
} // namespace planemu

/// Starts the declaration or definition of an exported function.
#define PLANEMU_EXPORT extern "C" __attribute__((visibility("default"))) planemu::CUresult

#if !defined(PLANEMU_ABI_TYPES_ONLY) // for a file that includes cuda.h
// A definition whose parameters differ from the list is an error of the compiler.
namespace planemu {
inline namespace abi {
#define PLANEMU_FUNCTION(Symbol, Version, Types) PLANEMU_EXPORT Symbol Types;
#define PLANEMU_PER_THREAD(Symbol, Suffix, Version, Types) PLANEMU_EXPORT Symbol##Suffix Types;
#define PLANEMU_UNSUPPORTED(Symbol, Version) PLANEMU_EXPORT Symbol();
#include "runtime/emulator/driver/Functions.def"
} // namespace abi
} // namespace planemu
#endif

#endif // PLANEMU_DRIVER_ABI_H
