//===- Atomics.cpp - histograms, locks, read-modify-write -----------------===//
//
// test/Inputs/emulator/atomics.cu. Sums of floats are of small integers and exact in any order.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>

using namespace compilers;

static void histograms(Module &module, Random &random) {
  constexpr int N = 5000;
  std::vector<std::uint8_t> x;
  std::vector<unsigned> want(256);
  for (int i = 0; i < N; ++i) {
    x.push_back(static_cast<std::uint8_t>(random.below(16) * random.below(17)));
    ++want[x.back()];
  }
  Buffer<std::uint8_t> dx(x);
  Buffer<unsigned> bins(std::vector<unsigned>(256, 0));
  for (auto [name, blocks] : {std::pair{"histogram_global", 4u}, std::pair{"histogram_shared", 4u},
                              std::pair{"histogram_matched", (N + 127) / 128u}}) {
    module.run(name, {.gridX = blocks, .blockX = 128}, dx, bins, N);
    expectEqual(name, bins.got, want);
  }
}

static void locks(Module &module) {
  constexpr int Threads = 4 * 96;
  Buffer<int> lock(std::vector<int>{0}), counter(std::vector<int>{0}), order(Threads);
  order.anyOrder = true;
  module.run("spin_lock", {.gridX = 4, .blockX = 96}, lock, counter, order);
  expectEqual("spin_lock's lock", lock.got, std::vector<int>{0});
  expectEqual("spin_lock's counter", counter.got, std::vector<int>{Threads});
  std::vector<int> everyone(Threads), seen = order.got;
  for (int i = 0; i < Threads; ++i)
    everyone[i] = i;
  std::sort(seen.begin(), seen.end());
  expectEqual("spin_lock's order", seen, everyone);

  constexpr int Rounds = 5, Warps = 6;
  Buffer<int> sum(3);
  module.run("ticket_lock", {.gridX = 3, .blockX = Warps * 32}, sum, Rounds);
  expectEqual("ticket_lock", sum.got, std::vector<int>(3, Rounds * Warps * (Warps + 1) / 2));
}

static void everyKind(Module &module, Random &random) {
  constexpr int N = 4 * 64;
  auto x = random.ints(N, -1000, 1000);
  Buffer<int> dx(x), out(std::vector<int>(16, 0x2bcd));
  Buffer<std::uint64_t> wide(std::vector<std::uint64_t>(8, 0x123456789abcdef0));
  Buffer<float> floats(std::vector<float>{0.5f, -2000.0f});
  Buffer<double> doubles(std::vector<double>{0.25});
  module.run("every_kind", {.gridX = 4, .blockX = 64}, dx, out, wide, floats, doubles);
  std::vector<int> want = out.initial;
  std::vector<std::uint64_t> wantWide = wide.initial;
  double sum = 0.5, most = -2000;
  for (int i = 0; i < N; ++i) {
    int v = x[i];
    unsigned u = static_cast<unsigned>(v);
    want[0] += v;
    want[1] -= v;
    want[2] = std::min(want[2], v);
    want[3] = std::max(want[3], v);
    want[4] &= v | 0xff00;
    want[5] |= v;
    want[6] ^= v;
    want[7] = want[7] >= 9 ? 0 : want[7] + 1;
    want[8] = want[8] == 0 || want[8] > 6 ? 6 : want[8] - 1;
    want[9] = static_cast<int>(std::min(static_cast<unsigned>(want[9]), u));
    want[10] = static_cast<int>(std::max(static_cast<unsigned>(want[10]), u));
    want[11] += 1;
    want[12] += 2;
    wantWide[0] += static_cast<std::uint64_t>(std::int64_t(v));
    wantWide[1] = static_cast<std::uint64_t>(
        std::min(static_cast<std::int64_t>(wantWide[1]), v * std::int64_t(5000000000)));
    wantWide[2] = std::max(wantWide[2], std::uint64_t(u) << 20);
    wantWide[3] |= 1ull << (i & 63);
    wantWide[4] &= ~(1ull << (i & 31));
    wantWide[5] ^= static_cast<std::uint64_t>(i) * 0x100000001ull;
    sum += v;
    most = std::max(most, double(v));
  }
  wantWide[6] = 0x123456789abc;
  expectEqual("every_kind's words", out.got, want);
  expectEqual("every_kind's double words", wide.got, wantWide);
  expectEqual("every_kind's floats", floats.got, std::vector<double>{sum, most});
  expectEqual("every_kind's double", doubles.got, std::vector<double>{(sum - 0.5) * 0.5 + 0.25});
}

static void sixteenBits(Module &module) {
  constexpr int N = 128;
  std::vector<float> x;
  for (int i = 0; i < N; ++i)
    x.push_back(static_cast<float>(i % 9 - 4) * 0.5f);
  using Codes = std::vector<std::uint16_t>;
  Buffer<float> dx(x);
  Buffer<std::uint16_t> half(Codes(4)), half2(Codes(2)), bfloat(Codes(6)), bfloat2(Codes(2)),
      counts(Codes(8, 65000));
  module.run("sixteen_bits", {.gridX = 2, .blockX = 64}, dx, half, half2, bfloat, bfloat2, counts);
  std::vector<double> halves(4), halves2(2), bfloats(6), bfloats2(2);
  std::vector<int> numbers(8, 65000);
  for (int i = 0; i < N; ++i) {
    halves[i % 3] += x[i];
    halves2[0] += x[i];
    halves2[1] -= x[i];
    bfloats[i % 5] += x[i];
    bfloats2[0] += x[i];
    bfloats2[1] += 1;
    numbers[i % 7] = (numbers[i % 7] + i) & 0xffff;
  }
  expectEqual("sixteen_bits: half", widen(F16, half.got), halves);
  expectEqual("sixteen_bits: half2", widen(F16, half2.got), halves2);
  expectEqual("sixteen_bits: bfloat16", widen(Bf16, bfloat.got), bfloats);
  expectEqual("sixteen_bits: bfloat162", widen(Bf16, bfloat2.got), bfloats2);
  expectEqual("sixteen_bits: counts", counts.got, numbers);
}

void compilers::atomics(Module &module) {
  Random random;
  histograms(module, random);
  locks(module);
  everyKind(module, random);
  sixteenBits(module);
}
