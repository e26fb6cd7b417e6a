//===- MpfrTest.cpp - the reference's functions and roundings against MPFR -===//
//
// What the reference promises of itself (lib/Numerics/README.md): a function is within 2 ulp of
// float64 of its exact value, as long as that is a normal number; what is composed of functions
// moves with their arguments besides. The numbers that a step rounds are rounded once, correctly.
// MPFR computes with 256 bits here, so that its own roundings are nothing beside that.
//
//===----------------------------------------------------------------------===//

#include "Mpfr.h"
#include "Kernel.h"
#include "lib/Numerics/Bound.h"
#include "test/unit/Check.h"

#include <random>

using namespace planc::reference;
using namespace planc;

static const std::string kCompute = " steps<compute f32>";

/// Where float64 ends, results have the last digits that are left: far below any number of f32.
static constexpr double kSmallest = 0x1p-1022;

/// `value` must be within `units` times 2^-52 of `exact`, relative to it.
static void expect(const char *what, double argument, double value, const Real &exact,
                   double units) {
  if (double off = exact.distance(value);
      !(off <= units * 0x1p-52 * std::fabs(exact.nearest()) + kSmallest))
    check::fail(__FILE__, __LINE__,
                fmt::format("{}({:a}) = {:a}, exact {:a}: {:.3g} units off, {} allowed", what,
                            argument, value, exact.nearest(),
                            off / std::fabs(exact.nearest()) / 0x1p-52, units));
}

/// Both signs of numbers of all magnitudes from 2^low to 2^high, ends included, and a zero.
static std::vector<double> spread(int low, int high, int each, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values{0, std::ldexp(1.0, low), std::ldexp(1.0, high)};
  for (int exponent = low; exponent < high; ++exponent)
    for (int i = 0; i < each; ++i)
      values.push_back(std::ldexp(1 + double(random() >> 12) * 0x1p-52, exponent));
  for (size_t i = 1, count = values.size(); i < count; ++i)
    values.push_back(-values[i]);
  return values;
}

static Real sigmoidOf(double x) { return 1 / (1 + exp(-Real(x))); }

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

TEST(exponential) {
  for (double x : spread(-149, 9, 40, 1))
    expect("exp", x, numerics::exponential({x, 0}).value, exp(Real(x)), 1);
}

TEST(logarithm_of_one_plus) {
  for (double x : spread(-149, 127, 20, 2))
    if (x >= 0)
      expect("log1p", x, numerics::logOnePlus({x, 0}).value, log1p(Real(x)), 1);
}

TEST(softplus) {
  for (double x : spread(-149, 9, 40, 3))
    if (x <= 20)
      expect("softplus", x, logOnePlus(numerics::exponential({x, 0})).value, log1p(exp(Real(x))),
             2);
}

TEST(sigmoid) {
  for (double x : spread(-149, 12, 40, 4))
    expect("sigmoid", x, numerics::logistic({x, 0}).value, sigmoidOf(x), 2);
}

TEST(roots_and_reciprocals) {
  for (double x : spread(-149, 127, 20, 5))
    if (x > 0) {
      expect("rsqrt", x, numerics::inverseRoot({x, 0}).value, 1 / sqrt(Real(x)), 1);
      expect("rcp", x, numerics::reciprocal({x, 0}).value, 1 / Real(x), 0.5);
    }
}

//===----------------------------------------------------------------------===//
// Roundings
//===----------------------------------------------------------------------===//

static void expectRounded(double value) {
  struct Format {
    const char *name;
    double rounded;
    int precision, lowest;
  };
  // 8 and 24 bits; the smallest number is 2^-133 and 2^-149.
  for (auto [name, rounded, precision, lowest] :
       {Format{"bf", bf(value), 8, -133}, {"f32", f32(value), 24, -149}}) {
    double exact = roundedTo(value, precision, lowest, 128);
    if (std::bit_cast<uint64_t>(rounded) != std::bit_cast<uint64_t>(exact))
      check::fail(__FILE__, __LINE__,
                  fmt::format("{}({:a}) = {:a}, exact {:a}", name, value, rounded, exact));
  }
}

TEST(roundings_of_float64) {
  for (double value : spread(-180, 140, 100, 6))
    expectRounded(value);
}

TEST(ties_of_bf16_and_what_f32_cannot_tell_from_them) {
  for (uint32_t code = 0; code < 0x7F80; ++code) {
    double low = bf16ToFloat(uint16_t(code));
    double high = code == 0x7F7F ? 0x1p128 : bf16ToFloat(uint16_t(code + 1));
    double tie = (low + high) / 2;
    for (double value : {low, tie, std::nextafter(tie, 0), std::nextafter(tie, HUGE_VAL)})
      for (double sign : {1.0, -1.0})
        expectRounded(sign * value);
  }
}

//===----------------------------------------------------------------------===//
// Nodes: that the functions are put together as the op says
//===----------------------------------------------------------------------===//

static const std::vector<double> &resultOf(TestKernel &kernel, Result<Evaluation> &evaluation,
                                           size_t output = 0) {
  static const std::vector<double> none;
  evaluation = kernel.run();
  if (!evaluation.ok())
    check::fail(__FILE__, __LINE__, evaluation.error().message);
  return evaluation.ok() ? evaluation->output(output).exact : none;
}

/// A vector of `count` numbers that bf16 holds, of the magnitudes that gates see.
static std::vector<double> gatesOf(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values{0, -0.0, 20, -20, 88, -88, 104, -104, 0x1p127, -0x1p127, 0x1p-133};
  while (values.size() < count)
    values.push_back(bf(std::ldexp(double(int64_t(random())), int(random() % 24) - 80)));
  return values;
}

TEST(silu_of_a_node) {
  constexpr size_t kCount = 512;
  TestKernel kernel("%x: tensor<1x1024xbf16>",
                    "%y = plan.silu_mul %x precision<act = bf16, out = [f32]>" + kCompute +
                        " : (tensor<1x1024xbf16>) -> tensor<1x512xf32>\n"
                        "plan.yield %y : tensor<1x512xf32>");
  std::vector<double> gate = gatesOf(kCount, 7), row = gate;
  row.resize(2 * kCount, 1.0);
  Result<Evaluation> evaluation = inputError("not run");
  const std::vector<double> &y = resultOf(kernel.bf16(row), evaluation);
  for (size_t i = 0; i < y.size(); ++i)
    expect("silu", gate[i], y[i], gate[i] * sigmoidOf(gate[i]), 3);
}

TEST(gates_of_the_delta_rule) {
  constexpr size_t kHeads = 256;
  std::vector<double> b = gatesOf(kHeads, 8), a = gatesOf(kHeads, 9), rate = gatesOf(kHeads, 10);
  std::vector<double> row = b, bias(kHeads, 0.25);
  row.insert(row.end(), a.begin(), a.end());
  TestKernel kernel("%x: tensor<1x512xf32>, %a: !plan.weight<256, f32>, %b: !plan.weight<256, f32>",
                    "%d, %e = plan.gdn_gates %x, %a, %b precision<act = f32, out = [f32, f32]>" +
                        kCompute +
                        " : (tensor<1x512xf32>, !plan.weight<256, f32>, !plan.weight<256, f32>) -> "
                        "(tensor<1x256xf32>, tensor<1x256xf32>)\n"
                        "plan.yield %d, %e : tensor<1x256xf32>, tensor<1x256xf32>");
  Result<Evaluation> evaluation = inputError("not run");
  const std::vector<double> &decay = resultOf(kernel.f32(row).f32(rate).f32(bias), evaluation);
  for (size_t h = 0; h < decay.size(); ++h) {
    expect("beta", b[h], evaluation->output(1).exact[h], sigmoidOf(b[h]), 2);
    Real t = min(Real(a[h]) + Real(bias[h]), Real(20));
    Real exponent = exp(min(Real(rate[h]), Real(20))) * log1p(exp(t));
    // What rounding a + bias moves e^t by, and what exponents are off by, is that of the result.
    double size = exponent.nearest();
    if (size < 1000)
      expect("decay", a[h], decay[h], exp(-exponent), 1 + 5 * size);
    else
      CHECK_EQ(decay[h], 0);
  }
}

TEST(norms) {
  constexpr size_t kCount = 256;
  std::vector<double> x = gatesOf(kCount, 11);
  for (double &value : x) // squares that fit f32, as in a plan
    value = std::fabs(value) > 0x1p50 ? 0x1p50 : value;
  for (bool tiny : {false, true}) {
    if (tiny) // eps is all there is
      std::fill(x.begin(), x.end(), 0x1p-133);
    TestKernel kernel("%x: tensor<1x256xbf16>, %w: !plan.weight<256, bf16>",
                      "%y = plan.rms_norm %x, %w precision<act = bf16, out = [bf16]>" + kCompute +
                          " {eps = 1.0e-06 : f32, offset = 1.0 : f32} : (tensor<1x256xbf16>, "
                          "!plan.weight<256, bf16>) -> tensor<1x256xbf16>\n"
                          "plan.yield %y : tensor<1x256xbf16>");
    Result<Evaluation> evaluation = inputError("not run");
    std::vector<double> w(kCount, 0.5);
    const std::vector<double> &y = resultOf(kernel.bf16(x).bf16(w), evaluation);
    Real squares = 0;
    for (double value : x)
      squares = squares + Real(value) * Real(value);
    Real scale = 1 / sqrt(squares / Real(kCount) + Real(1e-6f));
    for (size_t i = 0; i < y.size(); ++i) // the sum: 256 roundings, halved by the root
      expect("rms_norm", x[i], y[i], Real(x[i]) * scale * Real(1.5), 64 + 2);
  }
}

TEST(rope_at_every_scale_of_positions) {
  for (double theta : {1e4, 5e5, 1e6, 1e7})
    for (int rotary : {16, 64, 96, 128})
      for (int32_t position : {0, 1, 2, 3, 127, 4095, 32767, 65537, 131071, 262143, 262144}) {
        int half = rotary / 2;
        auto type = fmt::format("tensor<1x{}xbf16>", rotary);
        auto types = fmt::format("({0}, {0}, tensor<3x1xi32>) -> ({0}, {0})", type);
        TestKernel kernel(
            fmt::format("%q: {0}, %k: {0}, %p: tensor<3x1xi32>", type),
            fmt::format("%a, %b = plan.rope %q, %k, %p precision<act = bf16, out = [bf16, bf16]>{} "
                        "{{head_dim = #plan.dim<{}>, rotary_dim = {} : i64, theta = {:e} : f64, "
                        "sections = array<i64>}} : {}\nplan.yield %a, %b : {}, {}",
                        kCompute, rotary, rotary, theta, types, type, type));
        // q is 1 in the first half, so that it becomes cosines and sines; k has -1 in the second.
        std::vector<double> q(rotary, 0), k(rotary, 0);
        std::fill(q.begin(), q.begin() + half, 1), std::fill(k.begin() + half, k.end(), -1);
        Result<Evaluation> evaluation = inputError("not run");
        const std::vector<double> &turned =
            resultOf(kernel.bf16(q).bf16(k).i32({position, position, position}), evaluation);
        if (turned.empty())
          return;
        const std::vector<double> &other = evaluation->output(1).exact;
        for (int i = 0; i < half; ++i) {
          // The exponent in float64, the power rounded to f32, then the product.
          double frequency = f32(pow(Real(theta), Real(-2.0 * i / rotary)).nearest());
          double angle = f32(position * frequency);
          expect("cos", angle, turned[i], cos(Real(angle)), 1);
          expect("sin", angle, turned[i + half], sin(Real(angle)), 1);
          expect("sin", angle, other[i], sin(Real(angle)), 1);
          expect("-cos", angle, other[i + half], -cos(Real(angle)), 1);
        }
      }
}

TEST(weights_of_a_softmax) {
  std::vector<double> logits{3, -2, 0.5, 3.25, 100, 99.5, -60, 12};
  TestKernel kernel("%l: tensor<1x8xbf16>",
                    "%w, %i = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score "
                    "f32> : (tensor<1x8xbf16>) -> (tensor<1x8xf32>, tensor<1x8xi32>)\n"
                    "plan.yield %w, %i : tensor<1x8xf32>, tensor<1x8xi32>");
  Result<Evaluation> evaluation = inputError("not run");
  const std::vector<double> &weights = resultOf(kernel.bf16(logits), evaluation);
  Real total = 0;
  for (double logit : logits)
    total = total + exp(Real(logit) - Real(100));
  std::ranges::sort(logits, std::greater());
  for (size_t i = 0; i < weights.size(); ++i)
    expect("softmax", logits[i], weights[i], exp(Real(logits[i]) - Real(100)) / total, 12);
}

CHECK_MAIN
