// Asynchronous copies and the barriers that wait for them: cuda::barrier, cuda::pipeline, bulk copies.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace ptx = cuda::ptx;

// Shared variables have no constructors that run.
template <class T> struct Raw {
  alignas(T) char bytes[sizeof(T)];
  __device__ T *get() { return reinterpret_cast<T *>(bytes); }
  __device__ T &operator*() { return *get(); }
  __device__ T *operator->() { return get(); }
};

// Half of the threads fill two buffers in turn, the others empty them.
extern "C" __global__ void ring(const int *x, int *y, int tiles) {
  __shared__ Raw<Barrier> full[2], empty[2];
  __shared__ int tile[2][64];
  if (threadIdx.x < 2) {
    init(full[threadIdx.x].get(), blockDim.x);
    init(empty[threadIdx.x].get(), blockDim.x);
  }
  __syncthreads();
  int lane = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int t = 0; t < tiles; ++t) {
      empty[t % 2]->arrive_and_wait();
      tile[t % 2][lane] = x[t * 64 + lane];
      (void)full[t % 2]->arrive();
    }
  } else {
    (void)empty[0]->arrive();
    (void)empty[1]->arrive();
    for (int t = 0; t < tiles; ++t) {
      full[t % 2]->arrive_and_wait();
      y[t * 64 + lane] = tile[t % 2][63 - lane];
      (void)empty[t % 2]->arrive();
    }
  }
}

// Each thread copies for itself; the barrier waits for the copies of all.
extern "C" __global__ void scattered(const int *x, int *y, int tiles) {
  __shared__ Raw<Barrier> copied;
  __shared__ int tile[96];
  if (threadIdx.x == 0)
    init(copied.get(), blockDim.x);
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    cuda::memcpy_async(&tile[threadIdx.x], &x[t * 96 + threadIdx.x], sizeof(int), *copied);
    copied->arrive_and_wait();
    y[t * 96 + threadIdx.x] = tile[95 - threadIdx.x];
    copied->arrive_and_wait();
  }
}

// A pipeline of the block: while one tile is read, the next one is on its way.
extern "C" __global__ void pipeline(const float *x, float *y, int tiles) {
  auto block = cooperative_groups::this_thread_block();
  __shared__ Raw<cuda::pipeline_shared_state<cuda::thread_scope_block, 2>> state;
  __shared__ alignas(16) float tile[2][64];
  auto pipe = cuda::make_pipeline(block, state.get());
  auto fetch = [&](int t) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, tile[t % 2], x + t * 64, cuda::aligned_size_t<16>(256), pipe);
    pipe.producer_commit();
  };
  fetch(0);
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles)
      fetch(t + 1);
    pipe.consumer_wait();
    y[t * 64 + threadIdx.x] = 2 * tile[t % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
  // The lane that ends the pipeline for its warp does not wait for the others by itself.
  __syncthreads();
}

// One thread copies for all, in both directions.
extern "C" __global__ void bulk(int *x) {
  __shared__ alignas(16) int tile[128];
  __shared__ std::uint64_t arrived;
  int *mine = x + blockIdx.x * 128;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&arrived, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, mine, sizeof(tile), &arrived);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &arrived,
                                   sizeof(tile));
  }
  while (!ptx::mbarrier_try_wait_parity(&arrived, 0))
    ;
  int value = tile[127 - threadIdx.x];
  __syncthreads();
  tile[threadIdx.x] = value + 1;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, mine, tile, sizeof(tile));
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// All blocks add their rows to one.
extern "C" __global__ void bulk_sum(const int *x, int *sum) {
  __shared__ alignas(16) int row[64];
  row[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sum, row,
                              sizeof(row));
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}
