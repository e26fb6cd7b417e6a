//===- Reductions.cpp - sums and maxima -----------------------------------===//
//
// test/Inputs/emulator/reductions.cu. Integers and sums of small halves are exact in any order.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <numeric>

using namespace compilers;

static void warpSums(Module &module, Random &random) {
  constexpr int Warps = 12;
  auto x = random.ints(Warps * 32, -5000, 5000);
  Buffer<int> dx(x), ints(Warps);
  Buffer<std::int64_t> longs(Warps);
  Buffer<float> floats(Warps);
  Buffer<double> doubles(Warps);
  module.run("warp_sums", {.gridX = 3, .blockX = 128}, dx, ints, longs, floats, doubles);
  std::vector<std::int64_t> want;
  for (int w = 0; w < Warps; ++w)
    want.push_back(std::accumulate(x.begin() + w * 32, x.begin() + w * 32 + 32, 0));
  expectEqual("warp_sums of int", ints.got, want);
  expectEqual("warp_sums of float", floats.got, want);
  std::vector<double> quarters;
  for (std::int64_t &sum : want) {
    quarters.push_back(static_cast<double>(sum) * 0.25);
    sum *= 1000003;
  }
  expectEqual("warp_sums of long long", longs.got, want);
  expectEqual("warp_sums of double", doubles.got, quarters);
}

static void treeSums(Module &module, Random &random) {
  constexpr int N = 10007;
  auto x = random.ints(N, -100000, 100000);
  int sum = std::accumulate(x.begin(), x.end(), 0);
  Buffer<int> dx(x), out(std::vector<int>{1});
  module.run("tree_sum_int", {.gridX = 7, .blockX = 256}, dx, out, N);
  expectEqual("tree_sum_int", out.got, std::vector<int>{1 + sum});
  std::vector<double> halves;
  for (int value : x)
    halves.push_back(value * 0.5);
  Buffer<double> dh(halves), total(std::vector<double>{0});
  module.run("tree_sum_double", {.gridX = 5, .blockX = 128}, dh, total, N);
  expectEqual("tree_sum_double", total.got, std::vector<double>{sum * 0.5});
}

static void argMax(Module &module, Random &random) {
  constexpr int Rows = 3, N = 777;
  std::vector<float> x;
  for (int value : random.ints(Rows * N, -300, 300))
    x.push_back(static_cast<float>(value));
  x[2 * N + 5] = INFINITY;
  Buffer<float> dx(x), best(Rows);
  Buffer<int> where(Rows);
  for (unsigned block : {32u, 96u, 1024u}) {
    module.run("arg_max", {.gridX = Rows, .blockX = block}, dx, best, where, N);
    std::vector<float> values;
    std::vector<int> places;
    for (int r = 0; r < Rows; ++r) {
      auto row = x.begin() + r * N, most = std::max_element(row, row + N);
      values.push_back(*most);
      places.push_back(static_cast<int>(most - row));
    }
    expectEqual("arg_max's value", best.got, values);
    expectEqual("arg_max's place", where.got, places);
  }
}

static void groupSums(Module &module, Random &random) {
  constexpr int N = 128;
  auto x = random.ints(N, -9, 9);
  Buffer<int> dx(x), out(3 * N);
  module.run("group_sums", {.gridX = 2, .blockX = 64}, dx, out);
  std::vector<int> want;
  for (int i = 0; i < N; ++i)
    for (int group : {4, 8, 16}) {
      auto first = x.begin() + i / group * group;
      want.push_back(std::accumulate(first, first + group, 0));
    }
  expectEqual("group_sums", out.got, want);
}

static void votesOfBlock(Module &module, Random &random) {
  constexpr int Blocks = 4, Threads = 96;
  auto x = random.ints(Blocks * Threads, 1, 100);
  x[Threads + 40] = 0;
  for (int i = 2 * Threads; i < 3 * Threads; ++i)
    x[i] = std::min(x[i], 95);
  Buffer<int> dx(x), out(3 * Blocks);
  module.run("votes_of_block", {.gridX = Blocks, .blockX = Threads}, dx, out);
  std::vector<int> want;
  for (auto first = x.begin(); first != x.end(); first += Threads) {
    auto end = first + Threads;
    want.push_back(static_cast<int>(std::count_if(first, end, [](int v) { return v & 1; })));
    want.push_back(std::all_of(first, end, [](int v) { return v > 0; }));
    want.push_back(std::any_of(first, end, [](int v) { return v > 95; }));
  }
  expectEqual("votes_of_block", out.got, want);
}

void compilers::reductions(Module &module) {
  Random random;
  for (auto test : {warpSums, treeSums, argMax, groupSums, votesOfBlock})
    test(module, random);
}
