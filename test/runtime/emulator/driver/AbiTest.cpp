//===- AbiTest.cpp - the emulator's driver ABI against cuda.h -------------===//
//
// Compiling it is the test: every enumerator, status, device attribute, layout and function of
// runtime/emulator/driver is compared with the toolkit's header. Functions by existence of the
// exported name and by number and width of their parameters.
//===----------------------------------------------------------------------===//

#define __CUDA_API_VERSION_INTERNAL // declares all variants under their exported names
#include <cuda.h>
#include <cudaProfiler.h>

#include <cstddef>
#include <cstdint>

// Our declarations of the functions would clash with the header's.
#define PLANEMU_ABI_TYPES_ONLY
#include "runtime/emulator/driver/Abi.h"

namespace abi = planemu::abi;

#define SAME(Name, Value)                                                                          \
  static_assert(static_cast<long long>(::Name) == (Value), #Name " differs from cuda.h");
#define PLANEMU_RESULT(Name, Value, Text) SAME(Name, Value)
#include "runtime/emulator/driver/Results.def"
#define PLANEMU_ENUMERATOR(Name, Value) SAME(Name, Value)
#include "runtime/emulator/driver/Enums.def"
#define PLANEMU_ATTRIBUTE(Name, Number, Value) SAME(CU_DEVICE_ATTRIBUTE_##Name, Number)
#include "runtime/emulator/driver/DeviceAttributes.def"
#undef SAME

// No attribute is forgotten: their numbers have no gaps.
constexpr int Attributes =
#define PLANEMU_ATTRIBUTE(Name, Number, Value) +1
#include "runtime/emulator/driver/DeviceAttributes.def"
    ;
static_assert(Attributes + 1 == CU_DEVICE_ATTRIBUTE_MAX);

static_assert(CU_MEMHOSTALLOC_PORTABLE == abi::MemHostAllocPortable);
static_assert(CU_MEMHOSTALLOC_DEVICEMAP == abi::MemHostAllocDeviceMap);
static_assert(CU_MEMHOSTALLOC_WRITECOMBINED == abi::MemHostAllocWriteCombined);
static_assert(CU_MEMHOSTREGISTER_PORTABLE == abi::MemHostRegisterPortable);
static_assert(CU_MEMHOSTREGISTER_DEVICEMAP == abi::MemHostRegisterDeviceMap);
static_assert(CU_MEMHOSTREGISTER_IOMEMORY == abi::MemHostRegisterIoMemory);
static_assert(CU_MEMHOSTREGISTER_READ_ONLY == abi::MemHostRegisterReadOnly);
static_assert(CU_LAUNCH_PARAM_END_AS_INT == abi::LaunchParamEnd);
static_assert(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT == abi::LaunchParamBufferPointer);
static_assert(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT == abi::LaunchParamBufferSize);

#define SIZE(Theirs, Ours)                                                                         \
  static_assert(sizeof(::Theirs) == sizeof(abi::Ours), #Ours ": the size differs");
#define FIELD(Theirs, Ours, Field)                                                                 \
  static_assert(offsetof(::Theirs, Field) == offsetof(abi::Ours, Field), #Ours "::" #Field);       \
  static_assert(sizeof(::Theirs::Field) == sizeof(abi::Ours::Field), #Ours "::" #Field);

SIZE(CUuuid, CUuuid)
SIZE(CUdevprop, CUdevprop)
FIELD(CUdevprop, CUdevprop, maxThreadsDim)
FIELD(CUdevprop, CUdevprop, sharedMemPerBlock)
FIELD(CUdevprop, CUdevprop, clockRate)
FIELD(CUdevprop, CUdevprop, textureAlign)
SIZE(CUctxCreateParams, CUctxCreateParams)
FIELD(CUctxCreateParams, CUctxCreateParams, numExecAffinityParams)
FIELD(CUctxCreateParams, CUctxCreateParams, cigParams)
SIZE(CUmemLocation, CUmemLocation)
SIZE(CUmemAllocationProp, CUmemAllocationProp)
FIELD(CUmemAllocationProp, CUmemAllocationProp, requestedHandleTypes)
FIELD(CUmemAllocationProp, CUmemAllocationProp, location)
FIELD(CUmemAllocationProp, CUmemAllocationProp, allocFlags)
SIZE(CUmemAccessDesc, CUmemAccessDesc)
FIELD(CUmemAccessDesc, CUmemAccessDesc, flags)
SIZE(CUmemPoolProps, CUmemPoolProps)
FIELD(CUmemPoolProps, CUmemPoolProps, location)
FIELD(CUmemPoolProps, CUmemPoolProps, maxSize)
FIELD(CUmemPoolProps, CUmemPoolProps, usage)
SIZE(CUDA_MEMCPY2D, CUDA_MEMCPY2D)
#define BOTH_COPIES(Field)                                                                         \
  FIELD(CUDA_MEMCPY2D, CUDA_MEMCPY2D, Field)                                                       \
  FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, Field)
BOTH_COPIES(srcXInBytes)
BOTH_COPIES(srcY)
BOTH_COPIES(srcMemoryType)
BOTH_COPIES(srcHost)
BOTH_COPIES(srcDevice)
BOTH_COPIES(srcArray)
BOTH_COPIES(srcPitch)
BOTH_COPIES(dstXInBytes)
BOTH_COPIES(dstY)
BOTH_COPIES(dstMemoryType)
BOTH_COPIES(dstHost)
BOTH_COPIES(dstDevice)
BOTH_COPIES(dstArray)
BOTH_COPIES(dstPitch)
BOTH_COPIES(WidthInBytes)
BOTH_COPIES(Height)
SIZE(CUDA_MEMCPY3D, CUDA_MEMCPY3D)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, srcZ)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, srcLOD)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, srcHeight)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, dstZ)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, dstLOD)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, dstHeight)
FIELD(CUDA_MEMCPY3D, CUDA_MEMCPY3D, Depth)
SIZE(CUlaunchAttributeValue, CUlaunchAttributeValue)
FIELD(CUlaunchAttributeValue, CUlaunchAttributeValue, clusterDim)
FIELD(CUlaunchAttributeValue, CUlaunchAttributeValue, cooperative)
FIELD(CUlaunchAttributeValue, CUlaunchAttributeValue, priority)
SIZE(CUlaunchAttribute, CUlaunchAttribute)
FIELD(CUlaunchAttribute, CUlaunchAttribute, value)
SIZE(CUlaunchConfig, CUlaunchConfig)
FIELD(CUlaunchConfig, CUlaunchConfig, blockDimX)
FIELD(CUlaunchConfig, CUlaunchConfig, sharedMemBytes)
FIELD(CUlaunchConfig, CUlaunchConfig, hStream)
FIELD(CUlaunchConfig, CUlaunchConfig, attrs)
FIELD(CUlaunchConfig, CUlaunchConfig, numAttrs)
SIZE(CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v1)
FIELD(CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v1, extra)
SIZE(CUDA_KERNEL_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS)
FIELD(CUDA_KERNEL_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes)
FIELD(CUDA_KERNEL_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS, kernelParams)
FIELD(CUDA_KERNEL_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS, kern)
FIELD(CUDA_KERNEL_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS, ctx)
SIZE(CUDA_MEMSET_NODE_PARAMS_v1, CUDA_MEMSET_NODE_PARAMS)
FIELD(CUDA_MEMSET_NODE_PARAMS_v1, CUDA_MEMSET_NODE_PARAMS, elementSize)
FIELD(CUDA_MEMSET_NODE_PARAMS_v1, CUDA_MEMSET_NODE_PARAMS, height)
SIZE(CUDA_HOST_NODE_PARAMS_v1, CUDA_HOST_NODE_PARAMS)
SIZE(CUDA_MEM_ALLOC_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS, dptr)
SIZE(CUgraphNodeParams, CUgraphNodeParams)
FIELD(CUgraphNodeParams, CUgraphNodeParams, kernel)
FIELD(CUgraphNodeParams, CUgraphNodeParams, memcpy.copyParams)
FIELD(CUgraphNodeParams, CUgraphNodeParams, memcpy.copyCtx)
FIELD(CUgraphNodeParams, CUgraphNodeParams, graph)
FIELD(CUgraphNodeParams, CUgraphNodeParams, eventWait.event)
FIELD(CUgraphNodeParams, CUgraphNodeParams, reserved2)
SIZE(CUgraphEdgeData, CUgraphEdgeData)
SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS)
FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out)
SIZE(CUgraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo)
FIELD(CUgraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo, errorFromNode)

template <class Theirs, class Ours> struct SameShape {
  static constexpr bool value = false;
};
template <class... A, class... B> struct SameShape<::CUresult (*)(A...), abi::CUresult (*)(B...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B)) && ...);
  }
  static constexpr bool value = check();
};

namespace planemu {
inline namespace abi {
#define SAME(Symbol, Types)                                                                        \
  using Ours_##Symbol = CUresult(*) Types;                                                         \
  static_assert(SameShape<decltype(&::Symbol), Ours_##Symbol>::value, #Symbol " differs");
#define PLANEMU_FUNCTION(Symbol, Version, Types) SAME(Symbol, Types)
#define PLANEMU_PER_THREAD(Symbol, Suffix, Version, Types) SAME(Symbol##Suffix, Types)
#include "runtime/emulator/driver/Functions.def"
} // namespace abi
} // namespace planemu

int main() { return 0; }
