//===- Libcu.cpp - libcu++ ------------------------------------------------===//
//
// test/Inputs/emulator/libcu.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <bit>

using namespace compilers;

void compilers::libcu(Module &module) {
  Random random;
  constexpr int Blocks = 3, Threads = 64, All = Blocks * Threads;
  Buffer<int> values(std::vector<int>{5, -1, 1});
  Buffer<double> sum(std::vector<double>{0.25});
  Buffer<unsigned> flags(std::vector<unsigned>{0});
  module.run("atomic_refs", {.gridX = Blocks, .blockX = Threads}, values, sum, flags);
  int total = 5, most = -1, chain = 1;
  for (int i = 0; i < All; ++i) {
    total += i;
    most = std::max(most, i * 7 % 101);
    chain = (chain * 3 + 1) % 10007;
  }
  expectEqual("atomic_refs: ints", values.got, std::vector<int>{total, most, chain});
  expectEqual("atomic_refs: double", sum.got, std::vector<double>{0.25 + All * 0.5});
  expectEqual("atomic_refs: flags", flags.got, std::vector<unsigned>{~0u});

  Buffer<int> data(Threads), read(Threads);
  Buffer<unsigned> ready(std::vector<unsigned>{0});
  module.run("messages", {.gridX = 2, .blockX = Threads}, data, ready, read);
  std::vector<int> want;
  for (int t = 0; t < Threads; ++t)
    want.push_back(t * 3 + 1);
  expectEqual("messages", read.got, want);

  std::vector<unsigned> x, bits;
  for (int t = 0; t < Threads; ++t) {
    unsigned v = random.bits(), result = 0;
    x.push_back(v);
    for (unsigned value : {v, v * 3, v ^ 0x5555, ~v})
      result += static_cast<unsigned>(std::popcount(value) + std::countl_zero(value | 1)) +
                std::rotl(value, 5) % 97;
    bits.push_back(result);
  }
  Buffer<unsigned> dx(x), dy(Threads);
  module.run("arrays", {.blockX = Threads}, dx, dy);
  expectEqual("arrays", dy.got, bits);
}
