//===- Capture.cpp - streams that record instead of working ---------------===//
//
// A capture fills one graph. The stream it began in is its origin; another stream joins it by
// waiting for an event recorded in it, and has to be joined back before the origin may end it. Each
// stream of a capture keeps the nodes that its next node will depend on.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>
#include <set>

using namespace planemu;

static thread_local CUstreamCaptureMode threadMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult Driver::checkNoCapture() {
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture> &capture : captures) {
    bool own = capture->thread == std::this_thread::get_id();
    bool forbids = threadMode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                   (own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                        : threadMode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                              capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (forbids) {
      capture->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

CUresult Driver::checkLegacy(const Stream &stream) {
  if (!stream.legacy)
    return CUDA_SUCCESS;
  auto captured = [&](const Stream &other) {
    if (other.context != stream.context || !other.capture || (other.flags & CU_STREAM_NON_BLOCKING))
      return false;
    other.capture->invalidated = true;
    return true;
  };
  bool any = false;
  for (auto &[handle, other] : streams)
    any |= captured(*other);
  for (auto &[thread, other] : stream.context->perThread)
    any |= captured(*other);
  return any ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult Driver::capture(Stream &stream, Work work) {
  if (stream.capture->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::shared_ptr<GraphNode> node =
      addNode(*stream.capture->graph, std::move(work), stream.captureEnds);
  node->context = stream.context;
  stream.captureEnds = {node.get()};
  return CUDA_SUCCESS;
}

/// Calls `visit` for every stream that takes part.
template <class Visit> static void forStreams(Driver &driver, const Capture &capture, Visit visit) {
  for (auto &[handle, stream] : driver.streams)
    if (stream->capture.get() == &capture)
      visit(*stream);
  for (auto &[handle, context] : driver.contexts)
    for (auto &[thread, stream] : context->perThread)
      if (stream->capture.get() == &capture)
        visit(*stream);
}

void Driver::endCapture(const std::shared_ptr<Capture> &given) {
  std::shared_ptr<Capture> capture = given; // the streams let go of it
  capture->ended = true;
  forStreams(*this, *capture, [](Stream &stream) {
    stream.capture.reset();
    stream.captureEnds.clear();
  });
  std::erase(captures, capture);
}

/// `graph`: what to capture into; null makes a new one.
static CUresult begin(CUstream handle, CUstreamCaptureMode mode, const CUgraph *into,
                      const CUgraphNode *dependencies, std::size_t count) {
  PLANEMU_ENTER_CONTEXT;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->legacy)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->graph = into ? driver.graphs.find(*into) : std::make_shared<Graph>();
  if (!capture->graph)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> ends;
  PLANEMU_TRY(findNodes(driver, *capture->graph, dependencies, count, ends));
  capture->ownsGraph = !into;
  if (!into)
    driver.graphs.add(capture->graph);
  capture->id = driver.nextId();
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  stream->capture = capture;
  stream->captureEnds = std::move(ends);
  driver.captures.push_back(std::move(capture));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return begin(handle, mode, nullptr, nullptr, 0);
}
PLANEMU_EXPORT cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                           const CUgraphNode *dependencies,
                                           const CUgraphEdgeData *edges, std::size_t count,
                                           CUstreamCaptureMode mode) {
  PLANEMU_TRY(checkEdges(edges, count));
  return begin(handle, mode, &graph, dependencies, count);
}
PLANEMU_EXPORT cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

PLANEMU_EXPORT cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  PLANEMU_ENTER(false);
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, threadMode);
  return CUDA_SUCCESS;
}

/// True if every node that a forked stream ended in is one that `ends` come after.
static bool joined(Driver &driver, const Capture &capture, const std::vector<GraphNode *> &ends) {
  std::set<const GraphNode *> reached(ends.begin(), ends.end());
  std::vector<const GraphNode *> todo(ends.begin(), ends.end());
  while (!todo.empty()) {
    const GraphNode *node = todo.back();
    todo.pop_back();
    for (const GraphNode *before : node->dependencies)
      if (reached.insert(before).second)
        todo.push_back(before);
  }
  bool all = true;
  forStreams(driver, capture, [&](Stream &stream) {
    if (&stream != capture.origin)
      for (const GraphNode *end : stream.captureEnds)
        all &= reached.count(end) != 0;
  });
  return all;
}

PLANEMU_EXPORT cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  PLANEMU_ENTER_CONTEXT;
  if (!graph)
    return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  std::shared_ptr<Capture> capture = stream->capture;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = CUDA_SUCCESS;
  if (capture->invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (capture->origin != stream.get()) {
    // The capture goes on, spoiled, until its own stream ends it.
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  } else if (!joined(driver, *capture, stream->captureEnds)) {
    result = failWith(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                      "the capture ends while a stream that joined it has work that the origin "
                      "stream does not wait for");
  }
  driver.endCapture(capture);
  if (result != CUDA_SUCCESS) {
    if (capture->ownsGraph)
      forgetGraph(driver, *capture->graph);
    return result;
  }
  *graph = reinterpret_cast<CUgraph>(capture->graph->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  PLANEMU_ENTER_CONTEXT;
  if (!status)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  PLANEMU_TRY(driver.checkLegacy(*stream));
  *status = !stream->capture               ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status,
                                         std::uint64_t *id, CUgraph *graph,
                                         const CUgraphNode **dependencies, std::size_t *count) {
  PLANEMU_TRY(cuStreamIsCapturing(handle, status));
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream || !stream->capture || stream->capture->invalidated)
    return CUDA_SUCCESS;
  if (id)
    *id = stream->capture->id;
  if (graph)
    *graph = reinterpret_cast<CUgraph>(stream->capture->graph->handle);
  // The list is valid until the next call on the stream.
  stream->reportedEnds.clear();
  for (const GraphNode *end : stream->captureEnds)
    stream->reportedEnds.push_back(reinterpret_cast<CUgraphNode>(end->handle));
  if (dependencies)
    *dependencies = stream->reportedEnds.data();
  if (count)
    *count = stream->reportedEnds.size();
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                         std::uint64_t *id, CUgraph *graph,
                                         const CUgraphNode **dependencies,
                                         const CUgraphEdgeData **edges, std::size_t *count) {
  if (edges)
    *edges = nullptr; // all edges are plain ones
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}
PLANEMU_EXPORT cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                      std::uint64_t *id) {
  return cuStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}

PLANEMU_EXPORT cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *dependencies,
                                                 std::size_t count, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES && flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> ends;
  if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES)
    ends = stream->captureEnds;
  PLANEMU_TRY(findNodes(driver, *stream->capture->graph, dependencies, count, ends));
  stream->captureEnds = std::move(ends);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
                                                    const CUgraphEdgeData *edges, std::size_t count,
                                                    unsigned flags) {
  PLANEMU_TRY(checkEdges(edges, count));
  return cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

/// Waiting for an event of a capture joins it; for another one, there is nothing to join.
static CUresult waitInCapture(Stream &stream, const std::shared_ptr<Event> &event) {
  if (!event->capture) {
    stream.capture->invalidated = true;
    return failWith(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                    "a captured stream waits for an event that was recorded outside the capture");
  }
  if (stream.capture && stream.capture != event->capture) {
    stream.capture->invalidated = event->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (event->capture->ended)
    return failWith(CUDA_ERROR_CAPTURED_EVENT, "the capture the event was recorded in has ended");
  if (event->capture->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.legacy) {
    event->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (!stream.capture) {
    stream.capture = event->capture;
    stream.captureEnds.clear();
  }
  for (GraphNode *end : event->captureEnds)
    if (std::find(stream.captureEnds.begin(), stream.captureEnds.end(), end) ==
        stream.captureEnds.end())
      stream.captureEnds.push_back(end);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Stream> stream = driver.findStream(handle);
  std::shared_ptr<Event> event = driver.events.find(eventHandle);
  if (!stream || !event)
    return CUDA_ERROR_INVALID_HANDLE;
  if (flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL))
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_WAIT_EXTERNAL)
    return stream->capture ? driver.enqueue(*stream, WaitWork{event}) : CUDA_ERROR_INVALID_VALUE;
  if (stream->capture || event->capture)
    return waitInCapture(*stream, event);
  PLANEMU_TRY(driver.checkLegacy(*stream));
  driver.follow(*stream, event->task);
  return CUDA_SUCCESS;
}
