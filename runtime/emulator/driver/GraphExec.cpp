//===- GraphExec.cpp - executable graphs ----------------------------------===//
//
// An executable graph is a private copy of the graph it was made from. Its nodes are found by the
// nodes of that graph, even after the graph has been destroyed.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/driver/GraphWork.h"

#include <algorithm>

using namespace planemu;

// --- Making -----------------------------------------------------------------------

static bool hasCycle(const Graph &graph) {
  if (orderNodes(graph).size() != graph.nodes.size())
    return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto &node) {
    auto *child = std::get_if<ChildWork>(&node->work);
    return child && hasCycle(*child->graph);
  });
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, std::uint64_t flags,
                            CUgraphInstantiateResult &reason) {
  PLANEMU_ENTER_CONTEXT;
  reason = CUDA_GRAPH_INSTANTIATE_ERROR;
  constexpr std::uint64_t Known =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!out || !graph || (flags & ~Known))
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
    reason = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "graphs that kernels launch are not emulated");
  }
  if (hasCycle(*graph)) {
    reason = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return failWith(CUDA_ERROR_INVALID_VALUE, "the graph's dependencies form a cycle");
  }
  auto exec = std::make_shared<GraphExec>();
  exec->graph = cloneGraph(driver, *graph, false);
  exec->flags = flags;
  exec->context = driver.shared(&context);
  *out = driver.execs.add(std::move(exec));
  reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                           unsigned long long flags) {
  CUgraphInstantiateResult reason;
  return instantiate(exec, graph, flags & ~CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, reason);
}
PLANEMU_EXPORT cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                            CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
  if (!parameters)
    return CUDA_ERROR_INVALID_VALUE;
  parameters->hErrNode_out = nullptr;
  return instantiate(exec, graph, parameters->flags, parameters->result_out);
}
PLANEMU_EXPORT cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *errorNode,
                                     char *log, std::size_t bytes) {
  if (errorNode)
    *errorNode = nullptr;
  if (log && bytes)
    *log = 0;
  return cuGraphInstantiateWithFlags(exec, graph, 0);
}
PLANEMU_EXPORT cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *errorNode,
                                  char *log, std::size_t bytes) {
  return cuGraphInstantiate_v2(exec, graph, errorNode, log, bytes);
}

PLANEMU_EXPORT cuGraphExecGetFlags(CUgraphExec handle, std::uint64_t *flags) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphExec> exec = driver.execs.find(handle);
  if (!exec || !flags)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphExecDestroy(CUgraphExec exec) {
  PLANEMU_ENTER(false);
  return driver.execs.remove(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// --- Running ----------------------------------------------------------------------

CUresult Driver::runGraph(const Graph &graph, const std::shared_ptr<Context> &context,
                          const std::vector<std::shared_ptr<Task>> &after,
                          std::vector<std::shared_ptr<Task>> &ends) {
  // What has to be waited for after each node: tasks, or nothing if it is done.
  std::map<const GraphNode *, std::vector<std::shared_ptr<Task>>> tasks;
  for (GraphNode *node : orderNodes(graph)) {
    if (isInterrupted())
      return CUDA_ERROR_NOT_READY;
    std::vector<std::shared_ptr<Task>> before;
    for (const GraphNode *earlier : node->dependencies)
      before.insert(before.end(), tasks[earlier].begin(), tasks[earlier].end());
    if (node->dependencies.empty())
      before = after;
    std::vector<std::shared_ptr<Task>> &own = tasks[node];
    const std::shared_ptr<Context> &in = node->context ? node->context : context;
    if (!in->alive)
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (auto *child = std::get_if<ChildWork>(&node->work); child && node->enabled) {
      PLANEMU_TRY(runGraph(*child->graph, in, before, own));
      if (child->graph->nodes.empty())
        own = before;
    } else {
      Work work = node->enabled ? node->work : Work(EmptyWork());
      if (auto *wait = std::get_if<WaitWork>(&work))
        if (wait->event->task)
          before.push_back(wait->event->task);
      std::shared_ptr<Task> task;
      PLANEMU_TRY(submit(in, std::move(work), before, task));
      if (auto *record = std::get_if<RecordWork>(&node->work); record && node->enabled) {
        record->event->capture.reset();
        record->event->recorded = true;
        record->event->task = task;
      }
      if (task)
        own.push_back(std::move(task));
    }
    if (in->sticky != CUDA_SUCCESS)
      return CUDA_SUCCESS; // the rest of the graph does not run; the next call tells
  }
  for (auto &[node, own] : tasks)
    ends.insert(ends.end(), own.begin(), own.end());
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<GraphExec> exec = driver.execs.find(handle);
  if (!exec)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream = driver.findStream(streamHandle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    if (stream->capture->invalidated)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::shared_ptr<Graph> child = cloneGraph(driver, *exec->graph, true);
    child->isChild = true;
    return driver.capture(*stream, ChildWork{std::move(child)});
  }
  PLANEMU_TRY(driver.checkLegacy(*stream));
  std::vector<std::shared_ptr<Task>> ends;
  PLANEMU_TRY(driver.runGraph(*exec->graph, stream->context, driver.predecessors(*stream), ends));
  std::erase_if(ends, [](const std::shared_ptr<Task> &task) { return task->done; });
  if (!ends.empty()) {
    std::shared_ptr<Task> joined;
    driver.submit(stream->context, EmptyWork(), ends, joined);
    stream->last = std::move(joined);
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphUpload(CUgraphExec exec, CUstream stream) {
  PLANEMU_ENTER_CONTEXT;
  if (!driver.execs.find(exec))
    return CUDA_ERROR_INVALID_VALUE;
  return driver.findStream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// --- Changing ---------------------------------------------------------------------

static GraphNode *findOriginal(Graph &graph, CUgraphNode handle) {
  for (const std::shared_ptr<GraphNode> &node : graph.nodes)
    if (node->original == reinterpret_cast<std::uintptr_t>(handle))
      return node.get();
  return nullptr;
}

static bool sameShape(const Graph &a, const Graph &b);

/// True if an executable node with work `was` may do `now` instead.
static bool mayBecome(const Work &was, const Work &now) {
  if (typeOf(was) != typeOf(now))
    return false;
  if (auto *kernel = std::get_if<KernelWork>(&was))
    // Another function may come if it belongs to the same context.
    return kernel->module->context == std::get<KernelWork>(now).module->context;
  if (auto *fill = std::get_if<FillWork>(&was)) {
    const CUDA_MEMSET_NODE_PARAMS &a = fill->fill, &b = std::get<FillWork>(now).fill;
    return (a.height <= 1) == (b.height <= 1);
  }
  if (auto *child = std::get_if<ChildWork>(&was))
    return sameShape(*child->graph, *std::get<ChildWork>(now).graph);
  return !std::holds_alternative<AllocWork>(was) && !std::holds_alternative<FreeWork>(was);
}

static bool sameShape(const Graph &a, const Graph &b) {
  if (a.nodes.size() != b.nodes.size())
    return false;
  for (std::size_t n = 0; n < a.nodes.size(); ++n)
    if (!mayBecome(a.nodes[n]->work, b.nodes[n]->work) ||
        a.nodes[n]->dependencies.size() != b.nodes[n]->dependencies.size())
      return false;
  return true;
}

template <class Make>
static CUresult change(CUgraphExec handle, CUgraphNode original, CUgraphNodeType type, Make make) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphExec> exec = driver.execs.find(handle);
  GraphNode *node = exec && original ? findOriginal(*exec->graph, original) : nullptr;
  if (!node || typeOf(node->work) != type)
    return CUDA_ERROR_INVALID_VALUE;
  Work work;
  PLANEMU_TRY(make(driver, work));
  if (!mayBecome(node->work, work))
    return CUDA_ERROR_INVALID_VALUE;
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_KERNEL_NODE_PARAMS *p) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                [&](Driver &driver, Work &work) { return kernelWork(driver, p, work); });
}
PLANEMU_EXPORT cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide = widen(*p);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}
PLANEMU_EXPORT cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_MEMCPY3D *p, CUcontext context) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                [&](Driver &driver, Work &work) { return copyWork(driver, p, context, work); });
}
PLANEMU_EXPORT cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, [&](Driver &driver, Work &work) {
    return driver.contexts.find(context) ? fillWork(p, work) : CUDA_ERROR_INVALID_VALUE;
  });
}
PLANEMU_EXPORT cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_HOST_NODE_PARAMS *p) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_HOST,
                [&](Driver &, Work &work) { return hostWork(p, work); });
}
PLANEMU_EXPORT cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                  CUgraph child) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_GRAPH,
                [&](Driver &driver, Work &work) { return childWork(driver, child, false, work); });
}
PLANEMU_EXPORT cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                  CUevent event) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, [&](Driver &driver, Work &work) {
    return eventWork<RecordWork>(driver, event, work);
  });
}
PLANEMU_EXPORT cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return change(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, [&](Driver &driver, Work &work) {
    return eventWork<WaitWork>(driver, event, work);
  });
}
PLANEMU_EXPORT cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p) {
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  return change(exec, node, p->type,
                [&](Driver &driver, Work &work) { return anyWork(driver, p, false, work); });
}

PLANEMU_EXPORT cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode original, unsigned enabled) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphExec> exec = driver.execs.find(handle);
  GraphNode *node = exec && original ? findOriginal(*exec->graph, original) : nullptr;
  // Kernels, fills and copies only, as in CUDA.
  if (!node || typeOf(node->work) > CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode original, unsigned *enabled) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphExec> exec = driver.execs.find(handle);
  GraphNode *node = exec && original ? findOriginal(*exec->graph, original) : nullptr;
  if (!node || !enabled || typeOf(node->work) > CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled;
  return CUDA_SUCCESS;
}

/// Why `exec` cannot become `graph`: nodes correspond by their order, and so do dependencies.
static CUgraphExecUpdateResult compare(const Graph &was, const Graph &now, GraphNode *&node,
                                       GraphNode *&from) {
  std::map<const GraphNode *, std::size_t> place;
  for (std::size_t n = 0; n < was.nodes.size(); ++n)
    place[was.nodes[n].get()] = n;
  for (std::size_t n = 0; n < now.nodes.size(); ++n)
    place[now.nodes[n].get()] = n;
  if (was.nodes.size() != now.nodes.size()) {
    if (now.nodes.size() > was.nodes.size())
      node = now.nodes[was.nodes.size()].get();
    return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  for (std::size_t n = 0; n < now.nodes.size(); ++n) {
    GraphNode &a = *was.nodes[n], &b = *now.nodes[n];
    node = &b;
    if (typeOf(a.work) != typeOf(b.work))
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    for (GraphNode *before : b.dependencies) {
      from = before;
      if (std::none_of(a.dependencies.begin(), a.dependencies.end(),
                       [&](const GraphNode *other) { return place[other] == place[before]; }))
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    from = nullptr;
    if (a.dependencies.size() != b.dependencies.size())
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (!mayBecome(a.work, b.work))
      return std::holds_alternative<KernelWork>(a.work)
                 ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                 : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  node = nullptr;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

PLANEMU_EXPORT cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graphHandle,
                                    CUgraphExecUpdateResultInfo *info) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphExec> exec = driver.execs.find(handle);
  std::shared_ptr<Graph> graph = driver.graphs.find(graphHandle);
  if (!exec || !graph || !info)
    return CUDA_ERROR_INVALID_VALUE;
  GraphNode *node = nullptr, *from = nullptr;
  info->result = compare(*exec->graph, *graph, node, from);
  info->errorNode = node ? reinterpret_cast<CUgraphNode>(node->handle) : nullptr;
  info->errorFromNode = from ? reinterpret_cast<CUgraphNode>(from->handle) : nullptr;
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  // Nodes are still found by those of the first graph.
  std::shared_ptr<Graph> updated = cloneGraph(driver, *graph, false);
  for (std::size_t n = 0; n < updated->nodes.size(); ++n) {
    updated->nodes[n]->original = exec->graph->nodes[n]->original;
    updated->nodes[n]->enabled = exec->graph->nodes[n]->enabled;
  }
  exec->graph = std::move(updated);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *errorNode,
                                 CUgraphExecUpdateResult *result) {
  if (!errorNode || !result)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  CUresult status = cuGraphExecUpdate_v2(exec, graph, &info);
  *errorNode = info.errorNode;
  *result = info.result;
  return status;
}
