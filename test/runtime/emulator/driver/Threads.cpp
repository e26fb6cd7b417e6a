//===- Threads.cpp - planemu-driver-threads: many threads at once ---------===//
//
// Each thread makes, uses and destroys all kinds of objects, some in the shared primary context,
// some in its own. Built with -fsanitize=thread (by hand) it finds races of the driver.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <atomic>
#include <thread>
#include <vector>

static std::atomic<int> calls{0};
static void count(void *) { ++calls; }

static void work(CUcontext shared, unsigned index) {
  CUcontext own = nullptr;
  if (index % 2)
    OK(cuCtxCreate(&own, nullptr, 0, 0));
  else
    OK(cuCtxSetCurrent(shared));
  for (unsigned round = 0; round < 20; ++round) {
    CUmodule module;
    CUfunction increment;
    OK(cuModuleLoadData(&module, Kernels));
    OK(cuModuleGetFunction(&increment, module, "increment"));
    CUstream stream, second;
    CUevent event;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_DEFAULT));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr a;
    OK(cuMemAllocAsync(&a, 128, stream));
    OK(cuMemsetD32Async(a, round, 32, stream));
    unsigned by = index;
    void *parameters[] = {&a, &by};
    OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
    OK(cuLaunchHostFunc(stream, count, nullptr));
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, second, parameters, nullptr));
    // The same once more as a graph.
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
    OK(cuLaunchHostFunc(stream, count, nullptr));
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, second));
    unsigned values[32];
    OK(cuMemcpyDtoHAsync(values, a, 128, second));
    OK(cuStreamSynchronize(second));
    CHECK(values[0] == round + 3 * index && values[31] == values[0]);
    OK(cuMemFreeAsync(a, second));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(event));
    OK(cuStreamDestroy(stream));
    OK(cuStreamDestroy(second));
    OK(cuModuleUnload(module));
  }
  if (own)
    OK(cuCtxDestroy(own));
}

int main() {
  OK(cuInit(0));
  CUcontext shared;
  OK(cuDevicePrimaryCtxRetain(&shared, 0));
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < 6; ++index)
    threads.emplace_back(work, shared, index);
  for (std::thread &thread : threads)
    thread.join();
  CHECK(calls == 6 * 20 * 2);
  OK(cuDevicePrimaryCtxRelease(0));
  return finish("threads");
}
