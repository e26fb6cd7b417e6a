// Control flow that diverges: switches, loops, calls, local arrays.
#include <cuda_runtime.h>
#include <stdint.h>

// Dense cases with work in each: LLVM makes an indexed branch of it, nvcc a tree of comparisons.
extern "C" __global__ void dense_switch(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = x[i];
  for (int round = 0; round < 3; ++round) {
    switch (v & 15) {
    case 0:
      v = v * 3 + 1;
      break;
    case 1:
      v ^= 0x55;
      break;
    case 2:
      v += y[i];
      break;
    case 3:
      v = __popc(v);
      break;
    case 4:
      v = v / 7;
      break;
    case 5:
      v = __brev(v); // falls through
    case 6:
      v -= 11;
      break;
    case 7:
      v = (v << 5) | 3;
      break;
    case 8:
      v = -v;
      break;
    case 9:
      v = v % 1000;
      break;
    case 10:
      while (v > 100)
        v >>= 1;
      break;
    case 11:
      v = __clz(v);
      break;
    case 12:
      y[i] = v;
      v += 2;
      break;
    case 13:
      v = abs(v) + 13;
      break;
    case 14:
      if (v < 0)
        return;
      v += 14;
      break;
    default:
      v ^= v >> 3;
      break;
    }
  }
  y[i] = v;
}

extern "C" __global__ void sparse_switch(const int64_t *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  switch (x[i]) {
  case -5:
    y[i] = 1;
    break;
  case 0:
    y[i] = 2;
    break;
  case 1000:
    y[i] = 3;
    break;
  case 0x100000000:
    y[i] = 4;
    break;
  case 0x100000001:
    y[i] = 5;
    break;
  case INT64_MIN:
    y[i] = 6;
    break;
  default:
    y[i] = 7;
  }
}

// Collatz with a bound; continue, break and an inner loop whose trip count differs by lane.
extern "C" __global__ void loops(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned v = x[i], steps = 0, sum = 0;
  while (true) {
    if (v <= 1 || steps >= 200)
      break;
    ++steps;
    if (v % 2 == 0) {
      v /= 2;
      continue;
    }
    v = 3 * v + 1;
    for (unsigned k = 0; k < v % 5; ++k) {
      if (k == 3)
        break;
      sum += k * steps;
    }
  }
  do
    sum += v;
  while (v-- > 1 && sum < 1000);
  y[i] = sum * 256 + steps;
}

struct Matrix2 {
  double a, b, c, d;
};
struct Mixed {
  char tag;
  short small;
  int count;
  float values[3];
};

// Structures by value and as results, a call in a call, a pointer to the caller's variable.
__device__ __noinline__ Matrix2 multiply(Matrix2 l, Matrix2 r) {
  return {l.a * r.a + l.b * r.c, l.a * r.b + l.b * r.d, l.c * r.a + l.d * r.c,
          l.c * r.b + l.d * r.d};
}
__device__ __noinline__ Matrix2 power(Matrix2 m, int exponent) {
  Matrix2 result = {1, 0, 0, 1};
  for (; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = multiply(result, m);
    m = multiply(m, m);
  }
  return result;
}
__device__ __noinline__ int digest(Mixed m, int *carry) {
  *carry += m.small;
  return m.tag * 1000 + m.count + (int)(m.values[0] + m.values[1] * m.values[2]);
}
__device__ __noinline__ bool odd(int v) { return v & 1; }
__device__ __noinline__ int8_t narrow(int8_t a, uint16_t b) { return (int8_t)(a + b); }
extern "C" __global__ void calls(const int *x, double *y, int *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Matrix2 fibonacci = power({1, 1, 1, 0}, x[i] & 31);
  y[i] = fibonacci.b;
  Mixed m = {(char)(x[i] & 7), (short)(-x[i]), x[i] * 2, {0.5f * x[i], 2.0f, 3.0f}};
  int carry = 10;
  int d = odd(x[i]) ? digest(m, &carry) : -digest(m, &carry);
  z[i] = d + carry + narrow((int8_t)x[i], (uint16_t)(x[i] * 3));
}

// Arrays in local memory: an insertion sort, and a table of which each lane reads its own place.
extern "C" __global__ void local_arrays(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int values[12];
  int count = 3 + i % 10;
  for (int k = 0; k < count; ++k)
    values[k] = x[(i * 7 + k * 13) % n];
  for (int k = 1; k < count; ++k) {
    int v = values[k], at = k;
    for (; at > 0 && values[at - 1] > v; --at)
      values[at] = values[at - 1];
    values[at] = v;
  }
  unsigned char bytes[16];
  for (int k = 0; k < 16; ++k)
    bytes[k] = (unsigned char)(k * k);
  bytes[i % 16] ^= 0xff;
  y[2 * i] = values[count / 2];
  y[2 * i + 1] = bytes[x[i] & 15] + values[0];
}

// A state machine by goto; lanes leave it at different times.
extern "C" __global__ void machine(const unsigned char *text, int *y, int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned char *p = text + i, *end = text + length;
  int words = 0, digits = 0;
start:
  if (p >= end)
    goto done;
  if (*p >= '0' && *p <= '9')
    goto number;
  if (*p != ' ')
    goto word;
  ++p;
  goto start;
number:
  while (p < end && *p >= '0' && *p <= '9') {
    ++p;
    ++digits;
  }
  goto start;
word:
  ++words;
  while (p < end && *p != ' ') {
    if (*p == '!')
      goto done;
    ++p;
  }
  goto start;
done:
  y[i] = words * 1000 + digits;
}
