// Matrix multiplication on tensor cores (ldmatrix, cp.async in two stages, mma.sync in several
// formats) and transposition through padded shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ __forceinline__ uint32_t sharedAddress(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void copy16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sharedAddress(to)), "l"(from));
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int Left> __device__ __forceinline__ void waitGroups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left));
}
__device__ __forceinline__ void load4(uint32_t (&r)[4], const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(p)));
}
__device__ __forceinline__ void load4Transposed(uint32_t (&r)[4], const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(p)));
}

#define MMA_F32(Name, Shape, In)                                                                   \
  __device__ __forceinline__ void Name(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,         \
                                       uint32_t b1) {                                              \
    asm volatile("mma.sync.aligned." Shape ".row.col.f32." In "." In ".f32 {%0,%1,%2,%3}, "        \
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                          \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                  \
  }
MMA_F32(mmaBf16, "m16n8k16", "bf16")
MMA_F32(mmaF16, "m16n8k16", "f16")
#if __CUDA_ARCH__ >= 890
MMA_F32(mmaE4m3, "m16n8k32", "e4m3")
#endif

// c[m, n] = a[m, k] * b[k, n], all row-major; a block of four warps computes 64 x 64, a warp 32 x 32;
// 32 of k a stage, two stages. m and n are multiples of 64, k of 32.
template <class T, void Mma(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t)>
__device__ void gemm(const T *a, const T *b, float *c, int n, int k) {
  __shared__ __align__(16) T sa[2][64][32 + 8];
  __shared__ __align__(16) T sb[2][32][64 + 8];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  auto load = [&](int stage, int k0) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      int r = t / 4 + part * 32, q = t % 4 * 8;
      copy16(&sa[stage][r][q], a + (size_t)(row0 + r) * k + k0 + q);
      r = t / 8 + part * 16, q = t % 8 * 8;
      copy16(&sb[stage][r][q], b + (size_t)(k0 + r) * n + col0 + q);
    }
    commit();
  };
  float sum[2][4][4] = {};
  int wr = warp / 2 * 32, wc = warp % 2 * 32;
  load(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 32, stage ^= 1) {
    if (k0 + 32 < k) {
      load(stage ^ 1, k0 + 32);
      waitGroups<1>();
    } else {
      waitGroups<0>();
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t fa[2][4], fb[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m)
        load4(fa[m], &sa[stage][wr + m * 16 + lane % 16][kk + lane / 16 * 8]);
#pragma unroll
      for (int h = 0; h < 2; ++h)
        load4Transposed(fb[h], &sb[stage][kk + lane % 16][wc + h * 16 + lane / 16 * 8]);
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          Mma(sum[m][j], fa[m], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float *to =
          c + (size_t)(row0 + wr + m * 16 + lane / 4) * n + col0 + wc + j * 8 + lane % 4 * 2;
      *(float2 *)to = make_float2(sum[m][j][0], sum[m][j][1]);
      *(float2 *)(to + (size_t)8 * n) = make_float2(sum[m][j][2], sum[m][j][3]);
    }
}
extern "C" __global__ void __launch_bounds__(128)
    gemm_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  gemm<__nv_bfloat16, mmaBf16>(a, b, c, n, k);
}
extern "C" __global__ void __launch_bounds__(128)
    gemm_f16(const __half *a, const __half *b, float *c, int n, int k) {
  gemm<__half, mmaF16>(a, b, c, n, k);
}

#if __CUDA_ARCH__ >= 890
// c[16, n] = a[16, k] * b[n, k] in e4m3; a warp 8 columns, fragments straight from memory.
extern "C" __global__ void gemm_e4m3(const uint8_t *a, const uint8_t *b, float *c, int n, int k) {
  int lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4;
  int col = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 8;
  float sum[4] = {};
  for (int k0 = 0; k0 < k; k0 += 32) {
    const uint8_t *p = a + group * k + k0 + quad * 4, *q = b + (col + group) * k + k0 + quad * 4;
    uint32_t fa[4] = {*(const uint32_t *)p, *(const uint32_t *)(p + 8 * k),
                      *(const uint32_t *)(p + 16), *(const uint32_t *)(p + 8 * k + 16)};
    mmaE4m3(sum, fa, *(const uint32_t *)q, *(const uint32_t *)(q + 16));
  }
  c[group * n + col + quad * 2] = sum[0];
  c[group * n + col + quad * 2 + 1] = sum[1];
  c[(group + 8) * n + col + quad * 2] = sum[2];
  c[(group + 8) * n + col + quad * 2 + 1] = sum[3];
}
#endif

// y[c, r] = x[r, c], tiles of 32 x 32 through shared memory with a column to spare; any size.
template <class T> __device__ void transpose(const T *x, T *y, int rows, int columns) {
  __shared__ T tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += blockDim.y)
    if (int row = blockIdx.y * 32 + j; row < rows && column < columns)
      tile[j][threadIdx.x] = x[(size_t)row * columns + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += blockDim.y)
    if (int row = blockIdx.x * 32 + j; row < columns && column < rows)
      y[(size_t)row * rows + column] = tile[threadIdx.x][j];
}
extern "C" __global__ void transpose_u8(const uint8_t *x, uint8_t *y, int rows, int columns) {
  transpose(x, y, rows, columns);
}
extern "C" __global__ void transpose_f64(const double *x, double *y, int rows, int columns) {
  transpose(x, y, rows, columns);
}
struct alignas(16) Quad {
  float v[4];
};
extern "C" __global__ void transpose_quads(const Quad *x, Quad *y, int rows, int columns) {
  transpose(x, y, rows, columns);
}

// c = a * b in f32 without tensor cores: a block 64 x 64, a thread 4 x 4; one tile, k of any length.
extern "C" __global__ void __launch_bounds__(256)
    gemm_f32(const float *a, const float *b, float *c, int n, int k) {
  __shared__ float sa[16][64], sb[16][64];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int e = threadIdx.x; e < 16 * 64; e += 256) {
      sa[e % 16][e / 16] = k0 + e % 16 < k ? a[(size_t)(row0 + e / 16) * k + k0 + e % 16] : 0;
      sb[e / 64][e % 64] = k0 + e / 64 < k ? b[(size_t)(k0 + e / 64) * n + col0 + e % 64] : 0;
    }
    __syncthreads();
#pragma unroll 4
    for (int kk = 0; kk < 16; ++kk) {
      float4 va = *(const float4 *)&sa[kk][ty * 4], vb = *(const float4 *)&sb[kk][tx * 4];
      float fa[4] = {va.x, va.y, va.z, va.w}, fb[4] = {vb.x, vb.y, vb.z, vb.w};
      for (int m = 0; m < 4; ++m)
        for (int j = 0; j < 4; ++j)
          sum[m][j] += fa[m] * fb[j];
    }
    __syncthreads();
  }
  for (int m = 0; m < 4; ++m)
    *(float4 *)&c[(size_t)(row0 + ty * 4 + m) * n + col0 + tx * 4] =
        make_float4(sum[m][0], sum[m][1], sum[m][2], sum[m][3]);
}
