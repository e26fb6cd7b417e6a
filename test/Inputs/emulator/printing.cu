// printf and assert.
#include <cassert>
#include <cstdio>

extern "C" __global__ void print(int n, double d) {
  printf("%d.%d: %5d|%-4u|%+.3e|%c%s|%#llx|%%\n", blockIdx.x, threadIdx.x, n, 7u, d, 'x', "yz",
         255ull);
  if (threadIdx.x == 1)
    printf("nothing more\n");
}

extern "C" __global__ void positive(const int *x) { assert(x[threadIdx.x] > 0); }
