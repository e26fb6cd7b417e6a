//===- VectorAdd.cpp - planemu-driver-add [TARGET]: a first program -------===//
//
// Two streams with a half each, ordered by events; results, times, and the same through cuLaunch's
// other doors.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <vector>

#include <dlfcn.h>

int main(int argc, char **argv) {
  // The emulator's own way to choose a device, which a GPU's driver does not have.
  auto setTarget =
      reinterpret_cast<int (*)(const char *)>(dlsym(RTLD_DEFAULT, "planemu_set_target"));
  if (argc > 1 && setTarget) {
    CHECK(setTarget("sm_1") == CUDA_ERROR_INVALID_VALUE);
    CHECK(setTarget(argv[1]) == CUDA_SUCCESS);
  }
  OK(cuInit(0));
  CHECK(!setTarget || setTarget("sm_87") == CUDA_ERROR_ILLEGAL_STATE); // too late
  int count = 0, version = 0;
  OK(cuDeviceGetCount(&count));
  OK(cuDriverGetVersion(&version));
  CHECK(count == 1 && version >= 13000);
  CUdevice device;
  OK(cuDeviceGet(&device, 0));
  char name[64];
  int major = 0, minor = 0;
  OK(cuDeviceGetName(name, sizeof(name), device));
  OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  std::printf("device: %s, %d.%d\n", name, major, minor);
  CUcontext context;
  OK(cuCtxCreate(&context, nullptr, 0, device));
  CUmodule module;
  OK(cuModuleLoadData(&module, Kernels));
  CUfunction saxpy;
  OK(cuModuleGetFunction(&saxpy, module, "saxpy"));

  const int n = 10000, half = n / 2;
  std::vector<float> x(n), y(n), result(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1;
  }
  CUdeviceptr dx, dy;
  OK(cuMemAlloc(&dx, n * sizeof(float)));
  OK(cuMemAlloc(&dy, n * sizeof(float)));
  CUstream streams[2];
  CUevent start, copied, end;
  OK(cuStreamCreate(&streams[0], CU_STREAM_DEFAULT));
  OK(cuStreamCreateWithPriority(&streams[1], CU_STREAM_NON_BLOCKING, -1));
  OK(cuEventCreate(&start, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  OK(cuEventRecord(start, streams[0]));
  OK(cuMemcpyHtoDAsync(dx, x.data(), n * sizeof(float), streams[0]));
  OK(cuMemcpyHtoDAsync(dy, y.data(), n * sizeof(float), streams[0]));
  OK(cuEventRecord(copied, streams[0]));
  OK(cuStreamWaitEvent(streams[1], copied, CU_EVENT_WAIT_DEFAULT));
  float a = 2;
  for (int s = 0; s < 2; ++s) {
    CUdeviceptr px = dx + s * half * sizeof(float), py = dy + s * half * sizeof(float);
    unsigned m = half;
    void *parameters[] = {&px, &py, &a, &m};
    OK(cuLaunchKernel(saxpy, (half + 255) / 256, 1, 1, 256, 1, 1, 0, streams[s], parameters,
                      nullptr));
    OK(cuMemcpyDtoHAsync(result.data() + s * half, py, half * sizeof(float), streams[s]));
  }
  OK(cuEventRecord(end, streams[0]));
  OK(cuEventSynchronize(end));
  OK(cuStreamSynchronize(streams[1]));
  float milliseconds = -1;
  OK(cuEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 0);
  for (int i = 0; i < n; ++i)
    if (result[i] != 2 * x[i] + 1) {
      CHECK(!"the sum is right");
      break;
    }

  // The same kernel with its parameters in one buffer, in the null stream.
  struct {
    CUdeviceptr x, y;
    float a;
    unsigned n;
  } packed = {dx, dy, -2, n};
  std::size_t size = sizeof(packed);
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  // The buffer may be longer than the parameters, as a struct that is padded at its end, but not shorter.
  size -= 4;
  EXPECT(cuLaunchKernel(saxpy, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
         CUDA_ERROR_INVALID_VALUE);
  size += 8;
  OK(cuLaunchKernel(saxpy, (n + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  // And by cuLaunchKernelEx, with attributes.
  CUlaunchAttribute attributes[3] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {1, 1, 1};
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[2].value.cooperative = 1;
  CUlaunchConfig config = {(n + 255) / 256, 1, 1, 256, 1, 1, 0, streams[0], attributes, 3};
  unsigned m = n;
  a = 3;
  void *parameters[] = {&dx, &dy, &a, &m};
  OK(cuLaunchKernelEx(&config, saxpy, parameters, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH(result.data(), dy, n * sizeof(float)));
  CHECK(result[1] == 4 && result[100] == 301);

  for (CUstream stream : streams)
    OK(cuStreamDestroy(stream));
  for (CUevent event : {start, copied, end})
    OK(cuEventDestroy(event));
  OK(cuMemFree(dx));
  OK(cuMemFree(dy));
  OK(cuModuleUnload(module));
  OK(cuCtxDestroy(context));
  return finish("add");
}
