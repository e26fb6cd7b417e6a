//===- MemoryResult.h - what Memory answers, as a status of the API -------===//
//
// Shared by the files that change regions.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_MEMORYRESULT_H
#define PLANEMU_DRIVER_MEMORYRESULT_H

#include "runtime/emulator/Memory.h"
#include "runtime/emulator/driver/Abi.h"

namespace planemu {

inline CUresult resultOf(Memory::Result result) {
  switch (result) {
  case Memory::Result::Ok:
    return CUDA_SUCCESS;
  case Memory::Result::Invalid:
    return CUDA_ERROR_INVALID_VALUE;
  case Memory::Result::OutOfMemory:
    return CUDA_ERROR_OUT_OF_MEMORY;
  case Memory::Result::System:
    break;
  }
  return CUDA_ERROR_OPERATING_SYSTEM;
}

} // namespace planemu

#endif // PLANEMU_DRIVER_MEMORYRESULT_H
