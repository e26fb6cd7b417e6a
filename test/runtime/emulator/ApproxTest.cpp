//===- ApproxTest.cpp - planemu-approx-test: functions against MPFR -------===//
//
//   planemu-approx-test [--all] [FUNCTION...]
//
// What ex2, lg2, rsqrt, sqrt, rcp, sin, cos and tanh with .approx give is compared with the
// correctly rounded value. MPFR is too slow to ask each time: the host's function in double decides
// where its result is clearly on one side of a tie between two f32, MPFR all other cases, of which
// there are few. Without --all: samples of all exponents, both signs, neighbours of special values,
// all inputs of the 16-bit forms. With it: every f32 in whose place the function has something to
// compute (test/nightly).
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"
#include "test/runtime/emulator/Oracle.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <mpfr.h>

using namespace emutest;

namespace {
struct Function {
  const char *name;
  double (*host)(double);
  int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  float least, most; // magnitudes between which --all looks; outside lie results of another kind
  bool negative;     // whether it looks there too
};
} // namespace

static int rsqrtExact(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t mode) {
  return mpfr_rec_sqrt(result, x, mode);
}
static int rcpExact(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t mode) {
  return mpfr_ui_div(result, 1, x, mode);
}

// rsqrt, sqrt, rcp: two octaves stand for all. sin and cos are odd and even, tanh is odd.
static constexpr Function Functions[] = {
    {"ex2", [](double x) { return std::exp2(x); }, mpfr_exp2, 0x1p-27f, 151, true},
    {"lg2", [](double x) { return std::log2(x); }, mpfr_log2, 0x1p-149f, 0x1.fffffep127f, false},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, rsqrtExact, 0.5f, 2, false},
    {"sqrt", [](double x) { return std::sqrt(x); }, mpfr_sqrt, 0.5f, 2, false},
    {"rcp", [](double x) { return 1 / x; }, rcpExact, 0.5f, 2, false},
    {"sin", [](double x) { return std::sin(x); }, mpfr_sin, 0x1p-14f, 0x1p31f, false},
    {"cos", [](double x) { return std::cos(x); }, mpfr_cos, 0x1p-14f, 0x1p31f, false},
    {"tanh", [](double x) { return std::tanh(x); }, mpfr_tanh, 0x1p-14f, 10, false},
};

static float asFloat(u32 raw) { return std::bit_cast<float>(raw); }
static u32 asBits(float value) { return std::bit_cast<u32>(value); }

/// Sines of what lies beyond are not promised: PTX ISA bounds the error near zero only.
static bool promised(const Function &f, float x) {
  return !(std::fabs(x) >= 0x1p31f && (f.exact == mpfr_sin || f.exact == mpfr_cos));
}

namespace {
/// One number and the function of it, for one thread.
struct Exact {
  mpfr_t argument, value;
  Exact() {
    mpfr_init2(argument, 53);
    mpfr_init2(value, 200);
  }
  ~Exact() {
    mpfr_clear(argument);
    mpfr_clear(value);
  }
  Exact(const Exact &) = delete;
  Exact &operator=(const Exact &) = delete;
  void of(const Function &f, double x) {
    mpfr_set_d(argument, x, MPFR_RNDN);
    f.exact(value, argument, MPFR_RNDN);
  }
};
} // namespace

/// The f32 nearest to f(x); asks MPFR where double does not tell.
static u32 nearest(const Function &f, float x, Exact &exact) {
  double value = f.host(x), doubt = std::fabs(value) * 0x1p-49;
  float low = static_cast<float>(value - doubt), high = static_cast<float>(value + doubt);
  if (low == high && low != 0)
    return asBits(low);
  exact.of(f, x);
  return asBits(mpfr_get_flt(exact.value, MPFR_RNDN));
}

static std::atomic<int> failures = 0;

static CUfunction kernelOf(const std::string &text) {
  return load(header() + R"(
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 count) {
  .reg .b64 %in, %out, %o, %x; .reg .b32 %a, %d, %i, %n, %t; .reg .b16 %h, %g; .reg .pred %p;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [count];
  mov.u32 %t, %ctaid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %t, 256, %i;
  setp.ge.u32 %p, %i, %n;
  @%p ret;
  mul.wide.u32 %o, %i, 4; add.u64 %in, %in, %o; add.u64 %out, %out, %o;
  ld.global.b32 %a, [%in];
  mov.b32 {%h, %g}, %a;
  )" + text + R"(
  st.global.b32 [%out], %d;
  ret;
})",
              "k");
}

namespace {
struct Buffers {
  static constexpr std::size_t Most = 1 << 20;
  CUdeviceptr in, out;
  Buffers() {
    CU(cuMemAlloc_v2, &in, Most * 4);
    CU(cuMemAlloc_v2, &out, Most * 4);
  }
  std::vector<u32> run(CUfunction function, const std::vector<u32> &inputs) {
    std::vector<u32> results(inputs.size());
    for (std::size_t at = 0; at < inputs.size(); at += Most) {
      std::size_t count = std::min(Most, inputs.size() - at);
      CU(cuMemcpyHtoD_v2, in, inputs.data() + at, count * 4);
      check(launch(function, static_cast<unsigned>((count + 255) / 256), 256, {in, out, count}),
            "launch");
      CU(cuMemcpyDtoH_v2, results.data() + at, out, count * 4);
    }
    return results;
  }
};
} // namespace

static u32 flushed(u32 raw) { return raw & 0x7f800000 ? raw : raw & 0x80000000; }

/// Compares results in [begin, end); counts what is wrong and prints the first few.
static void compare(const Function &f, bool ftz, const std::vector<u32> &inputs,
                    const std::vector<u32> &results, std::size_t begin, std::size_t end) {
  Exact exact;
  for (std::size_t n = begin; n < end; ++n) {
    u32 raw = ftz ? flushed(inputs[n]) : inputs[n];
    float x = asFloat(raw);
    if (x == 0 || x - x != 0 || !promised(f, x)) // specials have their own table
      continue;
    u32 want = nearest(f, x, exact);
    if (asFloat(want) != asFloat(want))
      want = 0x7fffffff;
    if (ftz)
      want = flushed(want);
    if (results[n] != want && failures++ < 50)
      std::printf("%s.approx%s.f32 of %08x (%.9g) is %08x, not %08x\n", f.name, ftz ? ".ftz" : "",
                  inputs[n], x, results[n], want);
  }
}

static u64 seed = 0x123456789abcdef1;
static u32 random32() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return static_cast<u32>((seed ^= seed << 17) >> 16);
}

static std::vector<u32> samples() {
  std::vector<u32> inputs;
  for (u32 exponent = 0; exponent < 255; ++exponent)
    for (u32 sign : {0u, 0x80000000u}) {
      for (u32 fraction : {0u, 1u, 2u, 0x3fffffu, 0x400000u, 0x400001u, 0x7ffffeu, 0x7fffffu})
        inputs.push_back(sign | exponent << 23 | fraction);
      int count = exponent >= 96 && exponent <= 136 ? 1500 : 60; // where most has to be computed
      for (int n = 0; n < count; ++n)
        inputs.push_back(sign | exponent << 23 | (random32() & 0x7fffff));
    }
  // Whole numbers and halves, where ex2 and the reduction of sin and cos change pieces.
  for (int n = -400; n <= 400; ++n)
    for (u32 step : {~0u, 0u, 1u}) {
      inputs.push_back(asBits(static_cast<float>(n) * 0.5f) + step);
      inputs.push_back(asBits(static_cast<float>(n) * 1.57079633f) + step);
    }
  return inputs;
}

static void runF32(const Function &f, Buffers &buffers) {
  std::vector<u32> inputs = samples();
  for (bool ftz : {false, true}) {
    if (f.exact == mpfr_tanh && ftz)
      continue;
    std::vector<u32> results = buffers.run(
        kernelOf(std::string(f.name) + ".approx" + (ftz ? ".ftz" : "") + ".f32 %d, %a;"), inputs);
    compare(f, ftz, inputs, results, 0, inputs.size());
  }
}

static void runAll(const Function &f, Buffers &buffers) {
  CUfunction function = kernelOf(std::string(f.name) + ".approx.f32 %d, %a;");
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  for (u32 sign : {0u, 0x80000000u}) {
    if (sign && !f.negative)
      continue;
    u32 end = asBits(f.most);
    for (u32 first = asBits(f.least); first < end; first += Buffers::Most) {
      std::vector<u32> inputs(std::min<std::size_t>(Buffers::Most, end - first + 1));
      for (std::size_t n = 0; n < inputs.size(); ++n)
        inputs[n] = sign | (first + static_cast<u32>(n));
      std::vector<u32> results = buffers.run(function, inputs);
      std::vector<std::thread> workers;
      for (unsigned t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
          compare(f, false, inputs, results, inputs.size() * t / threads,
                  inputs.size() * (t + 1) / threads);
        });
      for (std::thread &worker : workers)
        worker.join();
    }
  }
}

/// All inputs of the forms on 16-bit floats.
static void runHalf(const Function &f, Buffers &buffers) {
  std::vector<u32> inputs(0x10000);
  for (u32 n = 0; n < 0x10000; ++n)
    inputs[n] = n | (n ^ 0x1234) << 16;
  for (bool bfloat : {false, true})
    for (bool pair : {false, true}) {
      const Format &format = bfloat ? BF16 : F16;
      bool ftz = bfloat && f.exact == mpfr_exp2; // the only spelling there is
      std::string name = std::string(f.name) + ".approx" + (ftz ? ".ftz" : "") +
                         (bfloat ? ".bf16" : ".f16") + (pair ? "x2" : "");
      std::vector<u32> results = buffers.run(
          kernelOf(name + (pair ? " %d, %a;" : " %h, %h; mov.b32 %d, {%h, 0};")), inputs);
      Exact exact;
      auto expect = [&](u32 code) -> u32 {
        double x = decode<double>(format, code);
        u32 zero = code & 0x8000;
        if (ftz && (code & 0x7f80) == 0)
          x = zero ? -0.0 : 0.0;
        if (x != x)
          return 0x7fff;
        exact.of(f, x);
        u32 want = static_cast<u32>(
            encode<long double>(format, Mode::Nearest, mpfr_get_ld(exact.value, MPFR_RNDN)));
        return ftz && (want & 0x7f80) == 0 ? want & 0x8000 : want;
      };
      for (std::size_t n = 0; n < inputs.size(); ++n) {
        u32 want = expect(inputs[n] & 0xffff) | (pair ? expect(inputs[n] >> 16) << 16 : 0);
        if (results[n] != want && failures++ < 50)
          std::printf("%s of %08x is %08x, not %08x\n", name.c_str(), inputs[n], results[n], want);
      }
    }
}

/// The tables of special values of PTX ISA: -inf, -1, the greatest negative subnormal, -0, and the
/// same with the other sign, NaN.
static void runSpecials(Buffers &buffers) {
  constexpr u32 Inf = 0x7f800000, Nan = 0x7fffffff, One = 0x3f800000, Minus = 0x80000000;
  const std::vector<u32> inputs = {Minus | Inf, Minus | One, Minus | 1, Minus,
                                   0,           1,           Inf,       0xffc12345};
  constexpr u32 Any = 0x12345678; // not a special value
  struct Row {
    const char *name;
    u32 want[8];
  };
  constexpr Row Rows[] = {
      {"ex2.approx.f32", {0, 0x3f000000, One, One, One, One, Inf, Nan}},
      {"ex2.approx.ftz.f32", {0, 0x3f000000, One, One, One, One, Inf, Nan}},
      {"lg2.approx.f32", {Nan, Nan, Nan, Minus | Inf, Minus | Inf, 0xc3150000, Inf, Nan}},
      {"lg2.approx.ftz.f32",
       {Nan, Nan, Minus | Inf, Minus | Inf, Minus | Inf, Minus | Inf, Inf, Nan}},
      {"rsqrt.approx.f32", {Nan, Nan, Nan, Minus | Inf, Inf, Any, 0, Nan}},
      {"rsqrt.approx.ftz.f32", {Nan, Nan, Minus | Inf, Minus | Inf, Inf, Inf, 0, Nan}},
      {"sqrt.approx.f32", {Nan, Nan, Nan, Minus, 0, Any, Inf, Nan}},
      {"sqrt.approx.ftz.f32", {Nan, Nan, Minus, Minus, 0, 0, Inf, Nan}},
      {"rcp.approx.f32", {Minus, Minus | One, Minus | Inf, Minus | Inf, Inf, Inf, 0, Nan}},
      {"rcp.approx.ftz.f32", {Minus, Minus | One, Minus | Inf, Minus | Inf, Inf, Inf, 0, Nan}},
      {"sin.approx.f32", {Nan, Any, Minus | 1, Minus, 0, 1, Nan, Nan}},
      {"sin.approx.ftz.f32", {Nan, Any, Minus, Minus, 0, 0, Nan, Nan}},
      {"cos.approx.f32", {Nan, Any, One, One, One, One, Nan, Nan}},
      {"cos.approx.ftz.f32", {Nan, Any, One, One, One, One, Nan, Nan}},
      {"tanh.approx.f32", {Minus | One, Any, Minus | 1, Minus, 0, 1, One, Nan}},
  };
  for (const Row &row : Rows) {
    std::vector<u32> results = buffers.run(kernelOf(std::string(row.name) + " %d, %a;"), inputs);
    for (std::size_t n = 0; n < inputs.size(); ++n)
      if (row.want[n] != Any && results[n] != row.want[n] && failures++ < 50)
        std::printf("%s of %08x is %08x, not %08x\n", row.name, inputs[n], results[n], row.want[n]);
  }
}

/// What PTX ISA says of the others: div.approx beyond 2^126, and the halves of doubles.
static void runOthers(Buffers &buffers) {
  constexpr u32 Inf = 0x7f800000, Minus = 0x80000000, Nan = 0x7fffffff, Two126 = 0x7e800000;
  struct Quotient {
    u32 a, b, approx, full;
  };
  constexpr Quotient Quotients[] = {
      {0x40400000, 0x40000000, 0x3fc00000, 0x3fc00000},
      {0x7f000000, Two126, 0x40000000, 0x40000000},
      {0x7f000000, Two126 + 1, 0, 0x3ffffffe},
      {Minus | 0x7f000000, Two126 + 1, Minus, Minus | 0x3ffffffe},
      {0x3f800000, Minus | 0x7f7fffff, Minus, Minus | 0x00200000},
      {Inf, Two126 + 1, Nan, Inf},
      {Inf, Two126, Inf, Inf},
      {0x3f800000, Inf, 0, 0},
      {0x3f800000, 0x7fc00000, Nan, Nan},
      {0, 0, Nan, Nan},
  };
  for (const Quotient &q : Quotients)
    for (bool full : {false, true}) {
      char text[120];
      std::snprintf(text, sizeof(text), "mov.b32 %%t, 0x%08x; div.%s.f32 %%d, %%a, %%t;", q.b,
                    full ? "full" : "approx");
      u32 got = buffers.run(kernelOf(text), {q.a})[0], want = full ? q.full : q.approx;
      if (got != want && failures++ < 50)
        std::printf("%s with %08x is %08x, not %08x\n", text, q.a, got, want);
    }
  // The upper half of a double in, the upper half of the result out; the lower one is zero.
  struct Half {
    const char *name;
    u32 in, out;
  };
  constexpr Half Halves[] = {
      {"rcp.approx.ftz.f64", 0x40080000, 0x3fd55555}, // 1/3
      {"rcp.approx.ftz.f64", 0x000fffff, 0x7ff00000}, // a subnormal
      {"rcp.approx.ftz.f64", 0x800fffff, 0xfff00000},
      {"rcp.approx.ftz.f64", 0x7fd00001, 0}, // its reciprocal is subnormal
      {"rcp.approx.ftz.f64", 0xfff00000, Minus},
      {"rsqrt.approx.ftz.f64", 0x40000000, 0x3fe6a09e}, // 1/sqrt 2
      {"rsqrt.approx.ftz.f64", 0x000fffff, 0x7ff00000},
      {"rsqrt.approx.ftz.f64", Minus, 0xfff00000},
      {"rsqrt.approx.ftz.f64", 0xbff00000, 0x7ff80000},
      {"rsqrt.approx.f64", 0x40100000, 0x3fe00000},
  };
  for (const Half &half : Halves) {
    std::string text = std::string("mov.b32 %t, 0; mov.b64 %x, {%t, %a}; ") + half.name +
                       " %x, %x; mov.b64 {%t, %d}, %x; or.b32 %d, %d, %t;";
    u32 got = buffers.run(kernelOf(text), {half.in})[0];
    if (got != half.out && failures++ < 50)
      std::printf("%s of %08x is %08x, not %08x\n", half.name, half.in, got, half.out);
  }
}

int main(int argc, char **argv) {
  bool all = argc > 1 && std::strcmp(argv[1], "--all") == 0;
  open();
  Buffers buffers;
  for (const Function &f : Functions) {
    bool wanted = argc == 1 + all;
    for (int n = 1 + all; n < argc; ++n)
      wanted |= std::strcmp(argv[n], f.name) == 0;
    if (!wanted)
      continue;
    int before = failures;
    if (all)
      runAll(f, buffers);
    else
      runF32(f, buffers);
    if (f.exact == mpfr_exp2 || f.exact == mpfr_tanh)
      runHalf(f, buffers);
    if (failures != before)
      std::printf("%s: %d results are not the nearest\n", f.name, failures - before);
    else
      std::printf("%s: ok\n", f.name);
    std::fflush(stdout);
  }
  int before = failures;
  runSpecials(buffers);
  runOthers(buffers);
  std::printf("special values: %s\n", failures == before ? "ok" : "failed");
  return failures != 0;
}
