//===- GraphNodes.cpp - nodes of graphs and their parameters --------------===//
//
// Every kind of node is made, asked and changed the same three ways: in a graph by its own
// functions, in a graph by CUgraphNodeParams, and in an executable graph. All build a Work from
// parameters here, and check it as the call that does the work at once would.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/driver/GraphWork.h"

#include <algorithm>
#include <cstring>

using namespace planemu;

CUDA_KERNEL_NODE_PARAMS planemu::widen(const CUDA_KERNEL_NODE_PARAMS_v1 &p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

// --- Parameters to work -----------------------------------------------------------

CUresult planemu::kernelWork(Driver &driver, const CUDA_KERNEL_NODE_PARAMS *p, Work &work) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  KernelWork kernel;
  CUfunction function = p->func ? p->func : reinterpret_cast<CUfunction>(p->kern);
  LaunchShape shape{{p->gridDimX, p->gridDimY, p->gridDimZ},
                    {p->blockDimX, p->blockDimY, p->blockDimZ},
                    p->sharedMemBytes,
                    false};
  CUresult result = prepareLaunch(driver, function, shape, p->kernelParams, p->extra, kernel);
  if (result != CUDA_SUCCESS)
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
  work = std::move(kernel);
  return CUDA_SUCCESS;
}

CUresult planemu::copyWork(Driver &driver, const CUDA_MEMCPY3D *p, CUcontext handle, Work &work) {
  std::shared_ptr<Context> context = driver.contexts.find(handle);
  if (!p || !context || !context->alive)
    return CUDA_ERROR_INVALID_VALUE;
  CopyWork copy{*p, context, context};
  PLANEMU_TRY(checkCopy(*p));
  PLANEMU_TRY(checkCopyAddresses(driver, *context, copy));
  work = copy;
  return CUDA_SUCCESS;
}

CUresult planemu::fillWork(const CUDA_MEMSET_NODE_PARAMS *p, Work &work) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  PLANEMU_TRY(checkFill(*p));
  work = FillWork{*p};
  return CUDA_SUCCESS;
}

CUresult planemu::hostWork(const CUDA_HOST_NODE_PARAMS *p, Work &work) {
  if (!p || !p->fn)
    return CUDA_ERROR_INVALID_VALUE;
  work = HostWork{p->fn, nullptr, nullptr, p->userData};
  return CUDA_SUCCESS;
}

CUresult planemu::childWork(Driver &driver, CUgraph handle, bool registered, Work &work) {
  std::shared_ptr<Graph> child = driver.graphs.find(handle);
  if (!child)
    return CUDA_ERROR_INVALID_VALUE;
  child = cloneGraph(driver, *child, registered);
  child->isChild = true;
  work = ChildWork{std::move(child)};
  return CUDA_SUCCESS;
}

template <class EventWork> CUresult planemu::eventWork(Driver &driver, CUevent handle, Work &work) {
  std::shared_ptr<Event> event = driver.events.find(handle);
  if (!event)
    return CUDA_ERROR_INVALID_VALUE;
  work = EventWork{std::move(event)};
  return CUDA_SUCCESS;
}
template CUresult planemu::eventWork<RecordWork>(Driver &, CUevent, Work &);
template CUresult planemu::eventWork<WaitWork>(Driver &, CUevent, Work &);

CUresult planemu::allocWork(Driver &driver, CUDA_MEM_ALLOC_NODE_PARAMS *p, Work &work) {
  PLANEMU_TRY(enter(driver, true));
  if (!p || p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->poolProps.location.id != 0)
    return CUDA_ERROR_INVALID_VALUE;
  Context &context = *Driver::current();
  std::uint64_t address = 0;
  PLANEMU_TRY(driver.allocate(context, p->bytesize, Allocation::Graph, address));
  p->dptr = address;
  AllocWork alloc{*p, std::make_shared<GraphMemory>()};
  alloc.memory->context = driver.shared(&context);
  alloc.memory->address = address;
  work = std::move(alloc);
  return CUDA_SUCCESS;
}

CUresult planemu::freeWork(Driver &driver, CUdeviceptr address, Work &work) {
  PLANEMU_TRY(enter(driver, true));
  Context &context = *Driver::current();
  auto found = context.allocations.find(address);
  if (found == context.allocations.end() || found->second.kind != Allocation::Graph)
    return CUDA_ERROR_INVALID_VALUE;
  work = FreeWork{address, true};
  return CUDA_SUCCESS;
}

CUresult planemu::anyWork(Driver &driver, CUgraphNodeParams *p, bool registered, Work &work) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  CUcontext own =
      Driver::current() ? reinterpret_cast<CUcontext>(Driver::current()->handle) : nullptr;
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return kernelWork(driver, &p->kernel, work);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return copyWork(driver, &p->memcpy.copyParams, p->memcpy.copyCtx ? p->memcpy.copyCtx : own,
                    work);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return fillWork(&p->memset, work);
  case CU_GRAPH_NODE_TYPE_HOST:
    return hostWork(&p->host, work);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return childWork(driver, p->graph.graph, registered, work);
  case CU_GRAPH_NODE_TYPE_EMPTY:
    work = EmptyWork();
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return eventWork<WaitWork>(driver, p->eventWait.event, work);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return eventWork<RecordWork>(driver, p->eventRecord.event, work);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return allocWork(driver, &p->alloc, work);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    return freeWork(driver, p->free.dptr, work);
  }
  return failWith(CUDA_ERROR_NOT_SUPPORTED,
                  "graph nodes of type " + std::to_string(p->type) + " are not emulated");
}

// --- Adding ---------------------------------------------------------------------

/// Finds the graph and the dependencies, then lets `make` build the work.
template <class Make>
static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies,
                    std::size_t count, Make make) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!out || !graph)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> after;
  PLANEMU_TRY(findNodes(driver, *graph, dependencies, count, after));
  Work work;
  PLANEMU_TRY(make(driver, work));
  std::shared_ptr<GraphNode> node = driver.addNode(*graph, std::move(work), std::move(after));
  *out = reinterpret_cast<CUgraphNode>(node->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                       std::size_t count, const CUDA_KERNEL_NODE_PARAMS *p) {
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return kernelWork(driver, p, work); });
}
PLANEMU_EXPORT cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                    std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide = widen(*p);
  return cuGraphAddKernelNode_v2(out, graph, after, count, &wide);
}
PLANEMU_EXPORT cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                    std::size_t count, const CUDA_MEMCPY3D *p, CUcontext context) {
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return copyWork(driver, p, context, work); });
}
PLANEMU_EXPORT cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                    std::size_t count, const CUDA_MEMSET_NODE_PARAMS *p,
                                    CUcontext context) {
  return add(out, graph, after, count, [&](Driver &driver, Work &work) {
    return driver.contexts.find(context) ? fillWork(p, work) : CUDA_ERROR_INVALID_VALUE;
  });
}
PLANEMU_EXPORT cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                  std::size_t count, const CUDA_HOST_NODE_PARAMS *p) {
  return add(out, graph, after, count, [&](Driver &, Work &work) { return hostWork(p, work); });
}
PLANEMU_EXPORT cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                        std::size_t count, CUgraph child) {
  if (graph == child)
    return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return childWork(driver, child, true, work); });
}
PLANEMU_EXPORT cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                   std::size_t count) {
  return add(out, graph, after, count, [](Driver &, Work &work) {
    work = EmptyWork();
    return CUDA_SUCCESS;
  });
}
PLANEMU_EXPORT cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                         std::size_t count, CUevent event) {
  return add(out, graph, after, count, [&](Driver &driver, Work &work) {
    return eventWork<RecordWork>(driver, event, work);
  });
}
PLANEMU_EXPORT cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                       std::size_t count, CUevent event) {
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return eventWork<WaitWork>(driver, event, work); });
}
PLANEMU_EXPORT cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                      std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *p) {
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return allocWork(driver, p, work); });
}
PLANEMU_EXPORT cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                     std::size_t count, CUdeviceptr address) {
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return freeWork(driver, address, work); });
}
PLANEMU_EXPORT cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                              std::size_t count, CUgraphNodeParams *p) {
  return add(out, graph, after, count,
             [&](Driver &driver, Work &work) { return anyWork(driver, p, true, work); });
}
PLANEMU_EXPORT cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                 const CUgraphEdgeData *edges, std::size_t count,
                                 CUgraphNodeParams *p) {
  PLANEMU_TRY(checkEdges(edges, count));
  return cuGraphAddNode(out, graph, after, count, p);
}

// --- Changing -------------------------------------------------------------------

/// Replaces the work of a node by one of the same kind.
template <class Make> static CUresult change(CUgraphNode handle, CUgraphNodeType type, Make make) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node = driver.nodes.find(handle);
  if (!node || typeOf(node->work) != type)
    return CUDA_ERROR_INVALID_VALUE;
  Work work;
  PLANEMU_TRY(make(driver, *node, work));
  if (auto *child = std::get_if<ChildWork>(&node->work))
    forgetGraph(driver, *child->graph);
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
  return change(node, CU_GRAPH_NODE_TYPE_KERNEL, [&](Driver &driver, GraphNode &, Work &work) {
    return kernelWork(driver, p, work);
  });
}
PLANEMU_EXPORT cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide = widen(*p);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}
PLANEMU_EXPORT cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *p) {
  return change(node, CU_GRAPH_NODE_TYPE_MEMCPY, [&](Driver &driver, GraphNode &was, Work &work) {
    std::shared_ptr<Context> context = std::get<CopyWork>(was.work).to;
    if (!context)
      context = was.context;
    return copyWork(driver, p, context ? reinterpret_cast<CUcontext>(context->handle) : nullptr,
                    work);
  });
}
PLANEMU_EXPORT cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p) {
  return change(node, CU_GRAPH_NODE_TYPE_MEMSET,
                [&](Driver &, GraphNode &, Work &work) { return fillWork(p, work); });
}
PLANEMU_EXPORT cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p) {
  return change(node, CU_GRAPH_NODE_TYPE_HOST,
                [&](Driver &, GraphNode &, Work &work) { return hostWork(p, work); });
}
PLANEMU_EXPORT cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return change(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                [&](Driver &driver, GraphNode &, Work &work) {
                  return eventWork<RecordWork>(driver, event, work);
                });
}
PLANEMU_EXPORT cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return change(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, [&](Driver &driver, GraphNode &, Work &work) {
    return eventWork<WaitWork>(driver, event, work);
  });
}
PLANEMU_EXPORT cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return failWith(CUDA_ERROR_NOT_SUPPORTED,
                    "nodes that allocate or free memory stay as they are");
  return change(node, p->type, [&](Driver &driver, GraphNode &, Work &work) {
    return anyWork(driver, p, true, work);
  });
}

// --- Asking ---------------------------------------------------------------------

/// The node's work if it is a `Kind`.
template <class Kind>
static const Kind *look(Driver &driver, CUgraphNode handle, std::shared_ptr<GraphNode> &node) {
  node = driver.nodes.find(handle);
  return node ? std::get_if<Kind>(&node->work) : nullptr;
}

/// For functions that copy something out of a node of one kind.
#define LOOK(Kind, Out)                                                                            \
  PLANEMU_ENTER(false);                                                                            \
  std::shared_ptr<GraphNode> node;                                                                 \
  const Kind *work = look<Kind>(driver, handle, node);                                             \
  if (!(Out) || !work)                                                                             \
  return CUDA_ERROR_INVALID_VALUE

PLANEMU_EXPORT cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
  LOOK(KernelWork, out);
  // The pointers stay valid as long as the node does, and point at its own copy.
  std::vector<void *> &pointers = node->parameterPointers;
  pointers.clear();
  for (const Kernel::Parameter &parameter : work->function->kernel->parameters)
    pointers.push_back(const_cast<std::uint8_t *>(work->parameters.data()) + parameter.offset);
  *out = {reinterpret_cast<CUfunction>(work->function->handle),
          work->grid[0],
          work->grid[1],
          work->grid[2],
          work->block[0],
          work->block[1],
          work->block[2],
          work->dynamicShared,
          pointers.empty() ? nullptr : pointers.data(),
          nullptr,
          nullptr,
          node->context ? reinterpret_cast<CUcontext>(node->context->handle) : nullptr};
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
  CUDA_KERNEL_NODE_PARAMS wide;
  PLANEMU_TRY(cuGraphKernelNodeGetParams_v2(node, out ? &wide : nullptr));
  std::memcpy(out, &wide, sizeof(*out)); // the first fields are the same
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *out) {
  LOOK(CopyWork, out);
  *out = work->copy;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out) {
  LOOK(FillWork, out);
  *out = work->fill;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out) {
  LOOK(HostWork, out);
  *out = {work->function, work->userData};
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out) {
  LOOK(ChildWork, out);
  *out = reinterpret_cast<CUgraph>(work->graph->handle);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *out) {
  LOOK(RecordWork, out);
  *out = reinterpret_cast<CUevent>(work->event->handle);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *out) {
  LOOK(WaitWork, out);
  *out = reinterpret_cast<CUevent>(work->event->handle);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
  LOOK(AllocWork, out);
  *out = work->parameters;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *out) {
  LOOK(FreeWork, out);
  *out = work->address;
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuDeviceGraphMemTrim(CUdevice device) {
  PLANEMU_ENTER(false);
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; // nothing is kept
}
