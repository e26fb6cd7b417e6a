//===- Kernels.cpp - norms, gemv, split K, a quantised matrix -------------===//
//
// test/Inputs/emulator/kernels.cu: the kinds of kernels that a model's layers consist of, without a
// math library.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

using namespace compilers;

static void normalize(Module &module, Random &random) {
  constexpr int Rows = 5, N = 700;
  auto x = encode(Bf16, random.reals(Rows * N, -3, 3)), w = encode(Bf16, random.reals(N, -1, 1));
  Buffer<std::uint16_t> dx(x), dw(w), dy(Rows * N);
  module.run("rmsnorm", {.gridX = Rows, .blockX = 256}, dx, dw, dy, N);
  std::vector<double> want;
  for (int r = 0; r < Rows; ++r) {
    double sum = 0;
    for (int i = 0; i < N; ++i)
      sum += std::pow(Bf16.decode(x[r * N + i]), 2);
    for (int i = 0; i < N; ++i)
      want.push_back(Bf16.decode(x[r * N + i]) / std::sqrt(sum / N + 1e-6) *
                     (1.0 + Bf16.decode(w[i])));
  }
  expectNear("rmsnorm", widen(Bf16, dy.got), want, 4e-3, 1e-6);
}

static void softmax(Module &module, Random &random) {
  constexpr int Rows = 3, N = 333;
  auto x = random.reals(Rows * N, -8, 8);
  Buffer<float> dx(x), dy(Rows * N);
  module.run("softmax", {.gridX = Rows, .blockX = 128}, dx, dy, N);
  std::vector<double> want;
  for (int r = 0; r < Rows; ++r) {
    double sum = 0;
    for (int i = 0; i < N; ++i)
      sum += std::exp(double(x[r * N + i]));
    for (int i = 0; i < N; ++i)
      want.push_back(std::exp(double(x[r * N + i])) / sum);
  }
  expectNear("softmax", widen(dy.got), want, 2e-6);
}

static void gemv(Module &module, Random &random) {
  constexpr int N = 37, K = 1024;
  auto w = encode(Bf16, random.reals(N * K, -1, 1));
  auto x = random.reals(K, -1, 1);
  Buffer<std::uint16_t> dw(w);
  Buffer<float> dx(x), dy(N);
  module.run("gemv", {.gridX = (N + 7) / 8, .blockX = 256}, dw, dx, dy, K, N);
  std::vector<double> want(N);
  for (int n = 0; n < N; ++n)
    for (int k = 0; k < K; ++k)
      want[n] += Bf16.decode(w[n * K + k]) * x[k];
  expectNear("gemv", widen(dy.got), want, 0, 1e-4);
}

static void splitSum(Module &module, Random &random) {
  constexpr int N = 50000, Ctas = 24;
  auto x = random.reals(N, -1, 1);
  Buffer<float> dx(x), part(Ctas * 64), dout(64);
  Buffer<std::uint32_t> counter(std::vector<std::uint32_t>{0});
  std::vector<double> want(64);
  for (int i = 0; i < N; ++i)
    want[i % 64] += x[i];
  for (int repeat = 0; repeat < 10; ++repeat) {
    module.run("splitk", {.gridX = Ctas, .blockX = 64}, dx, part, counter, dout, N);
    expectNear("splitk", widen(dout.got), want, 0, 1e-3);
    expectEqual("splitk's counter", counter.got, std::vector<int>{0});
  }
}

static void gemm(Module &module, Random &random) {
  constexpr int N = 96, K = 256;
  auto x = encode(Bf16, random.reals(16 * K, -1, 1));
  std::vector<std::uint8_t> w(N * K);
  for (std::uint8_t &code : w)
    if (code = static_cast<std::uint8_t>(random.bits()); (code & 0x7f) == 0x7f)
      code ^= 0x55;
  Buffer<std::uint16_t> dx(x);
  Buffer<std::uint8_t> dw(w);
  Buffer<float> dy(16 * N);
  module.run("gemm_w8a16", {.gridX = N / 32, .blockX = 128}, dx, dw, dy, K, N);
  std::vector<double> want;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k)
        sum += Bf16.decode(x[m * K + k]) * E4m3.decode(w[n * K + k]);
      want.push_back(sum);
    }
  expectNear("gemm_w8a16", widen(dy.got), want, 0, 2e-2);
}

static double branchyOnHost(float v, int i) {
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
  return a;
}

static void branchy(Module &module, Random &random) {
  constexpr int N = 1000;
  auto x = random.reals(N, -40, 40);
  Buffer<float> dx(x), dy(N);
  module.run("branchy", {.gridX = 8, .blockX = 128}, dx, dy, N);
  std::vector<double> want;
  for (int i = 0; i < N; ++i)
    want.push_back(branchyOnHost(x[i], i));
  expectNear("branchy", widen(dy.got), want, 1e-4, 1e-4);
}

void compilers::kernels(Module &module) {
  Random random;
  for (auto test : {normalize, softmax, gemv, splitSum, gemm, branchy})
    test(module, random);
}
