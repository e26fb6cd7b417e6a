// Inclusive prefix sums: of a warp, of a block, of a grid in one pass (decoupled look-back).
#include <cuda_runtime.h>

template <class T> __device__ T warpScan(T value) {
  int lane = threadIdx.x & 31;
  for (int offset = 1; offset < 32; offset *= 2) {
    T other = __shfl_up_sync(~0u, value, offset);
    if (lane >= offset)
      value += other;
  }
  return value;
}

template <class T> __device__ T blockScan(T value, T *sums) {
  value = warpScan(value);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  if (lane == 31)
    sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    T sum = lane < blockDim.x / 32 ? sums[lane] : 0;
    sums[lane] = warpScan(sum);
  }
  __syncthreads();
  return warp > 0 ? value + sums[warp - 1] : value;
}

extern "C" __global__ void warp_scan(const int *x, int *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = warpScan(x[i]);
}

extern "C" __global__ void block_scan(const double *x, double *y) {
  __shared__ double sums[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = blockScan(x[i], sums);
}

// Exclusive, in shared memory, up and down a tree (Blelloch); 2 * blockDim.x values a block.
extern "C" __global__ void tree_scan(const unsigned *x, unsigned *y) {
  extern __shared__ unsigned tree[];
  int n = 2 * blockDim.x, base = blockIdx.x * n, t = threadIdx.x;
  tree[2 * t] = x[base + 2 * t];
  tree[2 * t + 1] = x[base + 2 * t + 1];
  int offset = 1;
  for (int d = n >> 1; d > 0; d >>= 1, offset *= 2) {
    __syncthreads();
    if (t < d)
      tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
  }
  if (t == 0)
    tree[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      unsigned left = tree[offset * (2 * t + 1) - 1];
      tree[offset * (2 * t + 1) - 1] = tree[offset * (2 * t + 2) - 1];
      tree[offset * (2 * t + 2) - 1] += left;
    }
  }
  __syncthreads();
  y[base + 2 * t] = tree[2 * t];
  y[base + 2 * t + 1] = tree[2 * t + 1];
}

// Each block publishes its sum, then the sum of all before it; a warp looks back over the blocks
// before until it meets one that has published the latter. States: flag in the upper half (1: own
// sum, 2: inclusive), value in the lower. Blocks number themselves in the order they start in.
extern "C" __global__ void __launch_bounds__(128)
    lookback_scan(const int *x, int *y, unsigned long long *states, unsigned *ticket, int n) {
  __shared__ int sums[32];
  __shared__ unsigned block;
  __shared__ int before;
  if (threadIdx.x == 0)
    block = atomicAdd(ticket, 1);
  __syncthreads();
  int i = block * 128 + threadIdx.x;
  int value = blockScan(i < n ? x[i] : 0, sums);
  volatile unsigned long long *published = states;
  if (threadIdx.x == 127) {
    unsigned long long flag = block == 0 ? 2 : 1;
    __threadfence();
    published[block] = flag << 32 | (unsigned)value;
    if (block == 0)
      before = 0;
  }
  if (block > 0 && threadIdx.x < 32) {
    int sum = 0;
    for (int first = (int)block - 32;; first -= 32) {
      int at = first + (int)threadIdx.x;
      unsigned long long state;
      do
        state = at >= 0 ? published[at] : 2ull << 32;
      while (__any_sync(~0u, (state >> 32) == 0));
      unsigned complete = __ballot_sync(~0u, (state >> 32) == 2);
      int last = complete ? 31 - __clz(complete) : 0;
      int part = (int)threadIdx.x >= last ? (int)(unsigned)state : 0;
      for (int offset = 16; offset > 0; offset >>= 1)
        part += __shfl_xor_sync(~0u, part, offset);
      sum += part;
      if (complete)
        break;
    }
    if (threadIdx.x == 0)
      before = sum;
  }
  __syncthreads();
  if (block > 0 && threadIdx.x == 127) {
    __threadfence();
    published[block] = 2ull << 32 | (unsigned)(before + value);
  }
  if (i < n)
    y[i] = before + value;
}
