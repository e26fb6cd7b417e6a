//===- MmaScalar.cpp - mma on integers, bits and tf32, movmatrix ----------===//
//
// Fragments as in Mma.cpp: a register of A or B is a tile of 8 rows of 16 bytes. These shapes are
// rare in the kernels that run here, so they go element by element.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/Mma.h"

namespace planemu::PLANEMU_ISA {

namespace {

/// s8 and u8: the sum is exact, then wraps, or clamps with .satfinite.
template <class A, class B, bool Saturate> struct IntegerMma {
  using ElementA = A;
  using ElementB = B;
  using Sum = s32;
  s64 sum;
  explicit IntegerMma(s32 c) : sum(c) {}
  void add(A a, B b) { sum += s64(a) * b; }
  s32 result() const {
    if (Saturate)
      return static_cast<s32>(sum > 0x7fffffffll    ? 0x7fffffffll
                              : sum < -0x80000000ll ? -0x80000000ll
                                                    : sum);
    return static_cast<s32>(sum);
  }
};

/// s4 and u4: the same, two elements a byte, the first in its lower half.
template <bool SignedA, bool SignedB, bool Saturate>
struct NibbleMma : IntegerMma<u8, u8, Saturate> {
  using IntegerMma<u8, u8, Saturate>::IntegerMma;
  template <bool Signed> static s64 value(u8 byte, int half) {
    u8 upper = static_cast<u8>(half ? byte & 0xf0 : byte << 4);
    return Signed ? static_cast<s8>(upper) >> 4 : upper >> 4;
  }
  void add(u8 a, u8 b) {
    for (int half = 0; half < 2; ++half)
      this->sum += value<SignedA>(a, half) * value<SignedB>(b, half);
  }
};

/// b1: counts the bits that are set in both, or in one.
template <bool Xor> struct BitMma : IntegerMma<u8, u8, false> {
  using IntegerMma<u8, u8, false>::IntegerMma;
  void add(u8 a, u8 b) { sum += __builtin_popcount(Xor ? a ^ b : a & b); }
};

/// tf32 is an f32 whose low 13 bits do not count; sums as in Mma.cpp.
struct Tf32Mma {
  using ElementA = u32;
  using ElementB = u32;
  using Sum = f32;
  f32 sum;
  explicit Tf32Mma(f32 c) : sum(c) {}
  static f32 value(u32 raw) { return bits<f32>(raw & 0xffffe000); }
  void add(u32 a, u32 b) { sum = __builtin_fmaf(value(a), value(b), sum); }
  f32 result() const { return sum == sum ? sum : bits<f32>(0x7fffffffu); }
};

} // namespace

/// Operands: members (all), D, A, B, C. Rows: 8 or 16; Blocks: of 16 bytes of k.
template <class Mma, int Rows, int Blocks> static void multiplyScalar(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i, "mma"))
    return;
  using A = typename Mma::ElementA;
  using B = typename Mma::ElementB;
  using Sum = typename Mma::Sum;
  constexpr int Tiles = Rows / 8, Columns = 16 / sizeof(A);
  const u32 *d = i.ops + 1, *a = d + 2 * Tiles, *b = a + Tiles * Blocks, *c = b + Blocks;
  Sum results[Rows][8];
  for (int m = 0; m < Rows; ++m)
    for (int n = 0; n < 8; ++n) {
      // Element (m, n) of C: lane 4 (m % 8) + n / 2 of register 2 (m / 8) + n % 2.
      Mma mma(at<Sum>(w, c[2 * (m / 8) + n % 2])[4 * (m % 8) + n / 2]);
      for (int block = 0; block < Blocks; ++block) {
        const A *row = at<A>(w, a[Tiles * block + m / 8]) + Columns * (m % 8);
        const B *column = at<B>(w, b[block]) + Columns * n;
        for (int k = 0; k < Columns; ++k)
          mma.add(row[k], column[k]);
      }
      results[m][n] = mma.result();
    }
  for (int m = 0; m < Rows; ++m)
    for (int n = 0; n < 8; ++n)
      at<Sum>(w, d[2 * (m / 8) + n % 2])[4 * (m % 8) + n / 2] = results[m][n];
}

/// `k`: how many elements 16 bytes are.
template <class Mma> static MmaForm integers(std::string_view shape, int k) {
  auto is = [&](const char *rows, int columns) {
    return shape == std::string(rows) + std::to_string(columns);
  };
  if (is(".m8n8k", k))
    return {multiplyScalar<Mma, 8, 1>, 2, 1, 1, Type::S32};
  if (is(".m16n8k", k))
    return {multiplyScalar<Mma, 16, 1>, 4, 2, 1, Type::S32};
  if (is(".m16n8k", 2 * k))
    return {multiplyScalar<Mma, 16, 2>, 4, 4, 2, Type::S32};
  return {};
}

template <bool Saturate>
static MmaForm byTypes(std::string_view shape, std::string_view a, std::string_view b) {
  if (a == ".s8" && b == ".s8")
    return integers<IntegerMma<s8, s8, Saturate>>(shape, 16);
  if (a == ".s8" && b == ".u8")
    return integers<IntegerMma<s8, u8, Saturate>>(shape, 16);
  if (a == ".u8" && b == ".s8")
    return integers<IntegerMma<u8, s8, Saturate>>(shape, 16);
  if (a == ".u8" && b == ".u8")
    return integers<IntegerMma<u8, u8, Saturate>>(shape, 16);
  if (a == ".s4" && b == ".s4")
    return integers<NibbleMma<true, true, Saturate>>(shape, 32);
  if (a == ".s4" && b == ".u4")
    return integers<NibbleMma<true, false, Saturate>>(shape, 32);
  if (a == ".u4" && b == ".s4")
    return integers<NibbleMma<false, true, Saturate>>(shape, 32);
  if (a == ".u4" && b == ".u4")
    return integers<NibbleMma<false, false, Saturate>>(shape, 32);
  return {};
}

MmaForm findIntegers(std::string_view shape, std::string_view a, std::string_view b,
                     bool saturate) {
  return saturate ? byTypes<true>(shape, a, b) : byTypes<false>(shape, a, b);
}

MmaForm findBits(std::string_view shape, bool exclusive) {
  return exclusive ? integers<BitMma<true>>(shape, 128) : integers<BitMma<false>>(shape, 128);
}

MmaForm findTf32(std::string_view shape) {
  if (shape == ".m16n8k4")
    return {multiplyScalar<Tf32Mma, 16, 1>, 4, 2, 1, Type::F32};
  if (shape == ".m16n8k8")
    return {multiplyScalar<Tf32Mma, 16, 2>, 4, 4, 2, Type::F32};
  return {};
}

/// movmatrix.sync.aligned.m8n8.trans.b16 d, a. Operands: members (all), destination, source.
void selectMovmatrix(Decoder &d) {
  if (!d.take(".sync") || !d.take(".aligned") || !d.take(".m8n8") || !d.take(".trans"))
    d.fail("only .sync.aligned.m8n8.trans is supported");
  if (Type type = d.takeType(); type != Type::B16)
    d.failType(type);
  d.useConstant(~0u, 32);
  d.def(0, 32);
  d.use(1, Type::B32);
  d.emit(
      [](Warp &w, const Inst &i) {
        if (!wholeWarp(w, i, "movmatrix"))
          return;
        alignas(16) u16 tile[64];
        std::memcpy(tile, w.file + i.s[2], sizeof(tile));
        transposeTile(tile);
        std::memcpy(w.file + i.s[1], tile, sizeof(tile));
      },
      0, Inst::Sync);
}

/// Operands as above, registers of 64 bits. Register n of A: row lane / 4 + 8 (n % 2) where there are 16
/// rows, column lane % 4 + 4 (n / 2), or n of one tile of rows; of B: row lane % 4 + 4 n, column
/// lane / 4. Sums go by k, each a fma.
template <int Rows, int K> static void multiplyDoubles(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i, "mma"))
    return;
  constexpr int Tiles = Rows / 8;
  const u32 *d = i.ops + 1, *a = d + 2 * Tiles, *b = a + Tiles * K / 4, *c = b + K / 4;
  f64 results[Rows][8];
  for (int m = 0; m < Rows; ++m)
    for (int n = 0; n < 8; ++n) {
      f64 sum = at<f64>(w, c[2 * (m / 8) + n % 2])[4 * (m % 8) + n / 2];
      for (int k = 0; k < K; ++k)
        sum = __builtin_fma(at<f64>(w, a[Tiles * (k / 4) + m / 8])[4 * (m % 8) + k % 4],
                            at<f64>(w, b[k / 4])[4 * n + k % 4], sum);
      results[m][n] = sum == sum ? sum : bits<f64>(0x7fffffffffffffffull);
    }
  for (int m = 0; m < Rows; ++m)
    for (int n = 0; n < 8; ++n)
      at<f64>(w, d[2 * (m / 8) + n % 2])[4 * (m % 8) + n / 2] = results[m][n];
}

void selectDoubleMma(Decoder &d, const std::vector<std::string_view> &rest) {
  static constexpr struct {
    std::string_view shape;
    Exec run;
    unsigned sums, a, b;
  } Forms[] = {{".m8n8k4", multiplyDoubles<8, 4>, 2, 1, 1},
               {".m16n8k4", multiplyDoubles<16, 4>, 4, 2, 1},
               {".m16n8k8", multiplyDoubles<16, 8>, 4, 4, 2},
               {".m16n8k16", multiplyDoubles<16, 16>, 4, 8, 4}};
  for (std::size_t n = 1; n < rest.size(); ++n)
    if (rest[n] != ".f64")
      d.fail("f64 is multiplied and summed with f64 alone");
  for (const auto &form : Forms) {
    if (form.shape != rest[0])
      continue;
    const unsigned sizes[] = {form.sums, form.a, form.b, form.sums};
    for (unsigned n = 0; n < 4; ++n)
      if (d.operand(n).kind != Operand::Vector || d.elements(n) != sizes[n])
        d.fail("operand " + std::to_string(n + 1) + " does not have " + std::to_string(sizes[n]) +
               " elements");
    d.useConstant(~0u, 32);
    for (const Operand &part : d.operand(0).parts)
      d.def(part, 64);
    for (unsigned n = 1; n < 4; ++n)
      for (const Operand &part : d.operand(n).parts)
        d.use(part, Type::F64);
    d.emitList(form.run, 0, Inst::Sync);
    return;
  }
  d.fail("this shape is not supported on f64");
}

} // namespace planemu::PLANEMU_ISA
