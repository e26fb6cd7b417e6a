//===- Blocks.cpp - CUB's algorithms of a block ---------------------------===//
//
// test/Inputs/emulator/blocks.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <functional>
#include <numeric>

using namespace compilers;

void compilers::blocks(Module &module) {
  Random random;
  // Few different keys: equal ones keep their order.
  std::vector<float> keys;
  for (int key : random.ints(256, -20, 20))
    keys.push_back(static_cast<float>(key) / 4);
  std::vector<int> order(256);
  std::iota(order.begin(), order.end(), 0);
  Buffer<float> dkeys(keys);
  Buffer<int> dvalues(order);
  module.run("sort_pairs", {.blockX = 64}, dkeys, dvalues);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  expectEqual("sort_pairs: values", dvalues.got, order);
  std::sort(keys.begin(), keys.end(), std::greater<>());
  expectEqual("sort_pairs: keys", dkeys.got, keys);

  std::vector<int> x = random.ints(512, -1000, 1000), sums(512);
  std::exclusive_scan(x.begin(), x.end(), sums.begin(), 0);
  Buffer<int> dx(x), dsums(512);
  module.run("scan_block", {.blockX = 128}, dx, dsums);
  expectEqual("scan_block", dsums.got, sums);

  // Multiples of a quarter: their sums have no rounding.
  std::vector<float> parts, totals(3);
  for (int part : random.ints(3 * 128, -1000, 1000))
    parts.push_back(static_cast<float>(part) / 4);
  for (std::size_t n = 0; n < parts.size(); ++n)
    if (n % 128 < 100)
      totals[n / 128] += parts[n];
  Buffer<float> dparts(parts), dtotals(3);
  module.run("reduce_block", {.gridX = 3, .blockX = 128}, dparts, dtotals);
  expectEqual("reduce_block", dtotals.got, totals);

  std::vector<unsigned char> items;
  std::vector<int> counts(32);
  for (int item : random.ints(256, 0, 32)) {
    items.push_back(static_cast<unsigned char>(item));
    ++counts[static_cast<std::size_t>(item)];
  }
  Buffer<unsigned char> ditems(items);
  Buffer<int> dcounts(32);
  module.run("histogram", {.blockX = 64}, ditems, dcounts);
  expectEqual("histogram", dcounts.got, counts);
}
