// Sixteen-bit and eight-bit floats: arithmetic, comparisons, conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

extern "C" __global__ void half_math(const __half2 *a, const __half2 *b, __half2 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __half2 u = a[i], v = b[i];
  __half2 *to = y + 16 * i;
  to[0] = __hadd2(u, v);
  to[1] = __hsub2(u, v);
  to[2] = __hmul2(u, v);
  to[3] = __hfma2(u, v, u);
  to[4] = __hmax2(u, v);
  to[5] = __hmin2(u, v);
  to[6] = __habs2(__hneg2(u));
  to[7] = __hfma2_relu(u, v, v);
  to[8] = __hadd2_sat(u, v);
  to[9] = __h2div(u, v);
  to[10] = h2sqrt(__habs2(u));
  to[11] = __hgt2(u, v);
  to[12] = h2floor(u);
  to[13] = __halves2half2(__low2half(u) * __high2half(v), __hadd(u.x, __float2half(0.5f)));
  to[14] = __lowhigh2highlow(u);
  to[15] = __halves2half2(__hlt(u.x, v.x) ? u.x : v.y, __hisnan(u.y) ? v.x : u.y);
}

extern "C" __global__ void bfloat_math(const __nv_bfloat162 *a, const __nv_bfloat162 *b,
                                       __nv_bfloat162 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __nv_bfloat162 u = a[i], v = b[i];
  __nv_bfloat162 *to = y + 12 * i;
  to[0] = __hadd2(u, v);
  to[1] = __hsub2(u, v);
  to[2] = __hmul2(u, v);
  to[3] = __hfma2(u, v, u);
  to[4] = __hmax2(u, v);
  to[5] = __hmin2(u, v);
  to[6] = __habs2(__hneg2(u));
  to[7] = __hfma2_relu(u, v, v);
  to[8] = __hle2(u, v);
  to[9] = h2rcp(v);
  to[10] = h2sqrt(__habs2(u));
  to[11] = __halves2bfloat162(u.x * v.y, u.y + v.x);
}

// exp2, exp, log, rcp, rsqrt, sin, tanh in sixteen bits.
extern "C" __global__ void half_functions(const __half *a, __half *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __half u = a[i], v = __habs(u) + __float2half(0.01f);
  __half *to = y + 8 * i;
  to[0] = hexp(u);
  to[1] = hexp2(u);
  to[2] = hlog(v);
  to[3] = hrcp(v);
  to[4] = hrsqrt(v);
  to[5] = hsin(u);
  to[6] = htanh(u);
  to[7] = htanh_approx(u);
}

extern "C" __global__ void conversions(const float *x, uint16_t *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i];
  uint16_t *to = y + 12 * i;
  to[0] = __half_as_ushort(__float2half_rn(v));
  to[1] = __half_as_ushort(__float2half_rz(v));
  to[2] = __half_as_ushort(__float2half_ru(v));
  to[3] = __half_as_ushort(__double2half((double)v * 1.0000001));
  to[4] = __bfloat16_as_ushort(__float2bfloat16_rn(v));
  to[5] = __bfloat16_as_ushort(__float2bfloat16_rd(v));
  to[6] = __half_as_ushort(__int2half_rn((int)(v * 100)));
  to[7] = (uint16_t)__half2short_rz(__float2half(v));
  to[8] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
  to[9] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E5M2);
  to[10] = __nv_fp8x2_e4m3(make_float2(v, -v * 0.5f)).__x;
  to[11] = __nv_fp8x2_e5m2(__floats2half2_rn(v, v * 2)).__x;
  float *wide = z + 4 * i;
  wide[0] = float(__nv_fp8_e4m3(v));
  wide[1] = float(__nv_fp8_e5m2(v));
  wide[2] = __half2float(__float2half(v)) + __bfloat162float(__float2bfloat16(v));
  __nv_fp8x4_e4m3 four(make_float4(v, v * 2, v * 4, v * 8));
  float4 back = float4(four);
  wide[3] = back.x + back.y + back.z + back.w;
}
