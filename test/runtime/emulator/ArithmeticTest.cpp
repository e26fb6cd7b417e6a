//===- ArithmeticTest.cpp - planemu-arithmetic-test: IEEE results by MPFR --===//
//
// add, sub, mul, fma, div, rcp and sqrt on f32, pairs of f32 and f64 in all four directions, with
// .ftz and .sat, and the nearest forms on f16 and bf16, bit for bit. MPFR computes to more digits
// than any format has and marks in the last one whether there were more; the result is then rounded
// once. Operands are edge values in all combinations, random bits, and triples that nearly cancel.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/Emulator.h"
#include "test/runtime/emulator/Oracle.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include <mpfr.h>

using namespace emutest;

static u64 seed = 0x2545f4914f6cdd1d;
static u64 random64() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

namespace {

/// A number of many bits.
class Big {
public:
  Big() { mpfr_init2(value, Bits + 2); }
  ~Big() { mpfr_clear(value); }
  Big(const Big &) = delete;
  Big &operator=(const Big &) = delete;
  mpfr_t value;
  static constexpr int Bits = 300;
};

enum class Operation { Add, Sub, Mul, Fma, Div, Rcp, Sqrt };
struct OperationRow {
  const char *name;
  Operation operation;
  int sources;
};
constexpr OperationRow Operations[] = {{"add", Operation::Add, 2},  {"sub", Operation::Sub, 2},
                                       {"mul", Operation::Mul, 2},  {"fma", Operation::Fma, 3},
                                       {"div", Operation::Div, 2},  {"rcp", Operation::Rcp, 1},
                                       {"sqrt", Operation::Sqrt, 1}};

struct Direction {
  const char *name;
  mpfr_rnd_t mode;
};
constexpr Direction Directions[] = {
    {".rn", MPFR_RNDN}, {".rz", MPFR_RNDZ}, {".rm", MPFR_RNDD}, {".rp", MPFR_RNDU}};

struct Operands {
  u64 a, b, c;
};

} // namespace

/// result = the operation, rounded so that any later rounding gives what the exact value gives.
static void compute(Big &result, Operation operation, Big (&s)[3], mpfr_rnd_t mode) {
  auto run = [&](mpfr_rnd_t rounding) {
    mpfr_set_prec(result.value, Big::Bits);
    switch (operation) {
    case Operation::Add:
      return mpfr_add(result.value, s[0].value, s[1].value, rounding);
    case Operation::Sub:
      return mpfr_sub(result.value, s[0].value, s[1].value, rounding);
    case Operation::Mul:
      return mpfr_mul(result.value, s[0].value, s[1].value, rounding);
    case Operation::Fma:
      return mpfr_fma(result.value, s[0].value, s[1].value, s[2].value, rounding);
    case Operation::Div:
      return mpfr_div(result.value, s[0].value, s[1].value, rounding);
    case Operation::Rcp:
      return mpfr_ui_div(result.value, 1, s[0].value, rounding);
    default:
      return mpfr_sqrt(result.value, s[0].value, rounding);
    }
  };
  bool cut = run(MPFR_RNDZ) != 0;
  if (mpfr_zero_p(result.value))
    run(mode); // the sign of a sum that cancels is a matter of the direction
  if (!cut || !mpfr_regular_p(result.value))
    return;
  // Between this number and the next one with Bits bits.
  Big half;
  mpfr_set_si_2exp(half.value, mpfr_sgn(result.value), mpfr_get_exp(result.value) - Big::Bits - 1,
                   MPFR_RNDN);
  mpfr_prec_round(result.value, Big::Bits + 2, MPFR_RNDN);
  mpfr_add(result.value, result.value, half.value, MPFR_RNDN);
}

static double wideOf(const Format &format, u64 raw) {
  return &format == &F64 ? std::bit_cast<double>(raw) : decode<double>(format, raw);
}
static u64 flushed(u64 raw) { return raw & 0x7f800000 ? raw : raw & 0x80000000; }

/// The result's code by definition.
static u64 expected(const Format &format, Operation operation, Operands x, mpfr_rnd_t mode,
                    bool ftz, bool sat, Big (&s)[3], Big &result) {
  const u64 raw[] = {x.a, x.b, x.c};
  for (int n = 0; n < 3; ++n)
    mpfr_set_d(s[n].value, wideOf(format, ftz ? flushed(raw[n]) : raw[n]), MPFR_RNDN);
  compute(result, operation, s, mode);
  u64 code;
  if (mpfr_nan_p(result.value))
    code = format.nan;
  else if (&format == &F64)
    code = std::bit_cast<u64>(mpfr_get_d(result.value, mode));
  else if (&format == &F32)
    code = std::bit_cast<u32>(mpfr_get_flt(result.value, mode));
  else // nearest only; cut and marked in the last bit once more
    code = encode<double>(format, Mode::Nearest, [&] {
      double cut = mpfr_get_d(result.value, MPFR_RNDZ);
      bool exact = !mpfr_regular_p(result.value) || mpfr_cmp_d(result.value, cut) == 0;
      return exact ? cut : std::bit_cast<double>(std::bit_cast<u64>(cut) | 1);
    }());
  if (sat) {
    double v = wideOf(format, code);
    code = v > 0 ? (v < 1 ? code : 0x3f800000) : 0;
  }
  return ftz ? flushed(code) : code;
}

/// Edge values in all pairs with random thirds, random bits, sums that nearly cancel.
static std::vector<Operands> operandsOf(const Format &format) {
  u64 one = static_cast<u64>((1 << (format.exponent - 1)) - 1) << format.fraction;
  u64 least = 1ull << format.fraction, infinity = format.infinity, mask = 2 * format.sign() - 1;
  std::vector<u64> edges = {0,
                            1,
                            2,
                            least - 1,
                            least,
                            least + 1,
                            one,
                            one + 1,
                            one - 1,
                            one / 2,
                            one + least,
                            one + least / 2,
                            one - least,
                            infinity - 1,
                            infinity,
                            infinity + 1,
                            infinity - least,
                            one + 3 * least + 5};
  std::size_t positive = edges.size();
  for (std::size_t n = 0; n < positive; ++n)
    edges.push_back(edges[n] | format.sign());
  std::vector<Operands> all;
  for (u64 a : edges)
    for (u64 b : edges)
      for (int n = 0; n < 3; ++n)
        all.push_back({a, b, n ? edges[random64() % edges.size()] : random64() & mask});
  auto near = [&] { // within 2^16 of one, so that results are ordinary
    u64 exponent = (one >> format.fraction) + random64() % 32 - 16;
    return (random64() & (format.sign() | (least - 1))) | exponent << format.fraction;
  };
  for (int n = 0; n < 1500; ++n) {
    all.push_back({random64() & mask, random64() & mask, random64() & mask});
    all.push_back({near(), near(), near()});
    // c close to -a * b; b close to -a; a and b whose quotient is close to a number or a tie
    u64 a = near(), b = near();
    if (&format == &F64) {
      double product = std::bit_cast<double>(a) * std::bit_cast<double>(b);
      all.push_back({a, b, std::bit_cast<u64>(-product) + random64() % 3 - 1});
    } else {
      double product = decode<double>(format, a) * decode<double>(format, b);
      all.push_back({a, b, (encode(format, Mode::Nearest, -product) + random64() % 3 - 1) & mask});
    }
    all.push_back({a, (a ^ format.sign()) + random64() % 5 - 2, b});
    // results among the subnormals, and near the largest number
    u64 shift = static_cast<u64>(random64() % static_cast<u64>(format.fraction + 4));
    u64 small = (one >> format.fraction) / 2 + shift / 2;
    all.push_back({(a & ~infinity) | small << format.fraction,
                   (b & ~infinity) | (small - shift) << format.fraction,
                   random64() & mask & ~infinity});
    u64 large = (one >> format.fraction) + (one >> format.fraction) / 2 + random64() % 3;
    all.push_back({(a & ~infinity) | large << format.fraction,
                   (b & ~infinity) | large << format.fraction, random64() & mask});
  }
  return all;
}

static int failures = 0;

static void run(const std::string &name, const Format &format, const OperationRow &row,
                mpfr_rnd_t mode, bool ftz, bool sat, bool pair,
                const std::vector<Operands> &inputs) {
  const char *type = pair ? "b64" : &format == &F64 ? "b64" : &format == &F32 ? "b32" : "b16";
  unsigned bytes = type == std::string("b64") ? 8 : type == std::string("b32") ? 4 : 2;
  std::string text = name + " %d, %a";
  text += row.sources > 1 ? ", %b" : "";
  text += row.sources > 2 ? ", %c;" : ";";
  auto load = [&](const char *to, int offset) {
    std::string from = " [%in+" + std::to_string(offset);
    return std::string("ld.global.") + type + " " + to + "," + from + "];\n";
  };
  std::string ptx = header() + R"(
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 count) {
  .reg .b64 %in, %out; .reg .b32 %i, %n, %t; .reg .pred %p; .reg .)" +
                    std::string(type) + R"( %a, %b, %c, %d;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [count];
  mov.u32 %t, %ctaid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %t, 256, %i;
  setp.ge.u32 %p, %i, %n;
  @%p ret;
  mad.wide.u32 %in, %i, )" +
                    std::to_string(3 * bytes) + R"(, %in;
  mad.wide.u32 %out, %i, )" +
                    std::to_string(bytes) + R"(, %out;
)" + load("%a", 0) + load("%b", static_cast<int>(bytes)) +
                    load("%c", static_cast<int>(2 * bytes)) + text + "\nst.global." + type +
                    " [%out], %d;\n ret;\n}";
  // Of a pair the upper half is the same operands from the other end of the list.
  std::size_t count = inputs.size();
  std::vector<std::uint8_t> packed(count * 3 * bytes);
  for (std::size_t n = 0; n < count; ++n) {
    u64 values[] = {inputs[n].a, inputs[n].b, inputs[n].c};
    const Operands &upper = inputs[count - 1 - n];
    if (pair)
      values[0] |= upper.a << 32, values[1] |= upper.b << 32, values[2] |= upper.c << 32;
    for (unsigned k = 0; k < 3; ++k)
      std::memcpy(packed.data() + (n * 3 + k) * bytes, &values[k], bytes);
  }
  CUdeviceptr in = upload(packed), out = upload(std::vector<std::uint8_t>(count * bytes));
  check(launch(emutest::load(ptx, "k"), static_cast<unsigned>((count + 255) / 256), 256,
               {in, out, count}),
        name.c_str());
  std::vector<std::uint8_t> results = download<std::uint8_t>(out, count * bytes);
  CU(cuMemFree_v2, in);
  CU(cuMemFree_v2, out);
  Big sources[3], result;
  for (std::size_t n = 0; n < count; ++n) {
    u64 got = 0;
    std::memcpy(&got, results.data() + n * bytes, bytes);
    u64 want = expected(format, row.operation, inputs[n], mode, ftz, sat, sources, result);
    if (pair)
      want |=
          expected(format, row.operation, inputs[count - 1 - n], mode, ftz, sat, sources, result)
          << 32;
    if (got != want) {
      std::printf("%s of %" PRIx64 ", %" PRIx64 ", %" PRIx64 " is %" PRIx64 ", not %" PRIx64 "\n",
                  name.c_str(), inputs[n].a, inputs[n].b, inputs[n].c, got, want);
      ++failures;
      return;
    }
  }
}

int main() {
  open();
  std::vector<Operands> singles = operandsOf(F32), doubles = operandsOf(F64);
  unsigned forms = 0;
  for (const OperationRow &row : Operations) {
    bool root = row.operation == Operation::Sqrt,
         quotient = row.operation == Operation::Div || row.operation == Operation::Rcp;
    for (const Direction &direction : Directions) {
      auto name = [&](const std::string &rest) { return row.name + (direction.name + rest); };
      run(name(".f64"), F64, row, direction.mode, false, false, false, doubles);
      ++forms;
      for (bool ftz : {false, true})
        for (bool sat : {false, true}) {
          if (sat && (root || quotient))
            continue;
          std::string rest = std::string(ftz ? ".ftz" : "") + (sat ? ".sat" : "");
          run(name(rest + ".f32"), F32, row, direction.mode, ftz, sat, false, singles);
          ++forms;
          if (sat || root || quotient)
            continue;
          run(name(rest + ".f32x2"), F32, row, direction.mode, ftz, false, true, singles);
          ++forms;
        }
    }
    if (root || quotient)
      continue;
    for (const Format *format : {&F16, &BF16}) {
      run(std::string(row.name) + ".rn" + (format == &F16 ? ".f16" : ".bf16"), *format, row,
          MPFR_RNDN, false, false, false, operandsOf(*format));
      ++forms;
    }
  }
  std::printf("%u forms: %s\n", forms, failures ? "failed" : "ok");
  return failures != 0;
}
