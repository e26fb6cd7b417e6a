// What lanes of a warp tell each other.
#include <cuda_runtime.h>

extern "C" __global__ void votes(const int *x, unsigned *y) {
  int i = threadIdx.x, lane = i % 32;
  int v = x[i];
  unsigned *to = y + 12 * i;
  to[0] = __ballot_sync(~0u, v & 1);
  to[1] = __all_sync(~0u, v > 0) | __any_sync(~0u, v > 95) << 1;
  to[2] = __match_any_sync(~0u, v % 5);
  int same = 0;
  to[3] = __match_all_sync(~0u, v / 1000, &same);
  to[4] = same;
  to[5] = __match_any_sync(~0u, (unsigned long long)(v % 3) << 40);
  to[6] = __activemask();
  // Only some lanes vote, each group for itself.
  to[7] = lane % 3 == 0 ? __ballot_sync(0x49249249u, v & 2) : __ballot_sync(~0x49249249u, v & 4);
  to[8] = 0;
  if (v & 1) {
    unsigned mask = __match_any_sync(__activemask(), v % 4);
    to[8] = mask;
  }
  unsigned lt, ge;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  to[9] = lt;
  to[10] = ge;
  to[11] = __popc(__ballot_sync(~0u, v > 50) & lt);
}

extern "C" __global__ void shuffles(const int *x, int *y) {
  int i = threadIdx.x, lane = i % 32, v = x[i];
  int *to = y + 10 * i;
  to[0] = __shfl_sync(~0u, v, 5);
  to[1] = __shfl_sync(~0u, v, v);
  to[2] = __shfl_up_sync(~0u, v, 3);
  to[3] = __shfl_down_sync(~0u, v, 7);
  to[4] = __shfl_xor_sync(~0u, v, 9);
  to[5] = __shfl_sync(~0u, v, lane + 1, 8);
  to[6] = __shfl_up_sync(~0u, v, 2, 16);
  to[7] = __shfl_down_sync(~0u, v, 1, 4);
  to[8] = (int)(__shfl_xor_sync(~0u, (long long)v << 20, 1) >> 19);
  to[9] = 0;
  if (lane < 16)
    to[9] = __shfl_sync(0xffffu, v, 15 - lane);
}

extern "C" __global__ void reductions(const int *x, int *y) {
  int i = threadIdx.x, v = x[i];
  int *to = y + 8 * i;
  to[0] = __reduce_add_sync(~0u, v);
  to[1] = __reduce_min_sync(~0u, v - 50);
  to[2] = __reduce_max_sync(~0u, v - 50);
  to[3] = (int)__reduce_min_sync(~0u, (unsigned)(v - 50));
  to[4] = (int)__reduce_and_sync(~0u, (unsigned)v | 0xf0);
  to[5] = (int)__reduce_or_sync(~0u, 1u << (v & 31));
  to[6] = (int)__reduce_xor_sync(~0u, (unsigned)v * 77);
  to[7] = i & 1 ? __reduce_add_sync(0xaaaaaaaau, v) : __reduce_add_sync(0x55555555u, -v);
}

// Lanes hand values on through shared memory, __syncwarp between them, in two halves of a warp.
extern "C" __global__ void pipeline(const int *x, int *y) {
  __shared__ volatile int box[64];
  int i = threadIdx.x, v = x[i];
  unsigned mask = i % 32 < 16 ? 0xffffu : 0xffff0000u;
  for (int step = 0; step < 4; ++step) {
    box[i] = v;
    __syncwarp(mask);
    v = box[(i & ~15) | ((i + 1) & 15)] + step;
    __syncwarp(mask);
  }
  y[i] = v;
}

// Clocks do not run backwards; sleeping does no harm.
extern "C" __global__ void clocks(int *y) {
  long long begin = clock64();
  unsigned early = clock();
  __nanosleep(100);
  unsigned late = clock();
  long long end = clock64();
  y[threadIdx.x] = end >= begin && late - early < 0x80000000u;
}

// Lanes that pass get places side by side: one atomic a warp.
extern "C" __global__ void compact(const int *x, int *y, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] % 3 == 0) {
    unsigned active = __activemask(), lane = threadIdx.x % 32;
    int leader = __ffs(active) - 1, first = 0;
    if ((int)lane == leader)
      first = atomicAdd(count, __popc(active));
    first = __shfl_sync(active, first, leader);
    y[first + __popc(active & ((1u << lane) - 1))] = x[i];
  }
}
