// Address spaces: constants, initialised globals, dynamic shared memory, generic pointers, hints.
#include <cuda_runtime.h>
#include <stdint.h>

__constant__ int primes[12] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
__constant__ double settable[4] = {0.5, 0.25, 0.125, 0.0625};
__device__ float3 palette[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
__device__ int counter = 40;
__device__ const char text[] = "emulator\n\"quoted\"\t";
struct Node {
  const Node *next;
  int value;
  short tag[2];
};
__device__ Node last = {nullptr, 30, {3, -3}};
__device__ Node nodes[3] = {{&last, 10, {1, -1}}, {nullptr, 20, {2, -2}}, {&last, 25, {4, -4}}};
__device__ const int *const wayIn[2] = {&primes[4], &counter};

extern "C" __global__ void tables(int *y) {
  int i = threadIdx.x;
  int sum = primes[i % 12] + (int)(settable[i & 3] * 16) + text[i % (sizeof(text) - 1)];
  for (const Node *node = &nodes[i % 3]; node; node = node->next)
    sum += node->value * node->tag[i & 1];
  float3 colour = palette[i % 3];
  sum += (int)(colour.x * 100 + colour.y * 200 + colour.z * 300);
  sum += *wayIn[i & 1];
  y[i] = sum;
}

// A global that kernels change, and change back.
extern "C" __global__ void count_up(int *y) {
  y[threadIdx.x] = atomicAdd(&counter, 1);
  __syncthreads();
  if (threadIdx.x == 0)
    counter = 40;
}

// Three arrays carved out of one dynamic allocation, beside a static one.
extern "C" __global__ void dynamic_shared(const int *x, int *y, int n) {
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ int fixed[4];
  double *doubles = (double *)raw;
  int *ints = (int *)(doubles + n);
  char *chars = (char *)(ints + n);
  int i = threadIdx.x;
  doubles[i] = x[i] * 0.5;
  ints[n - 1 - i] = x[i];
  chars[i] = (char)x[i];
  if (i < 4)
    fixed[i] = i * 1000;
  __syncthreads();
  y[i] = (int)doubles[(i + 1) % n] + ints[i] + chars[n - 1 - i] + fixed[i & 3];
}

// One pointer that leads to global, shared or local memory depending on the lane.
__device__ __noinline__ int readThrough(const int *p, int at) { return p[at] * 2 + p[0]; }
extern "C" __global__ void generic(const int *x, int *y) {
  __shared__ int shared[32];
  int local[8];
  int i = threadIdx.x;
  shared[i] = x[i] + 100;
  for (int k = 0; k < 8; ++k)
    local[k] = x[i] + 1000 * k;
  __syncthreads();
  const int *p = i % 3 == 0 ? x : i % 3 == 1 ? shared : local;
  int space = __isGlobal(p) | __isShared(p) << 1 | __isLocal(p) << 2;
  y[2 * i] = readThrough(p, i & 7);
  y[2 * i + 1] = space;
}

// Loads and stores with hints, and of every width. Clang's headers lack some of the functions.
#ifdef __clang__
#define HINTED_LOAD(Function, p) (*(p))
#define HINTED_STORE(Function, p, value) (*(p) = (value))
#else
#define HINTED_LOAD(Function, p) Function(p)
#define HINTED_STORE(Function, p, value) Function(p, value)
#endif
extern "C" __global__ void hints(const int *x, int4 *y, const uint8_t *bytes, long long *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int4 v = __ldg((const int4 *)x + i);
  int2 w = __ldcs((const int2 *)x + i);
  int a = HINTED_LOAD(__ldca, x + i), b = __ldcg(x + i), c = HINTED_LOAD(__ldlu, x + i),
      d = __ldcv(x + i);
  v.x += a;
  v.y += b - c;
  v.z += w.x;
  v.w += w.y + d;
  HINTED_STORE(__stcs, y + 4 * i, v);
  HINTED_STORE(__stcg, y + 4 * i + 1, make_int4(v.w, v.z, v.y, v.x));
  __stwt(y + 4 * i + 2, make_int4(a, b, c, d));
  HINTED_STORE(__stwb, y + 4 * i + 3, make_int4(1, 2, 3, i));
  short2 s = __ldg((const short2 *)bytes + i);
  uchar4 q = __ldg((const uchar4 *)bytes + i);
  longlong2 l = __ldg((const longlong2 *)x + i);
  double half = __ldg((const double *)x + i);
  z[i] = s.x + s.y * 3 + q.x + q.w * 5 + (l.x ^ l.y) + (half == half);
}

// Structures whose members lie at odd places, copied whole and by parts; bit fields.
struct Packed {
  char a;
  int b;
  short c;
  long long d;
  char e[5];
};
struct Fields {
  unsigned a : 3, b : 9;
  int c : 5;
  unsigned long long d : 41;
};
extern "C" __global__ void structures(const Packed *x, Packed *y, Fields *f) {
  int i = threadIdx.x;
  Packed p = x[i];
  p.b += p.a;
  p.d -= p.c;
  for (int k = 0; k < 5; ++k)
    p.e[k] = x[i].e[4 - k] + (char)k;
  y[i] = p;
  Fields field = f[i];
  field.a += 3;
  field.b ^= 0x1ff;
  field.c -= 7;
  field.d += 1ull << 40 | 5;
  f[i] = field;
}

// A large structure as a parameter, indexed at run time.
struct Table {
  int weights[64];
  short offsets[16];
};
extern "C" __global__ void big_parameter(const __grid_constant__ Table table, Table copy, int *y) {
  int i = threadIdx.x;
  copy.weights[i & 63] += i;
  y[i] = table.weights[(i * 5) & 63] * table.offsets[i & 15] + copy.weights[(i * 3) & 63];
}

__device__ volatile int mailbox;
// Plain copies that compilers turn into wide moves.
extern "C" __global__ void copies(const uint8_t *x, uint8_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint8_t buffer[40];
  memcpy(buffer, x + i * 40, 40);
  buffer[i % 40] = (uint8_t)i;
  memset(buffer + 8, 7, 4);
  memcpy(y + i * 40, buffer, 40);
  if (i == 0) {
    mailbox = 5;
    y[n] = (uint8_t)mailbox;
  }
}
