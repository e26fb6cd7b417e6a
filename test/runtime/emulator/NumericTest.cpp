//===- NumericTest.cpp - planemu-numeric-test: every input where that is possible ===//
//
// Conversions run over all inputs of their small formats, arithmetic over edge values and random
// ones; what the device gives is compared bit for bit with plain host arithmetic written here in
// another way (scalar, through double and ldexp). Approximate functions are compared in double with
// the error PTX allows, mma with sums in double.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

using namespace emutest;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

static int failures = 0;

static u64 seed = 88172645463325252ull;
static u64 random64() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}
static float asFloat(u32 raw) { return std::bit_cast<float>(raw); }
static u32 asBits(float value) { return std::bit_cast<u32>(value); }

/// f32 values that break things, then random bits.
static std::vector<u32> edgeFloats(std::size_t count) {
  std::vector<u32> values = {
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
      0x80800000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x7f7fffff, 0xff7fffff,
      0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x4b000000, 0xcb000000,
      0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x3f000000,
      0xbf000000, 0x3fc00000, 0xbfc00000, 0x40200000, 0x42fe0000, 0xc3150000, 0x43e00000,
      0x477fe000, 0x477ff000, 0x33800000, 0x33000000, 0x387fc000, 0x3c800000, 0x3a800000};
  while (values.size() < count)
    values.push_back(static_cast<u32>(random64() >> 16));
  return values;
}

/// Runs `text` (d and e from a, b, c: 32-bit registers; ha: low half of a; h: 16-bit destination;
/// w, x, y, z: 64-bit) on every element of the inputs.
static std::vector<u32> runOnAll(const std::string &text, std::vector<u32> a,
                                 std::vector<u32> b = {}, std::vector<u32> c = {}) {
  std::size_t count = a.size();
  b.resize(count);
  c.resize(count);
  std::string ptx = header() + R"(
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u32 count) {
  .reg .b32 %a, %b, %c, %d, %e, %i, %n, %t;
  .reg .b64 %pa, %pb, %pc, %pd, %o, %w, %x;
  .reg .b16 %h, %ha, %hb, %hc;
  .reg .pred %p, %q;
  ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];
  ld.param.u32 %n, [count];
  mov.u32 %t, %ctaid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %t, 128, %i;
  setp.ge.u32 %p, %i, %n;
  @%p ret;
  mul.wide.u32 %o, %i, 4;
  add.u64 %pa, %pa, %o; add.u64 %pb, %pb, %o; add.u64 %pc, %pc, %o; add.u64 %pd, %pd, %o;
  ld.global.b32 %a, [%pa]; ld.global.b32 %b, [%pb]; ld.global.b32 %c, [%pc];
  cvt.u16.u32 %ha, %a; cvt.u16.u32 %hb, %b; cvt.u16.u32 %hc, %c;
  mov.b16 %h, 0; mov.b32 %d, 0;
)" + text + R"(
  st.global.b32 [%pd], %d;
  ret;
})";
  CUfunction function = load(ptx, "k");
  std::vector<u32> d(count);
  CUdeviceptr pa = upload(a), pb = upload(b), pc = upload(c), pd = upload(d);
  check(launch(function, static_cast<unsigned>((count + 127) / 128), 128, {pa, pb, pc, pd, count}),
        text.c_str());
  d = download<u32>(pd, count);
  for (CUdeviceptr address : {pa, pb, pc, pd})
    CU(cuMemFree_v2, address);
  return d;
}

using Expect = std::function<u32(u32, u32, u32)>;

static void expectAll(const std::string &text, const std::vector<u32> &a, const std::vector<u32> &b,
                      const std::vector<u32> &c, Expect expect) {
  std::vector<u32> d = runOnAll(text, a, b, c);
  for (std::size_t n = 0; n < a.size(); ++n) {
    u32 x = a[n], y = b.empty() ? 0 : b[n], z = c.empty() ? 0 : c[n];
    u32 want = expect(x, y, z);
    if (d[n] != want) {
      std::printf("%s: a=%08x b=%08x c=%08x gives %08x, not %08x\n", text.c_str(), x, y, z, d[n],
                  want);
      ++failures;
      return;
    }
  }
}

static std::vector<u32> counting(u32 count) {
  std::vector<u32> values(count);
  for (u32 n = 0; n < count; ++n)
    values[n] = n;
  return values;
}

// --- Formats, written without bit tricks -------------------------------------

static double decode(u32 code, int exponentBits, int fractionBits, bool e4m3 = false) {
  int bias = (1 << (exponentBits - 1)) - 1;
  u32 fraction = code & ((1u << fractionBits) - 1),
      exponent = code >> fractionBits & ((1u << exponentBits) - 1);
  double sign = code >> (exponentBits + fractionBits) & 1 ? -1 : 1;
  if (e4m3 ? (code & 0x7f) == 0x7f : exponent == (1u << exponentBits) - 1)
    return e4m3 || fraction ? std::nan("") : sign * HUGE_VAL;
  double scale = std::ldexp(1.0, -fractionBits);
  return exponent ? sign * std::ldexp(1 + fraction * scale, static_cast<int>(exponent) - bias)
                  : sign * std::ldexp(fraction * scale, 1 - bias);
}

/// The nearest code, ties to even, found by search: independent of any rounding trick.
static u32 encode(double value, int exponentBits, int fractionBits, bool saturate,
                  bool e4m3 = false) {
  u32 signBit = 1u << (exponentBits + fractionBits);
  if (std::isnan(value))
    return signBit - 1;
  u32 sign = std::signbit(value) ? signBit : 0;
  double magnitude = std::fabs(value);
  u32 infinity = ((1u << exponentBits) - 1) << fractionBits, largest = e4m3 ? 0x7e : infinity - 1;
  double most = decode(largest, exponentBits, fractionBits, e4m3);
  if (magnitude >= most) {
    double step = most - decode(largest - 1, exponentBits, fractionBits, e4m3);
    return sign | (saturate || magnitude < most + step / 2 ? largest : infinity);
  }
  u32 low = 0, high = largest;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    (decode(middle, exponentBits, fractionBits, e4m3) <= magnitude ? low : high) = middle;
  }
  double down = magnitude - decode(low, exponentBits, fractionBits, e4m3),
         up = decode(high, exponentBits, fractionBits, e4m3) - magnitude;
  return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

static u32 canonical(float value) { return value != value ? 0x7fffffff : asBits(value); }
static u32 toBf16(double v) { return encode(v, 8, 7, false); }
static u32 toF16(double v) { return encode(v, 5, 10, false); }
static double fromBf16(u32 v) { return decode(v & 0xffff, 8, 7); }
static double fromF16(u32 v) { return decode(v & 0xffff, 5, 10); }

static void conversions() {
  std::vector<u32> halves = counting(1 << 16), bytes = counting(256);
  expectAll("cvt.f32.f16 %d, %ha;", halves, {}, {},
            [](u32 a, u32, u32) { return canonical(float(fromF16(a))); });
  expectAll("cvt.f32.bf16 %d, %ha;", halves, {}, {},
            [](u32 a, u32, u32) { return canonical(float(fromBf16(a))); });
  for (bool e4m3 : {true, false}) {
    auto widen = [=](u32 code) {
      return e4m3 ? decode(code & 0xff, 4, 3, true) : decode(code & 0xff, 5, 2);
    };
    const char *name = e4m3 ? "e4m3x2" : "e5m2x2";
    expectAll(std::string("cvt.rn.f16x2.") + name + " %d, %ha;", halves, {}, {},
              [=](u32 a, u32, u32) { return toF16(widen(a)) | toF16(widen(a >> 8)) << 16; });
    std::vector<u32> floats = edgeFloats(60000), others = edgeFloats(60000);
    for (u32 n = 0; n < 20000; ++n) // the range that does not overflow
      floats[100 + n] = asBits(
          std::ldexp(1.0f + (random64() & 0xffffff) / 16777216.0f, int(random64() % 24) - 14));
    expectAll(std::string("cvt.rn.satfinite.") + name + ".f32 %h, %a, %b; cvt.u32.u16 %d, %h;",
              floats, others, {}, [=](u32 a, u32 b, u32) {
                auto narrow = [=](float v) {
                  return e4m3 ? encode(v, 4, 3, true, true) : encode(v, 5, 2, true);
                };
                return narrow(asFloat(a)) << 8 | narrow(asFloat(b));
              });
    expectAll(std::string("cvt.rn.satfinite.") + name + ".f16x2 %h, %a; cvt.u32.u16 %d, %h;",
              halves, {}, {}, [=](u32 a, u32, u32) {
                auto narrow = [=](double v) {
                  return e4m3 ? encode(v, 4, 3, true, true) : encode(v, 5, 2, true);
                };
                return narrow(fromF16(a)) | narrow(fromF16(a >> 16)) << 8;
              });
  }
  std::vector<u32> a = edgeFloats(80000), b = edgeFloats(80000);
  for (u32 n = 0; n < 30000; ++n)
    a[100 + n] =
        asBits(std::ldexp(1.0f + (random64() & 0xffffff) / 16777216.0f, int(random64() % 48) - 30));
  std::reverse(b.begin(), b.end());
  expectAll("cvt.rn.bf16x2.f32 %d, %a, %b;", a, b, {},
            [](u32 x, u32 y, u32) { return toBf16(asFloat(x)) << 16 | toBf16(asFloat(y)); });
  expectAll("cvt.rn.f16x2.f32 %d, %a, %b;", a, b, {},
            [](u32 x, u32 y, u32) { return toF16(asFloat(x)) << 16 | toF16(asFloat(y)); });
  expectAll("cvt.rn.bf16.f32 %h, %a; cvt.u32.u16 %d, %h;", a, {}, {},
            [](u32 x, u32, u32) { return toBf16(asFloat(x)); });
  expectAll("cvt.rn.f16.f32 %h, %a; cvt.u32.u16 %d, %h;", a, {}, {},
            [](u32 x, u32, u32) { return toF16(asFloat(x)); });
  auto clamp = [](double v, double least, double most) {
    return v != v ? 0 : v < least ? least : v > most ? most : v;
  };
  struct Mode {
    const char *name;
    double (*round)(double);
  };
  for (Mode mode : {Mode{"rni", [](double v) { return std::nearbyint(v); }},
                    Mode{"rzi", [](double v) { return std::trunc(v); }},
                    Mode{"rmi", [](double v) { return std::floor(v); }},
                    Mode{"rpi", [](double v) { return std::ceil(v); }}}) {
    std::string name = mode.name;
    expectAll("cvt." + name + ".s32.f32 %d, %a;", a, {}, {}, [=](u32 x, u32, u32) {
      return static_cast<u32>(
          static_cast<std::int32_t>(clamp(mode.round(asFloat(x)), -2147483648.0, 2147483647.0)));
    });
    expectAll("cvt." + name + ".u32.f32 %d, %a;", a, {}, {}, [=](u32 x, u32, u32) {
      return static_cast<u32>(clamp(mode.round(asFloat(x)), 0, 4294967295.0));
    });
    expectAll("cvt." + name + ".f32.f32 %d, %a;", a, {}, {}, [=](u32 x, u32, u32) {
      return canonical(static_cast<float>(mode.round(asFloat(x))));
    });
    expectAll(
        "cvt." + name + ".s16.f32 %h, %a; cvt.u32.u16 %d, %h;", a, {}, {}, [=](u32 x, u32, u32) {
          return static_cast<u32>(
                     static_cast<std::int32_t>(clamp(mode.round(asFloat(x)), -32768, 32767))) &
                 0xffff;
        });
    expectAll("cvt." + name + ".s64.f32 %w, %a; mov.b64 {%d, %e}, %w; xor.b32 %d, %d, %e;", a, {},
              {}, [=](u32 x, u32, u32) {
                double v = mode.round(asFloat(x));
                u64 r = v != v || v < -0x1p63 ? 1ull << 63
                        : v >= 0x1p63         ? ~0ull >> 1
                                              : static_cast<u64>(static_cast<std::int64_t>(v));
                return static_cast<u32>(r ^ r >> 32);
              });
  }
  expectAll("cvt.rn.f32.u32 %d, %a;", a, {}, {},
            [](u32 x, u32, u32) { return asBits(static_cast<float>(x)); });
  expectAll("cvt.rn.f32.s32 %d, %a;", a, {}, {}, [](u32 x, u32, u32) {
    return asBits(static_cast<float>(static_cast<std::int32_t>(x)));
  });
  expectAll("mov.b64 %w, {%a, %b}; cvt.rn.f32.u64 %d, %w;", a, b, {},
            [](u32 x, u32 y, u32) { return asBits(static_cast<float>(u64(y) << 32 | x)); });
  expectAll("mov.b64 %w, {%a, %b}; cvt.rn.f32.f64 %d, %w;", a, b, {}, [](u32 x, u32 y, u32) {
    return canonical(static_cast<float>(std::bit_cast<double>(u64(y) << 32 | x)));
  });
  expectAll("cvt.sat.f32.f32 %d, %a;", a, {}, {}, [](u32 x, u32, u32) {
    float v = asFloat(x);
    return v > 0 ? asBits(v < 1 ? v : 1) : 0;
  });
  for (auto [text, bits, isSigned] :
       {std::tuple("u8", 8, false), {"s8", 8, true}, {"u16", 16, false}, {"s16", 16, true}}) {
    expectAll(std::string("cvt.u32.") + text + " %d, %a;", a, {}, {},
              [=, w = bits, s = isSigned](u32 x, u32, u32) {
                u32 shifted = x << (32 - w);
                return s ? static_cast<u32>(static_cast<std::int32_t>(shifted) >> (32 - w))
                         : shifted >> (32 - w);
              });
    expectAll(std::string("cvt.sat.") + text + ".s32 %d, %a;", a, {}, {},
              [=, w = bits, s = isSigned](u32 x, u32, u32) {
                std::int64_t v = static_cast<std::int32_t>(x),
                             most = s ? (1ll << (w - 1)) - 1 : (1ll << w) - 1,
                             least = s ? -most - 1 : 0;
                return static_cast<u32>(v < least ? least : v > most ? most : v);
              });
  }
}

static u32 flushed(u32 v) { return v & 0x7f800000 ? v : v & 0x80000000; }

static void arithmetic() {
  std::vector<u32> a, b, c;
  for (u32 x : edgeFloats(48))
    for (u32 y : edgeFloats(48)) {
      a.push_back(x);
      b.push_back(y);
      c.push_back(static_cast<u32>(random64()));
    }
  for (u32 n = 0; n < 30000; ++n) {
    a.push_back(static_cast<u32>(random64() >> 20));
    b.push_back(static_cast<u32>(random64() >> 20));
    // near cancellation, where a fused result differs
    float product = asFloat(a.back()) * asFloat(b.back());
    c.push_back(n % 2 ? asBits(-product) + (n % 8) : static_cast<u32>(random64() >> 20));
  }
  struct Operation {
    const char *name;
    float (*f)(float, float);
  };
  for (Operation op : {Operation{"add.rn", [](float x, float y) { return x + y; }},
                       {"sub.rn", [](float x, float y) { return x - y; }},
                       {"mul.rn", [](float x, float y) { return x * y; }},
                       {"div.rn", [](float x, float y) { return x / y; }}}) {
    std::string name = op.name;
    expectAll(name + ".f32 %d, %a, %b;", a, b, {},
              [=](u32 x, u32 y, u32) { return canonical(op.f(asFloat(x), asFloat(y))); });
    expectAll(name + ".ftz.f32 %d, %a, %b;", a, b, {}, [=](u32 x, u32 y, u32) {
      return flushed(canonical(op.f(asFloat(flushed(x)), asFloat(flushed(y)))));
    });
    if (name != "div.rn")
      expectAll(name + ".sat.f32 %d, %a, %b;", a, b, {}, [=](u32 x, u32 y, u32) {
        float v = op.f(asFloat(x), asFloat(y));
        return v > 0 ? asBits(v < 1 ? v : 1) : 0;
      });
  }
  expectAll("fma.rn.f32 %d, %a, %b, %c;", a, b, c, [](u32 x, u32 y, u32 z) {
    return canonical(std::fmaf(asFloat(x), asFloat(y), asFloat(z)));
  });
  expectAll("mov.b64 %w, {%a, %b}; mov.b64 %x, {%b, %c}; fma.rn.f32x2 %w, %w, %x, %w; mov.b64 {%d, "
            "%e}, %w; xor.b32 %d, %d, %e;",
            a, b, c, [](u32 x, u32 y, u32 z) {
              return canonical(std::fmaf(asFloat(x), asFloat(y), asFloat(x))) ^
                     canonical(std::fmaf(asFloat(y), asFloat(z), asFloat(y)));
            });
  // Directed roundings: long double keeps 64 bits, enough to see on which side of a float the exact
  // value lies, except for a fused sum whose parts are far apart; those are left out.
  auto directed = [](long double exact, int mode) {
    float nearest = static_cast<float>(exact);
    if (!(exact - exact == 0) || nearest == exact)
      return canonical(nearest);
    float below = nearest < exact ? nearest : std::nextafterf(nearest, -HUGE_VALF);
    float above = nearest > exact ? nearest : std::nextafterf(nearest, HUGE_VALF);
    return asBits(mode < 0 ? below : mode > 0 ? above : exact < 0 ? above : below);
  };
  std::vector<u32> da(a), db(b), dc(c);
  for (std::size_t n = 0; n < da.size(); ++n) {
    auto moderate = [](u32 v) {
      return (v & 0x80ffffff) | ((96 + (v >> 24) % 16) << 24 & 0x7f000000);
    };
    da[n] = moderate(da[n]), db[n] = moderate(db[n]), dc[n] = moderate(dc[n]);
  }
  for (auto [name, mode] : {std::pair("rm", -1), {"rz", 0}, {"rp", 1}}) {
    expectAll(std::string("mul.") + name + ".f32 %d, %a, %b;", da, db, {},
              [=, m = mode](u32 x, u32 y, u32) {
                return directed(static_cast<long double>(asFloat(x)) * asFloat(y), m);
              });
    expectAll(std::string("add.") + name + ".f32 %d, %a, %b;", da, db, {},
              [=, m = mode](u32 x, u32 y, u32) {
                long double exact = static_cast<long double>(asFloat(x)) + asFloat(y);
                if (exact == 0)
                  return asBits(m < 0 ? -0.0f : 0.0f);
                return directed(exact, m);
              });
  }
  for (bool max : {false, true})
    for (bool nan : {false, true})
      expectAll(std::string(max ? "max" : "min") + (nan ? ".NaN" : "") + ".f32 %d, %a, %b;", a, b,
                {}, [=](u32 x, u32 y, u32) {
                  float p = asFloat(x), q = asFloat(y);
                  if (p != p || q != q)
                    return nan || (p != p && q != q) ? 0x7fffffffu : p != p ? y : x;
                  if (p == q)
                    return max ? x & y : x | y;
                  return (p > q) == max ? x : y;
                });
  expectAll("sqrt.rn.f32 %d, %a;", a, {}, {},
            [](u32 x, u32, u32) { return canonical(std::sqrt(asFloat(x))); });
  expectAll("rcp.rn.f32 %d, %a;", a, {}, {},
            [](u32 x, u32, u32) { return canonical(1.0f / asFloat(x)); });
  expectAll("neg.f32 %d, %a;", a, {}, {}, [](u32 x, u32, u32) { return canonical(-asFloat(x)); });
  expectAll("abs.ftz.f32 %d, %a;", a, {}, {},
            [](u32 x, u32, u32) { return flushed(canonical(std::fabs(asFloat(x)))); });
  expectAll("copysign.f32 %d, %a, %b;", a, b, {},
            [](u32 x, u32 y, u32) { return (x & 0x80000000) | (y & 0x7fffffff); });
  expectAll("add.rn.f32.bf16 %d, %ha, %b;", a, b, {},
            [](u32 x, u32 y, u32) { return canonical(asFloat(x << 16) + asFloat(y)); });
  struct Compare {
    const char *name;
    bool (*f)(float, float);
  };
  for (Compare compare : {Compare{"eq", [](float x, float y) { return x == y; }},
                          {"ne", [](float x, float y) { return x < y || x > y; }},
                          {"lt", [](float x, float y) { return x < y; }},
                          {"ge", [](float x, float y) { return x >= y; }},
                          {"neu", [](float x, float y) { return x != y; }},
                          {"equ", [](float x, float y) { return !(x < y || x > y); }},
                          {"ltu", [](float x, float y) { return !(x >= y); }},
                          {"geu", [](float x, float y) { return !(x < y); }},
                          {"num", [](float x, float y) { return x == x && y == y; }},
                          {"nan", [](float x, float y) { return x != x || y != y; }}})
    expectAll(std::string("setp.") + compare.name + ".f32 %p, %a, %b; selp.b32 %d, 7, 3, %p;", a, b,
              {}, [=](u32 x, u32 y, u32) { return compare.f(asFloat(x), asFloat(y)) ? 7u : 3u; });

  // 16-bit formats: the exact sum or product fits a double, so one rounding by search is the truth.
  // An fma may not fit: its exponents are kept near.
  for (bool bfloat : {false, true}) {
    std::string type = bfloat ? ".bf16x2" : ".f16x2";
    auto widen = [=](u32 v) { return bfloat ? fromBf16(v) : fromF16(v); };
    auto narrow = [=](double v) { return bfloat ? toBf16(v) : toF16(v); };
    auto both = [=](auto f) {
      return [=](u32 x, u32 y, u32 z) {
        return narrow(f(widen(x), widen(y), widen(z))) |
               narrow(f(widen(x >> 16), widen(y >> 16), widen(z >> 16))) << 16;
      };
    };
    expectAll("add.rn" + type + " %d, %a, %b;", a, b, {},
              both([](double x, double y, double) { return x + y; }));
    expectAll("sub.rn" + type + " %d, %a, %b;", a, b, {},
              both([](double x, double y, double) { return x - y; }));
    expectAll("mul.rn" + type + " %d, %a, %b;", a, b, {},
              both([](double x, double y, double) { return x * y; }));
    std::vector<u32> near[3] = {a, b, c};
    for (auto &list : near)
      for (u32 &v : list)
        v = bfloat ? (v & 0x87ff87ff) | 0x38003800 : v;
    expectAll("fma.rn" + type + " %d, %a, %b, %c;", near[0], near[1], near[2],
              both([](double x, double y, double z) { return x * y + z; }));
  }
}

static void approximations() {
  struct Function {
    const char *name;
    double (*f)(double);
    double relative, absolute;
    float least, most;
  };
  // PTX ISA: ex2 2 ulp, lg2 absolute 2^-22 near 1 and relative 2^-22 elsewhere, rsqrt 2^-22.9, sin
  // and cos absolute 2^-20.9 within a period, tanh 2^-11. What is emulated is the correctly rounded
  // value, half an ulp: 2^-24.
  constexpr double Half = 0x1.01p-24;
  for (Function f :
       {Function{"ex2", [](double x) { return std::exp2(x); }, Half, 0x1p-149, -152, 127.9f},
        Function{"lg2", [](double x) { return std::log2(x); }, Half, 0, 1e-44f, 3e38f},
        Function{"rsqrt", [](double x) { return 1 / std::sqrt(x); }, Half, 0, 1e-44f, 3e38f},
        Function{"rcp", [](double x) { return 1 / x; }, Half, 0x1p-149, -3e38f, 3e38f},
        Function{"sin", [](double x) { return std::sin(x); }, Half, 1e-17, -1000, 1000},
        Function{"cos", [](double x) { return std::cos(x); }, Half, 1e-17, -1000, 1000},
        Function{"tanh", [](double x) { return std::tanh(x); }, Half, 0, -12, 12}}) {
    std::vector<u32> inputs;
    while (inputs.size() < 40000) {
      float part = static_cast<float>(random64() >> 40) / 16777216.0f;
      float x = random64() & 4096 ? asFloat(static_cast<u32>(random64()))
                                  : f.least * (1 - part) + f.most * part;
      if (x >= f.least && x <= f.most && x != 0)
        inputs.push_back(asBits(x));
    }
    std::vector<u32> d = runOnAll(std::string(f.name) + ".approx.f32 %d, %a;", inputs);
    for (std::size_t n = 0; n < d.size(); ++n) {
      double want = f.f(asFloat(inputs[n])), got = asFloat(d[n]);
      if (!(std::fabs(got - want) <= f.relative * std::fabs(want) + f.absolute) &&
          !(std::fabs(want) > 3.4028235e38 && std::isinf(got))) {
        std::printf("%s(%.9g) is %.9g, not %.9g\n", f.name, asFloat(inputs[n]), got, want);
        ++failures;
        break;
      }
    }
  }
  auto special = [](const char *name, std::vector<u32> in, std::vector<u32> want) {
    std::vector<u32> got = runOnAll(std::string(name) + " %d, %a;", in);
    for (std::size_t n = 0; n < in.size(); ++n)
      if (got[n] != want[n]) {
        std::printf("%s(%08x) is %08x, not %08x\n", name, in[n], got[n], want[n]);
        ++failures;
      }
  };
  u32 inf = 0x7f800000, minusInf = 0xff800000, nan = 0x7fffffff, one = 0x3f800000;
  special("ex2.approx.f32", {minusInf, inf, 0x7fc00000, 0, 0x80000000, 0xc3150000},
          {0, inf, nan, one, one, 1});
  special("ex2.approx.ftz.f32", {0xc3150000, 1}, {0, one});
  special("lg2.approx.f32", {0, 0x80000000, inf, minusInf, 0xbf800000, one, 1},
          {minusInf, minusInf, inf, nan, nan, 0, 0xc3150000});
  special("rsqrt.approx.f32", {0, 0x80000000, inf, minusInf, 0xbf800000},
          {inf, minusInf, 0, nan, nan});
  special("rcp.approx.ftz.f32", {0, 0x80000000, inf, 1, 0x80000001},
          {inf, minusInf, 0, inf, minusInf});
  special("sin.approx.f32", {0, 0x80000000, inf, minusInf}, {0, 0x80000000, nan, nan});
  special("tanh.approx.f32", {0, 0x80000000, inf, minusInf}, {0, 0x80000000, one, 0xbf800000});
}

/// mma against sums in double; fragments as PTX ISA draws them, written out here element by
/// element.
static void matrices() {
  struct Shape {
    const char *text;
    int k, bits;
    double (*widen)(u32);
  };
  for (Shape shape :
       {Shape{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, [](u32 v) { return decode(v, 8, 7); }},
        Shape{"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, [](u32 v) { return decode(v, 5, 10); }},
        Shape{"m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 8,
              [](u32 v) { return decode(v, 4, 3, true); }},
        Shape{"m16n8k32.row.col.kind::f8f6f4.f32.e5m2.e5m2.f32", 32, 8,
              [](u32 v) { return decode(v, 5, 2); }}}) {
    // per lane: A0-A3, B0, B1, C0-C3
    std::string ptx = header() + R"(
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .b32 %r<16>, %t; .reg .b64 %i, %o;
  ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
  mad.wide.u32 %i, %t, 48, %i; mad.wide.u32 %o, %t, 16, %o;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%i];
  ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%i+16];
  ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%i+32];
  mma.sync.aligned.)" +
                      std::string(shape.text) +
                      R"( {%r12, %r13, %r14, %r15}, {%r0, %r1, %r2, %r3}, {%r4, %r5},
    {%r6, %r7, %r8, %r9};
  st.global.v4.b32 [%o], {%r12, %r13, %r14, %r15};
  ret;
})";
    CUfunction function = load(ptx, "k");
    int perRegister = 32 / shape.bits;
    u32 mask = shape.bits == 8 ? 0xff : 0xffff;
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<u32> in(32 * 12);
      double a[16][32], b[32][8], c[16][8], size[16][8];
      for (int lane = 0; lane < 32; ++lane) {
        int group = lane / 4, inGroup = lane % 4;
        for (int r = 0; r < 6; ++r)
          for (int e = 0; e < perRegister; ++e) {
            u32 code;
            do
              code = static_cast<u32>(random64() >> 30) & mask;
            while (!(std::fabs(shape.widen(code)) < 1000));
            in[lane * 12 + r] |= code << (e * shape.bits);
            int k = inGroup * perRegister + e;
            if (r < 4)
              a[group + 8 * (r & 1)][k + (r >> 1) * shape.k / 2] = shape.widen(code);
            else
              b[k + (r - 4) * shape.k / 2][group] = shape.widen(code);
          }
        for (int r = 0; r < 4; ++r) {
          float value = static_cast<float>(static_cast<std::int32_t>(random64())) * 0x1p-24f;
          in[lane * 12 + 6 + r] = asBits(value);
          c[group + 8 * (r >> 1)][inGroup * 2 + (r & 1)] = value;
        }
      }
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 8; ++n) {
          size[m][n] = std::fabs(c[m][n]);
          for (int k = 0; k < shape.k; ++k) {
            c[m][n] += a[m][k] * b[k][n];
            size[m][n] += std::fabs(a[m][k] * b[k][n]);
          }
        }
      CUdeviceptr pin = upload(in), pout = upload(std::vector<u32>(128));
      check(launch(function, 1, 32, {pin, pout}), "mma");
      std::vector<float> d = download<float>(pout, 128);
      for (int lane = 0; lane < 32; ++lane)
        for (int r = 0; r < 4; ++r) {
          int m = lane / 4 + 8 * (r >> 1), n = lane % 4 * 2 + (r & 1);
          if (!(std::fabs(d[lane * 4 + r] - c[m][n]) <= 1e-6 * size[m][n])) {
            std::printf("mma %s: row %d column %d is %g, not %g\n", shape.text, m, n,
                        d[lane * 4 + r], c[m][n]);
            ++failures;
            return;
          }
        }
    }
  }
}

static void integers() {
  std::vector<u32> a, b, c;
  for (u32 x : {0u, 1u, 2u, 31u, 32u, 33u, 63u, 64u, 255u, 256u, 0x7fffu, 0x8000u, 0xffffu,
                0x7fffffffu, 0x80000000u, 0x80000001u, 0xfffffffeu, 0xffffffffu})
    for (u32 y : {0u, 1u, 2u, 7u, 31u, 32u, 33u, 64u, 255u, 0x8000u, 0xffffu, 0x7fffffffu,
                  0x80000000u, 0xffffffffu}) {
      a.push_back(x);
      b.push_back(y);
      c.push_back(static_cast<u32>(random64() >> 9));
    }
  for (int n = 0; n < 20000; ++n) {
    a.push_back(static_cast<u32>(random64() >> 7));
    b.push_back(static_cast<u32>(random64() >> 7) >> (n % 33 == 32 ? 31 : n % 33));
    c.push_back(static_cast<u32>(random64() >> 7));
  }
  using s32 = std::int32_t;
  using s64 = std::int64_t;
  auto same = [&](const char *text, Expect expect) { expectAll(text, a, b, c, expect); };
  same("mul.lo.s32 %d, %a, %b;", [](u32 x, u32 y, u32) { return x * y; });
  same("mul.hi.u32 %d, %a, %b;", [](u32 x, u32 y, u32) { return u32(u64(x) * y >> 32); });
  same("mul.hi.s32 %d, %a, %b;",
       [](u32 x, u32 y, u32) { return u32(u64(s64(s32(x)) * s32(y)) >> 32); });
  same("mul.wide.s32 %w, %a, %b; mov.b64 {%d, %e}, %w; xor.b32 %d, %d, %e;", [](u32 x, u32 y, u32) {
    u64 p = u64(s64(s32(x)) * s32(y));
    return u32(p ^ p >> 32);
  });
  same("mul.wide.s16 %d, %ha, %hb;",
       [](u32 x, u32 y, u32) { return u32(s32(std::int16_t(x)) * std::int16_t(y)); });
  same("mad.lo.u32 %d, %a, %b, %c;", [](u32 x, u32 y, u32 z) { return x * y + z; });
  same("mad.hi.s32 %d, %a, %b, %c;",
       [](u32 x, u32 y, u32 z) { return u32(u64(s64(s32(x)) * s32(y)) >> 32) + z; });
  same("add.sat.s32 %d, %a, %b;", [](u32 x, u32 y, u32) {
    s64 v = s64(s32(x)) + s32(y);
    return u32(v > 0x7fffffff ? 0x7fffffff : v < -0x80000000ll ? -0x80000000ll : v);
  });
  same("add.cc.u32 %d, %a, %b; addc.u32 %e, %c, 0; xor.b32 %d, %d, %e;",
       [](u32 x, u32 y, u32 z) { return (x + y) ^ (z + ((u64(x) + y) >> 32)); });
  same("sub.cc.u32 %d, %a, %b; subc.u32 %e, %c, 0; xor.b32 %d, %d, %e;",
       [](u32 x, u32 y, u32 z) { return (x - y) ^ (z - (x < y)); });
  same("mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %e, %a, %b, 0; xor.b32 %d, %d, %e;",
       [](u32 x, u32 y, u32 z) {
         u64 p = u64(x) * y + z;
         return u32(p) ^ u32(p >> 32);
       });
  same("div.s32 %d, %a, %b;", [](u32 x, u32 y, u32) {
    return y == 0 ? ~0u : y == ~0u ? 0u - x : u32(s32(x) / s32(y));
  });
  same("rem.u32 %d, %a, %b;", [](u32 x, u32 y, u32) { return y ? x % y : x; });
  same("shl.b32 %d, %a, %b;", [](u32 x, u32 y, u32) { return y < 32 ? x << y : 0; });
  same("shr.u32 %d, %a, %b;", [](u32 x, u32 y, u32) { return y < 32 ? x >> y : 0; });
  same("shr.s32 %d, %a, %b;", [](u32 x, u32 y, u32) { return u32(s32(x) >> (y < 32 ? y : 31)); });
  same("shl.b16 %h, %ha, %b; cvt.u32.u16 %d, %h;",
       [](u32 x, u32 y, u32) { return y < 16 ? x << y & 0xffff : 0; });
  same("shr.s16 %h, %ha, %b; cvt.u32.u16 %d, %h;",
       [](u32 x, u32 y, u32) { return u32(std::int16_t(x) >> (y < 16 ? y : 15)) & 0xffff; });
  same("mov.b64 %w, {%a, %c}; shl.b64 %w, %w, %b; mov.b64 {%d, %e}, %w; xor.b32 %d, %d, %e;",
       [](u32 x, u32 y, u32 z) {
         u64 v = y < 64 ? (u64(z) << 32 | x) << y : 0;
         return u32(v ^ v >> 32);
       });
  same("mov.b64 %w, {%a, %c}; shr.s64 %w, %w, %b; mov.b64 {%d, %e}, %w; xor.b32 %d, %d, %e;",
       [](u32 x, u32 y, u32 z) {
         u64 v = u64(s64(u64(z) << 32 | x) >> (y < 64 ? y : 63));
         return u32(v ^ v >> 32);
       });
  same("shf.l.wrap.b32 %d, %a, %c, %b;",
       [](u32 x, u32 y, u32 z) { return u32((u64(z) << 32 | x) << (y & 31) >> 32); });
  same("shf.r.clamp.b32 %d, %a, %c, %b;",
       [](u32 x, u32 y, u32 z) { return u32((u64(z) << 32 | x) >> (y < 32 ? y : 32)); });
  same("shf.l.clamp.b32 %d, %a, %c, %b;",
       [](u32 x, u32 y, u32 z) { return y < 32 ? u32((u64(z) << 32 | x) << y >> 32) : x; });
  same("popc.b32 %d, %a;", [](u32 x, u32, u32) { return u32(std::popcount(x)); });
  same("clz.b32 %d, %a;", [](u32 x, u32, u32) { return u32(std::countl_zero(x)); });
  same("bfind.s32 %d, %a;",
       [](u32 x, u32, u32) { return 31u - u32(std::countl_zero(s32(x) < 0 ? ~x : x)); });
  same("bfind.shiftamt.u32 %d, %a;",
       [](u32 x, u32, u32) { return x ? u32(std::countl_zero(x)) : ~0u; });
  same("brev.b32 %d, %a; brev.b32 %d, %d;", [](u32 x, u32, u32) { return x; });
  same("bfe.u32 %d, %a, %b, 5;",
       [](u32 x, u32 y, u32) { return (y & 255) < 32 ? x >> (y & 255) & 31 : 0; });
  same("bfe.s32 %d, %a, %b, 40;",
       [](u32 x, u32 y, u32) { return u32(s32(x) >> std::min(31u, y & 255)); });
  same("bfi.b32 %d, %a, %c, %b, 7;", [](u32 x, u32 y, u32 z) {
    u32 at = y & 255;
    return at < 32 ? (z & ~(127u << at)) | (x & 127) << at : z;
  });
  same("lop3.b32 %d, %a, %b, %c, 0xe8;",
       [](u32 x, u32 y, u32 z) { return (x & y) | (x & z) | (y & z); });
  same("lop3.b32 %d, %a, %b, %c, 0x96;", [](u32 x, u32 y, u32 z) { return x ^ y ^ z; });
  same("lop3.b32 %d, %a, %b, %c, 0x35;",
       [](u32 x, u32 y, u32 z) { return x ? ((x & ~y) | (~x & ~z)) : ~z; });
  same("prmt.b32 %d, %a, %c, 0x6240;", [](u32 x, u32, u32 z) {
    return (x & 255) | (z & 255) << 8 | (x >> 16 & 255) << 16 | (z >> 16 & 255) << 24;
  });
  same("prmt.b32 %d, %a, %c, %b;", [](u32 x, u32 y, u32 z) {
    u32 r = 0;
    for (int n = 0; n < 4; ++n) {
      u32 s = y >> (4 * n) & 15, byte = u32((u64(z) << 32 | x) >> (8 * (s & 7))) & 255;
      r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * n);
    }
    return r;
  });
  same("min.s32 %d, %a, %b; max.u32 %d, %d, %c;",
       [](u32 x, u32 y, u32 z) { return std::max(u32(std::min(s32(x), s32(y))), z); });
  same("abs.s32 %d, %a;", [](u32 x, u32, u32) { return s32(x) < 0 ? 0u - x : x; });
  same("sad.u32 %d, %a, %b, %c;", [](u32 x, u32 y, u32 z) { return z + (x > y ? x - y : y - x); });
  same("dp4a.s32.u32 %d, %a, %b, %c;", [](u32 x, u32 y, u32 z) {
    for (int n = 0; n < 4; ++n)
      z += u32(std::int8_t(x >> (8 * n)) * s32(y >> (8 * n) & 255));
    return z;
  });
  same("mul24.lo.s32 %d, %a, %b;",
       [](u32 x, u32 y, u32) { return u32(s64(s32(x << 8) >> 8) * (s32(y << 8) >> 8)); });
  same("setp.lt.and.s32 %p|%q, %a, %b, %p; selp.b32 %d, 1, 0, %q;",
       [](u32, u32, u32) { return 0u; });
  same("setp.ne.u32 %p, %c, 0; setp.hi.xor.u32 %p|%q, %a, %b, !%p; selp.b32 %d, 1, 0, %p; selp.b32 "
       "%e, 2, 0, %q; or.b32 %d, %d, %e;",
       [](u32 x, u32 y, u32 z) {
         return u32((x > y) != (z == 0)) | u32(!(x > y) != (z == 0)) << 1;
       });
  same("slct.b32.s32 %d, %a, %b, %c;", [](u32 x, u32 y, u32 z) { return s32(z) >= 0 ? x : y; });
  same("set.gt.u32.s32 %d, %a, %b;", [](u32 x, u32 y, u32) { return s32(x) > s32(y) ? ~0u : 0u; });
}

int main(int argc, char **argv) {
  open();
  struct {
    const char *name;
    void (*run)();
  } tests[] = {{"conversions", conversions},
               {"arithmetic", arithmetic},
               {"approximations", approximations},
               {"matrices", matrices},
               {"integers", integers}};
  for (auto &test : tests) {
    if (argc > 1 && std::strcmp(argv[1], test.name) != 0)
      continue;
    int before = failures;
    test.run();
    std::printf("%s: %s\n", test.name, failures == before ? "ok" : "failed");
    std::fflush(stdout);
  }
  return failures != 0;
}
