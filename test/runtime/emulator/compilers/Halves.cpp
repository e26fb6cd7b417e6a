//===- Halves.cpp - sixteen- and eight-bit floats -------------------------===//
//
// test/Inputs/emulator/halves.cu. Arithmetic is exact in double and rounded once, so it is compared
// bit for bit; the functions have an error of their own.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>

using namespace compilers;

static std::vector<std::uint16_t> codes(Random &random, const Format &format, int count) {
  std::vector<std::uint16_t> values =
      encode(format, {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 65504.0f, 1e-7f, -6e-8f, 1000.0f, -3.25f,
                      2.0f, INFINITY, -INFINITY, NAN});
  while (values.size() < static_cast<std::size_t>(count))
    values.push_back(format.encode(std::ldexp(random.real(-1, 1), random.below(16) - 6)));
  return values;
}

/// NaN codes are compared as such: which of them a format's NaN is has its own tests.
static void expectCodes(const char *what, const Format &format, std::vector<std::uint16_t> got,
                        std::vector<std::uint16_t> want) {
  for (auto *all : {&got, &want})
    for (std::uint16_t &code : *all)
      if (std::isnan(format.decode(code)))
        code = 0x7fff;
  expectEqual(what, got, want);
}

static double relu(double value) { return std::isnan(value) || value > 0 ? value : 0.0; }
static double saturated(double value) {
  return std::isnan(value) ? 0.0 : std::clamp(value, 0.0, 1.0);
}
/// Max and min drop a NaN; -0 is less than +0.
static double most(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
static double least(double a, double b) { return -most(-a, -b); }

static void halfMath(Module &module, Random &random) {
  constexpr int N = 150; // pairs
  auto a = codes(random, F16, 2 * N), b = codes(random, F16, 2 * N);
  std::rotate(b.begin(), b.begin() + 3, b.end());
  std::vector<std::uint16_t> want(32 * N);
  for (int i = 0; i < N; ++i) {
    double u[2], v[2];
    for (int h = 0; h < 2; ++h) {
      u[h] = F16.decode(a[2 * i + h]);
      v[h] = F16.decode(b[2 * i + h]);
    }
    std::uint16_t *to = want.data() + 32 * i;
    for (int h = 0; h < 2; ++h, ++to) {
      double x = u[h], y = v[h];
      to[0] = F16.encode(x + y);
      to[2] = F16.encode(x - y);
      to[4] = F16.encode(x * y);
      to[6] = F16.encode(x * y + x);
      to[8] = F16.encode(most(x, y));
      to[10] = F16.encode(least(x, y));
      to[12] = F16.encode(std::fabs(x));
      to[14] = F16.encode(relu(x * y + y));
      to[16] = F16.encode(saturated(x + y));
      to[18] = F16.encode(x / y);
      to[20] = F16.encode(std::sqrt(std::fabs(x)));
      to[22] = F16.encode(x > y);
      to[24] = F16.encode(std::floor(x));
      to[28] = F16.encode(u[1 - h]);
    }
    to -= 2;
    to[26] = F16.encode(u[0] * v[1]);
    to[27] = F16.encode(u[0] + 0.5);
    to[30] = F16.encode(u[0] < v[0] ? u[0] : v[1]);
    to[31] = F16.encode(std::isnan(u[1]) ? v[0] : u[1]);
  }
  Buffer<std::uint16_t> da(a), db(b), dy(32 * N);
  module.run("half_math", {.gridX = 2, .blockX = 96}, da, db, dy, N);
  expectCodes("half_math", F16, dy.got, want);
}

static void bfloatMath(Module &module, Random &random) {
  constexpr int N = 150;
  auto a = codes(random, Bf16, 2 * N), b = codes(random, Bf16, 2 * N);
  std::rotate(b.begin(), b.begin() + 5, b.end());
  std::vector<std::uint16_t> want(24 * N);
  for (int i = 0; i < N; ++i) {
    std::uint16_t *to = want.data() + 24 * i;
    for (int h = 0; h < 2; ++h, ++to) {
      double x = Bf16.decode(a[2 * i + h]), y = Bf16.decode(b[2 * i + h]),
             other = Bf16.decode(b[2 * i + 1 - h]);
      to[0] = Bf16.encode(x + y);
      to[2] = Bf16.encode(x - y);
      to[4] = Bf16.encode(x * y);
      to[6] = Bf16.encode(x * y + x);
      to[8] = Bf16.encode(most(x, y));
      to[10] = Bf16.encode(least(x, y));
      to[12] = Bf16.encode(std::fabs(x));
      to[14] = Bf16.encode(relu(x * y + y));
      to[16] = Bf16.encode(x <= y);
      to[18] = Bf16.encode(1 / y);
      to[20] = Bf16.encode(std::sqrt(std::fabs(x)));
      to[22] = Bf16.encode(h ? x + other : x * other);
    }
  }
  Buffer<std::uint16_t> da(a), db(b), dy(24 * N);
  module.run("bfloat_math", {.gridX = 2, .blockX = 96}, da, db, dy, N);
  expectCodes("bfloat_math", Bf16, dy.got, want);
}

static void functions(Module &module, Random &random) {
  auto x = encode(F16, random.reals(200, -6, 6));
  int n = static_cast<int>(x.size());
  Buffer<std::uint16_t> dx(x), dy(x.size() * 8);
  module.run("half_functions", {.blockX = 224}, dx, dy, n);
  std::vector<double> want, got = widen(F16, dy.got);
  for (std::uint16_t code : x) {
    double u = F16.decode(code),
           v = F16.decode(F16.encode(std::fabs(u) + F16.decode(F16.encode(0.01))));
    for (double value : {std::exp(u), std::exp2(u), std::log(v), 1 / v, 1 / std::sqrt(v),
                         std::sin(u), std::tanh(u), std::tanh(u)})
      want.push_back(value);
  }
  expectNear("half_functions", got, want, 0x1p-10, 2e-4);
}

static void conversions(Module &module, Random &random) {
  auto x = random.reals(200, -300, 300);
  for (int i = 0; i < 100; ++i)
    x.push_back(std::ldexp(random.real(-1, 1), random.below(40) - 22));
  x.insert(x.end(), {0.0f, -0.0f, 1.0f, 448.0f, -464.0f, 500.0f, 57344.0f, 65519.0f, 65520.0f,
                     1e-9f, -1e-9f});
  int n = static_cast<int>(x.size());
  Buffer<float> dx(x), dz(x.size() * 4);
  Buffer<std::uint16_t> dy(x.size() * 12);
  module.run("conversions", {.gridX = 3, .blockX = 128}, dx, dy, dz, n);
  std::vector<std::uint16_t> want;
  std::vector<double> wide;
  // Satfinite: what is too large becomes the greatest number.
  auto e5m2 = [](double v) { return E5m2.encode(std::clamp(v, -57344.0, 57344.0)); };
  for (float v : x) {
    want.push_back(F16.encode(v));
    want.push_back(F16.encode(v, Format::Zero));
    want.push_back(F16.encode(v, Format::Up));
    want.push_back(F16.encode(double(v) * 1.0000001));
    want.push_back(Bf16.encode(v));
    want.push_back(Bf16.encode(v, Format::Down));
    want.push_back(F16.encode(static_cast<int>(v * 100)));
    double half = F16.decode(F16.encode(v));
    want.push_back(static_cast<std::uint16_t>(
        static_cast<int>(std::trunc(std::clamp(half, -32768.0, 32767.0)))));
    want.push_back(E4m3.encode(v));
    want.push_back(e5m2(v));
    want.push_back(static_cast<std::uint16_t>(E4m3.encode(v) | E4m3.encode(-v * 0.5f) << 8));
    want.push_back(
        static_cast<std::uint16_t>(e5m2(half) | e5m2(F16.decode(F16.encode(v * 2))) << 8));
    wide.push_back(E4m3.decode(E4m3.encode(v)));
    wide.push_back(E5m2.decode(e5m2(v)));
    wide.push_back(static_cast<float>(half) + static_cast<float>(Bf16.decode(Bf16.encode(v))));
    float sum = 0;
    for (int power = 0; power < 4; ++power)
      sum += static_cast<float>(E4m3.decode(E4m3.encode(std::ldexp(v, power))));
    wide.push_back(sum);
  }
  expectEqual("conversions to narrow", dy.got, want);
  expectNear("conversions to wide", widen(dz.got), wide, 1e-7);
}

void compilers::halves(Module &module) {
  Random random;
  for (auto test : {halfMath, bfloatMath, functions, conversions})
    test(module, random);
}
