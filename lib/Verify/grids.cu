// Cooperative groups: tiles, coalesced groups, and a grid whose blocks wait for each other.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int *x, int *y) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  auto warp = cg::tiled_partition<32>(block);
  int i = block.thread_rank(), v = x[i];
  int *to = y + 6 * i;
  to[0] = cg::reduce(tile, v, cg::plus<int>());
  to[1] = cg::reduce(warp, v, cg::greater<int>());
  to[2] = tile.shfl(v, tile.thread_rank() ^ 3) + tile.meta_group_rank();
  to[3] = cg::inclusive_scan(tile, v);
  to[4] = -1;
  if (v % 3 == 0) {
    cg::coalesced_group group = cg::coalesced_threads();
    to[4] = group.thread_rank() * 100 + group.size();
    group.sync();
  }
  block.sync();
  to[5] = tile.any(v > 90) + 2 * warp.all(v >= 0) + block.group_index().x;
}

// Every block adds its part, the grid meets, every block reads the sum of all; rounds times.
extern "C" __global__ void grid_rounds(int *parts, int *y, int rounds) {
  cg::grid_group grid = cg::this_grid();
  int sum = blockIdx.x + 1;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0)
      parts[blockIdx.x] = sum + round;
    grid.sync();
    sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b)
      sum += ((volatile int *)parts)[b];
    sum %= 1009;
    grid.sync();
  }
  y[grid.thread_rank()] = sum;
}

// The same meeting by hand: an arrival counter that every block waits for.
extern "C" __global__ void counter_rounds(int *parts, unsigned *arrived, int *y, int rounds) {
  int sum = blockIdx.x + 1;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0)
      parts[round * gridDim.x + blockIdx.x] = sum + round;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1u);
      while (*(volatile unsigned *)arrived < (round + 1) * gridDim.x)
        ;
      __threadfence();
    }
    __syncthreads();
    sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b)
      sum += ((volatile int *)parts)[round * gridDim.x + b];
    sum %= 1009;
  }
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
