//===- MemoryKinds.cpp - planemu-driver-memory: all kinds of memory -------===//
//
// Pitched and 3D copies, fills, host memory, managed memory, pools, virtual memory, and what
// pointers tell about themselves; the memory of two contexts.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <cstring>
#include <vector>

static CUcontext context;

static void copies() {
  CUdeviceptr image;
  std::size_t pitch = 0;
  OK(cuMemAllocPitch(&image, &pitch, 100, 20, 4));
  CHECK(pitch >= 100 && pitch % 32 == 0);
  OK(cuMemsetD2D8(image, pitch, 7, 100, 20));
  unsigned char host[20][100], back[5][10];
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 100; ++x)
      host[y][x] = static_cast<unsigned char>(y * 100 + x);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = 100;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = image;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 90;
  copy.Height = 19;
  OK(cuMemcpy2D(&copy));
  // A window of it back.
  CUDA_MEMCPY2D window = {};
  window.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  window.srcDevice = image;
  window.srcPitch = pitch;
  window.srcXInBytes = 85;
  window.srcY = 15;
  window.dstMemoryType = CU_MEMORYTYPE_UNIFIED; // which finds out that it is the host's
  window.dstDevice = reinterpret_cast<CUdeviceptr>(back);
  window.dstPitch = 10;
  window.WidthInBytes = 10;
  window.Height = 5;
  OK(cuMemcpy2DAsync(&window, nullptr));
  OK(cuCtxSynchronize());
  CHECK(back[0][0] == host[15][85] && back[3][4] == host[18][89]);
  CHECK(back[0][5] == 7 && back[4][0] == 7); // outside what was copied
  window.Height = 6;
  EXPECT(cuMemcpy2D(&window), CUDA_ERROR_INVALID_VALUE); // beyond the last row
  copy.srcPitch = 80;
  EXPECT(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);

  // A box of 2 x 3 x 4 bytes out of 4 x 5 x 6.
  unsigned char box[4][5][6], part[2][3][4] = {};
  for (int n = 0; n < 120; ++n)
    (&box[0][0][0])[n] = static_cast<unsigned char>(n);
  CUdeviceptr volume;
  OK(cuMemAlloc(&volume, sizeof(box)));
  OK(cuMemcpyHtoD(volume, box, sizeof(box)));
  CUDA_MEMCPY3D cut = {};
  cut.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  cut.srcDevice = volume;
  cut.srcPitch = 6;
  cut.srcHeight = 5;
  cut.srcXInBytes = cut.srcY = cut.srcZ = 1;
  cut.dstMemoryType = CU_MEMORYTYPE_HOST;
  cut.dstHost = part;
  cut.dstPitch = 4;
  cut.dstHeight = 3;
  cut.WidthInBytes = 4;
  cut.Height = 3;
  cut.Depth = 2;
  OK(cuMemcpy3D(&cut));
  CHECK(part[0][0][0] == box[1][1][1] && part[1][2][3] == box[2][3][4]);
  cut.Depth = 4;
  EXPECT(cuMemcpy3D(&cut), CUDA_ERROR_INVALID_VALUE);

  // Fills of all widths, and rows that leave the bytes between them alone.
  OK(cuMemsetD16(volume, 0x1234, 60));
  OK(cuMemsetD2D32(volume, 12, 0, 1, 10));
  unsigned short words[60];
  OK(cuMemcpyDtoH(words, volume, sizeof(words)));
  CHECK(words[0] == 0 && words[1] == 0 && words[2] == 0x1234 && words[6] == 0);
  EXPECT(cuMemsetD16(volume + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemsetD32(volume, 0, 31), CUDA_ERROR_INVALID_VALUE);
  // The generic copy finds out what its pointers are.
  unsigned short first = 9;
  OK(cuMemcpy(volume, reinterpret_cast<CUdeviceptr>(&first), 2));
  OK(cuMemcpy(volume + 2, volume, 2));
  OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(words), volume, 4));
  CHECK(words[0] == 9 && words[1] == 9);
  EXPECT(cuMemcpy(volume, 64, 2), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(volume));
  EXPECT(cuMemcpy(reinterpret_cast<CUdeviceptr>(words), volume, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(image));
}

template <class T> static T ask(CUpointer_attribute attribute, CUdeviceptr pointer) {
  T value{};
  OK(cuPointerGetAttribute(&value, attribute, pointer));
  return value;
}

static void hostAndManaged(CUfunction increment) {
  void *pinned;
  CUdeviceptr device;
  unsigned flags;
  OK(cuMemHostAlloc(&pinned, 256, CU_MEMHOSTALLOC_WRITECOMBINED));
  OK(cuMemHostGetDevicePointer(&device, pinned, 0));
  OK(cuMemHostGetFlags(&flags, pinned));
  CHECK(flags & CU_MEMHOSTALLOC_WRITECOMBINED);
  CHECK(ask<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device) == CU_MEMORYTYPE_HOST);

  std::vector<unsigned> own(64, 5);
  EXPECT(cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  OK(cuMemHostRegister(own.data(), 256, CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT(cuMemHostRegister(own.data() + 8, 16, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT(cuMemFreeHost(own.data()), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemHostGetDevicePointer(&device, own.data(), 0));
  unsigned by = 3;
  void *parameters[] = {&device, &by};
  OK(cuLaunchKernel(increment, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuCtxSynchronize());
  CHECK(own[0] == 8 && own[63] == 8);
  OK(cuMemHostUnregister(own.data()));
  EXPECT(cuMemHostGetDevicePointer(&device, own.data(), 0), CUDA_ERROR_INVALID_VALUE);

  CUdeviceptr managed;
  OK(cuMemAllocManaged(&managed, 256, CU_MEM_ATTACH_GLOBAL));
  unsigned *seen = reinterpret_cast<unsigned *>(managed);
  for (int n = 0; n < 64; ++n)
    seen[n] = static_cast<unsigned>(n);
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  OK(cuMemPrefetchAsync(managed, 256, here, 0, nullptr));
  OK(cuMemAdvise(managed, 256, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
  EXPECT(cuMemAdvise(managed, 257, CU_MEM_ADVISE_SET_READ_MOSTLY, here), CUDA_ERROR_INVALID_VALUE);
  parameters[0] = &managed;
  OK(cuLaunchKernel(increment, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuCtxSynchronize());
  CHECK(seen[0] == 3 && seen[63] == 66);
  CHECK(ask<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 8) == 1);
  CHECK(ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, managed + 8) == managed);
  CHECK(ask<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, managed + 8) == 256);
  CHECK(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, managed) == context);
  CUdeviceptr base;
  std::size_t bytes;
  OK(cuMemGetAddressRange(&base, &bytes, managed + 255));
  CHECK(base == managed && bytes == 256);
  EXPECT(cuMemGetAddressRange(&base, &bytes, managed + 256), CUDA_ERROR_NOT_FOUND);
  int local = 0;
  CUmemorytype type;
  EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               reinterpret_cast<CUdeviceptr>(&local)),
         CUDA_ERROR_INVALID_VALUE);
  unsigned isManaged = 9;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void *answers[] = {&type, &isManaged};
  OK(cuPointerGetAttributes(2, asked, answers, reinterpret_cast<CUdeviceptr>(&local)));
  CHECK(type == 0 && isManaged == 0);
  OK(cuMemFree(managed));
  OK(cuMemFreeHost(pinned));
}

static void pools() {
  CUmemoryPool standard, own;
  OK(cuDeviceGetDefaultMemPool(&standard, 0));
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.maxSize = 1 << 20;
  OK(cuMemPoolCreate(&own, &properties));
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a, b;
  cuuint64_t used = 0;
  OK(cuMemAllocFromPoolAsync(&a, 1000, own, stream));
  OK(cuMemAllocAsync(&b, 500, stream));
  OK(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 1000);
  OK(cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 500);
  CHECK(ask<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a) == own);
  CUdeviceptr none;
  EXPECT(cuMemAllocFromPoolAsync(&none, 1 << 20, own, stream), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemsetD8Async(a, 1, 1000, stream));
  OK(cuMemFreeAsync(a, stream));
  OK(cuMemFree(b));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 0);
  OK(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
  CHECK(used == 1000);
  cuuint64_t threshold = ~cuuint64_t(0);
  OK(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  OK(cuDeviceSetMemPool(0, own));
  OK(cuMemPoolDestroy(own));
  OK(cuDeviceGetMemPool(&own, 0));
  CHECK(own == standard);
  EXPECT(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy(stream));
}

static void virtualMemory() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t step = 0, freeBefore = 0, freeNow = 0, total = 0;
  OK(cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  OK(cuMemGetInfo(&freeBefore, &total));
  CUdeviceptr range;
  CUmemGenericAllocationHandle block, again;
  OK(cuMemAddressReserve(&range, 3 * step, 0, 0, 0));
  OK(cuMemCreate(&block, step, &properties, 0));
  OK(cuMemMap(range, step, 0, block, 0));
  OK(cuMemMap(range + 2 * step, step, 0, block, 0)); // the same memory at both ends
  unsigned long long access = 9;
  OK(cuMemGetAccess(&access, &properties.location, range));
  CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT(cuMemsetD8(range, 1, 16), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc description = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemSetAccess(range, step, &description, 1));
  OK(cuMemSetAccess(range + 2 * step, step, &description, 1));
  OK(cuMemGetAccess(&access, &properties.location, range + 5));
  CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemsetD32(range, 77, 16));
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, range + 2 * step, 4));
  CHECK(value == 77);
  EXPECT(cuMemcpyDtoH(&value, range + step, 4), CUDA_ERROR_INVALID_VALUE); // the hole
  // A handle may go while its memory is mapped, and come back from an address.
  OK(cuMemRelease(block));
  EXPECT(cuMemRelease(block), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(range + 9)));
  CHECK(again == block);
  CUmemAllocationProp asked;
  OK(cuMemGetAllocationPropertiesFromHandle(&asked, again));
  CHECK(asked.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  OK(cuMemMap(range + step, step, 0, again, 0));
  OK(cuMemRelease(again));
  EXPECT(cuMemAddressFree(range, 3 * step), CUDA_ERROR_INVALID_VALUE); // still mapped
  OK(cuMemUnmap(range, 3 * step));
  OK(cuMemAddressFree(range, 3 * step));
  EXPECT(cuMemUnmap(range, step), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemGetInfo(&freeNow, &total));
  CHECK(freeNow == freeBefore);
}

static void twoContexts() {
  CUdeviceptr a, b;
  OK(cuMemAlloc(&a, 16));
  OK(cuMemsetD8(a, 5, 16));
  CUcontext other, seen;
  OK(cuCtxCreate(&other, nullptr, CU_CTX_SCHED_YIELD, 0));
  OK(cuCtxGetCurrent(&seen));
  CHECK(seen == other);
  OK(cuMemAlloc(&b, 16));
  EXPECT(cuMemsetD8(a, 1, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemcpyDtoD(b, a, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyPeer(b, other, a, context, 16));
  unsigned char bytes[16];
  OK(cuMemcpyDtoH(bytes, b, 16));
  CHECK(bytes[15] == 5);
  OK(cuCtxPushCurrent(context));
  EXPECT(cuMemcpyDtoH(bytes, b, 16), CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxPopCurrent(&seen));
  CHECK(seen == context);
  OK(cuCtxDestroy(other));
  OK(cuCtxGetCurrent(&seen));
  CHECK(seen == context); // destroying pops
  EXPECT(cuCtxDestroy(other), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemcpyPeer(a, context, b, other, 16), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuMemFree(a));
}

int main() {
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  CUmodule module;
  CUfunction increment;
  OK(cuModuleLoadData(&module, Kernels));
  OK(cuModuleGetFunction(&increment, module, "increment"));
  copies();
  hostAndManaged(increment);
  pools();
  virtualMemory();
  twoContexts();
  return finish("memory");
}
