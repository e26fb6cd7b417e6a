// nvcc -fatbin -gencode arch=compute_90,code=compute_90 -gencode arch=compute_80,code=compute_80
//      -Xfatbin -compress-all --compress-mode=MODE -o MODE.fatbin two.cu
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}
extern "C" __global__ void scale(float *a, float s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    a[i] = a[i] * s;
}
