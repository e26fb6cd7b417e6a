//===- GraphWork.h - work of graph nodes from their parameters ------------===//
//
// Shared by graphs and executable graphs. Each checks its parameters and sets `work`.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_DRIVER_GRAPHWORK_H
#define PLANEMU_DRIVER_GRAPHWORK_H

#include "runtime/emulator/driver/Driver.h"

namespace planemu {

/// planemu_set_interrupt of the calling thread says so.
bool isInterrupted();

/// Parameters of before CUDA 12 as those of now.
CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 &parameters);

CUresult kernelWork(Driver &driver, const CUDA_KERNEL_NODE_PARAMS *parameters, Work &work);
CUresult copyWork(Driver &driver, const CUDA_MEMCPY3D *parameters, CUcontext context, Work &work);
CUresult fillWork(const CUDA_MEMSET_NODE_PARAMS *parameters, Work &work);
CUresult hostWork(const CUDA_HOST_NODE_PARAMS *parameters, Work &work);
/// The child is a copy; `registered`: its nodes get handles.
CUresult childWork(Driver &driver, CUgraph child, bool registered, Work &work);
template <class EventWork> CUresult eventWork(Driver &driver, CUevent event, Work &work);
CUresult allocWork(Driver &driver, CUDA_MEM_ALLOC_NODE_PARAMS *parameters, Work &work);
CUresult freeWork(Driver &driver, CUdeviceptr address, Work &work);
/// Any of them, by the type.
CUresult anyWork(Driver &driver, CUgraphNodeParams *parameters, bool registered, Work &work);

} // namespace planemu

#endif // PLANEMU_DRIVER_GRAPHWORK_H
