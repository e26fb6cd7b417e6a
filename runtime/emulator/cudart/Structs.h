//===- Structs.h - what the CUDA runtime API passes by address ------------===//
//
// Layouts are those of CUDA 13.0's driver_types.h; the names of members are ours.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_CUDART_STRUCTS_H
#define PLANEMU_CUDART_STRUCTS_H

#include "runtime/emulator/driver/Abi.h"

namespace planemu::cudart {

/// cudaDeviceProp. Members that stay zero are of textures and surfaces, or of what one device has not.
struct DeviceProperties {
  char name[256];
  CUuuid uuid;
  char luid[8];
  unsigned luidNodes;
  std::size_t globalMemory, sharedPerBlock;
  int registersPerBlock, warpSize;
  std::size_t mostPitch;
  int threadsPerBlock, blockSize[3], gridSize[3];
  std::size_t constantMemory;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
  int multiprocessors, integrated, mapsHostMemory;
  int textures[25], surfaces[14];
  std::size_t surfaceAlignment;
  int concurrentKernels, ecc, pciBus, pciDevice, pciDomain, tcc, asyncEngines, unifiedAddressing;
  int memoryBusWidth, l2Bytes, persistingL2Bytes, threadsPerMultiprocessor, streamPriorities;
  int cachesGlobalInL1, cachesLocalInL1;
  std::size_t sharedPerMultiprocessor;
  int registersPerMultiprocessor, managedMemory, multiGpuBoard, boardGroup;
  int hostNativeAtomics, pageableAccess, concurrentManagedAccess, preemption, hostPointers;
  int cooperativeLaunch;
  std::size_t sharedPerBlockOptIn;
  int pageableByHostTables, directManagedAccess, blocksPerMultiprocessor, policyWindow;
  std::size_t reservedSharedPerBlock;
  int hostRegister, sparseArrays, hostRegisterReadOnly, timelineSemaphores, memoryPools;
  int gpuDirectRdma;
  unsigned gpuDirectFlush;
  int gpuDirectOrdering;
  unsigned poolHandleTypes;
  int deferredArrays, ipcEvents, clusterLaunch, unifiedFunctionPointers, numaConfig, numaId, mps;
  int hostNumaId;
  unsigned gpuPciDevice, gpuPciSubsystem;
  int hostNumaIpc, reserved[56];
};

/// cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t sharedBytes, constantBytes, localBytes;
  int maxThreads, registers, ptxVersion, binaryVersion, cacheMode, maxDynamicShared, carveout;
  int clusterMustBeSet, clusterWidth, clusterHeight, clusterDepth, clusterPolicy, anyClusterSize;
  int reserved[16];
};

/// cudaPointerAttributes.
struct PointerAttributes {
  int type; // 0: none of the device's, 1: host, 2: device, 3: managed
  int device;
  void *devicePointer, *hostPointer;
  long reserved[8];
};

/// cudaLaunchConfig_t.
struct LaunchConfiguration {
  unsigned grid[3], block[3];
  std::size_t shared;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attributeCount;
};

} // namespace planemu::cudart

#endif // PLANEMU_CUDART_STRUCTS_H
