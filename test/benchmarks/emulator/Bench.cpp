//===- Bench.cpp - planemu-bench: speed of the emulator -------------------===//
//
//   planemu-bench FILE [OPERATION...]
//
// Runs the kernels of test/Inputs/emulator/kernels.cu (FILE is its PTX) and then loops of one
// instruction each, on one thread. Prints millions of warp instructions a second of that thread's
// CPU time, and nanoseconds per instruction. Numbers are for reading, not for asserting.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

using namespace emutest;

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The fastest of three runs, in nanoseconds per warp instruction.
static double measure(CUfunction function, unsigned grid, unsigned block,
                      const std::vector<std::uint64_t> &arguments, double &seconds) {
  double best = 1e30;
  for (int n = 0; n < 3; ++n) {
    std::uint64_t before = api().warpInstructions();
    double start = cpuSeconds();
    check(launch(function, grid, block, arguments), "launch");
    double took = cpuSeconds() - start;
    double each = 1e9 * took / static_cast<double>(api().warpInstructions() - before);
    if (each < best) {
      best = each;
      seconds = took;
    }
  }
  return best;
}

static void report(const std::string &name, double nanoseconds, double seconds, double bytes) {
  std::printf("%-28s %8.1f M/s %8.2f ns", name.c_str(), 1e3 / nanoseconds, nanoseconds);
  if (bytes > 0)
    std::printf("   %6.2f s/GB of weights", seconds / bytes * 1e9);
  std::printf("\n");
}

static void kernels(const std::string &ptx) {
  CUmodule module;
  CU(cuModuleLoadDataEx, &module, ptx.c_str(), 0, nullptr, nullptr);
  auto function = [&](const char *name) {
    CUfunction found;
    CU(cuModuleGetFunction, &found, module, name);
    return found;
  };
  double seconds = 0;
  constexpr std::uint64_t K = 2048, N = 2048, Rows = 256;
  CUdeviceptr weights = upload(std::vector<std::uint8_t>(2 * N * K, 0x3c)),
              x = upload(std::vector<std::uint16_t>(Rows * K, 0x3f80)),
              y = upload(std::vector<std::uint16_t>(2 * Rows * K));
  double each = measure(function("gemv"), N / 8, 256, {weights, x, y, K, N}, seconds);
  report("gemv bf16", each, seconds, 2.0 * N * K);
  each = measure(function("gemm_w8a16"), N / 32, 128, {x, weights, y, K, N}, seconds);
  report("gemm w8a16, 16 rows", each, seconds, 1.0 * N * K);
  each = measure(function("rmsnorm"), Rows, 256, {x, weights, y, K}, seconds);
  report("rmsnorm", each, seconds, 0);
  each = measure(function("softmax"), 64, 128, {x, y, 1024}, seconds);
  report("softmax", each, seconds, 0);
  each = measure(function("branchy"), 64, 128, {x, y, 8192}, seconds);
  report("branchy", each, seconds, 0);
}

namespace {
struct Operation {
  const char *name, *text;
};
} // namespace

// %a %b %c: f32 or b32 values, %wa %wb: b64, %ha: b16, %p: predicate, %g: address per lane, %s:
// shared address.
static constexpr Operation Operations[] = {
    {"mov.b32", "mov.b32 %d0, %a;"},
    {"add.s32", "add.s32 %d0, %a, %b;"},
    {"add.s64", "add.s64 %wd, %wa, %wb;"},
    {"shl.b64", "shl.b64 %wd, %wa, 3;"},
    {"mul.wide.u32", "mul.wide.u32 %wd, %a, %b;"},
    {"lop3.b32", "lop3.b32 %d0, %a, %b, %c, 0xca;"},
    {"prmt.b32", "prmt.b32 %d0, %a, %b, 0x5410;"},
    {"fma.rn.f32", "fma.rn.f32 %d0, %a, %b, %c;"},
    {"add.rn.ftz.f32", "add.rn.ftz.f32 %d0, %a, %b;"},
    {"fma.rn.f32x2", "fma.rn.f32x2 %wd, %wa, %wb, %wa;"},
    {"setp.lt.f32", "setp.lt.f32 %q, %a, %b;"},
    {"selp.b32", "selp.b32 %d0, %a, %b, %p;"},
    {"div.rn.f32", "div.rn.f32 %d0, %a, %b;"},
    {"rsqrt.approx.f32", "rsqrt.approx.f32 %d0, %a;"},
    {"ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %d0, %a;"},
    {"lg2.approx.f32", "lg2.approx.f32 %d0, %a;"},
    {"cvt.f32.bf16", "cvt.f32.bf16 %d0, %ha;"},
    {"cvt.f32.f16", "cvt.f32.f16 %d0, %ha;"},
    {"cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %d0, %a, %b;"},
    {"cvt.rn.f16x2.e4m3x2", "cvt.rn.f16x2.e4m3x2 %d0, %ha;"},
    {"cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e4m3x2.f32 %hd, %a, %b;"},
    {"cvt.rn.f32.s32", "cvt.rn.f32.s32 %d0, %a;"},
    {"cvt.rzi.s32.f32", "cvt.rzi.s32.f32 %d0, %a;"},
    {"cvt.u64.u32", "cvt.u64.u32 %wd, %a;"},
    {"fma.rn.bf16x2", "fma.rn.bf16x2 %d0, %a, %b, %c;"},
    {"mov.b64 {}, unpack", "mov.b64 {%d0, %d1}, %wa;"},
    {"mov.b32 {}, unpack", "mov.b32 {%hd, %he}, %a;"},
    {"shfl.bfly 1", "shfl.sync.bfly.b32 %d0, %a, 1, 31, -1;"},
    {"shfl.idx", "shfl.sync.idx.b32 %d0, %a, %b, 31, -1;"},
    {"ld.global.b32", "ld.global.b32 %d0, [%g4];"},
    {"ld.global.v2.b32", "ld.global.v2.b32 {%d0, %d1}, [%g16];"},
    {"ld.global.v4.b32", "ld.global.v4.b32 {%d0, %d1, %d2, %d3}, [%g16];"},
    {"ld.global.v4.b32 gather", "ld.global.v4.b32 {%d0, %d1, %d2, %d3}, [%g32];"},
    {"ld.global.v4.b64", "ld.global.v4.b64 {%wd, %we, %wf, %wg}, [%g32];"},
    {"ld.global.b32 uniform", "ld.global.b32 %d0, [%g0];"},
    {"ld.global.b32 stride 16", "ld.global.b32 %d0, [%g16];"},
    {"ld.global.b16", "ld.global.b16 %hd, [%g2];"},
    {"st.global.b32", "st.global.b32 [%g4], %a;"},
    {"st.global.v4.b32", "st.global.v4.b32 [%g16], {%a, %b, %c, %a};"},
    {"ld.shared.b32", "ld.shared.b32 %d0, [%s4];"},
    {"ld.shared.b32 broadcast", "ld.shared.b32 %d0, [%s0];"},
    {"ld.shared.v4.b32", "ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%s16];"},
    {"st.shared.b32", "st.shared.b32 [%s4], %a;"},
    {"ldmatrix.x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%s16];"},
    {"cp.async 16", "cp.async.cg.shared.global [%s16], [%g16], 16;"},
    {"mma m16n8k16 bf16",
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%d0, %d1, %d2, %d3}, {%a, %b, %c, %a}, "
     "{%b, %c}, {%d0, %d1, %d2, %d3};"},
    {"mma m16n8k32 e4m3",
     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%d0, %d1, %d2, %d3}, {%a, %b, %c, %a}, "
     "{%b, %c}, {%d0, %d1, %d2, %d3};"},
    {"atom.global.add", "atom.global.add.u32 %d0, [%g4], %a;"},
    {"@p bra", "@%p bra L%=; L%=:"},
};

static std::string loopOf(const Operation &operation) {
  std::string body;
  for (int n = 0; n < 64; ++n) {
    std::string text = operation.text;
    for (std::size_t at; (at = text.find("%=")) != std::string::npos;)
      text.replace(at, 2, std::to_string(n));
    body += "  " + text + "\n";
  }
  std::string ptx = header() + R"(
.visible .entry k(.param .u64 buffer, .param .u32 times) {
  .reg .b32 %a, %b, %c, %d<4>, %i, %n, %t, %s0, %s4, %s16;
  .reg .b64 %wa, %wb, %wd, %we, %wf, %wg, %g0, %g2, %g4, %g16, %g32;
  .reg .b16 %ha, %hd, %he;
  .reg .pred %p, %q;
  .shared .align 16 .b8 sh[1024];
  ld.param.u64 %g0, [buffer]; ld.param.u32 %n, [times];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %g2, %t, 2, %g0; mad.wide.u32 %g4, %t, 4, %g0;
  mad.wide.u32 %g16, %t, 16, %g0; mad.wide.u32 %g32, %t, 32, %g0;
  mov.u32 %s0, sh; mad.lo.u32 %s4, %t, 4, %s0; mad.lo.u32 %s16, %t, 16, %s0;
  cvt.rn.f32.u32 %a, %t; add.rn.f32 %b, %a, 0f3F800000; mul.rn.f32 %c, %a, %b;
  mov.b64 %wa, {%a, %b}; mov.b64 %wb, {%b, %c}; cvt.rn.bf16.f32 %ha, %a;
  setp.lt.u32 %p, %t, 64;
  mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0; mov.u32 %i, 0;
LOOP:
)" + body + R"(
  add.u32 %i, %i, 1;
  setp.lt.u32 %q, %i, %n;
  @%q bra LOOP;
  ret;
}
)";
  return ptx;
}

int main(int argc, char **argv) {
  if (argc < 2)
    die("usage: planemu-bench FILE [OPERATION...]");
  open();
  api().setThreads(1);
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  kernels(text.str());
  CUdeviceptr buffer = upload(std::vector<std::uint32_t>(1024));
  for (const Operation &operation : Operations) {
    bool wanted = argc == 2;
    for (int n = 2; n < argc; ++n)
      wanted |= std::string(operation.name).find(argv[n]) != std::string::npos;
    if (!wanted)
      continue;
    double seconds = 0;
    double each = measure(load(loopOf(operation), "k"), 1, 32, {buffer, 2000}, seconds);
    report(operation.name, each, seconds, 0);
  }
  return 0;
}
