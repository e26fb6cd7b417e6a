// CUB's algorithms of a block.
#include <cub/cub.cuh>

extern "C" __global__ void sort_pairs(float *keys, int *values) {
  using Sort = cub::BlockRadixSort<float, 64, 4, int>;
  __shared__ Sort::TempStorage storage;
  float key[4];
  int value[4];
  for (int i = 0; i < 4; ++i) {
    key[i] = keys[threadIdx.x * 4 + i];
    value[i] = values[threadIdx.x * 4 + i];
  }
  Sort(storage).SortDescending(key, value);
  for (int i = 0; i < 4; ++i) {
    keys[threadIdx.x * 4 + i] = key[i];
    values[threadIdx.x * 4 + i] = value[i];
  }
}

extern "C" __global__ void scan_block(const int *x, int *y) {
  using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 128>;
  using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union {
    Load::TempStorage load;
    Scan::TempStorage scan;
    Store::TempStorage store;
  } storage;
  int items[4];
  Load(storage.load).Load(x, items);
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(y, items);
}

extern "C" __global__ void reduce_block(const float *x, float *y) {
  using Reduce = cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x], 100);
  if (threadIdx.x == 0)
    y[blockIdx.x] = sum;
}

extern "C" __global__ void histogram(const unsigned char *x, int *counts) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 32, cub::BLOCK_HISTO_SORT>;
  __shared__ Histogram::TempStorage storage;
  __shared__ int bins[32];
  unsigned char items[4];
  for (int i = 0; i < 4; ++i)
    items[i] = x[threadIdx.x * 4 + i];
  Histogram(storage).Histogram(items, bins);
  __syncthreads();
  if (threadIdx.x < 32)
    counts[threadIdx.x] = bins[threadIdx.x];
}
