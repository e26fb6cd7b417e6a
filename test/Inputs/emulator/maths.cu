// The CUDA math library, as the compilers expand it: single, double, and the fast intrinsics.
#include <cuda_runtime.h>

extern "C" __global__ void single_math(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i], a = fabsf(v) + 0.001f;
  float *to = y + 24 * i;
  to[0] = sinf(v);
  to[1] = cosf(v);
  to[2] = expf(v * 0.25f);
  to[3] = logf(a);
  to[4] = powf(a, 0.7f);
  to[5] = powf(v, 3.0f);
  to[6] = erff(v * 0.1f);
  to[7] = tanhf(v * 0.1f);
  to[8] = tanf(v * 0.01f);
  to[9] = atanf(v);
  to[10] = sqrtf(a);
  to[11] = cbrtf(v);
  to[12] = fmodf(v, 3.0f);
  to[13] = floorf(v) + ceilf(v * 0.5f) + truncf(v) + roundf(v) + rintf(v);
  to[14] = 1.0f / v;
  to[15] = v / 3.0f;
  to[16] = log2f(a) + log10f(a);
  to[17] = exp2f(v * 0.1f) + exp10f(v * 0.01f);
  to[18] = atan2f(v, 2.5f);
  to[19] = hypotf(v, 4.0f);
  to[20] = sinhf(v * 0.02f) + coshf(v * 0.02f);
  to[21] = rsqrtf(a);
  to[22] = fminf(v, 1.0f) + fmaxf(v, -1.0f) + copysignf(2.0f, v);
  to[23] = lgammaf(a);
}

// Arguments for which sinf and cosf reduce by a table of 2/pi.
extern "C" __global__ void large_arguments(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[2 * i] = sinf(x[i]);
  float s, c;
  sincosf(x[i], &s, &c);
  y[2 * i + 1] = c;
}

extern "C" __global__ void double_math(const double *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double v = x[i], a = fabs(v) + 0.001;
  double *to = y + 12 * i;
  to[0] = sin(v);
  to[1] = cos(v);
  to[2] = exp(v * 0.25);
  to[3] = log(a);
  to[4] = pow(a, 0.7);
  to[5] = sqrt(a);
  to[6] = 1.0 / v;
  to[7] = v / 3.0;
  to[8] = tanh(v * 0.1);
  to[9] = fmod(v, 3.0);
  to[10] = rint(v) + floor(v) + (double)(long long)(v * 1000);
  to[11] = rsqrt(a);
}

extern "C" __global__ void fast_math(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i], a = fabsf(v) + 0.001f;
  float *to = y + 12 * i;
  to[0] = __sinf(v * 0.1f);
  to[1] = __cosf(v * 0.1f);
  to[2] = __expf(v * 0.1f);
  to[3] = __logf(a);
  to[4] = __powf(a, 0.7f);
  to[5] = __fdividef(v, 3.0f);
  to[6] = __frsqrt_rn(a);
  to[7] = __fmaf_rz(v, 1.1f, 0.3f) + __fadd_ru(v, 0.1f) + __fmul_rd(v, 0.1f);
  to[8] = __frcp_rn(a);
  to[9] = __saturatef(v);
  to[10] = __fsqrt_rn(a);
  to[11] = __log2f(a) + __exp10f(v * 0.01f);
}

// Where IEEE has special cases: classes, rounding to integers, conversions that saturate.
extern "C" __global__ void special_cases(const float *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i];
  int *to = y + 8 * i;
  to[0] = isnan(v) | isinf(v) << 1 | isfinite(v) << 2 | (signbit(v) != 0) << 3;
  to[1] = (int)v;
  to[2] = (int)(unsigned)v;
  to[3] = __float2int_rn(v);
  to[4] = __float2int_rd(v) ^ __float2int_ru(v);
  to[5] = (int)(__float2ll_rz(v) >> 16);
  to[6] = __float_as_int(fminf(v, 0.0f)) ^ __float_as_int(fmaxf(v, 0.0f));
  to[7] = (v < 1.0f) | (v >= 1.0f) << 1 | (v != v) << 2 | !(v > 1.0f) << 3 | (v == 0.0f) << 4;
}
