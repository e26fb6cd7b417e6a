// Sums and maxima over warps, blocks and grids, by shuffles, shared memory and atomics.
#include <cuda_runtime.h>

template <class T> __device__ T warpSum(T value) {
  for (int offset = 16; offset > 0; offset >>= 1)
    value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

// One sum for every warp of 32 values, through each type that a shuffle takes.
extern "C" __global__ void warp_sums(const int *x, int *ints, long long *longs, float *floats,
                                     double *doubles) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int a = warpSum(x[i]);
  long long b = warpSum((long long)x[i] * 1000003);
  float c = warpSum((float)x[i]);
  double d = warpSum((double)x[i] * 0.25);
  if ((threadIdx.x & 31) == 0) {
    ints[i / 32] = a;
    longs[i / 32] = b;
    floats[i / 32] = c;
    doubles[i / 32] = d;
  }
}

// The classical tree in shared memory, then one atomic a block.
template <class T, int Threads> __device__ void treeSum(const T *x, T *out, int n) {
  __shared__ T part[Threads];
  T sum = 0;
  for (int i = blockIdx.x * Threads + threadIdx.x; i < n; i += gridDim.x * Threads)
    sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll
  for (int half = Threads / 2; half > 32; half >>= 1) {
    if (threadIdx.x < half)
      part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    T value = warpSum(part[threadIdx.x] + part[threadIdx.x + 32]);
    if (threadIdx.x == 0)
      atomicAdd(out, value);
  }
}
extern "C" __global__ void __launch_bounds__(256) tree_sum_int(const int *x, int *out, int n) {
  treeSum<int, 256>(x, out, n);
}
extern "C" __global__ void __launch_bounds__(128)
    tree_sum_double(const double *x, double *out, int n) {
  treeSum<double, 128>(x, out, n);
}

// Where the greatest value lies; the first of equal ones wins. Any block size up to 1024.
extern "C" __global__ void arg_max(const float *x, float *best, int *where, int n) {
  __shared__ float values[32];
  __shared__ int places[32];
  float value = -__int_as_float(0x7f800000);
  int place = n;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (x[blockIdx.x * n + i] > value) {
      value = x[blockIdx.x * n + i];
      place = i;
    }
  auto merge = [&](float otherValue, int otherPlace) {
    if (otherValue > value || (otherValue == value && otherPlace < place)) {
      value = otherValue;
      place = otherPlace;
    }
  };
  for (int offset = 16; offset > 0; offset >>= 1)
    merge(__shfl_xor_sync(~0u, value, offset), __shfl_xor_sync(~0u, place, offset));
  if ((threadIdx.x & 31) == 0) {
    values[threadIdx.x >> 5] = value;
    places[threadIdx.x >> 5] = place;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    bool has = threadIdx.x < blockDim.x / 32;
    value = has ? values[threadIdx.x] : -__int_as_float(0x7f800000);
    place = has ? places[threadIdx.x] : n;
    for (int offset = 16; offset > 0; offset >>= 1)
      merge(__shfl_down_sync(~0u, value, offset), __shfl_down_sync(~0u, place, offset));
    if (threadIdx.x == 0) {
      best[blockIdx.x] = value;
      where[blockIdx.x] = place;
    }
  }
}

// Sums over groups of 4, 8 and 16 lanes: shuffles with a width.
extern "C" __global__ void group_sums(const int *x, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int groups[3] = {4, 8, 16};
#pragma unroll
  for (int g = 0; g < 3; ++g) {
    int value = x[i];
    for (int offset = 1; offset < groups[g]; offset *= 2)
      value += __shfl_xor_sync(~0u, value, offset, groups[g]);
    out[3 * i + g] = __shfl_sync(~0u, value, 0, groups[g]);
  }
}

// A whole block without shuffles: __syncthreads_count, _and and _or.
extern "C" __global__ void votes_of_block(const int *x, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int odd = __syncthreads_count(x[i] & 1);
  int all = __syncthreads_and(x[i] > 0);
  int any = __syncthreads_or(x[i] > 95);
  if (threadIdx.x == 0) {
    out[3 * blockIdx.x] = odd;
    out[3 * blockIdx.x + 1] = all != 0;
    out[3 * blockIdx.x + 2] = any != 0;
  }
}
