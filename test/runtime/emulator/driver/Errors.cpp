//===- Errors.cpp - planemu-driver-errors: wrong use and its status -------===//
//
// One line for each wrong call: what CUDA's reference says that it returns.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <thread>

template <class Handle> static Handle bogus() { return reinterpret_cast<Handle>(0x123450); }

static void beforeInit() {
  int count;
  CUcontext context;
  EXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

static void devices() {
  CUdevice device;
  int value;
  char name[8];
  unsigned flags;
  CUdevprop properties;
  EXPECT(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuDeviceGetName(name, 8, 7), CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceGetName(name, 0, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuDeviceGetName(name, sizeof(name), 0));
  CHECK(name[7] == 0);
  EXPECT(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0),
         CUDA_ERROR_INVALID_VALUE);
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute)
    EXPECT(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), 0),
           CUDA_SUCCESS);
  OK(cuDeviceGetProperties(&properties, 0));
  CHECK(properties.SIMDWidth == 32 && properties.maxThreadsPerBlock == 1024);
  EXPECT(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDevicePrimaryCtxSetFlags(0, 3), CUDA_ERROR_INVALID_VALUE); // two schedules
  OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &value));
  CHECK(flags == CU_CTX_SCHED_SPIN && value == 0);
  EXPECT(cuDeviceCanAccessPeer(&value, 0, 1), CUDA_ERROR_INVALID_DEVICE);
}

static void withoutContext() {
  CUdeviceptr address;
  CUstream stream;
  CUmodule module;
  CUcontext context;
  EXPECT(cuMemAlloc(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuModuleLoadData(&module, Kernels), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxSetCurrent(bogus<CUcontext>()), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxPushCurrent(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxDestroy(bogus<CUcontext>()), CUDA_ERROR_INVALID_CONTEXT);
}

static void contexts(CUcontext primary) {
  EXPECT(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context;
  EXPECT(cuCtxCreate(nullptr, nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuCtxCreate(&context, nullptr, 0x1000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuCtxCreate(&context, nullptr, 0, 1), CUDA_ERROR_INVALID_DEVICE);
  std::size_t value;
  EXPECT(cuCtxSetLimit(static_cast<CUlimit>(99), 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2000));
  OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value >= 2000);
  EXPECT(cuCtxSetCacheConfig(static_cast<CUfunc_cache>(7)), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuCtxEnablePeerAccess(primary, 0), CUDA_ERROR_INVALID_CONTEXT);
  // A context that another thread destroyed.
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  std::thread([&] { OK(cuCtxDestroy(context)); }).join();
  EXPECT(cuMemAlloc(reinterpret_cast<CUdeviceptr *>(&value), 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuCtxPopCurrent(nullptr));
}

static void memory() {
  CUdeviceptr address, other;
  void *host;
  std::size_t pitch;
  unsigned char bytes[32] = {};
  EXPECT(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAlloc(&address, std::size_t(1) << 60), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cuMemAllocPitch(&address, &pitch, 16, 16, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAllocPitch(&address, &pitch, ~std::size_t(0), 2, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cuMemAllocManaged(&address, 16, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemHostAlloc(&host, 16, 0x80), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemFree(0), CUDA_SUCCESS);
  EXPECT(cuMemFreeHost(bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemHostRegister(nullptr, 16, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemHostRegister(reinterpret_cast<void *>(0x1000), 16, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAlloc(&address, 16));
  EXPECT(cuMemcpyHtoD(address, bytes, 17), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemcpyDtoH(bytes, address + 8, 9), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemcpyHtoD(address, nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemcpyDtoD(address, 0, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemcpyHtoD(0, nullptr, 0), CUDA_SUCCESS); // nothing to do
  EXPECT(cuMemcpyHtoDAsync(address, bytes, 16, bogus<CUstream>()), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuMemFree(address + 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(address));
  EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemFreeAsync(address, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAllocAsync(&other, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAddressReserve(&other, 12345, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAddressFree(4096, 4096), CUDA_ERROR_INVALID_VALUE);
  CUmemGenericAllocationHandle block;
  CUmemAllocationProp properties = {};
  EXPECT(cuMemCreate(&block, 2 << 20, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 3};
  EXPECT(cuMemCreate(&block, 2 << 20, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
  properties.location.id = 0;
  EXPECT(cuMemCreate(&block, 100, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemRelease(99), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemMap(4096, 2 << 20, 0, 99, 0), CUDA_ERROR_INVALID_VALUE);
}

static void modulesAndLaunches() {
  CUmodule module;
  CUfunction saxpy, function, tile;
  CUdeviceptr address;
  int value;
  EXPECT(cuModuleLoadData(nullptr, Kernels), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuModuleLoadData(&module, "no PTX"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
  EXPECT(cuModuleLoadData(&module, "/* .version 8.0 */ // .version"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT(cuModuleLoadData(&module, "// PTX\n /* it is */ .version 8.0\n.target"),
         CUDA_ERROR_INVALID_PTX);
  EXPECT(cuModuleLoadData(&module, "\x7f"
                                   "ELF"),
         CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT(cuModuleLoadData(&module, ".version 99.0\n.target sm_80\n.address_size 64\n"),
         CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT(cuModuleLoad(&module, "/no/such/file"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT(cuModuleLoad(&module, "/"), CUDA_ERROR_FILE_NOT_FOUND);
  OK(cuModuleLoadData(&module, Kernels));
  EXPECT(cuModuleGetFunction(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
  EXPECT(cuModuleGetFunction(&function, bogus<CUmodule>(), "saxpy"), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuModuleGetGlobal(&address, nullptr, module, "none"), CUDA_ERROR_NOT_FOUND);
  OK(cuModuleGetFunction(&saxpy, module, "saxpy"));
  OK(cuModuleGetFunction(&tile, module, "tile"));
  EXPECT(cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(77), saxpy),
         CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuFuncSetAttribute(saxpy, CU_FUNC_ATTRIBUTE_NUM_REGS, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, bogus<CUfunction>()),
         CUDA_ERROR_INVALID_HANDLE);
  auto launch = [](CUfunction f, unsigned grid, unsigned block, unsigned shared,
                   CUstream stream = nullptr) {
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, nullptr, nullptr);
  };
  EXPECT(launch(saxpy, 1, 32, 0), CUDA_ERROR_INVALID_VALUE); // no parameters
  EXPECT(launch(tile, 0, 32, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(launch(tile, 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(launch(tile, 1, 1025, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(launch(tile, 1, 257, 0), CUDA_ERROR_INVALID_VALUE); // .maxntid 256
  EXPECT(launch(tile, 1, 32, 40000), CUDA_ERROR_INVALID_VALUE);
  EXPECT(launch(tile, 1, 32, 0, bogus<CUstream>()), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(launch(bogus<CUfunction>(), 1, 32, 0), CUDA_ERROR_INVALID_HANDLE);
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {2, 1, 1};
  CUlaunchConfig config = {2, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
  EXPECT(cuLaunchKernelEx(&config, tile, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  EXPECT(cuLaunchKernelEx(&config, tile, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuLaunchKernelEx(nullptr, tile, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, tile, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, bogus<CUfunction>(), 32, 0),
         CUDA_ERROR_INVALID_HANDLE);
  OK(cuModuleUnload(module));
  EXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(launch(tile, 1, 32, 0), CUDA_ERROR_INVALID_HANDLE);
}

static void streamsAndEvents() {
  CUstream stream;
  CUevent event, untimed;
  float milliseconds;
  EXPECT(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuEventCreate(&event, 0x100), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  EXPECT(cuEventElapsedTime(&milliseconds, event, event), CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventRecord(event, stream));
  OK(cuEventRecord(untimed, stream));
  EXPECT(cuEventElapsedTime(&milliseconds, event, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuEventRecord(bogus<CUevent>(), stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuStreamWaitEvent(stream, event, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuStreamWaitEvent(stream, bogus<CUevent>(), 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuLaunchHostFunc(stream, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuStreamQuery(bogus<CUstream>()), CUDA_ERROR_INVALID_HANDLE);
  // An event of one context in a stream of another.
  CUcontext other;
  CUevent foreign;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(cuEventCreate(&foreign, 0));
  EXPECT(cuEventRecord(foreign, stream), CUDA_ERROR_INVALID_HANDLE);
  OK(cuCtxDestroy(other));
  EXPECT(cuEventQuery(foreign), CUDA_ERROR_INVALID_HANDLE); // gone with its context
  OK(cuEventDestroy(event));
  EXPECT(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
  OK(cuStreamDestroy(stream));
  EXPECT(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuStreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
}

static void captures() {
  CUstream origin, fork, blocking;
  CUevent event, outside;
  CUgraph graph;
  CUdeviceptr a, address;
  OK(cuMemAlloc(&a, 64));
  OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&fork, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
  OK(cuEventRecord(outside, fork));
  auto begin = [&](CUstream stream, CUstreamCaptureMode mode) {
    OK(cuStreamBeginCapture(stream, mode));
  };
  auto spoiled = [&](CUstream stream) {
    EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
  };
  EXPECT(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT(cuStreamEndCapture(origin, &graph), CUDA_ERROR_ILLEGAL_STATE);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT(cuStreamSynchronize(origin), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT(cuMemsetD8Async(a, 0, 1, origin), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  spoiled(origin);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuStreamQuery(origin), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  spoiled(origin);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuMemAlloc(&address, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  spoiled(origin);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuMemsetD8(a, 0, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  spoiled(origin);
  // Another thread is disturbed by a global capture, not by a local one.
  begin(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CUcontext context;
  OK(cuCtxGetCurrent(&context));
  std::thread([&] {
    OK(cuCtxSetCurrent(context));
    EXPECT(cuMemAlloc(&address, 16), CUDA_SUCCESS);
    EXPECT(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  OK(cuStreamEndCapture(origin, &graph));
  OK(cuGraphDestroy(graph));
  // In a relaxed one nearly all is allowed.
  begin(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT(cuMemAlloc(&address, 16), CUDA_SUCCESS);
  OK(cuStreamEndCapture(origin, &graph));
  OK(cuGraphDestroy(graph));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuMemAlloc(&address, 16), CUDA_SUCCESS);
  OK(cuStreamEndCapture(origin, &graph));
  OK(cuGraphDestroy(graph));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  // The legacy stream would wait for a captured blocking one.
  begin(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuMemsetD8Async(a, 0, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  spoiled(blocking);
  // Forks must be joined, by the stream that began.
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuEventRecord(event, origin));
  OK(cuStreamWaitEvent(fork, event, 0));
  OK(cuMemsetD8Async(a, 0, 1, fork));
  EXPECT(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT(cuStreamWaitEvent(origin, event, 0), CUDA_ERROR_CAPTURED_EVENT); // of a capture that ended
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuEventRecord(event, origin));
  OK(cuStreamWaitEvent(fork, event, 0));
  EXPECT(cuStreamEndCapture(fork, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  spoiled(origin);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuEventRecord(event, origin));
  EXPECT(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  spoiled(origin);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT(cuStreamWaitEvent(origin, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  spoiled(origin);
  begin(origin, CU_STREAM_CAPTURE_MODE_GLOBAL);
  begin(fork, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuEventRecord(event, origin));
  EXPECT(cuStreamWaitEvent(fork, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  spoiled(origin);
  spoiled(fork);
}

static void graphs() {
  CUgraph graph, other;
  CUgraphExec exec;
  CUgraphNode node, second;
  EXPECT(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphCreate(&other, 0));
  OK(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  EXPECT(cuGraphAddEmptyNode(&second, graph, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphAddEmptyNode(&second, other, &node, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphAddEmptyNode(&second, bogus<CUgraph>(), nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphAddDependencies(graph, &node, &node, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphAddChildGraphNode(&second, graph, nullptr, 0, graph), CUDA_ERROR_INVALID_VALUE);
  CUDA_HOST_NODE_PARAMS host = {};
  EXPECT(cuGraphAddHostNode(&second, graph, nullptr, 0, &host), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphHostNodeGetParams(node, &host), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphInstantiate(&exec, bogus<CUgraph>(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphInstantiate(&exec, graph, 1 << 20), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphInstantiate(&exec, graph, 0));
  EXPECT(cuGraphLaunch(exec, bogus<CUstream>()), CUDA_ERROR_INVALID_HANDLE);
  OK(cuGraphLaunch(exec, nullptr));
  OK(cuGraphExecDestroy(exec));
  EXPECT(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroyNode(node));
  EXPECT(cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(other));
}

static void unsupported() {
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR descriptor = {};
  EXPECT(cuArrayCreate(&array, &descriptor), CUDA_ERROR_NOT_SUPPORTED);
  CUtexref reference;
  EXPECT(cuTexRefCreate(&reference), CUDA_ERROR_NOT_SUPPORTED);
}

int main() {
  beforeInit();
  OK(cuInit(0));
  devices();
  withoutContext();
  CUcontext context;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  contexts(context);
  memory();
  modulesAndLaunches();
  streamsAndEvents();
  captures();
  graphs();
  unsupported();
  return finish("errors");
}
