// Calls through pointers: tables in global and constant memory, chosen at run time, virtual functions.
typedef float (*Function)(float);

__device__ __noinline__ float increment(float x) { return x + 1; }
__device__ __noinline__ float twice(float x) { return x * 2; }
__device__ __noinline__ float lower(float x) { return x - 5; }

__device__ Function inMemory[3] = {increment, twice, lower};
__constant__ Function constants[2] = {twice, lower};

extern "C" __global__ void table(float *x, const int *which) {
  x[threadIdx.x] = inMemory[which[threadIdx.x]](x[threadIdx.x]);
}

extern "C" __global__ void chosen(float *x, int which) {
  float value = constants[which](x[threadIdx.x]);
  Function then = threadIdx.x & 1 ? increment : lower;
  if (threadIdx.x % 3 != 0)
    value = then(value);
  x[threadIdx.x] = value;
}

struct Item {
  float weight, sum, price;
  int count;
};
__device__ __noinline__ Item add(Item item) {
  item.sum += item.weight;
  ++item.count;
  return item;
}
__device__ __noinline__ Item sell(Item item) {
  item.price *= item.weight;
  --item.count;
  return item;
}

extern "C" __global__ void structs(Item *items, int phase) {
  Item (*change)(Item) = (threadIdx.x + phase) & 1 ? add : sell;
  items[threadIdx.x] = change(items[threadIdx.x]);
}

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual float scaled(float by) const { return area() * by; }
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float side) : side(side) {}
  __device__ float area() const override { return side * side; }
};
struct Rectangle : Square {
  float height;
  __device__ Rectangle(float side, float height) : Square(side), height(height) {}
  __device__ float area() const override { return side * height; }
  __device__ float scaled(float by) const override { return area() * by * by; }
};

extern "C" __global__ void shapes(const float *x, float *y) {
  Square square(x[threadIdx.x]);
  Rectangle rectangle(x[threadIdx.x], 3);
  const Shape *shape = threadIdx.x % 3 == 1 ? &rectangle : &square;
  y[threadIdx.x] = shape->scaled(2) + shape->area();
}
