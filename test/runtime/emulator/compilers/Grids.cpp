//===- Grids.cpp - cooperative groups, blocks that wait -------------------===//
//
// test/Inputs/emulator/grids.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <numeric>

using namespace compilers;

static void tiles(Module &module, Random &random) {
  constexpr int Threads = 96;
  auto x = random.ints(Threads, -5, 95);
  for (int i = 64; i < Threads; ++i)
    x[i] = i;
  Buffer<int> dx(x), dy(6 * Threads);
  module.run("tiles", {.blockX = Threads}, dx, dy);
  std::vector<int> want;
  for (int i = 0; i < Threads; ++i) {
    auto tile = x.begin() + (i & ~15), warp = x.begin() + (i & ~31);
    want.push_back(std::accumulate(tile, tile + 16, 0));
    want.push_back(*std::max_element(warp, warp + 32));
    want.push_back(x[i ^ 3] + i / 16);
    want.push_back(std::accumulate(tile, x.begin() + i + 1, 0));
    auto third = [](int v) { return v % 3 == 0; };
    auto before = std::count_if(warp, x.begin() + i, third),
         all = std::count_if(warp, warp + 32, third);
    want.push_back(third(x[i]) ? static_cast<int>(before * 100 + all) : -1);
    want.push_back(std::any_of(tile, tile + 16, [](int v) { return v > 90; }) +
                   2 * std::all_of(warp, warp + 32, [](int v) { return v >= 0; }));
  }
  expectEqual("tiles", dy.got, want);
}

static void rounds(Module &module) {
  constexpr int Blocks = 6, Threads = 64, Rounds = 4;
  Buffer<int> parts(std::vector<int>(Blocks * Rounds, 0)), dy(Blocks * Threads);
  std::vector<int> sums(Blocks);
  std::iota(sums.begin(), sums.end(), 1);
  for (int round = 0; round < Rounds; ++round) {
    int sum = std::accumulate(sums.begin(), sums.end(), 0) + Blocks * round;
    std::fill(sums.begin(), sums.end(), sum % 1009);
  }
  std::vector<int> want(Blocks * Threads, sums[0]);
  Buffer<unsigned> arrived(std::vector<unsigned>{0});
  module.run("counter_rounds", {.gridX = Blocks, .blockX = Threads}, parts, arrived, dy, Rounds);
  expectEqual("counter_rounds", dy.got, want);
  Shape together{.gridX = Blocks, .blockX = Threads, .cooperative = true};
  module.run("grid_rounds", together, parts, dy, Rounds);
  expectEqual("grid_rounds", dy.got, want);
}

void compilers::grids(Module &module) {
  Random random;
  tiles(module, random);
  rounds(module);
}
