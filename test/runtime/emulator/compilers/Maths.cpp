//===- Maths.cpp - the CUDA math library ----------------------------------===//
//
// test/Inputs/emulator/maths.cu. The tolerances are the library's documented bounds, or a few times
// them where several results are added.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <climits>

using namespace compilers;

/// Element `column` of every row of `columns`.
template <class T>
static std::vector<double> column(const std::vector<T> &values, int columns, int column) {
  std::vector<double> picked;
  for (std::size_t n = static_cast<std::size_t>(column); n < values.size();
       n += static_cast<std::size_t>(columns))
    picked.push_back(values[n]);
  return picked;
}

template <class T> struct Row {
  const char *what;
  double relative, absolute;
  double (*host)(T);
};

template <class T, std::size_t N>
static void compare(const std::vector<T> &got, int columns, const std::vector<T> &x,
                    const Row<T> (&table)[N]) {
  for (std::size_t n = 0; n < N; ++n) {
    std::vector<double> want;
    for (T v : x)
      want.push_back(table[n].host(v));
    expectNear(table[n].what, column(got, columns, static_cast<int>(n)), want, table[n].relative,
               table[n].absolute);
  }
}

/// fabsf(v) + 0.001f as the kernels form it.
static double positive(float v) { return std::fabs(v) + 0.001f; }
static double positive(double v) { return std::fabs(v) + 0.001; }
/// The products that kernels form in single precision before they call a function.
static double scaled(float v, float factor) { return v * factor; }

static void single(Module &module, Random &random) {
  auto x = random.reals(300, -60, 60);
  x.insert(x.end(), {1.0f, -1.0f, 3.0f, 0.5f, 1e-6f, -1e-6f, 1e-20f, 59.5f});
  int n = static_cast<int>(x.size());
  Buffer<float> dx(x), dy(x.size() * 24);
  module.run("single_math", {.gridX = 4, .blockX = 96}, dx, dy, n);
  static const Row<float> Table[] = {
      {"sinf", 3e-7, 1e-7, [](float v) { return std::sin(double(v)); }},
      {"cosf", 3e-7, 1e-7, [](float v) { return std::cos(double(v)); }},
      {"expf", 3e-7, 0, [](float v) { return std::exp(scaled(v, 0.25f)); }},
      {"logf", 2e-7, 1e-8, [](float v) { return std::log(positive(v)); }},
      {"powf", 6e-7, 0, [](float v) { return std::pow(positive(v), double(0.7f)); }},
      {"powf of a cube", 6e-7, 1e-37, [](float v) { return std::pow(double(v), 3.0); }},
      {"erff", 3e-7, 1e-37, [](float v) { return std::erf(scaled(v, 0.1f)); }},
      {"tanhf", 3e-7, 0, [](float v) { return std::tanh(scaled(v, 0.1f)); }},
      {"tanf", 6e-7, 0, [](float v) { return std::tan(scaled(v, 0.01f)); }},
      {"atanf", 3e-7, 0, [](float v) { return std::atan(double(v)); }},
      {"sqrtf", 6e-8, 0, [](float v) { return std::sqrt(positive(v)); }},
      {"cbrtf", 2e-7, 0, [](float v) { return std::cbrt(double(v)); }},
      {"fmodf", 0, 0, [](float v) { return std::fmod(double(v), 3.0); }},
      {"roundings", 1e-6, 1e-5,
       [](float v) {
         return std::floor(v) + std::ceil(scaled(v, 0.5f)) + std::trunc(v) + std::round(v) +
                std::rint(v);
       }},
      {"reciprocal", 6e-8, 0, [](float v) { return 1.0 / v; }},
      {"division", 6e-8, 0, [](float v) { return v / 3.0; }},
      {"log2f, log10f", 4e-7, 1e-7,
       [](float v) { return std::log2(positive(v)) + std::log10(positive(v)); }},
      {"exp2f, exp10f", 1e-6, 0,
       [](float v) { return std::exp2(scaled(v, 0.1f)) + std::pow(10, scaled(v, 0.01f)); }},
      {"atan2f", 4e-7, 0, [](float v) { return std::atan2(double(v), 2.5); }},
      {"hypotf", 3e-7, 0, [](float v) { return std::hypot(double(v), 4.0); }},
      {"sinhf, coshf", 1e-6, 0,
       [](float v) { return std::sinh(scaled(v, 0.02f)) + std::cosh(scaled(v, 0.02f)); }},
      {"rsqrtf", 3e-7, 0, [](float v) { return 1 / std::sqrt(positive(v)); }},
      {"fminf, fmaxf, copysignf", 1e-6, 1e-6,
       [](float v) { return std::min(v, 1.0f) + std::max(v, -1.0f) + std::copysign(2.0, v); }},
      {"lgammaf", 2e-6, 2e-6, [](float v) { return std::lgamma(positive(v)); }},
  };
  compare(dy.got, 24, x, Table);
}

static void large(Module &module, Random &random) {
  std::vector<float> x = {1e5f, -1.1e5f, 2e5f, 1e10f, -3e20f, 1e38f, INFINITY, NAN};
  for (int i = 0; i < 100; ++i)
    x.push_back(std::ldexp(random.real(-1, 1), random.below(128)));
  int n = static_cast<int>(x.size());
  Buffer<float> dx(x), dy(x.size() * 2);
  module.run("large_arguments", {.blockX = 128}, dx, dy, n);
  static const Row<float> Table[] = {
      {"sinf, large", 3e-7, 1e-7, [](float v) { return std::sin(double(v)); }},
      {"cosf, large", 3e-7, 1e-7, [](float v) { return std::cos(double(v)); }},
  };
  compare(dy.got, 2, x, Table);
}

static void doubles(Module &module, Random &random) {
  std::vector<double> x;
  for (float v : random.reals(200, -60, 60))
    x.push_back(v * 1.0000000123);
  x.insert(x.end(), {1.0, -1.0, 1e-9, -1e-9, 1e-300, 12345.678, -99999.25});
  int n = static_cast<int>(x.size());
  Buffer<double> dx(x), dy(x.size() * 12);
  module.run("double_math", {.gridX = 2, .blockX = 128}, dx, dy, n);
  static const Row<double> Table[] = {
      {"sin", 4e-16, 4e-16, [](double v) { return std::sin(v); }},
      {"cos", 4e-16, 4e-16, [](double v) { return std::cos(v); }},
      {"exp", 4e-16, 0, [](double v) { return std::exp(v * 0.25); }},
      {"log", 4e-16, 1e-16, [](double v) { return std::log(positive(v)); }},
      {"pow", 6e-16, 0, [](double v) { return std::pow(positive(v), 0.7); }},
      {"sqrt", 0, 0, [](double v) { return std::sqrt(positive(v)); }},
      {"reciprocal", 0, 0, [](double v) { return 1 / v; }},
      {"division", 0, 0, [](double v) { return v / 3; }},
      {"tanh", 6e-16, 0, [](double v) { return std::tanh(v * 0.1); }},
      {"fmod", 0, 0, [](double v) { return std::fmod(v, 3); }},
      {"roundings", 1e-15, 0,
       [](double v) {
         return std::rint(v) + std::floor(v) + double(static_cast<std::int64_t>(v * 1000));
       }},
      {"rsqrt", 4e-16, 0, [](double v) { return 1 / std::sqrt(positive(v)); }},
  };
  compare(dy.got, 12, x, Table);
}

static void fast(Module &module, Random &random) {
  auto x = random.reals(300, -20, 20);
  int n = static_cast<int>(x.size());
  Buffer<float> dx(x), dy(x.size() * 12);
  module.run("fast_math", {.gridX = 4, .blockX = 96}, dx, dy, n);
  static const Row<float> Table[] = {
      {"__sinf", 0, 1e-6, [](float v) { return std::sin(scaled(v, 0.1f)); }},
      {"__cosf", 0, 1e-6, [](float v) { return std::cos(scaled(v, 0.1f)); }},
      {"__expf", 1e-6, 0, [](float v) { return std::exp(scaled(v, 0.1f)); }},
      {"__logf", 1e-6, 1e-6, [](float v) { return std::log(positive(v)); }},
      {"__powf", 2e-6, 0, [](float v) { return std::pow(positive(v), double(0.7f)); }},
      {"__fdividef", 3e-7, 0, [](float v) { return v / 3.0; }},
      {"__frsqrt_rn", 6e-8, 0, [](float v) { return 1 / std::sqrt(positive(v)); }},
      {"directed roundings", 1e-6, 1e-6, [](float v) { return v * 2.2 + 0.4; }},
      {"__frcp_rn", 6e-8, 0, [](float v) { return 1 / positive(v); }},
      {"__saturatef", 0, 0, [](float v) { return double(std::clamp(v, 0.0f, 1.0f)); }},
      {"__fsqrt_rn", 6e-8, 0, [](float v) { return std::sqrt(positive(v)); }},
      {"__log2f, __exp10f", 1e-6, 1e-6,
       [](float v) { return std::log2(positive(v)) + std::pow(10, scaled(v, 0.01f)); }},
  };
  compare(dy.got, 12, x, Table);
}

template <class T> static T saturated(double value) {
  if (std::isnan(value))
    return sizeof(T) == 8 ? std::numeric_limits<T>::min() : 0;
  if (value <= double(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= double(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

static void specialCases(Module &module) {
  std::vector<float> x = {0.0f, -0.0f,       1.0f,          -1.0f,          0.5f,     1.5f,
                          2.5f, -2.5f,       1e-40f,        -1e-40f,        3e9f,     -3e9f,
                          5e9f, 1e19f,       -1e19f,        1e30f,          INFINITY, -INFINITY,
                          NAN,  0.99999994f, 2147483520.0f, -2147483648.0f, 123.75f};
  int n = static_cast<int>(x.size());
  Buffer<float> dx(x);
  Buffer<int> dy(x.size() * 8);
  module.run("special_cases", {}, dx, dy, n);
  std::vector<int> want;
  auto raw = [](float v) {
    int bits;
    std::memcpy(&bits, &v, 4);
    return bits;
  };
  for (float v : x) {
    want.push_back(std::isnan(v) | std::isinf(v) << 1 | std::isfinite(v) << 2 |
                   (std::signbit(v) ? 8 : 0));
    want.push_back(saturated<int>(v));
    want.push_back(static_cast<int>(saturated<unsigned>(v)));
    want.push_back(saturated<int>(std::nearbyint(v)));
    want.push_back(saturated<int>(std::floor(v)) ^ saturated<int>(std::ceil(v)));
    want.push_back(static_cast<int>(saturated<std::int64_t>(v) >> 16));
    // A NaN gives way to the other operand; -0 is less than +0.
    float least = std::isnan(v) ? 0.0f : v < 0 || (v == 0 && std::signbit(v)) ? v : 0.0f;
    float most = std::isnan(v) ? 0.0f : v > 0 ? v : 0.0f;
    want.push_back(raw(least) ^ raw(most));
    want.push_back((v < 1.0f) | (v >= 1.0f) << 1 | (v != v) << 2 | !(v > 1.0f) << 3 |
                   (v == 0.0f) << 4);
  }
  expectEqual("special_cases", dy.got, want);
}

void compilers::maths(Module &module) {
  Random random;
  for (auto test : {single, large, doubles, fast})
    test(module, random);
  specialCases(module);
}
