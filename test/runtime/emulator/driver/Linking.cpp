//===- Linking.cpp - planemu-driver-linking: modules of several images ----===//
//
// What the just-in-time linker makes of symbols that several images know.
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <cstring>
#include <string>
#include <vector>

/// Calls a function and reads variables of the other image. `common` is .weak in both, `own` and `text`
/// are each image's own.
static const char *const First = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 a);
.extern .global .align 4 .b8 table[8];
.extern .const .align 4 .u32 offset;
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .u32 own = 1;
.weak .global .align 4 .u32 common = 7;
.func (.param .b32 r) text(.param .b32 a) {
  .reg .b32 %x;
  ld.param.u32 %x, [a];
  add.u32 %x, %x, 100;
  st.param.b32 [r], %x;
  ret;
}
.visible .entry first(.param .u64 to) {
  .reg .b64 %to;
  .reg .b32 %x, %y;
  ld.param.u64 %to, [to];
  { .param .b32 a; .param .b32 r;
    st.param.b32 [a], 20;
    call (r), twice, (a);
    ld.param.b32 %x, [r]; }
  { .param .b32 a; .param .b32 r;
    st.param.b32 [a], %x;
    call (r), text, (a);
    ld.param.b32 %x, [r]; }
  st.global.u32 [%to], %x;
  ld.global.u32 %x, [table+4];
  ld.const.u32 %y, [offset];
  add.u32 %x, %x, %y;
  st.global.u32 [%to+4], %x;
  ld.global.u32 %x, [own];
  st.global.u32 [%to+8], %x;
  ld.global.u32 %x, [common];
  st.global.u32 [%to+12], %x;
  ret;
}
)";

static const char *const Second = R"(
.version 8.1
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .global .align 4 .u32 table[2] = {5, 6};
.visible .const .align 4 .u32 offset = 1000;
.global .align 4 .u32 own = 2;
.weak .global .align 4 .u32 common = 8;
.func (.param .b32 r) text(.param .b32 a) {
  .reg .b32 %x;
  ld.param.u32 %x, [a];
  shl.b32 %x, %x, 1;
  st.param.b32 [r], %x;
  ret;
}
.visible .func (.param .b32 r) twice(.param .b32 a) {
  .reg .b32 %x;
  ld.param.u32 %x, [a];
  { .param .b32 b; .param .b32 s;
    st.param.b32 [b], %x;
    call (s), text, (b);
    ld.param.b32 %x, [s]; }
  st.param.b32 [r], %x;
  ret;
}
.visible .entry second(.param .u64 to) {
  .reg .b64 %to;
  .reg .b32 %x;
  ld.param.u64 %to, [to];
  ld.global.u32 %x, [own];
  st.global.u32 [%to], %x;
  ret;
}
)";

static char errors[512];
static CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
static void *values[] = {errors, reinterpret_cast<void *>(sizeof(errors))};

static CUresult link(const std::vector<std::string> &images, CUmodule &module) {
  CUlinkState state;
  OK(cuLinkCreate(2, options, values, &state));
  for (std::string text : images)
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "image", 0, nullptr,
                     nullptr));
  void *image;
  std::size_t bytes;
  CUresult result = cuLinkComplete(state, &image, &bytes);
  if (result == CUDA_SUCCESS)
    result = cuModuleLoadDataEx(&module, image, 2, options, values);
  OK(cuLinkDestroy(state));
  return result;
}

static std::vector<int> run(CUmodule module, const char *name) {
  CUfunction function;
  CUdeviceptr to;
  std::vector<int> result(4);
  OK(cuModuleGetFunction(&function, module, name));
  OK(cuMemAlloc(&to, 16));
  OK(cuMemsetD32(to, 0, 4));
  void *arguments[] = {&to};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuMemcpyDtoH(result.data(), to, 16));
  OK(cuMemFree(to));
  return result;
}

int main() {
  CUcontext context;
  OK(cuInit(0));
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  CUmodule module;
  for (bool turned : {false, true}) {
    OK(link(turned ? std::vector<std::string>{Second, First}
                   : std::vector<std::string>{First, Second},
            module));
    CHECK((run(module, "first") == std::vector<int>{140, 1006, 1, turned ? 8 : 7}));
    CHECK(run(module, "second")[0] == 2);
    OK(cuModuleUnload(module));
  }
  // A definition that is not .weak counts before those that are.
  std::string strong = Second;
  strong.replace(strong.find(".weak"), 5, ".visible");
  OK(link({First, strong}, module));
  CHECK(run(module, "first")[3] == 8);

  EXPECT(link({First, Second, Second}, module), CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(errors, "'table' is defined by two images"));
  EXPECT(link({First, First}, module), CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(errors, "'first' is defined by two images"));
  EXPECT(link({First}, module), CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(errors, "function 'twice' is declared, but not defined"));
  OK(cuCtxDestroy(context));
  return finish("linking");
}
