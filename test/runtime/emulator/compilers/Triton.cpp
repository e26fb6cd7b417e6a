//===- Triton.cpp - kernels that Triton prints ----------------------------===//
//
// test/Inputs/emulator/print-triton.py, one kernel a file. 128 threads a block; the matrices go
// through 16 KiB of shared memory in three stages.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>

using namespace compilers;

// What every kernel takes behind its own parameters: scratch memory, of which none is used.
static constexpr std::uint64_t None = 0;

static void vectorAdd(Module &module, Random &random) {
  constexpr int N = 3008; // of 16 elements, not of 1024
  auto x = random.reals(N, -1, 1), y = random.reals(N, -1, 1);
  Buffer<float> dx(x), dy(y), out(N);
  module.run("vector_add", {.gridX = 3, .blockX = 128}, dx, dy, out, N, None, None);
  for (int i = 0; i < N; ++i)
    x[i] += y[i];
  expectEqual("vector_add", out.got, x);
}

static void softmax(Module &module, Random &random) {
  constexpr int Rows = 3, N = 800;
  auto x = random.reals(Rows * N, -20, 20);
  Buffer<float> dx(x), out(Rows * N);
  module.run("softmax", {.gridX = Rows, .blockX = 128, .shared = 16}, dx, out, N, None, None);
  std::vector<double> want;
  for (auto row = x.begin(); row != x.end(); row += N) {
    double sum = 0;
    for (int i = 0; i < N; ++i)
      sum += std::exp(double(row[i]));
    for (int i = 0; i < N; ++i)
      want.push_back(std::exp(double(row[i])) / sum);
  }
  expectNear("softmax", widen(out.got), want, 1e-5);
}

static void layerNorm(Module &module, Random &random) {
  constexpr int Rows = 4, N = 912;
  auto x = random.reals(Rows * N, -3, 5), weight = random.reals(N, -2, 2),
       bias = random.reals(N, -1, 1);
  Buffer<float> dx(x), dw(weight), db(bias), out(Rows * N);
  module.run("layer_norm", {.gridX = Rows, .blockX = 128, .shared = 16}, dx, dw, db, out, N, 1e-5f,
             None, None);
  std::vector<double> want;
  for (auto row = x.begin(); row != x.end(); row += N) {
    double mean = 0, variance = 0;
    for (int i = 0; i < N; ++i)
      mean += row[i] / double(N);
    for (int i = 0; i < N; ++i)
      variance += (row[i] - mean) * (row[i] - mean) / N;
    for (int i = 0; i < N; ++i)
      want.push_back((row[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i]);
  }
  expectNear("layer_norm", widen(out.got), want, 1e-5, 1e-5);
}

/// c[m, n] = a[m, k] * b[k, n], rounded to bf16; sums of small integers are exact.
static void matmul(Module &module, Random &random) {
  constexpr int M = 128, N = 64, K = 160;
  std::vector<float> a, b, want(M * N);
  for (int value : random.ints(M * K, -8, 8))
    a.push_back(static_cast<float>(value));
  for (int value : random.ints(K * N, -8, 8))
    b.push_back(static_cast<float>(value));
  for (int m = 0; m < M; ++m)
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n)
        want[m * N + n] += a[m * K + k] * b[k * N + n];
  Buffer<std::uint16_t> da(encode(Bf16, a)), db(encode(Bf16, b)), dc(M * N);
  module.run("matmul", {.gridX = M / 64, .gridY = N / 64, .blockX = 128, .shared = 16384}, da, db,
             dc, N, K, None, None);
  expectEqual("matmul", dc.got, encode(Bf16, want));
}

void compilers::triton(Module &module) {
  Random random;
  int kernels = 0;
  for (auto [name, test] : {std::pair{"vector_add", &vectorAdd}, std::pair{"softmax", &softmax},
                            std::pair{"layer_norm", &layerNorm}, std::pair{"matmul", &matmul}})
    if (module.has(name)) {
      test(module, random);
      ++kernels;
    }
  if (kernels == 0)
    report("none of Triton's kernels is in this file");
}
