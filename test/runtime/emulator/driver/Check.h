//===- Check.h - for driver-API programs that are tests -------------------===//
//
// The programs in this folder are plain ones: cuda.h, linked to the toolkit's stub of libcuda, and
// run with LD_LIBRARY_PATH at the emulator's libcuda.so.1. They would run on a GPU too.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_TEST_DRIVER_CHECK_H
#define PLANEMU_TEST_DRIVER_CHECK_H

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

inline const char *nameOf(CUresult result) {
  const char *text = nullptr;
  cuGetErrorName(result, &text);
  return text ? text : "?";
}

inline int failures = 0;

inline void expectAt(const char *file, int line, const char *what, CUresult got, CUresult want) {
  if (got == want)
    return;
  std::printf("%s:%d: %s gives %s, not %s\n", file, line, what, nameOf(got), nameOf(want));
  ++failures;
}
/// The call has to give this status.
#define EXPECT(Call, Want) expectAt(__FILE__, __LINE__, #Call, Call, Want)

/// The condition has to hold; the test goes on.
#define CHECK(Condition)                                                                           \
  do {                                                                                             \
    if (!(Condition)) {                                                                            \
      std::printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #Condition);                        \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

/// The call has to work, or the program ends.
#define OK(Call)                                                                                   \
  do {                                                                                             \
    CUresult ok_ = (Call);                                                                         \
    if (ok_ != CUDA_SUCCESS) {                                                                     \
      std::printf("%s:%d: %s gives %s\n", __FILE__, __LINE__, #Call, nameOf(ok_));                 \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (0)

inline int finish(const char *name) {
  if (!failures)
    std::printf("%s: ok\n", name);
  return failures != 0;
}

/// saxpy: y = a * x + y; increment: p += by; nothing; tile: has static shared memory.
inline constexpr char Kernels[] = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 counter = 5;
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .f32 %f<4>; .reg .pred %p;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [n];
  setp.ge.u32 %p, %r4, %r5;
  @%p bra DONE;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];
  cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f3;
DONE:
  ret;
}
.visible .entry increment(.param .u64 p, .param .u32 by) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [by];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, %r1; st.global.u32 [%rd1], %r3;
  ret;
}
.visible .entry nothing() { ret; }
.visible .entry tile() .maxntid 256, 1, 1 {
  .reg .b32 %r;
  .shared .align 16 .b8 buffer[20000];
  mov.u32 %r, buffer; st.shared.u32 [%r], 1;
  ret;
}
)";

#endif // PLANEMU_TEST_DRIVER_CHECK_H
