//===- Graphs.cpp - planemu-driver-graphs: explicit and captured graphs ---===//
//
// A diamond of nodes made by hand and the same by a capture that forks and joins; updates, clones,
// child graphs, memory nodes.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <algorithm>
#include <dlfcn.h>
#include <string>
#include <vector>

static CUcontext context;
static CUfunction increment;
static std::string order; // of host nodes

static void note(void *text) { order += static_cast<const char *>(text); }

static std::vector<unsigned> read(CUdeviceptr address, unsigned count) {
  std::vector<unsigned> values(count);
  OK(cuMemcpyDtoH(values.data(), address, count * sizeof(unsigned)));
  return values;
}

static void launch(CUgraphExec exec) {
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy(stream));
}

/// fill -> (left, right) -> copy -> host
static void byHand() {
  CUdeviceptr a, b;
  OK(cuMemAlloc(&a, 256));
  OK(cuMemAlloc(&b, 256));
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = a;
  fill.value = 10;
  fill.elementSize = 4;
  fill.width = 64;
  fill.height = 1;
  CUgraphNode fillNode, left, right, copyNode, hostNode, empty;
  OK(cuGraphAddMemsetNode(&fillNode, graph, nullptr, 0, &fill, context));
  CUdeviceptr high = a + 128;
  unsigned one = 1, two = 2;
  void *leftParameters[] = {&a, &one}, *rightParameters[] = {&high, &two};
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  kernel.func = increment;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 32;
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = leftParameters;
  OK(cuGraphAddKernelNode(&left, graph, &fillNode, 1, &kernel));
  kernel.kernelParams = rightParameters;
  OK(cuGraphAddKernelNode(&right, graph, &fillNode, 1, &kernel));
  one = two = 99; // parameters are copied when the node is added
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstDevice = b;
  copy.WidthInBytes = 256;
  copy.Height = copy.Depth = 1;
  CUgraphNode both[] = {left, right};
  OK(cuGraphAddMemcpyNode(&copyNode, graph, both, 2, &copy, context));
  static char text[] = "h";
  CUDA_HOST_NODE_PARAMS host = {note, text};
  OK(cuGraphAddHostNode(&hostNode, graph, &copyNode, 1, &host));
  OK(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));

  std::size_t count = 0;
  OK(cuGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 6);
  OK(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  CHECK(count == 5);
  CUgraphNode nodes[8];
  count = 8;
  OK(cuGraphGetRootNodes(graph, nodes, &count));
  CHECK(count == 2 && nodes[0] == fillNode && nodes[1] == empty && nodes[2] == nullptr);
  count = 8;
  OK(cuGraphNodeGetDependencies(copyNode, nodes, nullptr, &count));
  CHECK(count == 2 && nodes[0] == left && nodes[1] == right);
  OK(cuGraphNodeGetDependentNodes(fillNode, nullptr, nullptr, &count));
  CHECK(count == 2);
  CUgraphNodeType type;
  OK(cuGraphNodeGetType(hostNode, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_HOST);
  CUDA_KERNEL_NODE_PARAMS asked;
  OK(cuGraphKernelNodeGetParams(right, &asked));
  CHECK(asked.func == increment && asked.blockDimX == 32 &&
        *static_cast<CUdeviceptr *>(asked.kernelParams[0]) == high &&
        *static_cast<unsigned *>(asked.kernelParams[1]) == 2);

  // Edges: there once, not in a circle.
  EXPECT(cuGraphAddDependencies(graph, &left, &copyNode, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphAddDependencies(graph, &copyNode, &fillNode, nullptr, 1));
  CUgraphExec exec;
  EXPECT(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphRemoveDependencies(graph, &copyNode, &fillNode, nullptr, 1));
  EXPECT(cuGraphRemoveDependencies(graph, &copyNode, &fillNode, nullptr, 1),
         CUDA_ERROR_INVALID_VALUE);

  OK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(order.empty());
  launch(exec);
  std::vector<unsigned> values = read(b, 64);
  CHECK(values[0] == 11 && values[31] == 11 && values[32] == 12 && values[63] == 12);
  CHECK(order == "h");

  // The executable graph is changed alone, by the graph's nodes.
  one = 7;
  kernel.kernelParams = leftParameters;
  OK(cuGraphExecKernelNodeSetParams(exec, left, &kernel));
  OK(cuGraphNodeSetEnabled(exec, right, 0));
  EXPECT(cuGraphNodeSetEnabled(exec, hostNode, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphExecHostNodeSetParams(exec, left, &host), CUDA_ERROR_INVALID_VALUE);
  launch(exec);
  values = read(b, 64);
  CHECK(values[0] == 17 && values[63] == 10);

  // A clone of the graph still has the old parameters; the executable graph can become it.
  CUgraph clone;
  CUgraphNode cloned;
  OK(cuGraphClone(&clone, graph));
  OK(cuGraphNodeFindInClone(&cloned, left, clone));
  OK(cuGraphKernelNodeGetParams(cloned, &asked));
  CHECK(*static_cast<unsigned *>(asked.kernelParams[1]) == 1);
  OK(cuGraphNodeSetEnabled(exec, right, 1));
  CUgraphExecUpdateResultInfo info;
  OK(cuGraphExecUpdate(exec, clone, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch(exec);
  CHECK(read(b, 1)[0] == 11);
  OK(cuGraphDestroyNode(cloned));
  EXPECT(cuGraphExecUpdate(exec, clone, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

  // A graph as a node of another, twice in a row; the child is a copy.
  CUgraph parent, child;
  CUgraphNode first, second;
  OK(cuGraphCreate(&parent, 0));
  OK(cuGraphAddChildGraphNode(&first, parent, nullptr, 0, graph));
  OK(cuGraphAddChildGraphNode(&second, parent, &first, 1, graph));
  OK(cuGraphChildGraphNodeGetGraph(first, &child));
  CHECK(child != graph);
  EXPECT(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(graph));
  EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphNodeGetType(left, &type), CUDA_ERROR_INVALID_VALUE);
  order.clear();
  CUgraphExec twice;
  OK(cuGraphInstantiate(&twice, parent, 0));
  launch(twice);
  CHECK(order == "hh");
  for (CUgraphExec used : {exec, twice})
    OK(cuGraphExecDestroy(used));
  for (CUgraph used : {parent, clone})
    OK(cuGraphDestroy(used));
  OK(cuMemFree(a));
  OK(cuMemFree(b));
}

static void byCapture() {
  CUstream origin, fork;
  OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&fork, CU_STREAM_NON_BLOCKING));
  CUevent forked, joined;
  OK(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr a, b;
  OK(cuMemAlloc(&a, 256));
  OK(cuMemAlloc(&b, 256));
  OK(cuMemsetD32(b, 0, 64));
  CUdeviceptr high = a + 128;
  unsigned one = 1, two = 2;
  void *leftParameters[] = {&a, &one}, *rightParameters[] = {&high, &two};

  OK(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemsetD32Async(a, 10, 64, origin));
  OK(cuEventRecord(forked, origin));
  OK(cuStreamWaitEvent(fork, forked, 0));
  OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, origin, leftParameters, nullptr));
  OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, fork, rightParameters, nullptr));
  CUstreamCaptureStatus status;
  CUgraph building;
  std::size_t count = 0;
  const CUgraphNode *ends;
  cuuint64_t id = 0;
  OK(cuStreamIsCapturing(fork, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuStreamGetCaptureInfo(fork, &status, &id, &building, &ends, nullptr, &count));
  CHECK(count == 1 && id != 0);
  EXPECT(cuGraphDestroy(building), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphDestroyNode(ends[0]), CUDA_ERROR_INVALID_VALUE);
  OK(cuEventRecord(joined, fork));
  OK(cuStreamWaitEvent(origin, joined, 0));
  OK(cuMemcpyDtoDAsync(b, a, 256, origin));
  CUgraph graph;
  OK(cuStreamEndCapture(origin, &graph));
  CHECK(graph == building);
  OK(cuStreamIsCapturing(fork, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);

  // The same dependencies as by hand.
  OK(cuGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 4);
  CUgraphNode from[8], to[8];
  count = 8;
  OK(cuGraphGetEdges(graph, from, to, nullptr, &count));
  CHECK(count == 4);
  CUgraphNode root;
  count = 1;
  OK(cuGraphGetRootNodes(graph, &root, &count));
  CHECK(std::count(from, from + 4, root) == 2);
  CHECK(read(b, 1)[0] == 0); // nothing has run
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  launch(exec);
  std::vector<unsigned> values = read(b, 64);
  CHECK(values[0] == 11 && values[32] == 12);

  // A graph launched into a capture becomes a child; allocations become nodes.
  OK(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuGraphLaunch(exec, origin));
  CUdeviceptr scratch;
  OK(cuMemAllocAsync(&scratch, 256, origin));
  OK(cuMemcpyDtoDAsync(scratch, a, 256, origin));
  void *scratchParameters[] = {&scratch, &one};
  OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, origin, scratchParameters, nullptr));
  OK(cuMemcpyDtoDAsync(b, scratch, 256, origin));
  OK(cuMemFreeAsync(scratch, origin));
  OK(cuEventRecordWithFlags(joined, origin, CU_EVENT_RECORD_EXTERNAL));
  CUgraph outer;
  OK(cuStreamEndCapture(origin, &outer));
  CUgraphNode nodes[8];
  count = 8;
  OK(cuGraphGetNodes(outer, nodes, &count));
  CHECK(count == 7);
  const CUgraphNodeType expected[] = {CU_GRAPH_NODE_TYPE_GRAPH,       CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                      CU_GRAPH_NODE_TYPE_MEMCPY,      CU_GRAPH_NODE_TYPE_KERNEL,
                                      CU_GRAPH_NODE_TYPE_MEMCPY,      CU_GRAPH_NODE_TYPE_MEM_FREE,
                                      CU_GRAPH_NODE_TYPE_EVENT_RECORD};
  for (unsigned n = 0; n < count; ++n) {
    CUgraphNodeType type;
    OK(cuGraphNodeGetType(nodes[n], &type));
    CHECK(type == expected[n]);
  }
  CUgraphExec outerExec;
  OK(cuGraphInstantiate(&outerExec, outer, 0));
  launch(outerExec);
  CHECK(read(b, 1)[0] == 12);
  EXPECT(cuEventQuery(joined), CUDA_SUCCESS);

  for (CUgraphExec used : {exec, outerExec})
    OK(cuGraphExecDestroy(used));
  for (CUgraph used : {graph, outer})
    OK(cuGraphDestroy(used));
  for (CUstream used : {origin, fork})
    OK(cuStreamDestroy(used));
}

/// What captures can do besides: fill a given graph, change what they depend on; attributes.
static void captureInto() {
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUgraph graph, same;
  CUgraphNode first, second, nodes[4];
  OK(cuGraphCreate(&graph, 0));
  CUdeviceptr address;
  OK(cuMemAlloc(&address, 128));
  unsigned by = 1;
  void *parameters[] = {&address, &by};
  static char a[] = "a", b[] = "b";
  CUDA_HOST_NODE_PARAMS host = {note, a};
  OK(cuGraphAddHostNode(&first, graph, nullptr, 0, &host));
  OK(cuGraphAddEmptyNode(&second, graph, nullptr, 0));
  OK(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamUpdateCaptureDependencies(stream, &second, nullptr, 1,
                                       CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  OK(cuLaunchHostFunc(stream, note, b));
  OK(cuStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0,
                                       CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  OK(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
  OK(cuStreamEndCapture(stream, &same));
  CHECK(same == graph);
  EXPECT(cuStreamUpdateCaptureDependencies(stream, &second, nullptr, 1, 0),
         CUDA_ERROR_ILLEGAL_STATE);
  std::size_t count = 4;
  OK(cuGraphGetNodes(graph, nodes, &count));
  CHECK(count == 4);
  OK(cuGraphNodeGetDependencies(nodes[2], nullptr, nullptr, &count));
  CHECK(count == 2);
  OK(cuGraphNodeGetDependencies(nodes[3], nullptr, nullptr, &count));
  CHECK(count == 0);

  CUkernelNodeAttrValue value = {};
  value.cooperative = 1;
  OK(cuGraphKernelNodeSetAttribute(nodes[3], CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  value.cooperative = 0;
  OK(cuGraphKernelNodeGetAttribute(nodes[3], CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  CHECK(value.cooperative == 1);
  EXPECT(cuGraphKernelNodeGetAttribute(first, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value),
         CUDA_ERROR_INVALID_VALUE);
  CUstreamAttrValue policy = {};
  OK(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy));
  CHECK(policy.syncPolicy == CU_SYNC_POLICY_AUTO);
  policy.priority = 3;
  EXPECT(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &policy),
         CUDA_ERROR_INVALID_VALUE);
  policy.priority = -2;
  OK(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &policy));
  int priority = 0;
  OK(cuStreamGetPriority(stream, &priority));
  CHECK(priority == -2);
  EXPECT(cuGraphDebugDotPrint(graph, "/no/such/folder/graph.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);

  order.clear();
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  launch(exec);
  CHECK(order == "ab");
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuStreamDestroy(stream));
}

/// A launch that is told to stops before its next node, and no later one is harmed.
static void interrupted() {
  auto setInterrupt = reinterpret_cast<void (*)(int (*)(void *), void *)>(
      dlsym(RTLD_DEFAULT, "planemu_set_interrupt"));
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 12));
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode before = nullptr;
  for (unsigned n = 0; n < 3; ++n) {
    CUDA_MEMSET_NODE_PARAMS fill = {};
    fill.dst = a + 4 * n;
    fill.value = 5 + n;
    fill.elementSize = 4;
    fill.width = fill.height = 1;
    CUgraphNode node;
    OK(cuGraphAddMemsetNode(&node, graph, &before, n ? 1 : 0, &fill, context));
    before = node;
  }
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int allowed = 0; allowed <= 3; ++allowed) {
    OK(cuMemsetD32(a, 1, 3));
    int left = allowed;
    setInterrupt([](void *count) -> int { return --*static_cast<int *>(count) < 0; }, &left);
    CUresult result = cuGraphLaunch(exec, stream);
    CHECK(result == (allowed < 3 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS));
    OK(cuStreamSynchronize(stream));
    std::vector<unsigned> values = read(a, 3);
    for (int n = 0; n < 3; ++n)
      CHECK(values[n] == (n < allowed ? 5u + n : 1u));
  }
  setInterrupt(nullptr, nullptr);
  OK(cuGraphLaunch(exec, stream));
  CHECK(read(a, 3)[2] == 7);
}

int main() {
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  CUmodule module;
  OK(cuModuleLoadData(&module, Kernels));
  OK(cuModuleGetFunction(&increment, module, "increment"));
  byHand();
  byCapture();
  captureInto();
  interrupted();
  return finish("graphs");
}
