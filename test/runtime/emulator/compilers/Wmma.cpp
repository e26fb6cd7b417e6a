//===- Wmma.cpp - fragments of nvcuda::wmma -------------------------------===//
//
// test/Inputs/emulator/wmma.cu: d = 2 * (a * b + c), one tile a kernel, in every element type and
// in all combinations of layouts. The elements make sums exact in any order.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

using namespace compilers;

namespace {
struct Tile {
  const char *kernel;
  int m, n, k;
  bool rowA, rowB;
};
} // namespace

/// In: elements of A and B as stored; Out: of C and D; the converters make them of small integers.
template <class In, class Out, class ToIn, class ToOut>
static void check(Module &module, Random &random, const Tile &tile, int least, int most, ToIn toIn,
                  ToOut toOut) {
  auto [kernel, m, n, k, rowA, rowB] = tile;
  auto a = random.ints(static_cast<std::size_t>(m * k), least, most),
       b = random.ints(static_cast<std::size_t>(k * n), least, most),
       c = random.ints(static_cast<std::size_t>(m * n), -20, 20);
  std::vector<In> storedA, storedB;
  std::vector<Out> storedC, want;
  for (int value : a)
    storedA.push_back(toIn(value));
  for (int value : b)
    storedB.push_back(toIn(value));
  for (int value : c)
    storedC.push_back(toOut(value));
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      int sum = c[row * n + column];
      for (int depth = 0; depth < k; ++depth)
        sum += a[rowA ? row * k + depth : depth * m + row] *
               b[rowB ? depth * n + column : column * k + depth];
      want.push_back(toOut(2 * sum));
    }
  Buffer<In> da(storedA), db(storedB);
  Buffer<Out> dc(storedC), dd(want.size());
  module.run(kernel, {}, da, db, dc, dd);
  expectEqual(kernel, dd.got, want);
}

void compilers::wmma(Module &module) {
  Random random;
  auto f16 = [](int value) { return F16.encode(value); };
  auto bf16 = [](int value) { return Bf16.encode(value); };
  auto f32 = [](int value) { return static_cast<float>(value); };
  auto f64 = [](int value) { return static_cast<double>(value); };
  auto s32 = [](int value) { return value; };
  auto s8 = [](int value) { return static_cast<std::int8_t>(value); };
  auto u8 = [](int value) { return static_cast<std::uint8_t>(value); };
  using Half = std::uint16_t;
  for (const Tile &tile : {Tile{"wmma_f16_row_col", 16, 16, 16, true, false},
                           Tile{"wmma_f16_row_row", 16, 16, 16, true, true},
                           Tile{"wmma_f16_col_row_32x8", 32, 8, 16, false, true}})
    check<Half, float>(module, random, tile, -9, 9, f16, f32);
  for (const Tile &tile : {Tile{"wmma_f16_f16_8x32", 8, 32, 16, true, true},
                           Tile{"wmma_f16_f16", 16, 16, 16, false, false}})
    check<Half, Half>(module, random, tile, -4, 4, f16, f16);
  for (const Tile &tile : {Tile{"wmma_bf16_row_row", 16, 16, 16, true, true},
                           Tile{"wmma_bf16_col_col_8x32", 8, 32, 16, false, false}})
    check<Half, float>(module, random, tile, -9, 9, bf16, f32);
  check<float, float>(module, random, {"wmma_tf32", 16, 16, 8, true, false}, -9, 9, f32, f32);
  check<double, double>(module, random, {"wmma_f64", 8, 8, 4, true, false}, -9, 9, f64, f64);
  check<std::int8_t, int>(module, random, {"wmma_s8", 16, 16, 16, true, false}, -128, 128, s8, s32);
  check<std::uint8_t, int>(module, random, {"wmma_u8_32x8", 32, 8, 16, false, true}, 0, 256, u8,
                           s32);
}
