//===- Asyncs.cpp - copies that are waited for ----------------------------===//
//
// test/Inputs/emulator/asyncs.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

using namespace compilers;

/// Row by row backwards.
template <class T> static std::vector<T> turned(const std::vector<T> &values, std::size_t row) {
  std::vector<T> result;
  for (std::size_t n = 0; n < values.size(); ++n)
    result.push_back(values[n / row * row + row - 1 - n % row]);
  return result;
}

void compilers::asyncs(Module &module) {
  Random random;
  constexpr int Tiles = 5;
  std::vector<int> x = random.ints(Tiles * 64, -1000, 1000);
  Buffer<int> dx(x), dy(x.size());
  module.run("ring", {.blockX = 128}, dx, dy, Tiles);
  expectEqual("ring", dy.got, turned(x, 64));

  std::vector<int> wide = random.ints(Tiles * 96, -1000, 1000);
  Buffer<int> dwide(wide), dturned(wide.size());
  module.run("scattered", {.blockX = 96}, dwide, dturned, Tiles);
  expectEqual("scattered", dturned.got, turned(wide, 96));

  std::vector<float> f = random.reals(Tiles * 64, -4, 4), doubled = turned(f, 64);
  for (float &value : doubled)
    value *= 2;
  Buffer<float> df(f), dg(f.size());
  module.run("pipeline", {.blockX = 64}, df, dg, Tiles);
  expectEqual("pipeline", dg.got, doubled);

  constexpr unsigned Blocks = 3;
  std::vector<int> rows = random.ints(Blocks * 128, -1000, 1000), more = turned(rows, 128);
  for (int &value : more)
    ++value;
  Buffer<int> drows(rows);
  module.run("bulk", {.gridX = Blocks, .blockX = 128}, drows);
  expectEqual("bulk", drows.got, more);

  std::vector<int> summed = random.ints(64, -1000, 1000);
  Buffer<int> dsum(summed);
  module.run("bulk_sum", {.gridX = Blocks, .blockX = 64}, drows, dsum);
  for (unsigned n = 0; n < Blocks * 64; ++n)
    summed[n % 64] += rows[n];
  expectEqual("bulk_sum", dsum.got, summed);
}
