//===- Bench.cpp - planemu-bench: speed of the emulator -------------------===//
//
//   planemu-bench KERNELS.ptx GEMV_FP8.ptx [--threads N] [--operations [NAME]]
//
// KERNELS is test/Inputs/emulator/kernels.nvcc.ptx. Runs weight streaming and matrix kernels of a
// large model's shapes on one thread and on N (2), and prints milliseconds, millions of warp
// instructions a second, seconds per GB of weights, and how much faster N threads are; the same kernels
// compiled, on one thread, and what compiling them takes; then what loading a module takes for each of
// its kernels. --operations adds loops of one instruction each.
//
// Times are of this machine and this run. The exit code is 1 if N = 2 threads are less than 1.7 times
// as fast as one.
//===----------------------------------------------------------------------===//

#include "planemu/planemu.h"
#include "test/runtime/emulator/Emulator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace emutest;

static double secondsNow() {
  std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

static std::string contents(const char *path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    die(std::string("cannot read ") + path);
  return text.str();
}

namespace {
struct Measured {
  double seconds = 1e30, instructions = 0; // of a launch: the fastest of several
};
} // namespace

static void measure(Measured &best, CUfunction function, unsigned grid, unsigned block,
                    const std::vector<std::uint64_t> &arguments) {
  std::uint64_t before = api().warpInstructions();
  double start = secondsNow();
  check(launch(function, grid, block, arguments), "launch");
  double took = secondsNow() - start;
  if (took < best.seconds)
    best = {took, static_cast<double>(api().warpInstructions() - before)};
}

/// The four kernels that others are compared with. True if `threads` are enough faster than one.
static bool kernels(const std::string &themes, const std::string &fp8, unsigned threads) {
  CUmodule module, fp8Module;
  CU(cuModuleLoadDataEx, &module, themes.c_str(), 0, nullptr, nullptr);
  CU(cuModuleLoadDataEx, &fp8Module, fp8.c_str(), 0, nullptr, nullptr);
  auto function = [](CUmodule from, const char *name) {
    CUfunction found;
    CU(cuModuleGetFunction, &found, from, name);
    return found;
  };
  constexpr std::uint64_t K = 2048, Vocabulary = 31040, N = 12288, Rows = 2000;
  CUdeviceptr weights = upload(std::vector<std::uint8_t>(2 * Vocabulary * K, 0x3c)),
              x = upload(std::vector<std::uint16_t>(Rows * K, 0x3f80)),
              y = upload(std::vector<std::uint16_t>(2 * Rows * K));
  struct {
    const char *name;
    CUfunction function;
    unsigned grid, block;
    std::vector<std::uint64_t> arguments;
    double weightBytes;
    Measured one = {}, many = {}, compiled = {};
    double first = 0; // seconds of the launch that compiles
  } rows[] = {
      {"GEMM w8a16, 16 x 12288 x 2048",
       function(module, "gemm_w8a16"),
       N / 32,
       128,
       {x, weights, y, K, N},
       1.0 * N * K},
      {"GEMV bf16, 31040 x 2048",
       function(module, "gemv"),
       Vocabulary / 8,
       256,
       {weights, x, y, K, Vocabulary},
       2.0 * Vocabulary * K},
      {"GEMV fp8, 12288 x 2048",
       function(fp8Module, "gemv_fp8"),
       N / 8,
       256,
       {weights, x, y, K, N},
       1.0 * N * K},
      {"RMSNorm, 2000 rows of 2048", function(module, "rmsnorm"), Rows, 256, {x, weights, y, K}, 0},
  };
  std::printf("%-32s %9s %9s %7s %9s %9s %7s\n", "", "ms", "M inst/s", "s/GB",
              ("ms, " + std::to_string(threads)).c_str(), "M inst/s", "faster");
  bool compiles = api().setJit(PLANEMU_JIT_ALWAYS) == 0;
  // By turns, so that what else the machine does for a while meets all.
  for (int n = 0; n < 20; ++n)
    for (auto &row : rows) {
      api().setThreads(1);
      if (compiles) {
        api().setJit(PLANEMU_JIT_ALWAYS);
        measure(row.compiled, row.function, row.grid, row.block, row.arguments);
        row.first = n ? row.first : row.compiled.seconds;
        api().setJit(PLANEMU_JIT_OFF);
      }
      measure(row.one, row.function, row.grid, row.block, row.arguments);
      api().setThreads(threads);
      measure(row.many, row.function, row.grid, row.block, row.arguments);
    }
  bool enough = true;
  for (const auto &[name, function, grid, block, arguments, weightBytes, one, many, compiled,
                    first] : rows) {
    auto rate = [](const Measured &m) { return 1e-6 * m.instructions / m.seconds; };
    double faster = one.seconds / many.seconds;
    enough &= faster >= 1.7;
    std::printf(
        "%-32s %9.1f %9.1f %7s %9.1f %9.1f %6.2fx\n", name, 1e3 * one.seconds, rate(one),
        weightBytes > 0 ? std::to_string(one.seconds / weightBytes * 1e9).substr(0, 4).c_str() : "",
        1e3 * many.seconds, rate(many), faster);
  }
  if (!compiles)
    std::printf("not compiled: %s\n", api().lastError());
  for (const auto &row : rows)
    if (compiles)
      std::printf("%-32s %9.1f ms compiled, %.2f times as fast; compiling takes %.0f ms\n",
                  row.name, 1e3 * row.compiled.seconds, row.one.seconds / row.compiled.seconds,
                  1e3 * (row.first - row.compiled.seconds));
  return enough || threads != 2;
}

/// Milliseconds to load a module, for each of its kernels.
static void loading(const std::string &name, const std::string &ptx) {
  std::size_t entries = 0;
  for (std::size_t at = ptx.find(".entry"); at != std::string::npos;
       at = ptx.find(".entry", at + 1))
    ++entries;
  double best = 1e30;
  for (int n = 0; n < 5; ++n) {
    double start = secondsNow();
    CUmodule module;
    CU(cuModuleLoadDataEx, &module, ptx.c_str(), 0, nullptr, nullptr);
    best = std::min(best, secondsNow() - start);
    CU(cuModuleUnload, module);
  }
  std::printf("load %-27s %9.2f ms a kernel, %zu kernels\n", name.c_str(),
              1e3 * best / static_cast<double>(entries), entries);
}

namespace {
struct Operation {
  const char *name, *text;
};
} // namespace

// %a %b %c: f32 or b32 values, %wa %wb: b64, %ha: b16, %p: predicate, %g: address per lane, %s:
// shared address. A guard that is true keeps what nobody reads from being left out.
static constexpr Operation Operations[] = {
    {"mov.b32", "@%p mov.b32 %d0, %a;"},
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
    {"cvt.rn.f16x2.e4m3x2", "@%p cvt.rn.f16x2.e4m3x2 %d0, %ha;"},
    {"cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e4m3x2.f32 %hd, %a, %b;"},
    {"cvt.rn.f32.s32", "cvt.rn.f32.s32 %d0, %a;"},
    {"cvt.rzi.s32.f32", "cvt.rzi.s32.f32 %d0, %a;"},
    {"cvt.u64.u32", "cvt.u64.u32 %wd, %a;"},
    {"fma.rn.bf16x2", "fma.rn.bf16x2 %d0, %a, %b, %c;"},
    {"mov.b64 {}, unpack", "mov.b64 {%d0, %d1}, %wa;"},
    {"mov.b32 {}, unpack", "@%p mov.b32 {%hd, %he}, %a;"},
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

static void operations(const std::string &wanted) {
  api().setThreads(1);
  CUdeviceptr buffer = upload(std::vector<std::uint32_t>(1024));
  for (const Operation &operation : Operations) {
    if (std::string(operation.name).find(wanted) == std::string::npos)
      continue;
    Measured took;
    CUfunction loop = load(loopOf(operation), "k");
    for (int n = 0; n < 5; ++n)
      measure(took, loop, 1, 32, {buffer, 2000});
    std::printf("%-28s %8.1f M/s %8.2f ns\n", operation.name,
                1e-6 * took.instructions / took.seconds, 1e9 * took.seconds / took.instructions);
  }
}

int main(int argc, char **argv) {
  unsigned threads = 2;
  bool withOperations = false;
  std::string wanted;
  std::vector<const char *> files;
  for (int n = 1; n < argc; ++n) {
    std::string argument = argv[n];
    if (argument == "--threads" && n + 1 < argc) {
      threads = static_cast<unsigned>(std::stoul(argv[++n]));
    } else if (argument == "--operations") {
      withOperations = true;
      wanted = n + 1 < argc ? argv[++n] : "";
    } else {
      files.push_back(argv[n]);
    }
  }
  if (files.size() != 2)
    die("usage: planemu-bench KERNELS.ptx GEMV_FP8.ptx [--threads N] [--operations [NAME]]");
  std::string themes = contents(files[0]), fp8 = contents(files[1]);
  open();
  bool enough = kernels(themes, fp8, threads);
  loading("kernels.nvcc.ptx", themes);
  loading("gemv_fp8.nvcc.ptx", fp8);
  if (withOperations)
    operations(wanted);
  if (!enough)
    std::printf("two threads are less than 1.7 times as fast as one\n");
  return !enough;
}
