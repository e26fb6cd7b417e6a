//===- Memories.cpp - address spaces, structures, hints -------------------===//
//
// test/Inputs/emulator/memories.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <numeric>

using namespace compilers;

static void tables(Module &module) {
  static constexpr int Primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  static constexpr char Text[] = "emulator\n\"quoted\"\t";
  std::vector<int> want;
  for (int i = 0; i < 64; ++i) {
    int sum = Primes[i % 12] + (8 >> (i & 3)) + Text[i % (sizeof(Text) - 1)];
    int sign = i & 1 ? -1 : 1;
    static constexpr int Sums[] = {10 * 1 + 30 * 3, 20 * 2, 25 * 4 + 30 * 3}; // along the list
    sum += sign * Sums[i % 3] + 100 * (i % 3 + 1) + (i & 1 ? 40 : 11);
    want.push_back(sum);
  }
  Buffer<int> dy(64), numbers(64);
  module.run("tables", {.blockX = 64}, dy);
  expectEqual("tables", dy.got, want);
  module.run("count_up", {.blockX = 64}, numbers);
  std::iota(want.begin(), want.end(), 40);
  std::sort(numbers.got.begin(), numbers.got.end());
  expectEqual("count_up", numbers.got, want);
}

static void dynamicShared(Module &module, Random &random) {
  constexpr int N = 96;
  auto x = random.ints(N, -500, 500);
  Buffer<int> dx(x), dy(N);
  module.run("dynamic_shared", {.blockX = N, .shared = N * 13}, dx, dy, N);
  std::vector<int> want;
  for (int i = 0; i < N; ++i)
    want.push_back(static_cast<int>(x[(i + 1) % N] * 0.5) + x[N - 1 - i] +
                   static_cast<std::int8_t>(x[N - 1 - i]) + (i & 3) * 1000);
  expectEqual("dynamic_shared", dy.got, want);
}

static void generic(Module &module, Random &random) {
  auto x = random.ints(32, 0, 100);
  Buffer<int> dx(x), dy(64);
  module.run("generic", {}, dx, dy);
  std::vector<int> want;
  for (int i = 0; i < 32; ++i) {
    int at = i & 7;
    want.push_back(i % 3 == 0   ? x[at] * 2 + x[0]
                   : i % 3 == 1 ? x[at] * 2 + x[0] + 300
                                : 3 * x[i] + 2000 * at);
    want.push_back(1 << i % 3);
  }
  expectEqual("generic", dy.got, want);
}

static void hints(Module &module, Random &random) {
  constexpr int N = 64;
  std::vector<int> x, want;
  for (int i = 0; i < 4 * N; ++i)
    x.push_back(static_cast<int>(random.bits() >> 8)); // no NaN as a double
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 4 * N; ++i)
    bytes.push_back(static_cast<std::uint8_t>(random.bits()));
  Buffer<int> dx(x), dy(16 * N);
  Buffer<std::uint8_t> db(bytes);
  Buffer<std::int64_t> dz(N);
  module.run("hints", {.gridX = 2, .blockX = N / 2}, dx, dy, db, dz);
  std::vector<std::int64_t> wantZ;
  for (int i = 0; i < N; ++i) {
    int v[4] = {x[4 * i] + x[i], x[4 * i + 1], x[4 * i + 2] + x[2 * i],
                x[4 * i + 3] + x[2 * i + 1] + x[i]};
    for (int n : {0, 1, 2, 3, 3, 2, 1, 0})
      want.push_back(v[n]);
    for (int word : {x[i], x[i], x[i], x[i], 1, 2, 3, i})
      want.push_back(word);
    std::int16_t s[2];
    std::memcpy(s, &bytes[4 * i], 4);
    std::int64_t l[2];
    std::memcpy(l, &x[4 * i], 16);
    wantZ.push_back(s[0] + s[1] * 3 + bytes[4 * i] + bytes[4 * i + 3] * 5 + (l[0] ^ l[1]) + 1);
  }
  expectEqual("hints: vectors", dy.got, want);
  expectEqual("hints: sums", dz.got, wantZ);
}

// As in memories.cu.
namespace {
struct Packed {
  char a;
  int b;
  short c;
  std::int64_t d;
  char e[5];
};
struct Fields {
  unsigned a : 3, b : 9;
  int c : 5;
  unsigned long long d : 41;
};
struct Table {
  int weights[64];
  short offsets[16];
};
} // namespace

static void structures(Module &module, Random &random) {
  constexpr int N = 40;
  std::vector<Packed> x(N);
  std::vector<Fields> f(N);
  for (auto *bytes = reinterpret_cast<std::uint8_t *>(x.data());
       bytes != reinterpret_cast<std::uint8_t *>(x.data() + N); ++bytes)
    *bytes = static_cast<std::uint8_t>(random.below(100));
  for (Fields &field : f) {
    field.a = random.bits() & 7;
    field.b = random.bits() & 511;
    field.c = random.below(32) - 16;
    field.d = random.wide() & ((1ull << 41) - 1);
  }
  Buffer<Packed> dx(x), dy(N);
  Buffer<Fields> df(f);
  module.run("structures", {.blockX = N}, dx, dy, df);
  for (int i = 0; i < N; ++i) {
    const Packed &got = dy.got[i];
    bool same =
        got.a == x[i].a && got.b == x[i].b + x[i].a && got.c == x[i].c && got.d == x[i].d - x[i].c;
    for (int k = 0; k < 5; ++k)
      same &= got.e[k] == static_cast<char>(x[i].e[4 - k] + k);
    Fields want = f[i];
    want.a += 3;
    want.b ^= 0x1ff;
    want.c -= 7;
    want.d += 1ull << 40 | 5;
    const Fields &field = df.got[i];
    same &= field.a == want.a && field.b == want.b && field.c == want.c && field.d == want.d;
    if (!same)
      return report("structures: element " + std::to_string(i) + " differs");
  }
}

static void bigParameter(Module &module, Random &random) {
  Table table;
  for (int &weight : table.weights)
    weight = random.below(1000);
  for (short &offset : table.offsets)
    offset = static_cast<short>(random.below(1000) - 500);
  Table copy = table;
  copy.weights[0] = 77;
  Buffer<int> dy(64);
  module.run("big_parameter", {.blockX = 64}, table, copy, dy);
  std::vector<int> want;
  for (int i = 0; i < 64; ++i) {
    int at = i * 3 & 63;
    want.push_back(table.weights[i * 5 & 63] * table.offsets[i & 15] + copy.weights[at] +
                   (at == i ? i : 0));
  }
  expectEqual("big_parameter", dy.got, want);
}

static void copies(Module &module, Random &random) {
  constexpr int N = 32, Bytes = 40;
  std::vector<std::uint8_t> x;
  for (int i = 0; i < N * Bytes; ++i)
    x.push_back(static_cast<std::uint8_t>(random.bits()));
  std::vector<std::uint8_t> want = x;
  for (int i = 0; i < N; ++i) {
    want[i * Bytes + i % Bytes] = static_cast<std::uint8_t>(i);
    std::memset(&want[i * Bytes + 8], 7, 4);
  }
  want.push_back(5);
  Buffer<std::uint8_t> dx(x), dy(N * Bytes + 1);
  module.run("copies", {.blockX = N}, dx, dy, N * Bytes);
  expectEqual("copies", dy.got, want);
}

void compilers::memories(Module &module) {
  Random random;
  tables(module);
  for (auto test : {dynamicShared, generic, hints, structures, bigParameter, copies})
    test(module, random);
}
