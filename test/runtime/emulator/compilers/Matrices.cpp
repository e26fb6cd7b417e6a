//===- Matrices.cpp - tensor cores and transposition ----------------------===//
//
// test/Inputs/emulator/matrices.cu. The elements are small multiples of powers of two, so that sums
// are exact whatever the order in which they are formed.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

using namespace compilers;

/// a[m, k] * b[k, n], row-major.
static std::vector<double> multiply(const std::vector<double> &a, const std::vector<double> &b,
                                    int m, int n, int k) {
  std::vector<double> c(static_cast<std::size_t>(m * n));
  for (int row = 0; row < m; ++row)
    for (int depth = 0; depth < k; ++depth)
      for (int column = 0; column < n; ++column)
        c[row * n + column] += a[row * k + depth] * b[depth * n + column];
  return c;
}

/// Multiples of 1/4 in [-4, 4).
static std::vector<float> quarters(Random &random, std::size_t count) {
  std::vector<float> values;
  for (int value : random.ints(count, -16, 16))
    values.push_back(static_cast<float>(value) * 0.25f);
  return values;
}

static void tensorCores(Module &module, Random &random) {
  constexpr int M = 128, N = 192, K = 96;
  auto a = quarters(random, M * K), b = quarters(random, K * N);
  auto want = multiply(widen(a), widen(b), M, N, K);
  for (auto [name, format] : {std::pair{"gemm_bf16", Bf16}, std::pair{"gemm_f16", F16}}) {
    Buffer<std::uint16_t> da(encode(format, a)), db(encode(format, b));
    Buffer<float> dc(M * N);
    module.run(name, {.gridX = N / 64, .gridY = M / 64, .blockX = 128}, da, db, dc, N, K);
    expectEqual(name, dc.got, want);
  }
}

static void eightBits(Module &module, Random &random) {
  constexpr int N = 40, K = 128;
  std::vector<std::uint8_t> a(16 * K), b(N * K);
  for (auto *codes : {&a, &b})
    for (std::uint8_t &code : *codes) // 0, 2^-6 ... 1.875
      code = static_cast<std::uint8_t>(random.bits() & 0xbf);
  std::vector<double> want;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k)
        sum += E4m3.decode(a[m * K + k]) * E4m3.decode(b[n * K + k]);
      want.push_back(sum);
    }
  Buffer<std::uint8_t> da(a), db(b);
  Buffer<float> dc(16 * N);
  module.run("gemm_e4m3", {.blockX = N / 8 * 32}, da, db, dc, N, K);
  expectEqual("gemm_e4m3", dc.got, want);
}

static void plain(Module &module, Random &random) {
  constexpr int M = 64, N = 128, K = 37;
  auto a = quarters(random, M * K), b = quarters(random, K * N);
  Buffer<float> da(a), db(b), dc(M * N);
  module.run("gemm_f32", {.gridX = N / 64, .gridY = M / 64, .blockX = 256}, da, db, dc, N, K);
  expectEqual("gemm_f32", dc.got, multiply(widen(a), widen(b), M, N, K));
}

/// Elements of `Words` words of type T.
template <class T, int Words>
static void transposition(Module &module, const char *name, Random &random) {
  constexpr int Rows = 45, Columns = 70;
  std::vector<T> x, want(Rows * Columns * Words);
  for (int i = 0; i < Rows * Columns * Words; ++i)
    x.push_back(static_cast<T>(random.below(256)));
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c)
      for (int word = 0; word < Words; ++word)
        want[(c * Rows + r) * Words + word] = x[(r * Columns + c) * Words + word];
  Buffer<T> dx(x), dy(x.size());
  module.run(name, {.gridX = 3, .gridY = 2, .blockX = 32, .blockY = 8}, dx, dy, Rows, Columns);
  expectEqual(name, dy.got, want);
}

void compilers::matrices(Module &module) {
  Random random;
  tensorCores(module, random);
  if (module.has("gemm_e4m3")) // from sm_89
    eightBits(module, random);
  plain(module, random);
  transposition<std::uint8_t, 1>(module, "transpose_u8", random);
  transposition<double, 1>(module, "transpose_f64", random);
  transposition<float, 4>(module, "transpose_quads", random);
}
