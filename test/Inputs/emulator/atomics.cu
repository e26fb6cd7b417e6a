// Histograms, locks and read-modify-write loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

extern "C" __global__ void histogram_global(const uint8_t *x, unsigned *bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[x[i]], 1u);
}

extern "C" __global__ void histogram_shared(const uint8_t *x, unsigned *bins, int n) {
  __shared__ unsigned mine[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x)
    mine[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&mine[x[i]], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x)
    if (mine[b])
      atomicAdd(&bins[b], mine[b]);
}

// Equal values of a warp are counted by one lane.
extern "C" __global__ void histogram_matched(const uint8_t *x, unsigned *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned mask = __ballot_sync(~0u, i < n);
  if (i < n) {
    unsigned peers = __match_any_sync(mask, (unsigned)x[i]);
    if ((int)(threadIdx.x % 32) == __ffs(peers) - 1)
      atomicAdd(&bins[x[i]], (unsigned)__popc(peers));
  }
}

// Every lane of every warp takes one lock in turn; the counter behind it is plain memory.
extern "C" __global__ void spin_lock(int *lock, volatile int *counter, int *order) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      int at = *counter;
      order[at] = blockIdx.x * blockDim.x + threadIdx.x;
      *counter = at + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// A ticket lock among the warps of a block, in shared memory.
extern "C" __global__ void ticket_lock(int *sum, int rounds) {
  __shared__ unsigned next;
  __shared__ volatile unsigned serving;
  __shared__ volatile int value;
  if (threadIdx.x == 0) {
    next = 0;
    serving = 0;
    value = 0;
  }
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x % 32 == 0) {
      unsigned ticket = atomicAdd(&next, 1u);
      while (serving != ticket)
        __nanosleep(20);
      __threadfence_block();
      value = value + (int)(threadIdx.x / 32) + 1;
      __threadfence_block();
      serving = ticket + 1;
    }
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x == 0)
    sum[blockIdx.x] = value;
}

__device__ float atomicMaxFloat(float *address, float value) {
  int *raw = (int *)address, seen = *raw;
  while (__int_as_float(seen) < value) {
    int before = atomicCAS(raw, seen, __float_as_int(value));
    if (before == seen)
      break;
    seen = before;
  }
  return __int_as_float(seen);
}

// Ten kinds of read-modify-write on out[0..15] (int), wide[0..7], floats[0..3], doubles[0].
extern "C" __global__ void every_kind(const int *x, int *out, unsigned long long *wide,
                                      float *floats, double *doubles) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  atomicAdd(&out[0], v);
  atomicSub(&out[1], v);
  atomicMin(&out[2], v);
  atomicMax(&out[3], v);
  atomicAnd(&out[4], v | 0xff00);
  atomicOr(&out[5], v);
  atomicXor(&out[6], v);
  atomicInc((unsigned *)&out[7], 9u);
  atomicDec((unsigned *)&out[8], 6u);
  atomicMin((unsigned *)&out[9], (unsigned)v);
  atomicMax((unsigned *)&out[10], (unsigned)v);
  atomicAdd_block(&out[11], 1);
  atomicAdd_system(&out[12], 2);
  atomicAdd(&wide[0], (unsigned long long)(long long)v);
  atomicMin((long long *)&wide[1], (long long)v * 5000000000ll);
  atomicMax(&wide[2], (unsigned long long)(unsigned)v << 20);
  atomicOr(&wide[3], 1ull << (i & 63));
  atomicAnd(&wide[4], ~(1ull << (i & 31)));
  atomicXor(&wide[5], (unsigned long long)i * 0x100000001ull);
  if (i == 17)
    atomicExch(&wide[6], 0x123456789abcull);
  atomicAdd(&floats[0], (float)v);
  atomicMaxFloat(&floats[1], (float)v);
  atomicAdd(&doubles[0], 0.5 * v);
}

// Sixteen-bit values: the compiler's own atomics and loops over atomicCAS.
extern "C" __global__ void sixteen_bits(const float *x, __half *half, __half2 *half2,
                                        __nv_bfloat16 *bfloat, __nv_bfloat162 *bfloat2,
                                        unsigned short *counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(half + i % 3, __float2half(x[i]));
  atomicAdd(half2, __floats2half2_rn(x[i], -x[i]));
  atomicAdd(bfloat + i % 5, __float2bfloat16(x[i]));
  atomicAdd(bfloat2, __floats2bfloat162_rn(x[i], 1.0f));
  unsigned short *count = counts + i % 7, seen = *count, before;
  do {
    before = seen;
    seen = atomicCAS(count, before, (unsigned short)(before + i));
  } while (seen != before);
}
