//===- Rows.cpp - softmax, norms, activations -----------------------------===//
//
// test/Inputs/emulator/rows.cu, against double. The tolerances are those of the CUDA math library's
// functions (1-2 ulp; __expf and ex2.approx 2 ulp) and of sums in f32.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>

using namespace compilers;

static std::vector<double> softmaxOnHost(const std::vector<float> &x, int n) {
  std::vector<double> want;
  for (auto row = x.begin(); row != x.end(); row += n) {
    double most = *std::max_element(row, row + n), sum = 0;
    for (int i = 0; i < n; ++i)
      sum += std::exp(row[i] - most);
    for (int i = 0; i < n; ++i)
      want.push_back(std::exp(row[i] - most) / sum);
  }
  return want;
}

static void softmax(Module &module, Random &random) {
  constexpr int Rows = 4, N = 517;
  auto x = random.reals(Rows * N, -30, 30);
  std::fill(x.begin() + N, x.begin() + 2 * N, -100.0f); // equal everywhere
  x[2 * N + 3] = -INFINITY;
  Buffer<float> dx(x), dy(Rows * N);
  module.run("softmax_rows", {.gridX = Rows, .blockX = 192}, dx, dy, N);
  expectNear("softmax_rows", widen(dy.got), softmaxOnHost(x, N), 3e-6, 1e-37);
  module.run("online_softmax", {.gridX = Rows}, dx, dy, N);
  expectNear("online_softmax", widen(dy.got), softmaxOnHost(x, N), 1e-5, 1e-37);
}

static void layernorm(Module &module, Random &random) {
  constexpr int Rows = 3, N = 1028;
  auto x = random.reals(Rows * N, 90, 110), scale = random.reals(N, -2, 2),
       shift = random.reals(N, -1, 1);
  Buffer<float> dx(x), ds(scale), dt(shift), dy(Rows * N);
  module.run("layernorm", {.gridX = Rows, .blockX = 128}, dx, ds, dt, dy, N / 4);
  std::vector<double> want;
  for (auto row = x.begin(); row != x.end(); row += N) {
    double mean = 0, variance = 0;
    for (int i = 0; i < N; ++i)
      mean += row[i] / double(N);
    for (int i = 0; i < N; ++i)
      variance += (row[i] - mean) * (row[i] - mean) / N;
    for (int i = 0; i < N; ++i)
      want.push_back((row[i] - mean) / std::sqrt(variance + 1e-5) * scale[i] + shift[i]);
  }
  expectNear("layernorm", widen(dy.got), want, 1e-5, 1e-5);
}

static void rmsnorm(Module &module, Random &random) {
  constexpr int Rows = 2, N = 300;
  auto x = encode(F16, random.reals(Rows * N, -2, 2)), w = encode(Bf16, random.reals(N, -2, 2));
  Buffer<std::uint16_t> dx(x), dw(w), dy(Rows * N);
  module.run("rmsnorm_half", {.gridX = Rows, .blockX = 64}, dx, dw, dy, N / 2);
  std::vector<double> want;
  for (int r = 0; r < Rows; ++r) {
    double sum = 0;
    for (int i = 0; i < N; ++i)
      sum += std::pow(F16.decode(x[r * N + i]), 2);
    for (int i = 0; i < N; ++i)
      want.push_back(F16.decode(x[r * N + i]) / std::sqrt(sum / N + 1e-6) * Bf16.decode(w[i]));
  }
  expectNear("rmsnorm_half", widen(F16, dy.got), want, 0x1p-11 * 1.001, 1e-7);
}

static void activations(Module &module, Random &random) {
  auto x = random.reals(250, -12, 12);
  x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -1e-30f, 50.0f, -80.0f});
  int n = static_cast<int>(x.size());
  Buffer<float> dx(x), dy(x.size() * 5);
  module.run("activations", {.gridX = 3, .blockX = 96}, dx, dy, n);
  std::vector<double> want;
  for (double v : x) {
    want.push_back(0.5 * v * (1 + std::erf(v * 0.70710678)));
    want.push_back(0.5 * v * (1 + std::tanh(0.79788456 * (v + 0.044715 * v * v * v))));
    want.push_back(v / (1 + std::exp(-v)));
    want.push_back(v > 20 ? v : std::log1p(std::exp(v)));
    want.push_back(v > 0 ? v : std::expm1(v));
  }
  // 1 + erf and 1 + tanh cancel on the negative side, exp(-v) overflows.
  expectNear("activations", widen(dy.got), want, 2e-6, 2e-6);
}

static void crossEntropy(Module &module, Random &random) {
  constexpr int Rows = 3, N = 259;
  auto x = random.reals(Rows * N, -5, 5);
  std::vector<int> labels = {17, -1, N - 1};
  Buffer<float> dx(x), loss(Rows);
  Buffer<int> dl(labels);
  module.run("cross_entropy", {.gridX = Rows, .blockX = 96}, dx, dl, loss, N);
  auto probabilities = softmaxOnHost(x, N);
  std::vector<double> want;
  for (int r = 0; r < Rows; ++r)
    want.push_back(labels[r] < 0 ? 0 : -std::log(probabilities[r * N + labels[r]]));
  expectNear("cross_entropy", widen(loss.got), want, 2e-6);
}

void compilers::rows(Module &module) {
  Random random;
  for (auto test : {softmax, layernorm, rmsnorm, activations, crossEntropy})
    test(module, random);
}
