//===- ConversionTest.cpp - planemu-conversion-test: cvt, bit for bit -----===//
//
//   planemu-conversion-test [--all] [--hashes] [FORM...]
//
// Every form of cvt on sampled inputs: each exponent with fractions that are ties or next to one,
// NaN, infinities, subnormals, powers of two and their neighbours, all codes of small formats. The
// truth is Oracle.h and, where CUDA's headers were found, their host functions as well. With --all
// the forms of Sweeps run on all 2^32 patterns of f32 (test/nightly); with names only those forms.
// --hashes prints a hash of each form's results, to compare instruction sets and compilers.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/ConversionHeaders.h"
#include "test/runtime/emulator/Emulator.h"
#include "test/runtime/emulator/Oracle.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

using namespace emutest;

namespace {

enum class Kind { Signed, Unsigned, Float, Pair };

/// A type as cvt names it.
struct Side {
  const char *name;
  Kind kind;
  int bits; // of a pair: of the register
  const Format *format = nullptr;
};

constexpr Side Integers[] = {{"u8", Kind::Unsigned, 8},   {"s8", Kind::Signed, 8},
                             {"u16", Kind::Unsigned, 16}, {"s16", Kind::Signed, 16},
                             {"u32", Kind::Unsigned, 32}, {"s32", Kind::Signed, 32},
                             {"u64", Kind::Unsigned, 64}, {"s64", Kind::Signed, 64}};
constexpr Side Floats[] = {{"f16", Kind::Float, 16, &F16},
                           {"bf16", Kind::Float, 16, &BF16},
                           {"f32", Kind::Float, 32, &F32},
                           {"f64", Kind::Float, 64, &F64}};
const Side &F32Side = Floats[2];
constexpr Side F32Pair{"f32", Kind::Pair, 64, &F32};

struct Form {
  std::string name;
  Side to, from;
  std::function<u64(u64)> oracle;
};

} // namespace

// --- Inputs -----------------------------------------------------------------

static u64 seed = 0x9e3779b97f4a7c15;
static u64 random64() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

/// All exponents with fractions around each place where a narrower format may cut.
static std::vector<u64> sampleFloats(const Format &format) {
  std::vector<u64> values;
  if (format.exponent + format.fraction < 16) {
    for (u64 code = 0; code < 2 * format.sign(); ++code)
      values.push_back(code);
    return values;
  }
  u64 mask = (1ull << format.fraction) - 1, most = (1ull << format.exponent) - 1;
  for (u64 field = 0; field <= most; ++field) {
    bool far = format.exponent > 8 && std::abs(static_cast<int>(field) - 1023) > 180;
    if (far && field % 61 && field != 0 && field < most - 1)
      continue;
    for (u64 sign : {u64(0), format.sign()}) {
      auto add = [&](u64 fraction) {
        values.push_back(sign | field << format.fraction | (fraction & mask));
      };
      for (u64 fraction : {u64(0), u64(1), mask, mask - 1, mask >> 1, (mask >> 1) + 1})
        add(fraction);
      for (int n = 0; n < (far ? 2 : 10); ++n) {
        u64 tie = 1ull << (random64() % format.fraction);
        u64 upper = random64() & ~(2 * tie - 1);
        for (u64 rest : {tie - 1, tie, tie + 1})
          add(upper | rest);
      }
    }
  }
  for (int n = 0; n < 5000; ++n)
    values.push_back(random64() & (2 * format.sign() - 1));
  return values;
}

static std::vector<u64> sampleIntegers(int bits) {
  std::vector<u64> values;
  u64 mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  if (bits <= 16) {
    for (u64 value = 0; value <= mask; ++value)
      values.push_back(value);
    return values;
  }
  for (int k = 0; k < bits; ++k)
    for (int j = 0; j <= k; ++j)
      for (u64 change :
           {u64(0), u64(1), ~u64(0)}) // 2^k + 2^j, the sums around it, and their negatives
        for (bool negative : {false, true}) {
          u64 value = (1ull << k) + (1ull << j) + change;
          values.push_back((negative ? 0 - value : value) & mask);
        }
  for (u64 value : {u64(0), u64(1), mask, mask - 1})
    values.push_back(value);
  for (int n = 0; n < 4000; ++n)
    values.push_back((random64() >> (random64() % static_cast<u64>(bits))) & mask);
  return values;
}

static const std::vector<u64> &samplesFor(const Side &from) {
  static std::map<std::string, std::vector<u64>> made;
  std::string key = std::string(from.name) + std::to_string(from.bits);
  auto [found, fresh] = made.try_emplace(key);
  if (!fresh)
    return found->second;
  std::vector<u64> &values = found->second;
  if (from.kind == Kind::Signed || from.kind == Kind::Unsigned) {
    values = sampleIntegers(from.bits);
  } else if (from.kind == Kind::Float) {
    values = sampleFloats(*from.format);
  } else if (from.bits == 64) { // two f32, or two integers
    values = sampleFloats(F32);
    std::size_t count = values.size();
    for (std::size_t n = 0; n < count; ++n)
      values[n] |= values[(n * 7919) % count] << 32 & 0xffffffff00000000;
  } else if (from.bits == 32) { // two of 16 bits
    for (u64 code = 0; code < 0x10000; ++code)
      values.push_back(code | (code * 40503 & 0xffff) << 16);
  } else {
    for (u64 code = 0; code < 1ull << from.bits; ++code)
      values.push_back(code);
  }
  // What lies above a narrow source is not part of it.
  return values;
}

// --- Running ----------------------------------------------------------------

static CUfunction kernelOf(const Form &form) {
  auto source = [](const Side &side) {
    return side.bits == 64 ? "%x" : side.bits == 32 || side.kind == Kind::Pair ? "%a" : "%h";
  };
  std::string operands, result;
  if (form.to.bits == 64)
    operands = "%y", result = "";
  else if (form.to.bits == 32 || (form.to.bits == 8 && form.to.kind != Kind::Pair))
    operands = "%d", result = "mov.b64 %y, {%d, %zero};"; // 8 bits: extended to the register
  else if (form.to.bits == 8)
    operands = "%z",
    result = "mov.b16 %r, {%z, 0}; mov.b32 %d, {%r, %zero16}; mov.b64 %y, {%d, %zero};";
  else
    operands = "%r", result = "mov.b32 %d, {%r, %zero16}; mov.b64 %y, {%d, %zero};";
  std::string before;
  if (form.from.kind == Kind::Pair && form.from.bits == 64)
    operands += ", %a, %b";
  else if (form.from.kind == Kind::Pair && form.from.bits == 8)
    before = "mov.b16 {%z, %zz}, %h; ", operands += ", %z";
  else if (form.from.kind == Kind::Pair && form.from.bits == 16)
    operands += ", %h";
  else
    operands += std::string(", ") + source(form.from);
  if (form.name.starts_with("cvt.pack") && form.to.bits == 32 && form.name.ends_with(".b32"))
    operands += ", %c";
  std::string ptx = header() + R"(
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 count) {
  .reg .b64 %x, %y, %in, %out, %o; .reg .b32 %a, %b, %c, %d, %zero, %i, %n, %t;
  .reg .b16 %h, %g, %r, %zero16; .reg .b8 %z, %zz; .reg .pred %p;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [count];
  mov.u32 %t, %ctaid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %t, 256, %i;
  setp.ge.u32 %p, %i, %n;
  @%p ret;
  mul.wide.u32 %o, %i, 8; add.u64 %in, %in, %o; add.u64 %out, %out, %o;
  ld.global.b64 %x, [%in];
  mov.b64 {%a, %b}, %x; mov.b32 {%h, %g}, %a; mov.b32 %zero, 0; mov.b16 %zero16, 0;
  mov.b32 %c, 0x89abcdef;
  )" + before + form.name +
                    " " + operands + "; " + result + R"(
  st.global.b64 [%out], %y;
  ret;
})";
  return load(ptx, "k");
}

namespace {
/// Buffers on the device and on the host for some inputs at a time.
struct Batch {
  static constexpr std::size_t Most = 1 << 20;
  CUdeviceptr in, out;
  std::vector<u64> results = std::vector<u64>(Most);

  Batch() {
    CU(cuMemAlloc_v2, &in, Most * 8);
    CU(cuMemAlloc_v2, &out, Most * 8);
  }
  void run(const Form &form, CUfunction function, const u64 *inputs, std::size_t count) {
    CU(cuMemcpyHtoD_v2, in, inputs, count * 8);
    check(launch(function, static_cast<unsigned>((count + 255) / 256), 256, {in, out, count}),
          form.name.c_str());
    CU(cuMemcpyDtoH_v2, results.data(), out, count * 8);
  }
};
} // namespace

static std::atomic<int> failures = 0;
static std::size_t comparedWithHeaders = 0;

static void report(const Form &form, const char *truth, u64 input, u64 got, u64 want) {
  if (failures++ < 20)
    std::printf("%s: %" PRIx64 " gives %" PRIx64 ", %s %" PRIx64 "\n", form.name.c_str(), input,
                got, truth, want);
}

/// Compares part of a batch; one report a form and truth is enough.
template <class Oracle>
static void compare(const Form &form, const Oracle &oracle, const HeaderConversion *fromHeader,
                    const u64 *inputs, const u64 *results, std::size_t begin, std::size_t end) {
  for (std::size_t n = begin; n < end; ++n)
    if (u64 want = oracle(inputs[n]); results[n] != want) {
      report(form, "not", inputs[n], results[n], want);
      break;
    }
  if (fromHeader)
    for (std::size_t n = begin; n < end; ++n)
      if (u64 want = fromHeader->convert(inputs[n]); results[n] != want) {
        report(form, "CUDA's headers", inputs[n], results[n], want);
        break;
      }
}

#if defined(EMUTEST_CUDA_HEADERS)
static const HeaderConversion *headerFor(const std::string &name) {
  return findHeaderConversion(name.c_str());
}
#else
static const HeaderConversion *headerFor(const std::string &) { return nullptr; }
#endif

static u64 hashOf(u64 hash, const u64 *values, std::size_t count) {
  for (std::size_t n = 0; n < count; ++n)
    hash = (hash ^ values[n]) * 0x100000001b3;
  return hash;
}

static u64 runSamples(const Form &form, Batch &batch) {
  const std::vector<u64> &inputs = samplesFor(form.from);
  const HeaderConversion *fromHeader = headerFor(form.name);
  CUfunction function = kernelOf(form);
  u64 hash = 0xcbf29ce484222325;
  for (std::size_t at = 0; at < inputs.size(); at += Batch::Most) {
    std::size_t count = std::min(Batch::Most, inputs.size() - at);
    batch.run(form, function, inputs.data() + at, count);
    compare(form, form.oracle, fromHeader, inputs.data() + at, batch.results.data(), 0, count);
    hash = hashOf(hash, batch.results.data(), count);
  }
  comparedWithHeaders += fromHeader != nullptr;
  return hash;
}

// --- Forms ------------------------------------------------------------------

static u64 maskOf(int bits) { return bits == 64 ? ~0ull : (1ull << bits) - 1; }
static s64 signExtend(u64 value, int bits) {
  return static_cast<s64>(value << (64 - bits)) >> (64 - bits);
}
/// As it appears in the register: 8 bits are extended to 32.
static u64 inRegister(const Side &to, u64 value) {
  value &= maskOf(to.bits);
  if (to.kind == Kind::Signed)
    value = static_cast<u64>(signExtend(value, to.bits));
  return value & maskOf(to.bits == 8 ? 32 : to.bits);
}

struct ModeName {
  const char *text;
  Mode mode;
};
constexpr ModeName Directions[] = {
    {"rn", Mode::Nearest}, {"rz", Mode::Zero}, {"rm", Mode::Down}, {"rp", Mode::Up}};

static u64 flushed(u64 raw) { return raw & 0x7f800000 ? raw : raw & 0x80000000; }

static long double valueOf(const Side &from, u64 x, bool ftz = false) {
  if (from.kind == Kind::Float)
    return decode<long double>(*from.format, ftz && from.format == &F32 ? flushed(x) : x);
  x &= maskOf(from.bits);
  return from.kind == Kind::Signed ? static_cast<long double>(signExtend(x, from.bits))
                                   : static_cast<long double>(x);
}
/// .sat of a float result.
template <class Real> Real saturated(Real v) { return v > 0 ? std::min<Real>(v, 1) : 0; }

static std::string text(const char *modifiers, const Side &to, const Side &from) {
  return std::string("cvt") + modifiers + "." + to.name + "." + from.name;
}

/// To an integer: PTX ISA, cvt: clamped; NaN is 0, or the top bit where one side has 64 bits (of
/// the source: only f64).
static u64 toInteger(const Side &to, const Side &from, Mode mode, long double value) {
  if (value != value)
    return inRegister(to, to.bits == 64 || from.bits == 64 ? 1ull << (to.bits - 1) : 0);
  value = toIntegral(mode, value);
  long double most =
      to.kind == Kind::Signed ? std::ldexp(1.0L, to.bits - 1) - 1 : std::ldexp(1.0L, to.bits) - 1;
  long double least = to.kind == Kind::Signed ? -most - 1 : 0;
  value = std::min(std::max(value, least), most);
  return inRegister(to, value < 0 ? static_cast<u64>(static_cast<s64>(value))
                                  : static_cast<u64>(value));
}

static void addSingles(std::vector<Form> &forms) {
  for (const Side &to : Integers)
    for (const Side &from : Integers) {
      forms.push_back({text("", to, from), to, from, [=](u64 x) {
                         x &= maskOf(from.bits);
                         return inRegister(to, from.kind == Kind::Signed
                                                   ? static_cast<u64>(signExtend(x, from.bits))
                                                   : x);
                       }});
      forms.push_back({text(".sat", to, from), to, from,
                       [=](u64 x) { return toInteger(to, from, Mode::Zero, valueOf(from, x)); }});
    }
  for (const Side &to : Floats)
    for (const Side &from : Integers)
      for (auto [name, mode] : Directions)
        for (bool sat : {false, true}) {
          if (sat && (to.format == &BF16 || mode == Mode::Down))
            continue;
          std::string modifiers = std::string(".") + name + (sat ? ".sat" : "");
          forms.push_back({text(modifiers.c_str(), to, from), to, from, [=, m = mode](u64 x) {
                             long double v = valueOf(from, x);
                             return encode(*to.format, m, sat ? saturated(v) : v);
                           }});
        }
  constexpr ModeName Integral[] = {
      {".rni", Mode::Nearest}, {".rzi", Mode::Zero}, {".rmi", Mode::Down}, {".rpi", Mode::Up}};
  for (const Side &from : Floats)
    for (auto [name, mode] : Integral)
      for (bool ftz : {false, true}) {
        if (ftz && from.format != &F32)
          continue;
        std::string modifiers = std::string(name) + (ftz ? ".ftz" : "");
        for (const Side &to : Integers)
          forms.push_back({text(modifiers.c_str(), to, from), to, from, [=, m = mode](u64 x) {
                             return toInteger(to, from, m, valueOf(from, x, ftz));
                           }});
        forms.push_back({text(modifiers.c_str(), from, from), from, from, [=, m = mode](u64 x) {
                           long double v = toIntegral(m, valueOf(from, x, ftz));
                           return encode(*from.format, Mode::Nearest, v);
                         }});
      }
  for (const Side &to : Floats)
    for (const Side &from : Floats) {
      bool narrows = to.bits < from.bits || (to.bits == from.bits && to.format != from.format);
      bool anyF32 = to.format == &F32 || from.format == &F32;
      bool anyBf16 = to.format == &BF16 || from.format == &BF16;
      for (auto [name, mode] : Directions)
        for (bool sat : {false, true})
          for (bool ftz : {false, true}) {
            if ((!narrows && mode != Mode::Nearest) || (sat && anyBf16) || (ftz && !anyF32))
              continue;
            std::string modifiers = std::string(narrows ? "." : "") + (narrows ? name : "") +
                                    (sat ? ".sat" : "") + (ftz ? ".ftz" : "");
            forms.push_back({text(modifiers.c_str(), to, from), to, from, [=, m = mode](u64 x) {
                               long double v = valueOf(from, x, ftz);
                               u64 code = encode(*to.format, m, sat ? saturated(v) : v);
                               // Doubles keep what is in a NaN of f32, which becomes quiet.
                               if (v != v && !sat && to.format == &F64 && from.format == &F32)
                                 code |= (x & 0x80000000) << 32 | (x & 0x7fffff) << 29;
                               return ftz && to.format == &F32 ? flushed(code) : code;
                             }});
          }
    }
}

template <class Real> Real rectified(bool relu, Real v) { return relu && v <= 0 ? 0 : v; }

/// Two codes, each from its own number; `half` bits apart.
static std::function<u64(u64)> pairOf(const Format &to, Mode mode, bool relu, bool satfinite,
                                      int half) {
  return [=, &to](u64 x) {
    auto one = [&](u32 raw) {
      return encode(to, mode, rectified(relu, double(std::bit_cast<float>(raw))), satfinite);
    };
    return one(static_cast<u32>(x)) << half | one(static_cast<u32>(x >> 32));
  };
}

static void addPairs(std::vector<Form> &forms) {
  struct Small {
    const char *name;
    const Format *format;
    int half; // bits of one code's place
  };
  constexpr Small Smalls[] = {{"e4m3x2", &E4M3, 8},
                              {"e5m2x2", &E5M2, 8},
                              {"e3m2x2", &E3M2, 8},
                              {"e2m3x2", &E2M3, 8},
                              {"e2m1x2", &E2M1, 4}};
  for (bool relu : {false, true}) {
    std::string clamp = relu ? ".relu" : "";
    for (const Side &half : {Floats[0], Floats[1]})
      for (auto [name, mode] : {Directions[0], Directions[1]})
        for (bool satfinite : {false, true}) {
          Side pair{half.format == &F16 ? "f16x2" : "bf16x2", Kind::Pair, 32};
          std::string modifiers = std::string(".") + name + clamp + (satfinite ? ".satfinite" : "");
          forms.push_back({text(modifiers.c_str(), pair, F32Pair), pair, F32Pair,
                           pairOf(*half.format, mode, relu, satfinite, 16)});
          if (relu || satfinite)
            forms.push_back(
                {text(modifiers.c_str(), half, F32Side), half, F32Side, [=, m = mode](u64 x) {
                   double v = std::bit_cast<float>(static_cast<u32>(x));
                   return encode(*half.format, m, rectified(relu, v), satfinite);
                 }});
        }
    for (const Small &small : Smalls) {
      Side pair{small.name, Kind::Pair, 2 * small.half};
      Side halves{"f16x2", Kind::Pair, 32};
      forms.push_back({text((".rn.satfinite" + clamp).c_str(), pair, F32Pair), pair, F32Pair,
                       pairOf(*small.format, Mode::Nearest, relu, true, small.half)});
      if (small.format == &E4M3 || small.format == &E5M2)
        forms.push_back(
            {text((".rn.satfinite" + clamp).c_str(), pair, halves), pair, halves, [=](u64 x) {
               auto one = [&](u64 raw) {
                 double v = decode<double>(F16, raw & 0xffff);
                 return encode(*small.format, Mode::Nearest, rectified(relu, v), true);
               };
               return one(x) | one(x >> 16) << 8;
             }});
      forms.push_back({text((".rn" + clamp).c_str(), halves, pair), halves, pair, [=](u64 x) {
                         auto one = [&](u64 code) {
                           double v =
                               decode<double>(*small.format, code & (2 * small.format->sign() - 1));
                           return encode(F16, Mode::Nearest, rectified(relu, v));
                         };
                         return one(x) | one(x >> small.half) << 16;
                       }});
    }
  }
  for (auto [name, mode] : {ModeName{"rna", Mode::Away}, Directions[0], Directions[1]})
    for (bool relu : {false, true})
      for (bool satfinite : {false, true}) {
        if (relu && mode == Mode::Away)
          continue;
        Side tf32{"tf32", Kind::Float, 32};
        std::string modifiers =
            std::string(".") + name + (satfinite ? ".satfinite" : "") + (relu ? ".relu" : "");
        forms.push_back(
            {text(modifiers.c_str(), tf32, F32Side), tf32, F32Side, [=, m = mode](u64 x) {
               double v = std::bit_cast<float>(static_cast<u32>(x));
               u64 code = encode(TF32, m, rectified(relu, v), satfinite);
               return code == TF32.nan ? code : code << 13;
             }});
      }
  // ue8m0: the exponent whose power of two is the magnitude or the next one in the direction.
  auto power = [](double v, bool up, bool satfinite) -> u64 {
    v = std::fabs(v);
    if (v != v)
      return 0xff;
    int code = 0;
    while (code < 255 && std::ldexp(1.0, code - 127) < v)
      ++code; // now the least that is not below
    if (!up && code > 0 && (code == 255 ? v < 0x1p128 : std::ldexp(1.0, code - 127) > v))
      --code;
    return static_cast<u64>(satfinite ? std::min(code, 254) : code);
  };
  Side exponents{"ue8m0x2", Kind::Pair, 16}, bfloats{"bf16x2", Kind::Pair, 32};
  for (bool up : {false, true})
    for (bool satfinite : {false, true}) {
      std::string modifiers = std::string(up ? ".rp" : ".rz") + (satfinite ? ".satfinite" : "");
      forms.push_back({text(modifiers.c_str(), exponents, F32Pair), exponents, F32Pair, [=](u64 x) {
                         auto one = [&](u64 raw) {
                           return power(std::bit_cast<float>(static_cast<u32>(raw)), up, satfinite);
                         };
                         return one(x) << 8 | one(x >> 32);
                       }});
      forms.push_back({text(modifiers.c_str(), exponents, bfloats), exponents, bfloats, [=](u64 x) {
                         auto one = [&](u64 raw) {
                           return power(decode<double>(BF16, raw & 0xffff), up, satfinite);
                         };
                         return one(x) | one(x >> 16) << 8;
                       }});
    }
  forms.push_back({text(".rn", bfloats, exponents), bfloats, exponents, [](u64 x) {
                     auto one = [](u64 code) {
                       return code == 0xff ? BF16.nan
                                           : encode(BF16, Mode::Nearest,
                                                    std::ldexp(1.0, static_cast<int>(code) - 127));
                     };
                     return one(x & 0xff) | one(x >> 8 & 0xff) << 16;
                   }});
  for (int bits : {2, 4, 8, 16})
    for (bool isSigned : {false, true}) {
      Side to{"", Kind::Pair, 32}, from{"s32", Kind::Pair, 64};
      Side clamped{"", isSigned ? Kind::Signed : Kind::Unsigned, bits};
      std::string name = std::string("cvt.pack.sat.") + (isSigned ? "s" : "u") +
                         std::to_string(bits) + ".s32" + (bits < 16 ? ".b32" : "");
      forms.push_back({name, to, from, [=](u64 x) {
                         auto one = [&](u64 raw) {
                           long double v = static_cast<s32>(raw);
                           return toInteger(clamped, clamped, Mode::Zero, v) & maskOf(bits);
                         };
                         u64 pair = one(x) << bits | one(x >> 32);
                         return (pair | (bits < 16 ? u64(0x89abcdef) << (2 * bits) : 0)) &
                                0xffffffff;
                       }});
    }
}

// --- All 2^32 ---------------------------------------------------------------

namespace {
struct Sweep {
  const char *name;
  u64 (*oracle)(u64);
};
} // namespace

static double single(u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); }
/// Of a pair the other source is the same number turned around, so that one sweep sees both places.
template <const Format &To> u64 sweepPair(u64 x) {
  return encode(To, Mode::Nearest, single(x), true) << 8 |
         encode(To, Mode::Nearest, single(x >> 32), true);
}
constexpr Sweep Sweeps[] = {
    {"cvt.rn.f16.f32", [](u64 x) { return encode(F16, Mode::Nearest, single(x)); }},
    {"cvt.rz.f16.f32", [](u64 x) { return encode(F16, Mode::Zero, single(x)); }},
    {"cvt.rn.bf16.f32", [](u64 x) { return encode(BF16, Mode::Nearest, single(x)); }},
    {"cvt.rz.bf16.f32", [](u64 x) { return encode(BF16, Mode::Zero, single(x)); }},
    {"cvt.rn.satfinite.e4m3x2.f32", sweepPair<E4M3>},
    {"cvt.rn.satfinite.e5m2x2.f32", sweepPair<E5M2>},
    {"cvt.rna.tf32.f32",
     [](u64 x) {
       u64 code = encode(TF32, Mode::Away, single(x));
       return code == TF32.nan ? code : code << 13;
     }},
    {"cvt.rni.s32.f32",
     [](u64 x) {
       double v = toIntegral(Mode::Nearest, single(x));
       v = v != v ? 0 : std::min(std::max(v, -2147483648.0), 2147483647.0);
       return u64(static_cast<u32>(static_cast<s32>(v)));
     }},
    {"cvt.rzi.u32.f32",
     [](u64 x) {
       double v = toIntegral(Mode::Zero, single(x));
       return u64(static_cast<u32>(v != v ? 0 : std::min(std::max(v, 0.0), 4294967295.0)));
     }},
};

static u64 runSweep(const Form &form, const Sweep &sweep, Batch &batch) {
  const HeaderConversion *fromHeader = headerFor(form.name);
  CUfunction function = kernelOf(form);
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<u64> inputs(Batch::Most);
  u64 hash = 0xcbf29ce484222325;
  int before = failures;
  for (u64 first = 0; first < 1ull << 32 && failures == before; first += Batch::Most) {
    for (std::size_t n = 0; n < Batch::Most; ++n) {
      u64 x = first + n;
      inputs[n] = form.from.kind == Kind::Pair ? x | (x * 0x9e3779b1 & 0xffffffff) << 32 : x;
    }
    batch.run(form, function, inputs.data(), Batch::Most);
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        compare(form, sweep.oracle, fromHeader, inputs.data(), batch.results.data(),
                Batch::Most * t / threads, Batch::Most * (t + 1) / threads);
      });
    for (std::thread &worker : workers)
      worker.join();
    hash = hashOf(hash, batch.results.data(), Batch::Most);
  }
  return hash;
}

int main(int argc, char **argv) {
  bool all = false, hashes = false;
  std::vector<std::string> names;
  for (int n = 1; n < argc; ++n) {
    if (std::strcmp(argv[n], "--all") == 0)
      all = true;
    else if (std::strcmp(argv[n], "--hashes") == 0)
      hashes = true;
    else
      names.push_back(argv[n]);
  }
  open();
  Batch batch;
  std::vector<Form> forms;
  addSingles(forms);
  addPairs(forms);
  std::size_t ran = 0;
  for (const Form &form : forms) {
    if (!names.empty() && std::find(names.begin(), names.end(), form.name) == names.end())
      continue;
    u64 hash;
    if (all) {
      const Sweep *sweep = std::find_if(std::begin(Sweeps), std::end(Sweeps),
                                        [&](const Sweep &row) { return form.name == row.name; });
      if (sweep == std::end(Sweeps))
        continue;
      hash = runSweep(form, *sweep, batch);
    } else {
      hash = runSamples(form, batch);
    }
    ++ran;
    if (hashes || all)
      std::printf("%s %016" PRIx64 "\n", form.name.c_str(), hash);
    std::fflush(stdout);
  }
  std::printf("%zu forms", ran);
  if (comparedWithHeaders)
    std::printf(", %zu of them against CUDA's headers too", comparedWithHeaders);
  std::printf(": %s\n", failures ? "failed" : "ok");
  return failures != 0;
}
