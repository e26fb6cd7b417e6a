//===- Streams.cpp - streams, events and captured graphs ------------------===//
//
// Handles and flags are the driver's.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/cudart/Runtime.h"

using namespace planemu;
using namespace planemu::cudart;

PLANEMU_RUNTIME cudaStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  return onDevice([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}

PLANEMU_RUNTIME cudaStreamCreateWithFlags(CUstream *stream, unsigned flags) {
  return onDevice([&] { return cuStreamCreate(stream, flags); });
}

PLANEMU_RUNTIME cudaStreamCreate(CUstream *stream) { return cudaStreamCreateWithFlags(stream, 0); }

PLANEMU_RUNTIME cudaStreamDestroy(CUstream stream) {
  return onDevice([&] { return cuStreamDestroy_v2(stream); });
}

PLANEMU_RUNTIME cudaStreamSynchronize(CUstream stream) {
  return onDevice([&] { return cuStreamSynchronize(stream); });
}

PLANEMU_RUNTIME cudaStreamQuery(CUstream stream) {
  return onDevice([&] { return cuStreamQuery(stream); });
}

PLANEMU_RUNTIME cudaStreamGetPriority(CUstream stream, int *priority) {
  return onDevice([&] { return cuStreamGetPriority(stream, priority); });
}

PLANEMU_RUNTIME cudaStreamGetFlags(CUstream stream, unsigned *flags) {
  return onDevice([&] { return cuStreamGetFlags(stream, flags); });
}

PLANEMU_RUNTIME cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return onDevice([&] { return cuStreamWaitEvent(stream, event, flags); });
}

PLANEMU_RUNTIME cudaStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
                                      unsigned flags) {
  return onDevice([&] { return cuStreamAddCallback(stream, callback, data, flags); });
}

PLANEMU_RUNTIME cudaLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  return onDevice([&] { return cuLaunchHostFunc(stream, function, data); });
}

PLANEMU_RUNTIME cudaEventCreateWithFlags(CUevent *event, unsigned flags) {
  return onDevice([&] { return cuEventCreate(event, flags); });
}

PLANEMU_RUNTIME cudaEventCreate(CUevent *event) { return cudaEventCreateWithFlags(event, 0); }

PLANEMU_RUNTIME cudaEventDestroy(CUevent event) {
  return onDevice([&] { return cuEventDestroy_v2(event); });
}

PLANEMU_RUNTIME cudaEventRecord(CUevent event, CUstream stream) {
  return onDevice([&] { return cuEventRecord(event, stream); });
}

PLANEMU_RUNTIME cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return onDevice([&] { return cuEventRecordWithFlags(event, stream, flags); });
}

PLANEMU_RUNTIME cudaEventSynchronize(CUevent event) {
  return onDevice([&] { return cuEventSynchronize(event); });
}

PLANEMU_RUNTIME cudaEventQuery(CUevent event) {
  return onDevice([&] { return cuEventQuery(event); });
}

PLANEMU_RUNTIME cudaEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return onDevice([&] { return cuEventElapsedTime_v2(milliseconds, start, end); });
}

// --- Graphs -----------------------------------------------------------------

PLANEMU_RUNTIME cudaStreamBeginCapture(CUstream stream, int mode) {
  return onDevice([&] { return cuStreamBeginCapture_v2(stream, mode); });
}

PLANEMU_RUNTIME cudaStreamEndCapture(CUstream stream, CUgraph *graph) {
  return onDevice([&] { return cuStreamEndCapture(stream, graph); });
}

PLANEMU_RUNTIME cudaThreadExchangeStreamCaptureMode(int *mode) {
  return onDevice([&] { return cuThreadExchangeStreamCaptureMode(mode); });
}

PLANEMU_RUNTIME cudaStreamIsCapturing(CUstream stream, int *status) {
  return onDevice([&] { return cuStreamIsCapturing(stream, status); });
}

PLANEMU_RUNTIME cudaGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                              unsigned long long flags) {
  return onDevice([&] { return cuGraphInstantiateWithFlags(exec, graph, flags); });
}

PLANEMU_RUNTIME cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

PLANEMU_RUNTIME cudaGraphLaunch(CUgraphExec exec, CUstream stream) {
  return onDevice([&] { return cuGraphLaunch(exec, stream); });
}

PLANEMU_RUNTIME cudaGraphExecDestroy(CUgraphExec exec) {
  return onDevice([&] { return cuGraphExecDestroy(exec); });
}

PLANEMU_RUNTIME cudaGraphDestroy(CUgraph graph) {
  return onDevice([&] { return cuGraphDestroy(graph); });
}

PLANEMU_RUNTIME cudaGraphGetNodes(CUgraph graph, CUgraphNode *nodes, std::size_t *count) {
  return onDevice([&] { return cuGraphGetNodes(graph, nodes, count); });
}

PLANEMU_RUNTIME cudaGraphUpload(CUgraphExec exec, CUstream stream) {
  return onDevice([&] { return cuGraphUpload(exec, stream); });
}

/// The result has the driver's layout and numbers.
PLANEMU_RUNTIME cudaGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                                    CUgraphExecUpdateResultInfo *result) {
  return onDevice([&] { return cuGraphExecUpdate_v2(exec, graph, result); });
}
