// Functions that call themselves, directly, in circles and through pointers; memory allocated in kernels.
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void fibonaccis(int *y) { y[threadIdx.x] = fibonacci(threadIdx.x % 13); }

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0)
    return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
extern "C" __global__ void ackermanns(int *y) {
  y[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x % 5);
}

// Each activation has an array of its own, of which the next one gets the address.
__device__ __noinline__ void permute(int n, int k, const int *items, int *count, double *sum) {
  if (k == n) {
    double number = 0;
    for (int i = 0; i < n; ++i)
      number = number * 10 + items[i];
    *sum += number * ++*count;
    return;
  }
  for (int i = k; i < n; ++i) {
    int swapped[6];
    for (int j = 0; j < n; ++j)
      swapped[j] = items[j];
    swapped[k] = items[i];
    swapped[i] = items[k];
    permute(n, k + 1, swapped, count, sum);
  }
}
extern "C" __global__ void permutations(double *y) {
  int items[6] = {1, 2, 3, 4, 5, 6}, count = 0;
  double sum = 0;
  permute(1 + threadIdx.x % 5, 0, items, &count, &sum);
  y[threadIdx.x] = sum;
}

// Eight functions, each of which may call any other.
typedef int (*Function)(int, int);
extern __device__ Function table[8];
template <int N> __device__ __noinline__ int mixed(int a, int depth) {
  if (depth == 0)
    return a * N + 1;
  int sum = table[(a + N) & 7](a + 1, depth - 1);
  if (a & 1)
    sum ^= table[(a * 3 + N) & 7](a - N, depth - 1);
  return sum + N;
}
__device__ Function table[8] = {mixed<0>, mixed<1>, mixed<2>, mixed<3>,
                                mixed<4>, mixed<5>, mixed<6>, mixed<7>};
extern "C" __global__ void circles(int *y) { y[threadIdx.x] = table[threadIdx.x & 7](threadIdx.x, 5); }

// All lanes and warps meet at every depth.
__device__ __noinline__ int sumOf(int value, int distance, int *shared) {
  if (distance == 0)
    return value;
  value += __shfl_xor_sync(~0u, value, distance);
  shared[threadIdx.x] = value;
  __syncthreads();
  value += shared[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  return sumOf(value, distance / 2, shared);
}
extern "C" __global__ void sums(int *y) {
  __shared__ int shared[64];
  y[threadIdx.x] = sumOf(threadIdx.x, 16, shared);
}

struct Row {
  int items[12];
};
__device__ __noinline__ Row grown(Row row, int n) {
  if (n == 0)
    return row;
  row.items[n % 12] += n;
  Row next = grown(row, n - 1);
  next.items[0] += row.items[1];
  return next;
}
extern "C" __global__ void rows(int *y) {
  Row row;
  for (int i = 0; i < 12; ++i)
    row.items[i] = i + threadIdx.x;
  row = grown(row, threadIdx.x % 20);
  int sum = 0;
  for (int item : row.items)
    sum = sum * 3 + item;
  y[threadIdx.x] = sum;
}

// A sorted tree on the heap, walked and freed.
struct Node {
  int key, count;
  Node *less, *more;
};
__device__ __noinline__ Node *insert(Node *node, int key) {
  if (!node) {
    node = static_cast<Node *>(malloc(sizeof(Node)));
    *node = {key, 0, nullptr, nullptr};
  }
  if (key < node->key)
    node->less = insert(node->less, key);
  else if (key > node->key)
    node->more = insert(node->more, key);
  else
    ++node->count;
  return node;
}
__device__ __noinline__ int *unload(Node *node, int *to) {
  if (!node)
    return to;
  to = unload(node->less, to);
  for (int n = 0; n < node->count; ++n)
    *to++ = node->key;
  to = unload(node->more, to);
  free(node);
  return to;
}
extern "C" __global__ void trees(int *x, int n) {
  int *mine = x + (blockIdx.x * blockDim.x + threadIdx.x) * n;
  Node *root = nullptr;
  for (int i = 0; i < n; ++i)
    root = insert(root, mine[i]);
  unload(root, mine);
}
