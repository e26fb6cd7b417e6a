//===- Runtime.h - the CUDA runtime API over the driver API ---------------===//
//
// NVIDIA's libcudart asks its driver for interfaces that are not documented, so it cannot run here. This
// is a libcudart of our own: the documented functions that programs use, and the entry points that nvcc
// and clang generate calls of, over the driver API that libplanemu exports. Declarations are our own;
// test/runtime/emulator/cudart compares them with cuda_runtime_api.h.
//
// An error of the runtime has the number that the driver's has, but for those that Errors.def lists.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_CUDART_RUNTIME_H
#define PLANEMU_CUDART_RUNTIME_H

#include "runtime/emulator/driver/Abi.h"

namespace planemu::cudart {

enum cudaError_t : int {
#define PLANEMU_RUNTIME_ERROR(Name, Value, Text) Name = Value,
#include "runtime/emulator/cudart/Errors.def"
};

struct dim3 {
  unsigned x, y, z;
};

/// Keeps the error for cudaGetLastError, and returns it.
cudaError_t keep(int error);

/// Makes the device's primary context current in this thread, unless it has a context.
CUresult useDevice();

/// A kernel or variable of the host's is called by the address of its stub or shadow.
CUresult kernelOf(const void *stub, CUkernel &kernel);
CUresult functionOf(const void *stub, CUfunction &function);
CUresult variableOf(const void *shadow, CUdeviceptr &address, std::size_t &bytes);

/// What most functions do: a call of the driver with a context at hand.
template <class Call> cudaError_t onDevice(Call call) {
  CUresult result = useDevice();
  return keep(result != CUDA_SUCCESS ? result : call());
}

inline CUdeviceptr pointer(const void *p) { return reinterpret_cast<CUdeviceptr>(p); }

} // namespace planemu::cudart

#define PLANEMU_RUNTIME extern "C" __attribute__((visibility("default"))) cudaError_t

#endif // PLANEMU_CUDART_RUNTIME_H
