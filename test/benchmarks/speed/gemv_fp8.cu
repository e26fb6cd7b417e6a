// y[n] = w[n, k] (e4m3) * x[k] (bf16, kept in shared memory as f32); one warp a row.
// gemv_fp8.nvcc.ptx is what nvcc 13.0 prints for sm_121a.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>
__device__ __forceinline__ float2 widen(uint16_t two) {
  __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(two, __NV_E4M3);
  return __half22float2(__half2(h));
}
extern "C" __global__ void __launch_bounds__(256)
    gemv_fp8(const uint4 *__restrict__ w, const __nv_bfloat16 *__restrict__ x, float *y, int k,
             int n) {
  __shared__ __align__(16) float sx[2048];
  for (int i = threadIdx.x; i < k; i += 256)
    sx[i] = __bfloat162float(x[i]);
  __syncthreads();
  int row = blockIdx.x * 8 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= n)
    return;
  const uint4 *p = w + (size_t)row * (k / 16);
  float s = 0;
#pragma unroll 4
  for (int i = lane; i < k / 16; i += 32) {
    uint4 v = __ldg(p + i);
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    const float4 *a = reinterpret_cast<const float4 *>(sx + 16 * i);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      float4 b = a[q];
      float2 low = widen(static_cast<uint16_t>(words[q])),
             high = widen(static_cast<uint16_t>(words[q] >> 16));
      s = fmaf(low.x, b.x, s);
      s = fmaf(low.y, b.y, s);
      s = fmaf(high.x, b.z, s);
      s = fmaf(high.y, b.w, s);
    }
  }
  for (int o = 16; o; o >>= 1)
    s += __shfl_xor_sync(~0u, s, o);
  if (lane == 0)
    y[row] = s;
}
