// Integer arithmetic: division of every width, bits, bytes, dot products, 128 bits.
#include <cuda_runtime.h>
#include <stdint.h>

template <class T> __device__ void divide(const T *a, const T *b, T *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[4 * i] = a[i] / b[i];
  y[4 * i + 1] = a[i] % b[i];
  y[4 * i + 2] = a[i] / 7;
  y[4 * i + 3] = a[i] % 10;
}
#define DIVIDE(Name, T)                                                                            \
  extern "C" __global__ void Name(const T *a, const T *b, T *y, int n) { divide(a, b, y, n); }
DIVIDE(divide_s8, int8_t)
DIVIDE(divide_u16, uint16_t)
DIVIDE(divide_s32, int32_t)
DIVIDE(divide_u32, uint32_t)
DIVIDE(divide_s64, int64_t)
DIVIDE(divide_u64, uint64_t)

extern "C" __global__ void bits(const uint32_t *a, const uint32_t *b, uint32_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint32_t u = a[i], v = b[i];
  uint64_t w = (uint64_t)u << 32 | v;
  uint32_t *to = y + 24 * i;
  to[0] = __byte_perm(u, v, v & 0x7777);
  to[1] = __brev(u) + __popc(v) + __clz(u) + __ffs(v);
  to[2] = __popcll(w) + __clzll(w) + __ffsll(w);
  to[3] = (uint32_t)(__brevll(w) >> 13);
  to[4] = __funnelshift_l(u, v, v);
  to[5] = __funnelshift_r(u, v, u);
  to[6] = __funnelshift_lc(u, v, v & 63);
  to[7] = __umulhi(u, v) + (uint32_t)__mulhi((int)u, (int)v);
  to[8] = (uint32_t)(__umul64hi(w, w * 3) >> 7);
  to[9] = __umul24(u, v) ^ (uint32_t)__mul24((int)u, (int)v);
  to[10] = __usad(u, v, 5) + __sad((int)u, (int)v, 6u);
  to[11] = __uhadd(u, v) ^ (uint32_t)__rhadd((int)u, (int)v);
  to[12] = (uint32_t)__dp4a((int)u, (int)v, 100);
  to[13] = __dp4a(u, v, 100u);
  to[14] = (uint32_t)__dp2a_lo((int)u, (int)v, 3) + __dp2a_hi(u, v, 4u);
  to[15] = __vadd4(u, v) ^ __vsub2(u, v);
  to[16] = __vabsdiffu4(u, v) + __vmaxs2(u, v);
  to[17] = __vcmpgtu4(u, v) ^ __vminu4(u, v);
  to[18] = (u >> 5 & 0x3ff) | (uint32_t)((int)(v << 7) >> 20) << 10;
  to[19] = (u & v) ^ (~u | v) ^ (u & 0xf0f0f0f0u);
  to[20] = u >> (v & 31) | u << (31 - (v & 31));
  to[21] = (uint32_t)((int64_t)w >> (u & 63));
  to[22] = (uint32_t)(w << (v & 63) >> 32);
  to[23] = min(u, v) + (uint32_t)max((int)u, (int)v) + (uint32_t)abs((int)u);
}

// 128 bits: carries, products, shifts.
extern "C" __global__ void wide(const uint64_t *a, const uint64_t *b, uint64_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned __int128 u = (unsigned __int128)a[i] << 64 | b[i], v = (unsigned __int128)b[i] * a[i];
  unsigned __int128 sum = u + v, difference = u - v, product = u * v, shifted = u >> (a[i] & 127);
  y[6 * i] = (uint64_t)(sum >> 64) ^ (uint64_t)sum;
  y[6 * i + 1] = (uint64_t)(difference >> 64) ^ (uint64_t)difference;
  y[6 * i + 2] = (uint64_t)(product >> 64);
  y[6 * i + 3] = (uint64_t)product;
  y[6 * i + 4] = (uint64_t)(shifted >> 64) ^ (uint64_t)shifted;
  y[6 * i + 5] = (u < v) | (uint64_t)((__int128)u < (__int128)v) << 1;
}

// Narrow integers wrap, extend and convert.
extern "C" __global__ void narrow(const int *a, long long *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int8_t b = (int8_t)a[i];
  uint8_t u = (uint8_t)(a[i] >> 3);
  int16_t s = (int16_t)(a[i] >> 1);
  uint16_t t = (uint16_t)(a[i] >> 5);
  y[4 * i] = (long long)b * s + u;
  y[4 * i + 1] = (int8_t)(b + u) + (int16_t)(s * 3) + (uint8_t)(u - t);
  y[4 * i + 2] = (long long)((float)b + (double)t + (float)u) << (u & 7);
  y[4 * i + 3] = (uint16_t)(t << 3) ^ (uint8_t)~u ^ (s >> 2);
}
