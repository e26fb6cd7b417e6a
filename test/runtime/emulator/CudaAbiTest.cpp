//===- CudaAbiTest.cpp - our driver ABI against cuda.h --------------------===//
//
// Compiles only where a CUDA toolkit is installed (CMake decides); compiling it is the test. Values
// are compared one by one, functions by existence of the exported name and by number and width of
// their parameters.
//===----------------------------------------------------------------------===//

#include <cuda.h>

#include "runtime/CudaAbi.h"

#define SAME(Name, Value)                                                                          \
  static_assert(static_cast<long long>(::Name) == (Value), #Name " differs from cuda.h");
PLAN_CUDA_RESULTS(SAME)
PLAN_CUDA_DEVICE_ATTRIBUTES(SAME)
PLAN_CUDA_FUNCTION_ATTRIBUTES(SAME)
PLAN_CUDA_JIT_OPTIONS(SAME)
PLAN_CUDA_FLAGS(SAME)
#undef SAME

static_assert(CU_MEMHOSTALLOC_PORTABLE == cudaabi::MemHostAllocPortable);
static_assert(CU_MEMHOSTALLOC_DEVICEMAP == cudaabi::MemHostAllocDeviceMap);
static_assert(CU_MEMHOSTALLOC_WRITECOMBINED == cudaabi::MemHostAllocWriteCombined);
static_assert(CU_LAUNCH_PARAM_END_AS_INT == cudaabi::LaunchParamEnd);
static_assert(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT == cudaabi::LaunchParamBufferPointer);
static_assert(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT == cudaabi::LaunchParamBufferSize);

#define SAME_FIELD(Type, Field)                                                                    \
  static_assert(offsetof(::Type, Field) == offsetof(cudaabi::Type, Field), #Type "::" #Field);
SAME_FIELD(CUmemLocation, type)
SAME_FIELD(CUmemLocation, id)
SAME_FIELD(CUmemAllocationProp, type)
SAME_FIELD(CUmemAllocationProp, requestedHandleTypes)
SAME_FIELD(CUmemAllocationProp, location)
SAME_FIELD(CUmemAllocationProp, win32HandleMetaData)
SAME_FIELD(CUmemAllocationProp, allocFlags)
SAME_FIELD(CUmemAccessDesc, location)
SAME_FIELD(CUmemAccessDesc, flags)
#undef SAME_FIELD
static_assert(sizeof(::CUmemAllocationProp) == sizeof(cudaabi::CUmemAllocationProp));
static_assert(sizeof(::CUmemAccessDesc) == sizeof(cudaabi::CUmemAccessDesc));

template <typename A, typename B> struct SameShape {
  static constexpr bool value = false;
};
template <typename... A, typename... B>
struct SameShape<::CUresult (*)(A...), cudaabi::CUresult (*)(B...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B)) && ...);
  }
  static constexpr bool value = check();
};

namespace cudaabi {
#define SAME(Name, Params)                                                                         \
  using Ours_##Name = CUresult(*) Params;                                                          \
  static_assert(SameShape<decltype(&::Name), Ours_##Name>::value, #Name " differs from cuda.h");
PLAN_CUDA_FUNCTIONS(SAME)
#undef SAME
} // namespace cudaabi

int main() { return 0; }
