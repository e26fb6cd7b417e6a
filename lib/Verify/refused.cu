// What compilers print and the emulator says no to: each kernel is refused by name, for one reason.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

extern "C" __global__ void prints(int *y) { printf("value %d\n", y[threadIdx.x]); }

extern "C" __global__ void asserts(int *y) { assert(y[threadIdx.x] != 3); }

extern "C" __global__ void allocates(int **y) { *y = (int *)malloc(64); }

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0)
    return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recurses(int *y) { y[threadIdx.x] = ackermann(2, y[threadIdx.x]); }

__device__ __noinline__ int twice(int v) { return 2 * v; }
__device__ __noinline__ int square(int v) { return v * v; }
__device__ int (*const functions[2])(int) = {twice, square};
extern "C" __global__ void calls_pointer(int *y) {
  y[threadIdx.x] = functions[y[threadIdx.x] & 1](y[threadIdx.x]);
}

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ int area() const override { return side * side; }
};
struct Strip : Shape {
  int length;
  __device__ int area() const override { return length; }
};
extern "C" __global__ void calls_virtual(int *y) {
  Square square;
  Strip strip;
  square.side = strip.length = y[0];
  const Shape *shape = y[1] ? (const Shape *)&square : &strip;
  y[threadIdx.x] = shape->area();
}
