//===- LayoutTest.cpp - the emulator's runtime ABI against the toolkit ----===//
//
// Compiling it is the test: every error code, and size and layout of what is passed by address.
//===----------------------------------------------------------------------===//

#include <cuda_runtime_api.h>

#include <cstddef>

// Our declarations of the driver's functions are not needed.
#define PLANEMU_ABI_TYPES_ONLY
#include "runtime/emulator/cudart/Structs.h"

namespace ours = planemu::cudart;

#define PLANEMU_RUNTIME_ERROR(Name, Value, Text)                                                   \
  static_assert(static_cast<int>(::Name) == (Value), #Name " differs");
#include "runtime/emulator/cudart/Errors.def"

#define SIZE(Theirs, Ours) static_assert(sizeof(::Theirs) == sizeof(ours::Ours), #Ours);
#define FIELD(Theirs, Field, Ours, OurField)                                                       \
  static_assert(offsetof(::Theirs, Field) == offsetof(ours::Ours, OurField), #Ours ":"             \
                                                                                   ":" #OurField);

SIZE(cudaDeviceProp, DeviceProperties)
#define PROPERTY(Field, OurField) FIELD(cudaDeviceProp, Field, DeviceProperties, OurField)
PROPERTY(uuid, uuid)
PROPERTY(totalGlobalMem, globalMemory)
PROPERTY(sharedMemPerBlock, sharedPerBlock)
PROPERTY(regsPerBlock, registersPerBlock)
PROPERTY(maxThreadsPerBlock, threadsPerBlock)
PROPERTY(maxGridSize, gridSize)
PROPERTY(totalConstMem, constantMemory)
PROPERTY(major, major)
PROPERTY(multiProcessorCount, multiprocessors)
PROPERTY(maxTexture1D, textures)
PROPERTY(maxSurface1D, surfaces)
PROPERTY(surfaceAlignment, surfaceAlignment)
PROPERTY(pciBusID, pciBus)
PROPERTY(asyncEngineCount, asyncEngines)
PROPERTY(l2CacheSize, l2Bytes)
PROPERTY(maxThreadsPerMultiProcessor, threadsPerMultiprocessor)
PROPERTY(sharedMemPerMultiprocessor, sharedPerMultiprocessor)
PROPERTY(managedMemory, managedMemory)
PROPERTY(cooperativeLaunch, cooperativeLaunch)
PROPERTY(sharedMemPerBlockOptin, sharedPerBlockOptIn)
PROPERTY(maxBlocksPerMultiProcessor, blocksPerMultiprocessor)
PROPERTY(reservedSharedMemPerBlock, reservedSharedPerBlock)
PROPERTY(memoryPoolsSupported, memoryPools)
PROPERTY(clusterLaunch, clusterLaunch)
PROPERTY(unifiedFunctionPointers, unifiedFunctionPointers)

SIZE(cudaFuncAttributes, FunctionAttributes)
FIELD(cudaFuncAttributes, maxThreadsPerBlock, FunctionAttributes, maxThreads)
FIELD(cudaFuncAttributes, binaryVersion, FunctionAttributes, binaryVersion)
FIELD(cudaFuncAttributes, maxDynamicSharedSizeBytes, FunctionAttributes, maxDynamicShared)
FIELD(cudaFuncAttributes, reserved, FunctionAttributes, reserved)

SIZE(cudaPointerAttributes, PointerAttributes)
FIELD(cudaPointerAttributes, devicePointer, PointerAttributes, devicePointer)

SIZE(cudaLaunchConfig_t, LaunchConfiguration)
FIELD(cudaLaunchConfig_t, dynamicSmemBytes, LaunchConfiguration, shared)
FIELD(cudaLaunchConfig_t, numAttrs, LaunchConfiguration, attributeCount)

// What the runtime passes on to the driver as it is.
static_assert(sizeof(::cudaMemLocation) == sizeof(planemu::abi::CUmemLocation));
static_assert(offsetof(::cudaMemLocation, id) == offsetof(planemu::abi::CUmemLocation, id));
static_assert(sizeof(::cudaGraphExecUpdateResultInfo) ==
              sizeof(planemu::abi::CUgraphExecUpdateResultInfo));
static_assert(sizeof(::cudaLaunchAttribute) == sizeof(planemu::abi::CUlaunchAttribute));

int main() {}
