// nvcuda::wmma: the instructions load, multiply and store whole fragments, whose layout is the
// machine's business.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

// One warp, one tile: wmma in the shapes and layouts of mma.h.
template <class In, class Out, int M, int N, int K, class LayoutA, class LayoutB, class T>
__device__ void tile(const T *a, const T *b, const Out *c, Out *d) {
  using namespace nvcuda::wmma;
  constexpr bool RowA = std::is_same<LayoutA, row_major>::value;
  constexpr bool RowB = std::is_same<LayoutB, row_major>::value;
  fragment<matrix_a, M, N, K, In, LayoutA> fa;
  fragment<matrix_b, M, N, K, In, LayoutB> fb;
  fragment<accumulator, M, N, K, Out> fc, fd;
  load_matrix_sync(fa, a, RowA ? K : M);
  load_matrix_sync(fb, b, RowB ? N : K);
  load_matrix_sync(fc, c, N, mem_row_major);
  mma_sync(fd, fa, fb, fc);
  for (int e = 0; e < fd.num_elements; ++e)
    fd.x[e] = fd.x[e] * Out(2);
  store_matrix_sync(d, fd, N, mem_row_major);
}
using Row = nvcuda::wmma::row_major;
using Col = nvcuda::wmma::col_major;

#define TILE(Name, In, T, Out, M, N, K, LayoutA, LayoutB)                                          \
  extern "C" __global__ void Name(const T *a, const T *b, const Out *c, Out *d) {                  \
    tile<In, Out, M, N, K, LayoutA, LayoutB>(a, b, c, d);                                          \
  }
TILE(wmma_f16_row_col, __half, __half, float, 16, 16, 16, Row, Col)
TILE(wmma_f16_row_row, __half, __half, float, 16, 16, 16, Row, Row)
TILE(wmma_f16_col_row_32x8, __half, __half, float, 32, 8, 16, Col, Row)
TILE(wmma_f16_f16_8x32, __half, __half, __half, 8, 32, 16, Row, Row)
TILE(wmma_f16_f16, __half, __half, __half, 16, 16, 16, Col, Col)
TILE(wmma_bf16_row_row, __nv_bfloat16, __nv_bfloat16, float, 16, 16, 16, Row, Row)
TILE(wmma_bf16_col_col_8x32, __nv_bfloat16, __nv_bfloat16, float, 8, 32, 16, Col, Col)
TILE(wmma_tf32, nvcuda::wmma::precision::tf32, float, float, 16, 16, 8, Row, Col)
TILE(wmma_s8, signed char, signed char, int, 16, 16, 16, Row, Col)
TILE(wmma_u8_32x8, unsigned char, unsigned char, int, 32, 8, 16, Col, Row)
TILE(wmma_f64, double, double, double, 8, 8, 4, Row, Col)

// c[m, n] = a[m, k] * b[k, n], a warp a tile, through shared memory with padded rows.
extern "C" __global__ void __launch_bounds__(32)
    wmma_gemm(const __half *a, const __half *b, float *c, int n, int k) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) __half sa[16][24], sb[16][24];
  __shared__ __align__(32) float sc[16][20];
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  int row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int e = threadIdx.x; e < 256; e += 32) {
      sa[e / 16][e % 16] = a[(row0 + e / 16) * k + k0 + e % 16];
      sb[e / 16][e % 16] = b[(k0 + e / 16) * n + col0 + e % 16];
    }
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, row_major> fb;
    load_matrix_sync(fa, &sa[0][0], 24);
    load_matrix_sync(fb, &sb[0][0], 24);
    mma_sync(sum, fa, fb, sum);
    __syncwarp();
  }
  store_matrix_sync(&sc[0][0], sum, 20, mem_col_major);
  __syncwarp();
  for (int e = threadIdx.x; e < 256; e += 32)
    c[(row0 + e / 16) * n + col0 + e % 16] = sc[e % 16][e / 16];
}
