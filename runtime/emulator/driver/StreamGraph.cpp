//===- StreamGraph.cpp - streams, events, graphs --------------------------===//
//
// A stream does its work at once unless it is being captured; then nodes go into a graph, and
// launching the graph's executable form runs them in order.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

using namespace planemu;

static Stream *findStream(Driver &driver, CUstream handle) {
  auto found = driver.streams.find(reinterpret_cast<Stream *>(handle));
  return found == driver.streams.end() ? nullptr : found->second.get();
}

CUresult Driver::enqueue(CUstream handle, Node node) {
  if (!handle)
    return execute(node);
  Stream *stream = findStream(*this, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture)
    return execute(node);
  if (stream->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  stream->capture->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

CUresult Driver::checkNoCapture() {
  CUresult result = CUDA_SUCCESS;
  for (auto &[handle, stream] : streams) {
    if (!stream->capture)
      continue;
    bool forbids = stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                   (stream->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                    stream->thread == std::this_thread::get_id());
    if (forbids) {
      stream->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

PLANEMU_EXPORT cuStreamCreate(CUstream *handle, unsigned flags) {
  PLANEMU_ENTER(true);
  if (!handle || flags > CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_unique<Stream>();
  *handle = reinterpret_cast<CUstream>(stream.get());
  driver.streams[stream.get()] = std::move(stream);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamDestroy_v2(CUstream handle) {
  PLANEMU_ENTER(true);
  return driver.streams.erase(reinterpret_cast<Stream *>(handle)) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_HANDLE;
}

PLANEMU_EXPORT cuStreamSynchronize(CUstream handle) {
  PLANEMU_ENTER(true);
  if (!handle)
    return CUDA_SUCCESS;
  Stream *stream = findStream(driver, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    stream->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  PLANEMU_ENTER(true);
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  if (!handle)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Stream *stream = findStream(driver, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = std::make_unique<Graph>();
  stream->invalidated = false;
  stream->mode = mode;
  stream->thread = std::this_thread::get_id();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  PLANEMU_ENTER(true);
  if (!graph)
    return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  Stream *stream = findStream(driver, handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      stream->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  std::unique_ptr<Graph> captured = std::move(stream->capture);
  if (stream->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = reinterpret_cast<CUgraph>(captured.get());
  driver.graphs[captured.get()] = std::move(captured);
  return CUDA_SUCCESS;
}

// --- Graphs -----------------------------------------------------------------

PLANEMU_EXPORT cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph handle,
                                           unsigned long long flags) {
  PLANEMU_ENTER(true);
  if (!exec || flags)
    return CUDA_ERROR_INVALID_VALUE;
  auto found = driver.graphs.find(reinterpret_cast<Graph *>(handle));
  if (found == driver.graphs.end())
    return CUDA_ERROR_INVALID_VALUE;
  auto copy = std::make_unique<Graph>(*found->second);
  *exec = reinterpret_cast<CUgraphExec>(copy.get());
  driver.execs[copy.get()] = std::move(copy);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  PLANEMU_ENTER(true);
  auto found = driver.execs.find(reinterpret_cast<Graph *>(exec));
  if (found == driver.execs.end())
    return CUDA_ERROR_INVALID_VALUE;
  Stream *stream = handle ? findStream(driver, handle) : nullptr;
  if (handle && !stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream && stream->capture) {
    stream->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  for (const Node &node : found->second->nodes) {
    CUresult result = driver.execute(node);
    if (result != CUDA_SUCCESS)
      return result;
    if (driver.sticky != CUDA_SUCCESS)
      break;
  }
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuGraphExecDestroy(CUgraphExec exec) {
  PLANEMU_ENTER(true);
  return driver.execs.erase(reinterpret_cast<Graph *>(exec)) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

PLANEMU_EXPORT cuGraphDestroy(CUgraph graph) {
  PLANEMU_ENTER(true);
  return driver.graphs.erase(reinterpret_cast<Graph *>(graph)) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_VALUE;
}

// --- Events -----------------------------------------------------------------

static Event *findEvent(Driver &driver, CUevent handle) {
  auto found = driver.events.find(reinterpret_cast<Event *>(handle));
  return found == driver.events.end() ? nullptr : found->second.get();
}

PLANEMU_EXPORT cuEventCreate(CUevent *handle, unsigned flags) {
  PLANEMU_ENTER(true);
  if (!handle || (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)))
    return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  *handle = reinterpret_cast<CUevent>(event.get());
  driver.events[event.get()] = std::move(event);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuEventRecord(CUevent handle, CUstream streamHandle) {
  PLANEMU_ENTER(true);
  Event *event = findEvent(driver, handle);
  Stream *stream = streamHandle ? findStream(driver, streamHandle) : nullptr;
  if (!event || (streamHandle && !stream))
    return CUDA_ERROR_INVALID_HANDLE;
  event->captured = stream && stream->capture;
  event->recorded = !event->captured;
  event->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuEventQuery(CUevent handle) {
  PLANEMU_ENTER(true);
  Event *event = findEvent(driver, handle);
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  return event->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

PLANEMU_EXPORT cuEventSynchronize(CUevent handle) { return cuEventQuery(handle); }

PLANEMU_EXPORT cuEventElapsedTime_v2(float *milliseconds, CUevent startHandle, CUevent endHandle) {
  PLANEMU_ENTER(true);
  Event *start = findEvent(driver, startHandle), *end = findEvent(driver, endHandle);
  if (!milliseconds)
    return CUDA_ERROR_INVALID_VALUE;
  if (!start || !end || !start->timed || !end->timed || !start->recorded || !end->recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuEventDestroy_v2(CUevent handle) {
  PLANEMU_ENTER(true);
  return driver.events.erase(reinterpret_cast<Event *>(handle)) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_HANDLE;
}
