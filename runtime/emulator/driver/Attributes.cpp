//===- Attributes.cpp - attributes of streams and kernel nodes ------------===//
//
// Most are hints about caches, waiting and scheduling: they are kept, to be asked for, and have no
// effect. Also what tools ask for: the profiler's switches and drawings of graphs.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstring>
#include <fstream>

using namespace planemu;

using Attributes = std::map<int, CUlaunchAttributeValue>;

static CUlaunchAttributeValue initial(int id) {
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof(value));
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
    int policy = CU_SYNC_POLICY_AUTO;
    std::memcpy(&value, &policy, sizeof(policy));
  }
  return value;
}

static void get(const Attributes &attributes, int id, CUlaunchAttributeValue *value) {
  auto found = attributes.find(id);
  *value = found == attributes.end() ? initial(id) : found->second;
}

// --- Streams ----------------------------------------------------------------------

static bool isOfStreams(int id) {
  return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
         id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
         id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

PLANEMU_EXPORT cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue *value) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!value || !isOfStreams(id))
    return CUDA_ERROR_INVALID_VALUE;
  get(stream->attributes, id, value);
  if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
    value->priority = stream->priority;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamSetAttribute(CUstream handle, CUstreamAttrID id,
                                    const CUstreamAttrValue *value) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!value || !isOfStreams(id))
    return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    if (value->priority > LeastPriority || value->priority < GreatestPriority)
      return CUDA_ERROR_INVALID_VALUE;
    stream->priority = value->priority;
  }
  stream->attributes[id] = *value;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamCopyAttributes(CUstream toHandle, CUstream fromHandle) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> to = driver.findStream(toHandle), from = driver.findStream(fromHandle);
  if (!to || !from)
    return CUDA_ERROR_INVALID_HANDLE;
  to->attributes = from->attributes;
  to->priority = from->priority;
  return CUDA_SUCCESS;
}

// --- Kernel nodes -------------------------------------------------------------------

/// The node, if it runs a kernel and the attribute is one that it can have.
static CUresult findKernelNode(Driver &driver, CUgraphNode handle, int id,
                               std::shared_ptr<GraphNode> &node) {
  node = driver.nodes.find(handle);
  bool known =
      id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE ||
      id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
      id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE ||
      id == CU_LAUNCH_ATTRIBUTE_PRIORITY || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
      id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN ||
      id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  return known && node && std::holds_alternative<KernelWork>(node->work) ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                             CUkernelNodeAttrValue *value) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node;
  PLANEMU_TRY(findKernelNode(driver, handle, id, node));
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  get(node->attributes, id, value);
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    value->cooperative = std::get<KernelWork>(node->work).cooperative;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                             const CUkernelNodeAttrValue *value) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node;
  PLANEMU_TRY(findKernelNode(driver, handle, id, node));
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
      (value->clusterDim.x > 1 || value->clusterDim.y > 1 || value->clusterDim.z > 1))
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "clusters of several blocks");
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    std::get<KernelWork>(node->work).cooperative = value->cooperative != 0;
  node->attributes[id] = *value;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphKernelNodeCopyAttributes(CUgraphNode toHandle, CUgraphNode fromHandle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> to, from;
  PLANEMU_TRY(findKernelNode(driver, toHandle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, to));
  PLANEMU_TRY(findKernelNode(driver, fromHandle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, from));
  to->attributes = from->attributes;
  std::get<KernelWork>(to->work).cooperative = std::get<KernelWork>(from->work).cooperative;
  return CUDA_SUCCESS;
}

// --- Tools --------------------------------------------------------------------------

static std::string describe(const GraphNode &node) {
  static constexpr const char *Names[] = {
      "kernel",       "copy",       "fill",        "host function", "empty",
      "event record", "event wait", "child graph", "allocation",    "free"};
  static_assert(std::size(Names) == std::variant_size_v<Work>);
  std::string text = Names[node.work.index()];
  if (auto *kernel = std::get_if<KernelWork>(&node.work))
    text += " " + kernel->function->name;
  return text;
}

PLANEMU_EXPORT cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!graph || !path)
    return CUDA_ERROR_INVALID_VALUE;
  std::map<const GraphNode *, std::size_t> number;
  for (const std::shared_ptr<GraphNode> &node : graph->nodes)
    number.emplace(node.get(), number.size());
  std::ofstream file(path);
  file << "digraph {\n";
  for (const std::shared_ptr<GraphNode> &node : graph->nodes) {
    file << "  n" << number[node.get()] << " [label=\"" << describe(*node) << "\"];\n";
    for (const GraphNode *before : node->dependencies)
      file << "  n" << number[before] << " -> n" << number[node.get()] << ";\n";
  }
  file << "}\n";
  file.close();
  return file ? CUDA_SUCCESS
              : failWith(CUDA_ERROR_OPERATING_SYSTEM, std::string("cannot write ") + path);
}

// No profiler is attached; starting and stopping it does nothing.

PLANEMU_EXPORT cuProfilerStart() {
  PLANEMU_ENTER_CONTEXT;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuProfilerStop() {
  PLANEMU_ENTER_CONTEXT;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuProfilerInitialize(const char *, const char *, CUoutput_mode) {
  return failWith(CUDA_ERROR_NOT_SUPPORTED, "the profiler is configured from outside");
}
