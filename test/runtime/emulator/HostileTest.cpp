//===- HostileTest.cpp - planemu-hostile-test: no PTX text crashes the loader ===//
//
// planemu-hostile-test FILE ROUNDS: damages the PTX of FILE in many small ways and loads the
// result. Loading may succeed or be refused, with a message; anything else ends the program. Also
// calls the driver with wrong handles and values.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

using namespace emutest;

static std::uint64_t seed = 0x9e3779b97f4a7c15ull;
static std::size_t below(std::size_t limit) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return static_cast<std::size_t>(seed >> 11) % limit;
}

static std::string damaged(const std::string &text) {
  static constexpr const char *Pieces[] = {".",          ";",
                                           ",",          "{",
                                           "}",          "[",
                                           "]",          "%r1",
                                           "%rd1",       "%p1",
                                           "_",          "!",
                                           "|",          "@",
                                           "-",          "(",
                                           ")",          "0",
                                           "-1",         "99999999999999999999",
                                           "0f",         ".v4",
                                           ".b128",      ".pred",
                                           ".global",    "0x",
                                           "0f3F800000", "\"",
                                           "/*",         ".reg .b32 %r<9999999>;",
                                           ":",          ".align 0",
                                           "1e400",      ".branchtargets",
                                           "%tid.x",     ".e4m3x2",
                                           "mma.sync",   "call",
                                           "\n.loc"};
  std::string result = text;
  std::size_t times = 1 + below(4);
  for (std::size_t n = 0; n < times; ++n) {
    std::size_t at = below(result.size());
    switch (below(5)) {
    case 0:
      result.erase(at, 1 + below(30));
      break;
    case 1:
      result.insert(at, Pieces[below(std::size(Pieces))]);
      break;
    case 2:
      result[at] = static_cast<char>(1 + below(255));
      break;
    case 3: { // another part of the text
      std::size_t from = below(result.size());
      result.insert(at, result.substr(from, below(60)));
      break;
    }
    default:
      result.resize(at + 1);
    }
  }
  return result;
}

static void expect(CUresult got, CUresult want, const char *what) {
  if (got != want)
    die(std::string(what) + " gives " + nameOf(got) + ", not " + nameOf(want));
}

/// A fatbin of modules without kernels, for these devices.
static std::string fatbinOf(std::vector<std::pair<std::uint32_t, std::string>> targets) {
  std::string entries;
  for (const auto &[sm, name] : targets) {
    std::string ptx = ".version 9.0\n.target " + name + "\n.address_size 64\n";
    std::uint16_t kind = 1;
    std::uint32_t headerBytes = 64, number = sm;
    std::uint64_t bytes = ptx.size();
    std::string header(headerBytes, '\0');
    std::memcpy(&header[0], &kind, 2);
    std::memcpy(&header[4], &headerBytes, 4);
    std::memcpy(&header[8], &bytes, 8);
    std::memcpy(&header[28], &number, 4);
    entries += header + ptx;
  }
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1, headerBytes = 16;
  std::uint64_t bytes = entries.size();
  std::string header(headerBytes, '\0');
  std::memcpy(&header[0], &magic, 4);
  std::memcpy(&header[4], &version, 2);
  std::memcpy(&header[6], &headerBytes, 2);
  std::memcpy(&header[8], &bytes, 8);
  return header + entries;
}

static void wrongCalls(const std::string &ptx) {
  const Api &cu = api();
  int value;
  expect(cu.cuInit(1), CUDA_ERROR_INVALID_VALUE, "cuInit(1)");
  expect(cu.cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED, "cuDeviceGetCount before cuInit");
  expect(cu.cuInit(0), CUDA_SUCCESS, "cuInit");
  CUdeviceptr address;
  expect(cu.cuMemAlloc_v2(&address, 16), CUDA_ERROR_INVALID_CONTEXT, "cuMemAlloc without context");
  CUcontext context;
  expect(cu.cuDevicePrimaryCtxRetain(&context, 3), CUDA_ERROR_INVALID_DEVICE, "device 3");
  open();
  expect(cu.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE, "cuMemAlloc(0)");
  expect(cu.cuMemAlloc_v2(&address, 1ull << 50), CUDA_ERROR_OUT_OF_MEMORY,
         "cuMemAlloc of too much");
  expect(cu.cuMemFree_v2(4096), CUDA_ERROR_INVALID_VALUE, "cuMemFree of nothing");
  expect(cu.cuMemAlloc_v2(&address, 16), CUDA_SUCCESS, "cuMemAlloc");
  char bytes[32] = {};
  expect(cu.cuMemcpyHtoD_v2(address, bytes, 17), CUDA_ERROR_INVALID_VALUE, "a copy past the end");
  expect(cu.cuMemcpyDtoH_v2(bytes, address + 8, 9), CUDA_ERROR_INVALID_VALUE,
         "a copy past the end");
  expect(cu.cuMemsetD32_v2(address + 2, 0, 1), CUDA_ERROR_INVALID_VALUE,
         "a fill off its alignment");
  expect(cu.cuModuleUnload(reinterpret_cast<CUmodule>(bytes)), CUDA_ERROR_INVALID_HANDLE,
         "a wrong module");
  expect(cu.cuStreamSynchronize(reinterpret_cast<CUstream>(bytes)), CUDA_ERROR_INVALID_HANDLE,
         "a wrong stream");
  expect(cu.cuEventRecord(reinterpret_cast<CUevent>(bytes), nullptr), CUDA_ERROR_INVALID_HANDLE,
         "a wrong event");
  expect(launch(reinterpret_cast<CUfunction>(bytes), 1, 32, {}), CUDA_ERROR_INVALID_HANDLE,
         "a wrong function");
  CUmodule module;
  expect(cu.cuModuleLoadDataEx(&module,
                               "\x7f"
                               "ELF",
                               0, nullptr, nullptr),
         CUDA_ERROR_NO_BINARY_FOR_GPU, "a cubin");
  char log[128];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  expect(cu.cuModuleLoadDataEx(&module, "nonsense", 2, options, values), CUDA_ERROR_INVALID_IMAGE,
         "nonsense");
  if (!std::strstr(log, "a PTX module starts with .version"))
    die(std::string("the log is: ") + log);

  // The message names a fatbin's targets in full.
  std::string fatbin =
      fatbinOf({{90, "sm_90a"}, {80, "sm_80a"}, {130, "sm_130f"}, {125, "sm_125"}});
  expect(cu.cuModuleLoadDataEx(&module, fatbin.data(), 0, nullptr, nullptr),
         CUDA_ERROR_NO_BINARY_FOR_GPU, "a fatbin for other devices");
  if (!std::strstr(api().lastError(), "it has PTX for sm_90a, PTX for sm_80a, PTX for sm_130f, "
                                      "PTX for sm_125"))
    die(std::string("the message is: ") + api().lastError());

  CUjit_option infoOptions[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  values[1] = reinterpret_cast<void *>(sizeof(log));
  std::string contractible = header() + ".entry k() { .reg .b32 %a; add.f32 %a, %a, %a; ret; }";
  CU(cuModuleLoadDataEx, &module, contractible.c_str(), 2, infoOptions, values);
  if (!std::strstr(log, "kernel 'k': 1 additions and multiplications on f32 without .rn"))
    die(std::string("the log is: ") + log);

  // One block mapped twice is one memory; what is not mapped or not accessible is an error.
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t step = 0;
  CUmemGenericAllocationHandle block;
  CUdeviceptr range;
  CU(cuMemGetAllocationGranularity, &step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  expect(cu.cuMemCreate(&block, step + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE,
         "an odd block");
  CU(cuMemCreate, &block, step, &properties, 0);
  CU(cuMemAddressReserve, &range, 4 * step, 0, 0, 0);
  CU(cuMemMap, range, step, 0, block, 0);
  CU(cuMemMap, range + step, step, 0, block, 0);
  expect(cu.cuMemMap(range + step, step, 0, block, 0), CUDA_ERROR_INVALID_VALUE,
         "mapping over a mapping");
  expect(cu.cuMemMap(range + 4 * step, step, 0, block, 0), CUDA_ERROR_INVALID_VALUE,
         "mapping outside the range");
  expect(cu.cuMemcpyHtoD_v2(range, bytes, 16), CUDA_ERROR_INVALID_VALUE,
         "a copy to memory without access");
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CU(cuMemSetAccess, range, 2 * step, &access, 1);
  CU(cuMemsetD8_v2, range, 7, 2 * step); // across both
  CU(cuMemsetD8_v2, range + 5, 9, 1);
  CU(cuMemcpyDtoH_v2, bytes, range + step, 16);
  if (bytes[5] != 9 || bytes[6] != 7)
    die("two mappings of a block differ");
  expect(cu.cuMemAddressFree(range, 4 * step), CUDA_ERROR_INVALID_VALUE,
         "freeing a range that is mapped");
  CU(cuMemRelease, block);
  expect(cu.cuMemRelease(block), CUDA_ERROR_INVALID_VALUE, "releasing twice");
  CU(cuMemUnmap, range, 2 * step);
  CU(cuMemAddressFree, range, 4 * step);

  // Clearing a pool that is larger than any host's memory commits nothing.
  CUdeviceptr pool;
  CU(cuMemAlloc_v2, &pool, 100ull << 30);
  CU(cuMemsetD8_v2, pool + (1 << 20) - 3, 5, 16);
  CU(cuMemsetD8_v2, pool + (99ull << 30), 5, 16);
  CU(cuMemsetD8_v2, pool + (1 << 20), 0, (100ull << 30) - (1 << 20));
  CU(cuMemcpyDtoH_v2, bytes, pool + (1 << 20) - 4, 16);
  if (bytes[0] != 0 || bytes[1] != 5 || bytes[3] != 5 || bytes[4] != 0 || bytes[12] != 0)
    die("a fill with zeros wrote the wrong bytes");
  CU(cuMemcpyDtoH_v2, bytes, pool + (99ull << 30), 16);
  if (bytes[0] != 0)
    die("a fill with zeros missed a page");
  CU(cuMemFree_v2, pool);

  // Capture: nothing runs before the graph does, and it keeps its code when the module goes.
  CUstream stream;
  CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CU(cuModuleLoadDataEx, &module, ptx.c_str(), 0, nullptr, nullptr);
  CUfunction softmax;
  CU(cuModuleGetFunction, &softmax, module, "softmax");
  std::vector<float> ones(64, 1.0f), zeros(64);
  CUdeviceptr x = upload(ones), y = upload(zeros);
  int n = 64;
  void *parameters[] = {&x, &y, &n};
  CUgraph graph;
  CUgraphExec exec;
  CU(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CU(cuMemsetD32Async, x, 0x3f000000, 64, stream);
  CU(cuLaunchKernel, softmax, 1, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
  CU(cuStreamEndCapture, stream, &graph);
  CU(cuGraphInstantiateWithFlags, &exec, graph, 0);
  CU(cuGraphDestroy, graph);
  CU(cuModuleUnload, module);
  if (download<float>(y, 1)[0] != 0)
    die("a captured launch has run");
  CU(cuGraphLaunch, exec, stream);
  CU(cuStreamSynchronize, stream);
  if (download<float>(y, 1)[0] != 0.015625f || download<float>(x, 1)[0] != 0.5f)
    die("the graph did not run");
  CU(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  expect(cu.cuMemAlloc_v2(&address, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "allocating while capturing");
  expect(cu.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
         "ending an invalid capture");
  CU(cuGraphExecDestroy, exec);
  CU(cuStreamDestroy_v2, stream);

  // A fault sticks to the context; a new one is clean.
  CUfunction bad = load(header() + ".visible .entry k() { .reg .b64 %a; .reg .b32 %b; mov.b64 %a, "
                                   "64; ld.global.b32 %b, [%a]; ret; }",
                        "k");
  CU(cuLaunchKernel, bad, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  expect(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS, "waiting for a fault");
  expect(cu.cuMemAlloc_v2(&address, 16), CUDA_ERROR_ILLEGAL_ADDRESS, "allocating after a fault");
  while (cu.cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS)
    ;
  open();
  CU(cuMemAlloc_v2, &address, 16);
}

int main(int argc, char **argv) {
  if (argc != 3)
    die("usage: planemu-hostile-test FILE ROUNDS");
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  wrongCalls(text.str());
  long loaded = 0, rounds = std::stol(argv[2]);
  for (long n = 0; n < rounds; ++n) {
    std::string ptx = damaged(text.str());
    CUmodule module;
    CUresult result = api().cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr);
    if (result == CUDA_SUCCESS) {
      ++loaded;
      CU(cuModuleUnload, module);
    } else if (result != CUDA_ERROR_INVALID_PTX && result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION &&
               result != CUDA_ERROR_NO_BINARY_FOR_GPU && result != CUDA_ERROR_INVALID_IMAGE) {
      die("damaged PTX gives " + nameOf(result));
    } else if (!*api().lastError()) {
      die("refused without a message");
    }
  }
  std::printf("%ld of %ld damaged modules loaded, the rest was refused\n", loaded, rounds);
  return 0;
}
