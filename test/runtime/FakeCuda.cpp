//===- FakeCuda.cpp - a driver library that fails on demand -----------------===//
//
// Stands in for libcuda.so.1 in the tests of planrt: device memory is host memory, the kernels are
// those of test/Inputs/runtime/sample.ptx written as functions. What a real driver does only when
// something is broken, this one does when told to (the fakecuda_* functions), so that every such
// path of planrt is tested without breaking anything. What kernels compute is tested on the
// emulator.
//
//===----------------------------------------------------------------------===//
#include "runtime/CudaAbi.h"

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace cudaabi;

namespace cudaabi {
struct ModOpaque {
  std::string image;
};
struct FuncOpaque {
  std::string name;
};
struct StreamOpaque {
  bool capturing = false;
  std::vector<std::function<CUresult()>> captured;
  CUresult pending = CUDA_SUCCESS;
};
struct GraphOpaque {
  std::vector<std::function<CUresult()>> nodes;
};
struct GraphExecOpaque {
  std::vector<std::function<CUresult()>> nodes;
};
struct EventOpaque {
  float milliseconds = 0;
};
} // namespace cudaabi

namespace {
struct Settings {
  int sm = 80, driver = 13000;
  std::size_t freeBytes = 1 << 30;
  float clock = 0;     // a millisecond a launch
  int failLaunch = -1; // this many launches from now
  CUresult launchResult = CUDA_SUCCESS;
  int failAlloc = -1; // this many allocations from now
  bool noBinary = false;
  std::string refusedImage; // images that contain this text are invalid
  int launches = 0, graphLaunches = 0, liveAllocations = 0;
  std::string lastImage;
} settings;
CUresult lost = CUDA_SUCCESS;
} // namespace

extern "C" {
void fakecuda_reset() {
  settings = Settings();
  lost = CUDA_SUCCESS;
}
void fakecuda_set_sm(int sm) { settings.sm = sm; }
void fakecuda_set_driver(int version) { settings.driver = version; }
void fakecuda_set_free(int bytes) { settings.freeBytes = std::size_t(bytes); }
void fakecuda_fail_launch(int after, int result) {
  settings.failLaunch = after;
  settings.launchResult = CUresult(result);
}
void fakecuda_fail_alloc(int after) { settings.failAlloc = after; }
void fakecuda_no_binary(int yes) { settings.noBinary = yes; }
void fakecuda_refuse_image(const char *text) { settings.refusedImage = text; }
int fakecuda_graph_launches() { return settings.graphLaunches; }
int fakecuda_live_allocations() { return settings.liveAllocations; }
const char *fakecuda_last_image() { return settings.lastImage.c_str(); }
}

//===----------------------------------------------------------------------===//
// The kernels
//===----------------------------------------------------------------------===//

static float widen(uint16_t half) {
  uint32_t word = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
static uint16_t narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
template <class T> static T *at(const std::vector<CUdeviceptr> &args, size_t i) {
  return reinterpret_cast<T *>(args[i]);
}

static void sumState(unsigned rows, const std::vector<CUdeviceptr> &args) {
  auto *h = at<uint16_t>(args, 0), *w = at<uint16_t>(args, 3);
  auto *in = at<int32_t>(args, 1), *out = at<int32_t>(args, 2);
  auto *state = at<float>(args, 4), *y = at<float>(args, 5);
  for (unsigned r = 0; r < rows; ++r)
    for (int i = 0; i < 64; ++i) {
      float before = in[r] < 0 ? 0 : state[in[r] * 64 + i];
      float after = __builtin_fmaf(widen(h[r * 64 + unsigned(i)]), widen(w[i]), before);
      if (out[r] >= 0)
        state[out[r] * 64 + i] = after;
      y[r * 64 + unsigned(i)] = after;
    }
}

static void cacheSum(unsigned rows, const std::vector<CUdeviceptr> &args) {
  auto *y = at<float>(args, 0);
  auto *positions = at<int32_t>(args, 1), *tables = at<int32_t>(args, 3);
  auto *mapping = at<int64_t>(args, 2);
  auto *lens = at<int32_t>(args, 4);
  auto *cache = at<uint16_t>(args, 5), *logits = at<uint16_t>(args, 6);
  auto *counters = at<uint32_t>(args, 8);
  for (unsigned r = 0; r < rows; ++r) {
    if (mapping[r] >= 0)
      cache[mapping[r]] = narrow(y[r * 64] + float(positions[r]));
    float sum = 0;
    for (int j = 0; j < lens[r]; ++j)
      sum += widen(cache[tables[r * 4 + unsigned(j) / 16] * 16 + j % 16]);
    sum += float(counters[r]);
    for (unsigned v = 0; v < 64; ++v)
      logits[r * 64 + v] = narrow(y[r * 64 + v] + sum);
  }
}

/// Leaves the row's counters dirty, as a kernel does that dies half way.
static CUresult launch(const std::string &name, unsigned rows,
                       const std::vector<CUdeviceptr> &args) {
  if (lost != CUDA_SUCCESS)
    return lost;
  ++settings.launches;
  settings.clock += 1;
  if (settings.failLaunch >= 0 && settings.failLaunch-- == 0) {
    if (name == "cache_sum")
      *at<uint32_t>(args, 8) = 1000;
    if (settings.launchResult >= 700)
      lost = settings.launchResult;
    return settings.launchResult;
  }
  if (name == "sum_state")
    sumState(rows, args);
  else
    cacheSum(rows, args);
  return CUDA_SUCCESS;
}

static CUresult enqueue(CUstream stream, std::function<CUresult()> work) {
  if (stream->capturing)
    stream->captured.push_back(std::move(work));
  else if (CUresult result = work(); result != CUDA_SUCCESS && stream->pending == CUDA_SUCCESS)
    stream->pending = result; // reported by the next synchronisation, as on a GPU
  return CUDA_SUCCESS;
}

static bool allocationFails() { return settings.failAlloc >= 0 && settings.failAlloc-- == 0; }

//===----------------------------------------------------------------------===//
// The driver API
//===----------------------------------------------------------------------===//

#define API extern "C" __attribute__((visibility("default"))) CUresult

API cuInit(unsigned) { return CUDA_SUCCESS; }
API cuDriverGetVersion(int *version) { return *version = settings.driver, CUDA_SUCCESS; }
API cuGetErrorName(CUresult error, const char **text) {
  *text = nullptr;
#define CASE(Name, Value)                                                                          \
  if (error == Name)                                                                               \
    *text = #Name;
  PLAN_CUDA_RESULTS(CASE)
  return CUDA_SUCCESS;
}
API cuGetErrorString(CUresult, const char **text) { return *text = "on demand", CUDA_SUCCESS; }
API cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
API cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
API cuDeviceGetName(char *name, int length, CUdevice) {
  return std::strncpy(name, "Fake", size_t(length)), CUDA_SUCCESS;
}
API cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? settings.sm / 10
                                                                     : settings.sm % 10;
  return CUDA_SUCCESS;
}
API cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice) { return *bytes = 1 << 30, CUDA_SUCCESS; }
API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  return *context = reinterpret_cast<CUcontext>(&settings), CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
static thread_local CUcontext current = nullptr;
API cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }
API cuCtxGetCurrent(CUcontext *context) { return *context = current, CUDA_SUCCESS; }
API cuCtxSynchronize() { return lost; }

API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *,
                       void **values) {
  std::string text(static_cast<const char *>(image));
  if (text.starts_with("CUBIN") && settings.noBinary)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!settings.refusedImage.empty() && text.find(settings.refusedImage) != std::string::npos) {
    std::strcpy(static_cast<char *>(values[0]), "line 1: refused on demand");
    return CUDA_ERROR_INVALID_PTX;
  }
  settings.lastImage = text;
  return *module = new ModOpaque{text}, CUDA_SUCCESS;
}
API cuModuleUnload(CUmodule module) { return delete module, CUDA_SUCCESS; }
API cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  static std::map<std::string, FuncOpaque> functions; // live as long as the process
  std::string text = name;
  if (text != "sum_state" && text != "cache_sum")
    return CUDA_ERROR_NOT_FOUND;
  return *function = &functions.try_emplace(text, FuncOpaque{text}).first->second, CUDA_SUCCESS;
}
API cuModuleGetGlobal_v2(CUdeviceptr *, std::size_t *, CUmodule, const char *) {
  return CUDA_ERROR_NOT_FOUND;
}
API cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction) {
  return *value = 0, CUDA_SUCCESS;
}
API cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }

API cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  return *free = settings.freeBytes, *total = 1 << 30, CUDA_SUCCESS;
}
API cuMemAlloc_v2(CUdeviceptr *address, std::size_t bytes) {
  if (allocationFails())
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = std::malloc(bytes);
  if (!memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(memory, 0xff, bytes); // NaN and -1: whoever relies on zeros shows
  ++settings.liveAllocations;
  return *address = CUdeviceptr(memory), CUDA_SUCCESS;
}
API cuMemFree_v2(CUdeviceptr address) {
  --settings.liveAllocations;
  return std::free(reinterpret_cast<void *>(address)), CUDA_SUCCESS;
}
API cuMemHostAlloc(void **pointer, std::size_t bytes, unsigned) {
  if (allocationFails())
    return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = std::malloc(bytes);
  if (!*pointer)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return ++settings.liveAllocations, CUDA_SUCCESS;
}
API cuMemFreeHost(void *pointer) {
  --settings.liveAllocations;
  return std::free(pointer), CUDA_SUCCESS;
}
static CUresult copy(void *to, const void *from, std::size_t bytes) {
  return lost == CUDA_SUCCESS ? (std::memcpy(to, from, bytes), CUDA_SUCCESS) : lost;
}
#define P(Address) reinterpret_cast<void *>(Address)
API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, std::size_t n) {
  return copy(P(to), from, n);
}
API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, std::size_t n) { return copy(to, P(from), n); }
API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t n) {
  return copy(P(to), P(from), n);
}
API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, std::size_t n, CUstream stream) {
  return enqueue(stream, [=] { return copy(P(to), from, n); });
}
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t n, CUstream stream) {
  return enqueue(stream, [=] { return copy(to, P(from), n); });
}
API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream stream) {
  return enqueue(stream, [=] { return copy(P(to), P(from), n); });
}
API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return std::memset(P(to), value, count), CUDA_SUCCESS;
}
API cuMemsetD32_v2(CUdeviceptr, unsigned, std::size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
API cuMemsetD8Async(CUdeviceptr, unsigned char, std::size_t, CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
API cuMemsetD32Async(CUdeviceptr, unsigned, std::size_t, CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

API cuMemAddressReserve(CUdeviceptr *address, std::size_t bytes, std::size_t, CUdeviceptr,
                        unsigned long long) {
  ++settings.liveAllocations;
  *address = CUdeviceptr(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return CUDA_SUCCESS;
}
API cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  --settings.liveAllocations;
  return munmap(P(address), bytes), CUDA_SUCCESS;
}
API cuMemCreate(CUmemGenericAllocationHandle *handle, std::size_t bytes,
                const CUmemAllocationProp *, unsigned long long) {
  if (allocationFails())
    return CUDA_ERROR_OUT_OF_MEMORY;
  int file = memfd_create("fakecuda", 0);
  ++settings.liveAllocations;
  *handle = CUmemGenericAllocationHandle(file);
  return ftruncate(file, off_t(bytes)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
API cuMemRelease(CUmemGenericAllocationHandle handle) {
  --settings.liveAllocations;
  return close(int(handle)), CUDA_SUCCESS;
}
API cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
             CUmemGenericAllocationHandle handle, unsigned long long) {
  void *mapped =
      mmap(P(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, int(handle), off_t(offset));
  return mapped == MAP_FAILED ? CUDA_ERROR_MAP_FAILED : CUDA_SUCCESS;
}
API cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  mmap(P(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
API cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc *, std::size_t) {
  return mprotect(P(address), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}
API cuMemGetAllocationGranularity(std::size_t *granularity, const CUmemAllocationProp *,
                                  CUmemAllocationGranularity_flags) {
  return *granularity = 65536, CUDA_SUCCESS;
}

API cuStreamCreate(CUstream *stream, unsigned) { return *stream = new StreamOpaque, CUDA_SUCCESS; }
API cuStreamDestroy_v2(CUstream stream) { return delete stream, CUDA_SUCCESS; }
API cuStreamSynchronize(CUstream stream) {
  CUresult result = stream->pending;
  stream->pending = CUDA_SUCCESS;
  return lost != CUDA_SUCCESS ? lost : result;
}
API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  stream->capturing = true;
  return CUDA_SUCCESS;
}
API cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  stream->capturing = false;
  *graph = new GraphOpaque{std::move(stream->captured)};
  stream->captured.clear();
  return CUDA_SUCCESS;
}
API cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  return *exec = new GraphExecOpaque{graph->nodes}, CUDA_SUCCESS;
}
API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  ++settings.graphLaunches;
  for (auto &node : exec->nodes)
    if (CUresult result = node(); result != CUDA_SUCCESS && stream->pending == CUDA_SUCCESS)
      stream->pending = result;
  return CUDA_SUCCESS;
}
API cuGraphExecDestroy(CUgraphExec exec) { return delete exec, CUDA_SUCCESS; }
API cuGraphDestroy(CUgraph graph) { return delete graph, CUDA_SUCCESS; }
API cuEventCreate(CUevent *event, unsigned) { return *event = new EventOpaque, CUDA_SUCCESS; }
API cuEventRecord(CUevent event, CUstream) {
  return event->milliseconds = settings.clock, CUDA_SUCCESS;
}
API cuEventQuery(CUevent) { return CUDA_ERROR_NOT_SUPPORTED; }
API cuEventSynchronize(CUevent) { return CUDA_ERROR_NOT_SUPPORTED; }
API cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  return *milliseconds = end->milliseconds - start->milliseconds, CUDA_SUCCESS;
}
API cuEventDestroy_v2(CUevent event) { return delete event, CUDA_SUCCESS; }

API cuLaunchKernel(CUfunction function, unsigned gridX, unsigned, unsigned, unsigned, unsigned,
                   unsigned, unsigned, CUstream stream, void **parameters, void **) {
  // Arguments are copied when the kernel is enqueued, or captured.
  std::vector<CUdeviceptr> args;
  for (size_t i = 0; i < (function->name == "sum_state" ? 6u : 9u); ++i)
    args.push_back(*static_cast<CUdeviceptr *>(parameters[i]));
  return enqueue(stream, [=] { return launch(function->name, gridX, args); });
}
