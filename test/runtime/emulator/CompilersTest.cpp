//===- CompilersTest.cpp - kernels as compilers print them ----------------===//
//
// planemu-compilers-test FILE...: each file holds the kernels of test/Inputs/emulator/kernels.cu,
// compiled to PTX by some compiler. Every kernel runs on one and on two threads; the results must
// be equal bit for bit and near to what the host computes in double.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

using namespace emutest;

static std::uint32_t state = 12345;
static float uniform() { // [-1, 1)
  state = state * 1664525u + 1013904223u;
  return static_cast<float>(static_cast<std::int32_t>(state)) / 2147483648.0f;
}
static std::uint16_t bf16(float value) {
  std::uint32_t raw;
  std::memcpy(&raw, &value, 4);
  return static_cast<std::uint16_t>((raw + 0x7fff + (raw >> 16 & 1)) >> 16);
}
static float fromBf16(std::uint16_t value) {
  std::uint32_t raw = std::uint32_t(value) << 16;
  float wide;
  std::memcpy(&wide, &raw, 4);
  return wide;
}
static float fromE4m3(std::uint8_t code) {
  int exponent = code >> 3 & 15, fraction = code & 7;
  float value =
      exponent ? std::ldexp(1.0f + fraction / 8.0f, exponent - 7) : std::ldexp(fraction / 8.0f, -6);
  return code & 0x80 ? -value : value;
}

static bool failed = false;
static void compare(const char *what, const std::vector<float> &got,
                    const std::vector<double> &want, double relative, double absolute) {
  for (std::size_t n = 0; n < got.size(); ++n)
    if (!(std::fabs(got[n] - want[n]) <= absolute + relative * std::fabs(want[n]))) {
      std::printf("%s: element %zu is %.9g, not %.9g\n", what, n, got[n], want[n]);
      failed = true;
      return;
    }
}

/// Runs on one and on two threads.
static std::vector<float> run(CUmodule module, const char *name, unsigned grid, unsigned block,
                              std::vector<std::uint64_t> arguments, CUdeviceptr out,
                              std::size_t count) {
  CUfunction function;
  CU(cuModuleGetFunction, &function, module, name);
  std::vector<float> results[2];
  for (unsigned threads : {1u, 2u}) {
    api().setThreads(threads);
    CU(cuMemsetD8_v2, out, 0xff, count * 4);
    check(launch(function, grid, block, arguments), name);
    results[threads - 1] = download<float>(out, count);
  }
  if (std::memcmp(results[0].data(), results[1].data(), count * 4) != 0) {
    std::printf("%s: results differ between one and two threads\n", name);
    failed = true;
  }
  return results[0];
}

static void normalize(CUmodule module) {
  constexpr int Rows = 5, N = 700;
  std::vector<std::uint16_t> x(Rows * N), w(N);
  for (auto &v : x)
    v = bf16(uniform() * 3);
  for (auto &v : w)
    v = bf16(uniform());
  CUdeviceptr dx = upload(x), dw = upload(w), dy = upload(x);
  run(module, "rmsnorm", Rows, 256, {dx, dw, dy, N}, dy, Rows * N / 2);
  auto got = download<std::uint16_t>(dy, Rows * N);
  std::vector<float> values;
  std::vector<double> want;
  for (int r = 0; r < Rows; ++r) {
    double sum = 0;
    for (int i = 0; i < N; ++i)
      sum += double(fromBf16(x[r * N + i])) * fromBf16(x[r * N + i]);
    for (int i = 0; i < N; ++i) {
      want.push_back(fromBf16(x[r * N + i]) / std::sqrt(sum / N + 1e-6) * (1.0 + fromBf16(w[i])));
      values.push_back(fromBf16(got[r * N + i]));
    }
  }
  compare("rmsnorm", values, want, 4e-3, 1e-6);
}

static void softmax(CUmodule module) {
  constexpr int Rows = 3, N = 333;
  std::vector<float> x(Rows * N);
  for (auto &v : x)
    v = uniform() * 8;
  CUdeviceptr dx = upload(x), dy = upload(x);
  auto got = run(module, "softmax", Rows, 128, {dx, dy, N}, dy, Rows * N);
  std::vector<double> want;
  for (int r = 0; r < Rows; ++r) {
    double sum = 0;
    for (int i = 0; i < N; ++i)
      sum += std::exp(double(x[r * N + i]));
    for (int i = 0; i < N; ++i)
      want.push_back(std::exp(double(x[r * N + i])) / sum);
  }
  compare("softmax", got, want, 2e-6, 0);
}

static void gemv(CUmodule module) {
  constexpr int N = 37, K = 1024;
  std::vector<std::uint16_t> w(N * K);
  std::vector<float> x(K), y(N);
  for (auto &v : w)
    v = bf16(uniform());
  for (auto &v : x)
    v = uniform();
  CUdeviceptr dw = upload(w), dx = upload(x), dy = upload(y);
  auto got = run(module, "gemv", (N + 7) / 8, 256, {dw, dx, dy, K, N}, dy, N);
  std::vector<double> want(N);
  for (int n = 0; n < N; ++n)
    for (int k = 0; k < K; ++k)
      want[n] += double(fromBf16(w[n * K + k])) * x[k];
  compare("gemv", got, want, 0, 1e-4);
}

static void splitSum(CUmodule module) {
  constexpr int N = 50000, Ctas = 24;
  std::vector<float> x(N), part(Ctas * 64), out(64);
  std::vector<std::uint32_t> counter(1);
  for (auto &v : x)
    v = uniform();
  CUdeviceptr dx = upload(x), dp = upload(part), dc = upload(counter), dout = upload(out);
  std::vector<double> want(64);
  for (int i = 0; i < N; ++i)
    want[i % 64] += x[i];
  for (int repeat = 0; repeat < 20 && !failed; ++repeat)
    compare("splitk", run(module, "splitk", Ctas, 64, {dx, dp, dc, dout, N}, dout, 64), want, 0,
            1e-3);
  if (download<std::uint32_t>(dc, 1)[0] != 0) {
    std::printf("splitk: the counter is not reset\n");
    failed = true;
  }
}

static void gemm(CUmodule module) {
  constexpr int N = 96, K = 256;
  std::vector<std::uint16_t> x(16 * K);
  std::vector<std::uint8_t> w(N * K);
  std::vector<float> y(16 * N);
  for (auto &v : x)
    v = bf16(uniform());
  for (auto &v : w) {
    uniform();
    v = static_cast<std::uint8_t>(state >> 24);
    if ((v & 0x7f) == 0x7f)
      v ^= 0x55;
  }
  CUdeviceptr dx = upload(x), dw = upload(w), dy = upload(y);
  auto got = run(module, "gemm_w8a16", N / 32, 128, {dx, dw, dy, K, N}, dy, 16 * N);
  std::vector<double> want;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k)
        sum += double(fromBf16(x[m * K + k])) * fromE4m3(w[n * K + k]);
      want.push_back(sum);
    }
  compare("gemm_w8a16", got, want, 0, 2e-2);
}

static void branchy(CUmodule module) {
  constexpr int N = 1000;
  std::vector<float> x(N);
  for (auto &v : x)
    v = uniform() * 40;
  CUdeviceptr dx = upload(x), dy = upload(x);
  auto got = run(module, "branchy", 8, 128, {dx, dy, N}, dy, N);
  std::vector<double> want;
  for (int i = 0; i < N; ++i) {
    float v = x[i];
    int it = 0;
    while (v > 1.0f && it < 100) {
      v = (it & 1) ? v * 0.5f : std::log(v + 1.0f);
      ++it;
    }
    v = v > 0.5f ? std::sin(v * 3.0f) + v : std::sqrt(std::fabs(v) + 0.1f);
    switch (it % 5) {
    case 0:
      v += 1;
      break;
    case 1:
      v *= 2;
      break;
    case 2:
      v -= 3;
      break;
    case 3:
      v = -v;
      break;
    default:
      v = std::exp(v);
    }
    double a = v, b = 0.25 * i;
    for (int n = 0; n < (it & 7); ++n)
      a = a * 0.75 + b / (n + 1.5);
    want.push_back(a);
  }
  compare("branchy", got, want, 1e-4, 1e-4);
}

int main(int argc, char **argv) {
  open();
  for (int n = 1; n < argc; ++n) {
    std::ifstream file(argv[n]);
    std::stringstream text;
    text << file.rdbuf();
    CUmodule module;
    CU(cuModuleLoadDataEx, &module, text.str().c_str(), 0, nullptr, nullptr);
    for (auto test : {normalize, softmax, gemv, splitSum, gemm, branchy})
      test(module);
    CU(cuModuleUnload, module);
    std::printf("%s: %s\n", argv[n], failed ? "failed" : "ok");
  }
  return failed;
}
