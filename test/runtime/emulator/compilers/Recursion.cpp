//===- Recursion.cpp - functions that call themselves, malloc -------------===//
//
// test/Inputs/emulator/recursion.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>

using namespace compilers;

static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static int ackermann(int m, int n) {
  return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

static void permute(std::vector<int> items, std::size_t k, int &count, double &sum) {
  if (k == items.size()) {
    double number = 0;
    for (int item : items)
      number = number * 10 + item;
    sum += number * ++count;
    return;
  }
  for (std::size_t i = k; i < items.size(); ++i) {
    std::swap(items[k], items[i]);
    permute(items, k + 1, count, sum);
    std::swap(items[k], items[i]);
  }
}

static int mixed(int n, int a, int depth) {
  if (depth == 0)
    return a * n + 1;
  int sum = mixed((a + n) & 7, a + 1, depth - 1);
  if (a & 1)
    sum ^= mixed((a * 3 + n) & 7, a - n, depth - 1);
  return sum + n;
}

static std::vector<int> grown(std::vector<int> row, int n) {
  if (n == 0)
    return row;
  row[static_cast<std::size_t>(n % 12)] += n;
  std::vector<int> next = grown(row, n - 1);
  next[0] += row[1];
  return next;
}

void compilers::recursion(Module &module) {
  Random random;
  constexpr unsigned Threads = 64;
  Buffer<int> dy(Threads);
  std::vector<int> want(Threads);
  auto expect = [&](const char *kernel, auto value) {
    module.run(kernel, {.blockX = Threads}, dy);
    for (unsigned t = 0; t < Threads; ++t)
      want[t] = value(static_cast<int>(t));
    expectEqual(kernel, dy.got, want);
  };
  expect("fibonaccis", [](int t) { return fibonacci(t % 13); });
  expect("ackermanns", [](int t) { return ackermann(t % 3, t % 5); });
  expect("circles", [](int t) { return mixed(t & 7, t, 5); });

  // Each step pairs lanes, and then threads of the two warps.
  std::vector<int> values(Threads), before;
  for (unsigned t = 0; t < Threads; ++t)
    values[t] = static_cast<int>(t);
  for (unsigned distance = 16; distance; distance /= 2) {
    before = values;
    for (unsigned t = 0; t < Threads; ++t)
      values[t] = before[t] + before[t ^ distance];
    before = values;
    for (unsigned t = 0; t < Threads; ++t)
      values[t] = before[t] + before[Threads - 1 - t];
  }
  expect("sums", [&](int t) { return values[static_cast<std::size_t>(t)]; });

  expect("rows", [](int t) {
    std::vector<int> row;
    for (int i = 0; i < 12; ++i)
      row.push_back(i + t);
    unsigned sum = 0;
    for (int item : grown(row, t % 20))
      sum = sum * 3 + static_cast<unsigned>(item);
    return static_cast<int>(sum);
  });

  Buffer<double> dsums(Threads);
  std::vector<double> sums(Threads);
  module.run("permutations", {.blockX = Threads}, dsums);
  for (unsigned t = 0; t < Threads; ++t) {
    int count = 0;
    std::vector<int> items = {1, 2, 3, 4, 5};
    items.resize(1 + t % 5);
    permute(items, 0, count, sums[t]);
  }
  expectEqual("permutations", dsums.got, sums);

  constexpr int Count = 20;
  std::vector<int> x = random.ints(2 * Threads * Count, 0, 50);
  Buffer<int> dx(x);
  module.run("trees", {.gridX = 2, .blockX = Threads}, dx, int(Count));
  for (unsigned t = 0; t < 2 * Threads; ++t)
    std::sort(x.begin() + t * Count, x.begin() + (t + 1) * Count);
  expectEqual("trees", dx.got, x);
}
