//===- Program.cu - a program of the CUDA runtime -------------------------===//
//
// What small programs do, each once, and what they are told if they do it wrong.
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <thread>
#include <vector>

__constant__ float weights[4];
__device__ int offset = 3;
#if !defined(__clang__) // has no managed variables
__managed__ int counter = 7;
#else
__device__ int counter = 7;
#endif

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i] + weights[i & 3];
}

template <class T> __global__ void scale(T *a, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    a[i] *= factor;
}

__global__ void reverse(int *y) {
  extern __shared__ int values[];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x] + offset;
}

__global__ void count() {
  counter += 5;
  printf("counter: %d\n", counter);
}

__global__ void wrong(int *p) { *p = 1; }

static int failures = 0;

static void expect(cudaError_t wanted, cudaError_t got, const char *what, int line) {
  if (wanted == got)
    return;
  ++failures;
  std::printf("line %d: %s: %s, not %s\n", line, what, cudaGetErrorName(got),
              cudaGetErrorName(wanted));
}

#define OK(Call) expect(cudaSuccess, Call, #Call, __LINE__)
#define FAILS(Error, Call) expect(Error, Call, #Call, __LINE__)
#define HOLDS(Condition)                                                                           \
  ((Condition) ? (void)0 : (void)(++failures, std::printf("line %d: %s\n", __LINE__, #Condition)))

constexpr int N = 1000;

static void device() {
  int devices = 0, value = 0;
  OK(cudaGetDeviceCount(&devices));
  HOLDS(devices == 1);
  OK(cudaSetDevice(0));
  FAILS(cudaErrorInvalidDevice, cudaSetDevice(1));
  FAILS(cudaErrorInvalidDevice, cudaPeekAtLastError());
  FAILS(cudaErrorInvalidDevice, cudaGetLastError());
  OK(cudaGetLastError());
  cudaDeviceProp all;
  OK(cudaGetDeviceProperties(&all, 0));
  std::printf("device: %s, %d.%d\n", all.name, all.major, all.minor);
  HOLDS(all.warpSize == 32 && all.maxThreadsPerBlock == 1024 && all.managedMemory == 1);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  HOLDS(value == static_cast<int>(all.sharedMemPerBlockOptin));
}

static void copies(float *a, float *b, float *c) {
  std::vector<float> ones(N, 1), twos(N, 2), sums(N);
  float some[4] = {1, 2, 3, 4}, back[2];
  OK(cudaMemcpyToSymbol(weights, some, sizeof(some)));
  OK(cudaMemcpyFromSymbol(back, weights, sizeof(back), 8));
  HOLDS(back[0] == 3 && back[1] == 4);
  FAILS(cudaErrorInvalidValue, cudaMemcpyToSymbol(weights, some, sizeof(some), 4));
  FAILS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(failures, some, 4));
  OK(cudaMemcpy(a, ones.data(), 4 * N, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(b, twos.data(), 4 * N, cudaMemcpyDefault));
  FAILS(cudaErrorInvalidValue, cudaMemcpy(a, ones.data(), 8 * N, cudaMemcpyHostToDevice));
  (void)cudaGetLastError();
  add<<<(N + 127) / 128, 128>>>(a, b, c, N);
  OK(cudaGetLastError());
  OK(cudaMemcpy(sums.data(), c, 4 * N, cudaMemcpyDeviceToHost));
  HOLDS(sums[0] == 4 && sums[N - 1] == 7);
  void *rows;
  std::size_t pitch;
  OK(cudaMallocPitch(&rows, &pitch, 100, 10));
  OK(cudaMemset2D(rows, pitch, 0, 100, 10));
  OK(cudaMemcpy2D(rows, pitch, ones.data(), 100, 100, 10, cudaMemcpyHostToDevice));
  FAILS(cudaErrorInvalidPitchValue,
        cudaMemcpy2D(rows, 64, ones.data(), 100, 100, 10, cudaMemcpyHostToDevice));
  OK(cudaFree(rows));
  cudaMemPool_t pool;
  unsigned long long kept = 1 << 20, found = 0;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &found));
  HOLDS(found == kept);
  OK(cudaMallocAsync(&rows, 100, nullptr));
  OK(cudaMemcpyPeer(rows, 0, a, 0, 100));
  OK(cudaFreeAsync(rows, nullptr));
  FAILS(cudaErrorMemoryAllocation, cudaMalloc(&rows, std::size_t(1) << 50));
  (void)cudaGetLastError();
}

static void streams(float *c) {
  std::vector<float> values(N);
  cudaStream_t stream;
  cudaEvent_t start, end;
  float milliseconds;
  OK(cudaStreamCreate(&stream));
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  OK(cudaEventRecord(start, stream));
  scale<float><<<8, 128, 0, stream>>>(c, 2.f, N);
  OK(cudaEventRecord(end, stream));
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  scale<float><<<8, 128, 0, stream>>>(c, 2.f, N);
  OK(cudaMemcpyAsync(values.data(), c, 4 * N, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  std::size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  HOLDS(nodes == 2);
  cudaGraphExecUpdateResultInfo update;
  OK(cudaGraphExecUpdate(exec, graph, &update));
  HOLDS(update.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  HOLDS(values[1] == 40);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

static void launches(float *c) {
  int *y, blocks, value = 9;
  OK(cudaMallocManaged(&y, 4096));
  reverse<<<1, 256, 70000>>>(y);
  FAILS(cudaErrorInvalidConfiguration, cudaGetLastError());
  OK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 80000));
  reverse<<<1, 256, 70000>>>(y);
  OK(cudaDeviceSynchronize());
  HOLDS(y[0] == 258);
  OK(cudaMemcpyToSymbol(offset, &value, 4));
  reverse<<<1, 256, 1024>>>(y);
  OK(cudaDeviceSynchronize());
  HOLDS(y[0] == 264);
  cudaPointerAttributes where;
  OK(cudaPointerGetAttributes(&where, y));
  HOLDS(where.type == cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&where, &value));
  HOLDS(where.type == cudaMemoryTypeUnregistered);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 128, 0));
  HOLDS(blocks > 0);
  int factor = 2, n = N;
  void *arguments[] = {&c, &factor, &n};
  FAILS(cudaErrorInvalidDeviceFunction,
        cudaLaunchKernel(reinterpret_cast<const void *>(&failures), 1, 1, arguments, 0, nullptr));
  (void)cudaGetLastError();
  std::thread([&] {
    scale<float><<<8, 128>>>(c, 2.f, N);
    OK(cudaDeviceSynchronize());
  }).join();
  count<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
#if !defined(__clang__)
  HOLDS(counter == 12);
#endif
  scale<float><<<1, 2048>>>(c, 2.f, N);
  FAILS(cudaErrorInvalidConfiguration, cudaGetLastError());
}

int main() {
  float *a, *b, *c;
  device();
  if (failures)
    return 1;
  OK(cudaMalloc(&a, 4 * N));
  OK(cudaMalloc(&b, 4 * N));
  OK(cudaMalloc(&c, 4 * N));
  copies(a, b, c);
  streams(c);
  launches(c);
  wrong<<<1, 1>>>(nullptr);
  FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  FAILS(cudaErrorIllegalAddress, cudaMalloc(&a, 4));
  OK(cudaDeviceReset());
  OK(cudaMalloc(&a, 4));
  std::printf("runtime: %s\n", failures ? "failed" : "ok");
  return failures != 0;
}
