//===- StreamEvent.cpp - streams and events -------------------------------===//
//
// A stream remembers the last thing in it that is not done; an event remembers what it was recorded
// after. Mostly everything is done, see Queue.cpp.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <algorithm>

using namespace planemu;

static thread_local unsigned perThreadDepth = 0;

PerThreadStream::PerThreadStream() { ++perThreadDepth; }
PerThreadStream::~PerThreadStream() { --perThreadDepth; }

std::shared_ptr<Stream> Driver::findStream(CUstream handle) {
  std::uintptr_t number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 0)
    number = perThreadDepth ? StreamPerThread : StreamLegacy;
  if (number > StreamPerThread)
    return streams.find(handle);
  Context *context = current();
  if (!context || !context->alive)
    return nullptr;
  if (number == StreamLegacy)
    return context->legacy;
  std::shared_ptr<Stream> &own = context->perThread[std::this_thread::get_id()];
  if (!own) {
    own = std::make_shared<Stream>();
    own->shown = StreamPerThread;
    own->context = context->legacy->context;
    own->id = nextId();
  }
  return own;
}

/// For functions on one stream.
#define ENTER_STREAM(Handle)                                                                       \
  PLANEMU_ENTER_CONTEXT;                                                                           \
  std::shared_ptr<Stream> stream = driver.findStream(Handle);                                      \
  if (!stream)                                                                                     \
  return CUDA_ERROR_INVALID_HANDLE

// --- Streams ------------------------------------------------------------------

PLANEMU_EXPORT cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority) {
  PLANEMU_ENTER_CONTEXT;
  if (!handle || flags > CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_shared<Stream>();
  stream->context = driver.shared(&context);
  stream->id = driver.nextId();
  stream->flags = flags;
  stream->priority = std::clamp(priority, GreatestPriority, LeastPriority);
  *handle = driver.streams.add(stream);
  stream->shown = stream->handle;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamCreate(CUstream *handle, unsigned flags) {
  return cuStreamCreateWithPriority(handle, flags, 0);
}

PLANEMU_EXPORT cuStreamDestroy_v2(CUstream handle) {
  PLANEMU_ENTER(true);
  std::shared_ptr<Stream> stream = driver.streams.remove(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture)
    driver.endCapture(stream->capture);
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuStreamDestroy(CUstream handle) { return cuStreamDestroy_v2(handle); }

/// A captured stream has no state to ask for; asking spoils the capture.
static CUresult checkNotCaptured(Driver &driver, Stream &stream) {
  if (stream.capture) {
    stream.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return driver.checkLegacy(stream);
}

PLANEMU_EXPORT cuStreamSynchronize(CUstream handle) {
  ENTER_STREAM(handle);
  PLANEMU_TRY(checkNotCaptured(driver, *stream));
  return driver.wait(lock, *stream->context, driver.predecessors(*stream));
}

PLANEMU_EXPORT cuStreamQuery(CUstream handle) {
  ENTER_STREAM(handle);
  PLANEMU_TRY(checkNotCaptured(driver, *stream));
  return driver.predecessors(*stream).empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

PLANEMU_EXPORT cuStreamGetPriority(CUstream handle, int *priority) {
  ENTER_STREAM(handle);
  if (!priority)
    return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamGetFlags(CUstream handle, unsigned *flags) {
  ENTER_STREAM(handle);
  if (!flags)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamGetId(CUstream handle, unsigned long long *id) {
  ENTER_STREAM(handle);
  if (!id)
    return CUDA_ERROR_INVALID_VALUE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamGetDevice(CUstream handle, CUdevice *device) {
  ENTER_STREAM(handle);
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuStreamGetCtx(CUstream handle, CUcontext *of) {
  ENTER_STREAM(handle);
  if (!of)
    return CUDA_ERROR_INVALID_VALUE;
  *of = reinterpret_cast<CUcontext>(stream->context->handle);
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuLaunchHostFunc(CUstream handle, CUhostFn function, void *userData) {
  ENTER_STREAM(handle);
  if (!function)
    return CUDA_ERROR_INVALID_VALUE;
  return driver.enqueue(*stream, HostWork{function, nullptr, nullptr, userData});
}

PLANEMU_EXPORT cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *userData,
                                   unsigned flags) {
  ENTER_STREAM(handle);
  if (!callback || flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture) { // callbacks cannot be nodes, host functions can
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return driver.enqueue(*stream, HostWork{nullptr, callback, handle, userData});
}

// --- Events -------------------------------------------------------------------

PLANEMU_EXPORT cuEventCreate(CUevent *handle, unsigned flags) {
  PLANEMU_ENTER_CONTEXT;
  constexpr unsigned Known =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!handle || (flags & ~Known))
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS)
    return flags & CU_EVENT_DISABLE_TIMING
               ? failWith(CUDA_ERROR_NOT_SUPPORTED, "events of several processes")
               : CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<Event>();
  event->context = &context;
  event->flags = flags;
  *handle = driver.events.add(std::move(event));
  return CUDA_SUCCESS;
}

PLANEMU_EXPORT cuEventDestroy_v2(CUevent handle) {
  PLANEMU_ENTER(true);
  return driver.events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
PLANEMU_EXPORT cuEventDestroy(CUevent handle) { return cuEventDestroy_v2(handle); }

PLANEMU_EXPORT cuEventRecordWithFlags(CUevent handle, CUstream streamHandle, unsigned flags) {
  ENTER_STREAM(streamHandle);
  std::shared_ptr<Event> event = driver.events.find(handle);
  if (!event || event->context != stream->context.get())
    return CUDA_ERROR_INVALID_HANDLE;
  if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL))
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture && !(flags & CU_EVENT_RECORD_EXTERNAL)) {
    if (stream->capture->invalidated)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->captureEnds = stream->captureEnds;
    event->task.reset();
    event->recorded = false;
    return CUDA_SUCCESS;
  }
  if (!stream->capture && (flags & CU_EVENT_RECORD_EXTERNAL))
    return CUDA_ERROR_INVALID_VALUE;
  if (!stream->capture) {
    event->capture.reset();
    event->recorded = true;
  }
  event->task.reset();
  PLANEMU_TRY(driver.enqueue(*stream, RecordWork{event}));
  if (!stream->capture && stream->last && !stream->last->done)
    event->task = stream->last; // the record itself, which waits
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuEventRecord(CUevent handle, CUstream stream) {
  return cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

PLANEMU_EXPORT cuEventQuery(CUevent handle) {
  PLANEMU_ENTER(true);
  std::shared_ptr<Event> event = driver.events.find(handle);
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) {
    event->capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return event->task && !event->task->done ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

PLANEMU_EXPORT cuEventSynchronize(CUevent handle) {
  PLANEMU_ENTER_CONTEXT;
  std::shared_ptr<Event> event = driver.events.find(handle);
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) {
    event->capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return driver.wait(lock, context, {event->task});
}

PLANEMU_EXPORT cuEventElapsedTime_v2(float *milliseconds, CUevent startHandle, CUevent endHandle) {
  PLANEMU_ENTER(true);
  if (!milliseconds)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Event> start = driver.events.find(startHandle);
  std::shared_ptr<Event> end = driver.events.find(endHandle);
  for (const std::shared_ptr<Event> &event : {start, end})
    if (!event || (event->flags & CU_EVENT_DISABLE_TIMING) || !event->recorded)
      return CUDA_ERROR_INVALID_HANDLE;
  for (const std::shared_ptr<Event> &event : {start, end})
    if (event->task && !event->task->done)
      return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}
PLANEMU_EXPORT cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
