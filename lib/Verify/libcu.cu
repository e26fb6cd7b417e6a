// libcu++: atomic_ref with its orders and scopes, a barrier of a block, a semaphore, a latch.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/array>
#include <cuda/std/bit>

extern "C" __global__ void atomic_refs(int *values, double *sum, unsigned *flags) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cuda::atomic_ref<int, cuda::thread_scope_device> total(values[0]);
  cuda::atomic_ref<int, cuda::thread_scope_block> most(values[1]);
  cuda::atomic_ref<unsigned, cuda::thread_scope_system> flag(flags[0]);
  total.fetch_add(i, cuda::std::memory_order_relaxed);
  most.fetch_max(i * 7 % 101, cuda::std::memory_order_acq_rel);
  cuda::atomic_ref<double, cuda::thread_scope_device>(*sum).fetch_add(0.5);
  flag.fetch_or(1u << (i & 31), cuda::std::memory_order_seq_cst);
  int seen = values[2], *slot = values + 2;
  cuda::atomic_ref<int, cuda::thread_scope_device> product(*slot);
  seen = product.load(cuda::std::memory_order_acquire);
  while (!product.compare_exchange_weak(seen, (seen * 3 + 1) % 10007))
    ;
}

// Message passing between blocks: the second waits for the first.
extern "C" __global__ void messages(int *data, unsigned *ready, int *y) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(*ready);
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x * 3;
    __syncthreads();
    if (threadIdx.x == 0)
      flag.store(1, cuda::std::memory_order_release);
  } else {
    if (threadIdx.x == 0)
      while (flag.load(cuda::std::memory_order_acquire) == 0)
        ;
    __syncthreads();
    y[threadIdx.x] = data[threadIdx.x] + 1;
  }
}

extern "C" __global__ void arrays(const unsigned *x, unsigned *y) {
  int i = threadIdx.x;
  cuda::std::array<unsigned, 4> values = {x[i], x[i] * 3, x[i] ^ 0x5555, ~x[i]};
  unsigned sum = 0;
  for (unsigned value : values)
    sum += cuda::std::popcount(value) + cuda::std::countl_zero(value | 1) +
           cuda::std::rotl(value, 5) % 97;
  y[i] = sum;
}

// mbarrier underneath.
extern "C" __global__ void barriers(const int *x, int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int values[128];
  if (threadIdx.x == 0)
    init(&barrier, blockDim.x);
  __syncthreads();
  values[threadIdx.x] = x[threadIdx.x];
  auto token = barrier.arrive();
  barrier.wait(cuda::std::move(token));
  int sum = values[(threadIdx.x + 1) % blockDim.x];
  barrier.arrive_and_wait();
  values[threadIdx.x] = sum + 1;
  barrier.arrive_and_wait();
  y[threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}
