//===- Scans.cpp - prefix sums --------------------------------------------===//
//
// test/Inputs/emulator/scans.cu. In lookback_scan a block waits for those that started before it.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

using namespace compilers;

/// Prefix sums that begin anew every `group` elements.
template <class T>
static std::vector<T> scan(const std::vector<T> &x, std::size_t group, bool inclusive = true) {
  std::vector<T> sums;
  T sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % group == 0)
      sum = 0;
    sums.push_back(inclusive ? sum + x[i] : sum);
    sum += x[i];
  }
  return sums;
}

void compilers::scans(Module &module) {
  Random random;
  auto x = random.ints(768, -1000, 1000);
  Buffer<int> dx(x), dy(x.size());
  module.run("warp_scan", {.gridX = 3, .blockX = 256}, dx, dy);
  expectEqual("warp_scan", dy.got, scan(x, 32));

  std::vector<double> halves;
  for (int value : x)
    halves.push_back(value * 0.5);
  Buffer<double> dh(halves), sums(x.size());
  for (unsigned block : {32u, 384u}) {
    module.run("block_scan", {.gridX = 768 / block, .blockX = block}, dh, sums);
    expectEqual("block_scan", sums.got, scan(halves, block));
  }

  std::vector<unsigned> u(x.begin(), x.end());
  Buffer<unsigned> du(u), tree(u.size());
  module.run("tree_scan", {.gridX = 3, .blockX = 128, .shared = 256 * sizeof(unsigned)}, du, tree);
  expectEqual("tree_scan", tree.got, scan(u, 256, false));

  constexpr int N = 40 * 128 - 17, Blocks = 40;
  auto many = random.ints(N, -1000, 1000);
  Buffer<int> dm(many), out(N);
  Buffer<std::uint64_t> states(std::vector<std::uint64_t>(Blocks, 0));
  Buffer<unsigned> ticket(std::vector<unsigned>{0});
  module.run("lookback_scan", {.gridX = Blocks, .blockX = 128}, dm, out, states, ticket, N);
  expectEqual("lookback_scan", out.got, scan(many, N));
}
