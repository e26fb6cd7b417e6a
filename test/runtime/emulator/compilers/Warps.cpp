//===- Warps.cpp - votes, shuffles, matches, reductions -------------------===//
//
// test/Inputs/emulator/warps.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <bit>

using namespace compilers;

constexpr int Threads = 96;

/// The lanes of thread i's warp for whose value `test` holds.
template <class Test> static unsigned lanesWhere(const std::vector<int> &x, int i, Test test) {
  unsigned mask = 0;
  for (int lane = 0; lane < 32; ++lane)
    mask |= test(x[i / 32 * 32 + lane]) ? 1u << lane : 0;
  return mask;
}

static void votes(Module &module, Random &random) {
  auto x = random.ints(Threads, 1, 100);
  for (int i = 32; i < 64; ++i)
    x[i] = i * 40;
  Buffer<int> dx(x);
  Buffer<unsigned> dy(12 * Threads);
  module.run("votes", {.blockX = Threads}, dx, dy);
  std::vector<unsigned> want;
  for (int i = 0; i < Threads; ++i) {
    int v = x[i], lane = i % 32;
    want.push_back(lanesWhere(x, i, [](int o) { return o & 1; }));
    want.push_back((lanesWhere(x, i, [](int o) { return o > 0; }) == ~0u) |
                   (lanesWhere(x, i, [](int o) { return o > 95; }) != 0) << 1);
    want.push_back(lanesWhere(x, i, [&](int o) { return o % 5 == v % 5; }));
    bool same = lanesWhere(x, i, [&](int o) { return o / 1000 == v / 1000; }) == ~0u;
    want.push_back(same ? ~0u : 0);
    want.push_back(same);
    want.push_back(lanesWhere(x, i, [&](int o) { return o % 3 == v % 3; }));
    want.push_back(~0u);
    want.push_back(lane % 3 == 0 ? lanesWhere(x, i, [](int o) { return o & 2; }) & 0x49249249u
                                 : lanesWhere(x, i, [](int o) { return o & 4; }) & ~0x49249249u);
    want.push_back(v & 1 ? lanesWhere(x, i, [&](int o) { return o & 1 && o % 4 == v % 4; }) : 0);
    unsigned below = (1u << lane) - 1;
    want.push_back(below);
    want.push_back(~below);
    want.push_back(static_cast<unsigned>(
        std::popcount(lanesWhere(x, i, [](int o) { return o > 50; }) & below)));
  }
  expectEqual("votes", dy.got, want);
}

static void shuffles(Module &module, Random &random) {
  auto x = random.ints(Threads, -100, 1000);
  Buffer<int> dx(x), dy(10 * Threads);
  module.run("shuffles", {.blockX = Threads}, dx, dy);
  std::vector<int> want;
  for (int i = 0; i < Threads; ++i) {
    int lane = i % 32, v = x[i];
    auto of = [&](int other) { return x[i - lane + other]; };
    want.push_back(of(5));
    want.push_back(of(v & 31));
    want.push_back(lane < 3 ? v : of(lane - 3));
    want.push_back(lane > 24 ? v : of(lane + 7));
    want.push_back(of(lane ^ 9));
    want.push_back(of((lane & ~7) | ((lane + 1) & 7)));
    want.push_back(lane % 16 < 2 ? v : of(lane - 2));
    want.push_back(lane % 4 == 3 ? v : of(lane + 1));
    want.push_back(of(lane ^ 1) * 2);
    want.push_back(lane < 16 ? of(15 - lane) : 0);
  }
  expectEqual("shuffles", dy.got, want);
}

static void reductions(Module &module, Random &random) {
  auto x = random.ints(Threads, 0, 100);
  Buffer<int> dx(x), dy(8 * Threads);
  module.run("reductions", {.blockX = Threads}, dx, dy);
  std::vector<int> want;
  for (int i = 0; i < Threads; ++i) {
    auto first = x.begin() + i / 32 * 32, end = first + 32;
    unsigned all = ~0u, any = 0, odd = 0, least = ~0u;
    int sum = 0, half = 0;
    for (auto v = first; v != end; ++v) {
      sum += *v;
      if ((v - first) % 2 == i % 2)
        half += *v;
      all &= static_cast<unsigned>(*v) | 0xf0;
      any |= 1u << (*v & 31);
      odd ^= static_cast<unsigned>(*v) * 77;
      least = std::min(least, static_cast<unsigned>(*v - 50));
    }
    want.push_back(sum);
    want.push_back(*std::min_element(first, end) - 50);
    want.push_back(*std::max_element(first, end) - 50);
    for (unsigned bits : {least, all, any, odd})
      want.push_back(static_cast<int>(bits));
    want.push_back(i & 1 ? half : -half);
  }
  expectEqual("reductions", dy.got, want);
}

static void pipeline(Module &module, Random &random) {
  auto x = random.ints(64, -100, 100);
  Buffer<int> dx(x), dy(64);
  module.run("pipeline", {.blockX = 64}, dx, dy);
  std::vector<int> want;
  for (int i = 0; i < 64; ++i)
    want.push_back(x[(i & ~15) | ((i + 4) & 15)] + 6);
  expectEqual("pipeline", dy.got, want);
}

static void compact(Module &module, Random &random) {
  constexpr int N = 200;
  auto x = random.ints(N, 0, 100);
  Buffer<int> dx(x), dy(std::vector<int>(N, -1)), count(std::vector<int>{0});
  dy.anyOrder = true;
  module.run("compact", {.gridX = 4, .blockX = 64}, dx, dy, count, N);
  std::vector<int> want, got = dy.got;
  for (int v : x)
    want.push_back(v % 3 == 0 ? v : -1);
  std::sort(want.begin(), want.end());
  std::sort(got.begin(), got.end());
  expectEqual("compact", got, want);
}

void compilers::warps(Module &module) {
  Random random;
  for (auto test : {votes, shuffles, ::reductions, pipeline, compact})
    test(module, random);
  Buffer<int> fine(64);
  module.run("clocks", {.blockX = 64}, fine);
  expectEqual("clocks", fine.got, std::vector<int>(64, 1));
}
