// Row-wise functions of a model: softmax, layer and RMS norms, activations, cross entropy; with the
// CUDA math library's expf, logf, erff, tanhf, rsqrtf.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Sum {
  static __device__ float of(float a, float b) { return a + b; }
};
struct Max {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};
/// Over a block of up to 1024 threads; every thread gets the result.
template <class Op> __device__ float reduceBlock(float value, float neutral) {
  __shared__ float parts[33];
  for (int offset = 16; offset > 0; offset >>= 1)
    value = Op::of(value, __shfl_xor_sync(~0u, value, offset));
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < (blockDim.x + 31) / 32 ? parts[threadIdx.x] : neutral;
    for (int offset = 16; offset > 0; offset >>= 1)
      value = Op::of(value, __shfl_xor_sync(~0u, value, offset));
    if (threadIdx.x == 0)
      parts[32] = value;
  }
  __syncthreads();
  return parts[32];
}

extern "C" __global__ void softmax_rows(const float *x, float *y, int n) {
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    most = fmaxf(most, x[i]);
  most = reduceBlock<Max>(most, -INFINITY);
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += expf(x[i] - most);
  sum = reduceBlock<Sum>(sum, 0);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[i] = expf(x[i] - most) / sum;
}

// One pass, running maximum and sum (as in flash attention), one warp a row; base two.
extern "C" __global__ void online_softmax(const float *x, float *y, int n) {
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float most = -1e30f, sum = 0; // finite: the difference of two infinities is a NaN
  for (int i = threadIdx.x; i < n; i += 32) {
    float v = x[i] * 1.44269504f, next = fmaxf(most, v);
    sum = sum * exp2f(most - next) + exp2f(v - next);
    most = next;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    float otherMost = __shfl_xor_sync(~0u, most, offset),
          otherSum = __shfl_xor_sync(~0u, sum, offset);
    float next = fmaxf(most, otherMost);
    sum = sum * exp2f(most - next) + otherSum * exp2f(otherMost - next);
    most = next;
  }
  for (int i = threadIdx.x; i < n; i += 32)
    y[i] = exp2f(x[i] * 1.44269504f - most) * __frcp_rn(sum);
}

// Welford's mean and variance, merged over lanes, in vectors of four.
extern "C" __global__ void __launch_bounds__(128)
    layernorm(const float4 *x, const float4 *scale, const float4 *shift, float4 *y, int n4) {
  x += (size_t)blockIdx.x * n4;
  y += (size_t)blockIdx.x * n4;
  float mean = 0, squares = 0, count = 0;
  for (int i = threadIdx.x; i < n4; i += 128) {
    float4 v = x[i];
    float values[4] = {v.x, v.y, v.z, v.w};
    for (float value : values) {
      count += 1;
      float delta = value - mean;
      mean += delta / count;
      squares += delta * (value - mean);
    }
  }
  float n = 4.0f * n4;
  float total = reduceBlock<Sum>(mean * count, 0) / n;
  float variance = reduceBlock<Sum>(squares + count * (mean - total) * (mean - total), 0) / n;
  float factor = rsqrtf(variance + 1e-5f);
  for (int i = threadIdx.x; i < n4; i += 128) {
    float4 v = x[i], a = scale[i], b = shift[i];
    y[i] = make_float4((v.x - total) * factor * a.x + b.x, (v.y - total) * factor * a.y + b.y,
                       (v.z - total) * factor * a.z + b.z, (v.w - total) * factor * a.w + b.w);
  }
}

// RMS norm of f16 rows with a bf16 weight, two elements at a time.
extern "C" __global__ void rmsnorm_half(const __half2 *x, const __nv_bfloat162 *weight, __half2 *y,
                                        int n2) {
  x += (size_t)blockIdx.x * n2;
  y += (size_t)blockIdx.x * n2;
  float sum = 0;
  for (int i = threadIdx.x; i < n2; i += blockDim.x) {
    float2 v = __half22float2(x[i]);
    sum += v.x * v.x + v.y * v.y;
  }
  float factor = 1.0f / sqrtf(reduceBlock<Sum>(sum, 0) / (2 * n2) + 1e-6f);
  for (int i = threadIdx.x; i < n2; i += blockDim.x) {
    float2 v = __half22float2(x[i]), w = __bfloat1622float2(weight[i]);
    y[i] = __floats2half2_rn(v.x * factor * w.x, v.y * factor * w.y);
  }
}

// gelu (exact and by tanh), silu, softplus, elu side by side.
extern "C" __global__ void activations(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float v = x[i];
  y[5 * i] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  y[5 * i + 1] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
  y[5 * i + 2] = v / (1.0f + expf(-v));
  y[5 * i + 3] = v > 20.0f ? v : log1pf(expf(v));
  y[5 * i + 4] = v > 0.0f ? v : expm1f(v);
}

// -log softmax at the label; rows with the label -1 do not count.
extern "C" __global__ void cross_entropy(const float *x, const int *labels, float *loss, int n) {
  int label = labels[blockIdx.x];
  if (label < 0) {
    if (threadIdx.x == 0)
      loss[blockIdx.x] = 0;
    return;
  }
  x += (size_t)blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    most = fmaxf(most, x[i]);
  most = reduceBlock<Max>(most, -INFINITY);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += __expf(x[i] - most);
  sum = reduceBlock<Sum>(sum, 0);
  if (threadIdx.x == 0)
    loss[blockIdx.x] = logf(sum) + most - x[label];
}
