//===- Graph.cpp - graphs: making, copying, asking ------------------------===//
//
// Nodes keep the order in which they were added; where dependencies leave a choice, that is the
// order of execution.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>
#include <cstring>

using namespace planemu;

GraphMemory::~GraphMemory() {
  if (context && context->alive) {
    context->allocations.erase(address);
    context->memory->free(address);
  }
}

CUgraphNodeType planemu::typeOf(const Work &work) {
  static constexpr CUgraphNodeType Types[] = {
      CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET,
      CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EMPTY,  CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE};
  static_assert(std::size(Types) == std::variant_size_v<Work>);
  return Types[work.index()];
}

std::shared_ptr<GraphNode> Driver::addNode(Graph &graph, Work work,
                                           std::vector<GraphNode *> after) {
  auto node = std::make_shared<GraphNode>();
  node->graph = &graph;
  if (Context *own = current())
    node->context = shared(own);
  node->work = std::move(work);
  node->dependencies = std::move(after);
  nodes.add(node);
  graph.nodes.push_back(node);
  return node;
}

std::shared_ptr<Graph> planemu::cloneGraph(Driver &driver, const Graph &graph, bool registered) {
  auto clone = std::make_shared<Graph>();
  if (registered)
    driver.graphs.add(clone);
  std::map<const GraphNode *, GraphNode *> copies;
  for (const std::shared_ptr<GraphNode> &node : graph.nodes) {
    auto copy = std::make_shared<GraphNode>(*node);
    copy->graph = clone.get();
    copy->original = node->handle;
    copy->handle = 0;
    if (auto *child = std::get_if<ChildWork>(&copy->work)) {
      child->graph = cloneGraph(driver, *child->graph, registered);
      child->graph->isChild = true;
    }
    if (registered)
      driver.nodes.add(copy);
    copies[node.get()] = copy.get();
    clone->nodes.push_back(std::move(copy));
  }
  for (const std::shared_ptr<GraphNode> &node : clone->nodes)
    for (GraphNode *&before : node->dependencies)
      before = copies[before];
  return clone;
}

std::vector<GraphNode *> planemu::orderNodes(const Graph &graph) {
  std::vector<GraphNode *> order;
  std::map<const GraphNode *, bool> placed;
  while (order.size() < graph.nodes.size()) {
    std::size_t before = order.size();
    for (const std::shared_ptr<GraphNode> &node : graph.nodes) {
      if (placed[node.get()])
        continue;
      bool ready = std::all_of(node->dependencies.begin(), node->dependencies.end(),
                               [&](const GraphNode *earlier) { return placed[earlier]; });
      if (ready) {
        placed[node.get()] = true;
        order.push_back(node.get());
      }
    }
    if (order.size() == before)
      return {};
  }
  return order;
}

void planemu::forgetGraph(Driver &driver, Graph &graph) {
  for (const std::shared_ptr<GraphNode> &node : graph.nodes) {
    if (auto *child = std::get_if<ChildWork>(&node->work))
      forgetGraph(driver, *child->graph);
    driver.nodes.remove(reinterpret_cast<CUgraphNode>(node->handle));
  }
  driver.graphs.remove(reinterpret_cast<CUgraph>(graph.handle));
}

/// Streams that are being captured point at its nodes.
static bool isCaptured(const Driver &driver, const Graph &graph) {
  return std::any_of(driver.captures.begin(), driver.captures.end(),
                     [&](const auto &capture) { return capture->graph.get() == &graph; });
}

CUresult planemu::findNodes(Driver &driver, const Graph &graph, const CUgraphNode *handles,
                            std::size_t count, std::vector<GraphNode *> &nodes) {
  if (count && !handles)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t n = 0; n < count; ++n) {
    std::shared_ptr<GraphNode> node = driver.nodes.find(handles[n]);
    if (!node || node->graph != &graph ||
        std::find(nodes.begin(), nodes.end(), node.get()) != nodes.end())
      return CUDA_ERROR_INVALID_VALUE;
    nodes.push_back(node.get());
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphCreate(CUgraph *handle, unsigned flags) {
  PLANEMU_ENTER(false);
  if (!handle || flags)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = driver.graphs.add(std::make_shared<Graph>());
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphDestroy(CUgraph handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!graph || graph->isChild || isCaptured(driver, *graph))
    return CUDA_ERROR_INVALID_VALUE;
  forgetGraph(driver, *graph);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphClone(CUgraph *clone, CUgraph handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!clone || !graph)
    return CUDA_ERROR_INVALID_VALUE;
  for (const std::shared_ptr<GraphNode> &node : graph->nodes)
    if (std::holds_alternative<AllocWork>(node->work) ||
        std::holds_alternative<FreeWork>(node->work))
      return failWith(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates memory has one copy only");
  *clone = reinterpret_cast<CUgraph>(cloneGraph(driver, *graph, true)->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(clone);
  if (!found || !original || !graph)
    return CUDA_ERROR_INVALID_VALUE;
  for (const std::shared_ptr<GraphNode> &node : graph->nodes)
    if (node->original == reinterpret_cast<std::uintptr_t>(original)) {
      *found = reinterpret_cast<CUgraphNode>(node->handle);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node = driver.nodes.find(handle);
  if (!type || !node)
    return CUDA_ERROR_INVALID_VALUE;
  *type = typeOf(node->work);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphDestroyNode(CUgraphNode handle) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node = driver.nodes.find(handle);
  if (!node || isCaptured(driver, *node->graph))
    return CUDA_ERROR_INVALID_VALUE;
  if (std::holds_alternative<AllocWork>(node->work) || std::holds_alternative<FreeWork>(node->work))
    return failWith(CUDA_ERROR_NOT_SUPPORTED, "nodes that allocate or free memory stay");
  Graph &graph = *node->graph;
  for (const std::shared_ptr<GraphNode> &other : graph.nodes)
    std::erase(other->dependencies, node.get());
  if (auto *child = std::get_if<ChildWork>(&node->work))
    forgetGraph(driver, *child->graph);
  driver.nodes.remove(handle);
  std::erase(graph.nodes, node);
  return CUDA_SUCCESS;
}

// --- Lists ----------------------------------------------------------------------
//
// The caller asks for the number with null arrays, then for the entries; what is left of an array
// is set to null.

static CUgraphNode handleOf(const GraphNode *node) {
  return reinterpret_cast<CUgraphNode>(node->handle);
}

static CUresult list(const std::vector<GraphNode *> &nodes, CUgraphNode *out, std::size_t *count) {
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  if (out)
    for (std::size_t n = 0; n < *count; ++n)
      out[n] = n < nodes.size() ? handleOf(nodes[n]) : nullptr;
  *count = out ? std::min(*count, nodes.size()) : nodes.size();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphGetNodes(CUgraph handle, CUgraphNode *out, std::size_t *count) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!graph)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> all;
  for (const std::shared_ptr<GraphNode> &node : graph->nodes)
    all.push_back(node.get());
  return list(all, out, count);
}

PLANEMU_EXPORT cuGraphGetRootNodes(CUgraph handle, CUgraphNode *out, std::size_t *count) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!graph)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> roots;
  for (const std::shared_ptr<GraphNode> &node : graph->nodes)
    if (node->dependencies.empty())
      roots.push_back(node.get());
  return list(roots, out, count);
}

PLANEMU_EXPORT cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                               std::size_t *count) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!graph || !count || !from != !to)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> begins, ends;
  for (const std::shared_ptr<GraphNode> &node : graph->nodes)
    for (GraphNode *before : node->dependencies) {
      begins.push_back(before);
      ends.push_back(node.get());
    }
  std::size_t same = *count;
  list(begins, from, &same);
  return list(ends, to, count);
}

PLANEMU_EXPORT cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *out,
                                          std::size_t *count) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node = driver.nodes.find(handle);
  return node ? list(node->dependencies, out, count) : CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode *out,
                                            std::size_t *count) {
  PLANEMU_ENTER(false);
  std::shared_ptr<GraphNode> node = driver.nodes.find(handle);
  if (!node)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> dependents;
  for (const std::shared_ptr<GraphNode> &other : node->graph->nodes)
    if (std::count(other->dependencies.begin(), other->dependencies.end(), node.get()))
      dependents.push_back(other.get());
  return list(dependents, out, count);
}

// The variants with edge data: all edges are plain ones.

static CUresult clear(CUgraphEdgeData *edges, const std::size_t *count, CUresult result) {
  if (edges && count && result == CUDA_SUCCESS)
    std::memset(edges, 0, *count * sizeof(*edges));
  return result;
}

PLANEMU_EXPORT cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                  CUgraphEdgeData *edges, std::size_t *count) {
  if (edges && !from)
    return CUDA_ERROR_INVALID_VALUE;
  return clear(edges, count, cuGraphGetEdges(graph, from, to, count));
}
PLANEMU_EXPORT cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out,
                                             CUgraphEdgeData *edges, std::size_t *count) {
  if (edges && !out)
    return CUDA_ERROR_INVALID_VALUE;
  return clear(edges, count, cuGraphNodeGetDependencies(node, out, count));
}
PLANEMU_EXPORT cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out,
                                               CUgraphEdgeData *edges, std::size_t *count) {
  if (edges && !out)
    return CUDA_ERROR_INVALID_VALUE;
  return clear(edges, count, cuGraphNodeGetDependentNodes(node, out, count));
}

// --- Dependencies ---------------------------------------------------------------

/// Adds or removes all of the edges, or none of them if one is wrong.
static CUresult changeEdges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                            std::size_t count, bool add) {
  PLANEMU_ENTER(false);
  std::shared_ptr<Graph> graph = driver.graphs.find(handle);
  if (!graph || (count && (!from || !to)))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::pair<GraphNode *, std::vector<GraphNode *>>> old;
  auto undo = [&] {
    for (auto at = old.rbegin(); at != old.rend(); ++at)
      at->first->dependencies = at->second;
    return CUDA_ERROR_INVALID_VALUE;
  };
  for (std::size_t n = 0; n < count; ++n) {
    std::shared_ptr<GraphNode> before = driver.nodes.find(from[n]), node = driver.nodes.find(to[n]);
    if (!before || !node || before == node || before->graph != graph.get() ||
        node->graph != graph.get())
      return undo();
    std::vector<GraphNode *> &list = node->dependencies;
    bool there = std::count(list.begin(), list.end(), before.get());
    if (there == add)
      return undo();
    old.emplace_back(node.get(), list);
    if (add)
      list.push_back(before.get());
    else
      std::erase(list, before.get());
  }
  return CUDA_SUCCESS;
}

CUresult planemu::checkEdges(const CUgraphEdgeData *edges, std::size_t count) {
  static constexpr CUgraphEdgeData Plain{};
  for (std::size_t n = 0; edges && n < count; ++n)
    if (std::memcmp(edges + n, &Plain, sizeof(Plain)) != 0)
      return failWith(CUDA_ERROR_NOT_SUPPORTED, "an edge with ports or a type");
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      std::size_t count) {
  return changeEdges(graph, from, to, count, true);
}
PLANEMU_EXPORT cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                         const CUgraphNode *to, const CUgraphEdgeData *edges,
                                         std::size_t count) {
  PLANEMU_TRY(checkEdges(edges, count));
  return changeEdges(graph, from, to, count, true);
}
PLANEMU_EXPORT cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from,
                                         const CUgraphNode *to, std::size_t count) {
  return changeEdges(graph, from, to, count, false);
}
PLANEMU_EXPORT cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                            const CUgraphNode *to, const CUgraphEdgeData *edges,
                                            std::size_t count) {
  PLANEMU_TRY(checkEdges(edges, count));
  return changeEdges(graph, from, to, count, false);
}
