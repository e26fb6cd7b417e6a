//===- Order.cpp - planemu-driver-order: what waits for what --------------===//
//
// Host functions that wait show the order of streams: nothing that has to come after one runs
// before it, everything else does.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <atomic>
#include <thread>

static std::atomic<bool> gate{false};
static std::atomic<int> calls{0};
static CUresult inside = CUDA_SUCCESS;

static void waitForGate(void *) {
  while (!gate)
    std::this_thread::yield();
  ++calls;
}
static void callDriver(void *) {
  CUdeviceptr address;
  inside = cuMemAlloc(&address, 16);
  ++calls;
}
static void callback(CUstream stream, CUresult status, void *data) {
  CHECK(stream == *static_cast<CUstream *>(data) && status == CUDA_SUCCESS);
  ++calls;
}

static int valueAt(CUdeviceptr address, CUstream stream) {
  int value = -1;
  OK(cuMemcpyDtoHAsync(&value, address, sizeof(value), stream));
  return value;
}

int main() {
  OK(cuInit(0));
  CUcontext context;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  CUstream blocked, free, blocking;
  OK(cuStreamCreate(&blocked, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 16));
  OK(cuMemsetD32(a, 1, 4));

  // Work after a waiting host function is not done, and whoever waits for it is not either.
  CUevent event;
  OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  EXPECT(cuEventQuery(event), CUDA_SUCCESS); // never recorded
  OK(cuLaunchHostFunc(blocked, waitForGate, nullptr));
  OK(cuMemsetD32Async(a, 2, 1, blocked));
  OK(cuEventRecord(event, blocked));
  EXPECT(cuStreamQuery(blocked), CUDA_ERROR_NOT_READY);
  EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  float milliseconds;
  EXPECT(cuEventElapsedTime(&milliseconds, event, event), CUDA_ERROR_NOT_READY);
  EXPECT(cuStreamQuery(free), CUDA_SUCCESS);
  CHECK(valueAt(a, free) == 1);
  OK(cuStreamWaitEvent(free, event, CU_EVENT_WAIT_DEFAULT));
  OK(cuMemsetD32Async(a + 4, 3, 1, free));
  EXPECT(cuStreamQuery(free), CUDA_ERROR_NOT_READY);
  EXPECT(cuStreamQuery(CU_STREAM_LEGACY), CUDA_SUCCESS); // these streams do not block it
  gate = true;
  OK(cuStreamSynchronize(free));
  OK(cuEventSynchronize(event));
  EXPECT(cuStreamQuery(blocked), CUDA_SUCCESS);
  EXPECT(cuEventElapsedTime(&milliseconds, event, event), CUDA_SUCCESS);
  CHECK(calls == 1);
  CHECK(valueAt(a, free) == 2 && valueAt(a + 4, free) == 3);

  // The legacy stream and blocking streams wait for each other.
  gate = false;
  OK(cuLaunchHostFunc(blocking, waitForGate, nullptr));
  OK(cuMemsetD32Async(a, 4, 1, nullptr));
  EXPECT(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT(cuStreamQuery(free), CUDA_SUCCESS);
  CHECK(valueAt(a, free) == 2);
  gate = true;
  OK(cuCtxSynchronize());
  CHECK(valueAt(a, free) == 4);
  EXPECT(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_SUCCESS);

  // A host function may not call the driver; a callback is told its stream.
  OK(cuLaunchHostFunc(blocking, callDriver, nullptr));
  OK(cuStreamAddCallback(blocking, callback, &blocking, 0));
  OK(cuStreamSynchronize(blocking));
  CHECK(inside == CUDA_ERROR_NOT_PERMITTED && calls == 4);

  // Memory freed in a stream is valid until its turn.
  CUdeviceptr pooled;
  OK(cuMemAllocAsync(&pooled, 64, blocked));
  gate = false;
  OK(cuLaunchHostFunc(blocked, waitForGate, nullptr));
  OK(cuMemFreeAsync(pooled, blocked));
  EXPECT(cuMemFreeAsync(pooled, blocked), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemsetD8Async(pooled, 1, 64, free), CUDA_SUCCESS);
  gate = true;
  OK(cuStreamSynchronize(blocked));
  EXPECT(cuMemsetD8Async(pooled, 1, 64, free), CUDA_ERROR_INVALID_VALUE);

  // A fault keeps later work from running; it is the error of every call until the context is
  // reset.
  CUmodule module;
  CUfunction increment;
  OK(cuModuleLoadData(&module, Kernels));
  OK(cuModuleGetFunction(&increment, module, "increment"));
  CUdeviceptr nowhere = 64;
  unsigned by = 1;
  void *parameters[] = {&nowhere, &by};
  gate = false;
  OK(cuLaunchHostFunc(blocked, waitForGate, nullptr));
  OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, blocked, parameters, nullptr));
  OK(cuLaunchHostFunc(blocked, callDriver, nullptr));
  gate = true;
  EXPECT(cuStreamSynchronize(blocked), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT(cuMemAlloc(&pooled, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(calls == 6);
  OK(cuDevicePrimaryCtxReset(0));
  EXPECT(cuMemAlloc(&pooled, 16), CUDA_SUCCESS);
  EXPECT(cuStreamQuery(blocked), CUDA_ERROR_INVALID_HANDLE);
  OK(cuDevicePrimaryCtxRelease(0));
  EXPECT(cuMemAlloc(&pooled, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return finish("order");
}
