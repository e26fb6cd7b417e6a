//===- Integers.cpp - division, bits, 128 bits ----------------------------===//
//
// test/Inputs/emulator/integers.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <bit>

using namespace compilers;

using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

/// Random words, many of them near the edges.
template <class T> static T edgy(Random &random) {
  T value = static_cast<T>(random.wide());
  switch (random.below(6)) {
  case 0:
    return static_cast<T>(value >> random.below(sizeof(T) * 8));
  case 1:
    return static_cast<T>(random.below(5) - 2);
  case 2:
    return static_cast<T>(std::numeric_limits<T>::max() - random.below(2));
  case 3:
    return static_cast<T>(std::numeric_limits<T>::min() + random.below(2));
  default:
    return value;
  }
}
template <class T> static std::vector<T> edgy(Random &random, int count) {
  std::vector<T> values;
  for (int n = 0; n < count; ++n)
    values.push_back(edgy<T>(random));
  return values;
}

template <class T> static void divide(Module &module, const char *name, Random &random) {
  constexpr int N = 300;
  auto a = edgy<T>(random, N), b = edgy<T>(random, N);
  std::vector<T> want;
  for (int i = 0; i < N; ++i) {
    // Division by zero and the overflowing one are undefined in the source.
    if (b[i] == 0 || (b[i] == static_cast<T>(-1) && a[i] == std::numeric_limits<T>::min()))
      b[i] = 3;
    want.push_back(static_cast<T>(a[i] / b[i]));
    want.push_back(static_cast<T>(a[i] % b[i]));
    want.push_back(static_cast<T>(a[i] / 7));
    want.push_back(static_cast<T>(a[i] % 10));
  }
  Buffer<T> da(a), db(b), dy(4 * N);
  module.run(name, {.gridX = 4, .blockX = 96}, da, db, dy, N);
  expectEqual(name, dy.got, want);
}

template <class T> static T reversed(T value) {
  T result = 0;
  for (unsigned n = 0; n < sizeof(T) * 8; ++n)
    result |= (value >> n & 1) << (sizeof(T) * 8 - 1 - n);
  return result;
}
static u32 firstSet(u64 value) { return value ? static_cast<u32>(std::countr_zero(value)) + 1 : 0; }
/// Applies `op` to the lanes of `width` bits.
template <class Op> static u32 lanes(u32 u, u32 v, int width, Op op) {
  u32 result = 0, mask = width == 8 ? 0xff : 0xffff;
  for (int at = 0; at < 32; at += width)
    result |= (static_cast<u32>(op(u >> at & mask, v >> at & mask)) & mask) << at;
  return result;
}
static int byteOf(u32 word, int n) { return static_cast<std::int8_t>(word >> 8 * n); }
static int shortOf(u32 word, int n) { return static_cast<std::int16_t>(word >> 16 * n); }

static void bitsOfHost(u32 u, u32 v, std::vector<u32> &to) {
  u64 w = u64(u) << 32 | v;
  s32 su = static_cast<s32>(u), sv = static_cast<s32>(v);
  u32 permuted = 0;
  for (int n = 0; n < 4; ++n)
    permuted |= static_cast<u32>((u64(v) << 32 | u) >> 8 * (v >> 4 * n & 7) & 0xff) << 8 * n;
  to.push_back(permuted);
  to.push_back(reversed(u) + static_cast<u32>(std::popcount(v) + std::countl_zero(u)) +
               firstSet(v));
  to.push_back(static_cast<u32>(std::popcount(w) + std::countl_zero(w)) + firstSet(w));
  to.push_back(static_cast<u32>(reversed(w) >> 13));
  u64 joined = u64(v) << 32 | u;
  to.push_back(static_cast<u32>(joined << (v & 31) >> 32));
  to.push_back(static_cast<u32>(joined >> (u & 31)));
  to.push_back(static_cast<u32>(joined << std::min(v & 63, 32u) >> 32));
  to.push_back(static_cast<u32>(u64(u) * v >> 32) + static_cast<u32>(u64(s64(su) * sv) >> 32));
  unsigned __int128 product = static_cast<unsigned __int128>(w) * (w * 3);
  to.push_back(static_cast<u32>(static_cast<u64>(product >> 64) >> 7));
  auto low24 = [](u32 value) { return static_cast<s32>(value << 8) >> 8; };
  to.push_back((u & 0xffffff) * (v & 0xffffff) ^
               static_cast<u32>(low24(u)) * static_cast<u32>(low24(v)));
  to.push_back(std::max(u, v) - std::min(u, v) + 5 +
               (static_cast<u32>(std::max(su, sv)) - static_cast<u32>(std::min(su, sv)) + 6));
  to.push_back(static_cast<u32>((u64(u) + v) >> 1) ^ static_cast<u32>((s64(su) + sv + 1) >> 1));
  u32 dot = 100, dotUnsigned = 100;
  for (int n = 0; n < 4; ++n) {
    dot += static_cast<u32>(byteOf(u, n) * byteOf(v, n));
    dotUnsigned += (u >> 8 * n & 0xff) * (v >> 8 * n & 0xff);
  }
  to.push_back(dot);
  to.push_back(dotUnsigned);
  u32 pairs = 3 + 4;
  for (int n = 0; n < 2; ++n) {
    pairs += static_cast<u32>(shortOf(u, n) * byteOf(v, n));
    pairs += (u >> 16 * n & 0xffff) * (v >> (16 + 8 * n) & 0xff);
  }
  to.push_back(pairs);
  to.push_back(lanes(u, v, 8, [](u32 x, u32 y) { return x + y; }) ^
               lanes(u, v, 16, [](u32 x, u32 y) { return x - y; }));
  to.push_back(lanes(u, v, 8, [](u32 x, u32 y) { return x > y ? x - y : y - x; }) +
               lanes(u, v, 16, [](u32 x, u32 y) {
                 return std::max(static_cast<std::int16_t>(x), static_cast<std::int16_t>(y));
               }));
  to.push_back(lanes(u, v, 8, [](u32 x, u32 y) { return x > y ? 0xff : 0; }) ^
               lanes(u, v, 8, [](u32 x, u32 y) { return std::min(x, y); }));
  to.push_back((u >> 5 & 0x3ff) | static_cast<u32>(static_cast<s32>(v << 7) >> 20) << 10);
  to.push_back((u & v) ^ (~u | v) ^ (u & 0xf0f0f0f0u));
  to.push_back(u >> (v & 31) | u << (31 - (v & 31)));
  to.push_back(static_cast<u32>(static_cast<s64>(w) >> (u & 63)));
  to.push_back(static_cast<u32>(w << (v & 63) >> 32));
  to.push_back(std::min(u, v) + static_cast<u32>(std::max(su, sv)) + (su < 0 ? -u : u));
}

static void bits(Module &module, Random &random) {
  constexpr int N = 250;
  auto a = edgy<u32>(random, N), b = edgy<u32>(random, N);
  std::vector<u32> want;
  for (int i = 0; i < N; ++i)
    bitsOfHost(a[i], b[i], want);
  Buffer<u32> da(a), db(b), dy(24 * N);
  module.run("bits", {.gridX = 2, .blockX = 128}, da, db, dy, N);
  expectEqual("bits", dy.got, want);
}

static void wide(Module &module, Random &random) {
  constexpr int N = 100;
  using Wide = unsigned __int128;
  auto a = edgy<u64>(random, N), b = edgy<u64>(random, N);
  std::vector<u64> want;
  for (int i = 0; i < N; ++i) {
    Wide u = Wide(a[i]) << 64 | b[i], v = Wide(b[i]) * a[i];
    auto folded = [](Wide value) {
      return static_cast<u64>(value >> 64) ^ static_cast<u64>(value);
    };
    want.push_back(folded(u + v));
    want.push_back(folded(u - v));
    want.push_back(static_cast<u64>(u * v >> 64));
    want.push_back(static_cast<u64>(u * v));
    want.push_back(folded(u >> (a[i] & 127)));
    want.push_back(u64(u < v) | u64(static_cast<__int128>(u) < static_cast<__int128>(v)) << 1);
  }
  Buffer<u64> da(a), db(b), dy(6 * N);
  module.run("wide", {.blockX = 128}, da, db, dy, N);
  expectEqual("wide", dy.got, want);
}

static void narrow(Module &module, Random &random) {
  constexpr int N = 120;
  auto a = edgy<s32>(random, N);
  std::vector<s64> want;
  for (s32 value : a) {
    auto b = static_cast<std::int8_t>(value);
    auto u = static_cast<std::uint8_t>(value >> 3);
    auto s = static_cast<std::int16_t>(value >> 1);
    auto t = static_cast<std::uint16_t>(value >> 5);
    want.push_back(s64(b) * s + u);
    want.push_back(static_cast<std::int8_t>(b + u) + static_cast<std::int16_t>(s * 3) +
                   static_cast<std::uint8_t>(u - t));
    want.push_back(static_cast<s64>(
        static_cast<u64>(static_cast<s64>(float(b) + double(t) + float(u))) << (u & 7)));
    want.push_back(static_cast<std::uint16_t>(t << 3) ^ static_cast<std::uint8_t>(~u) ^ (s >> 2));
  }
  Buffer<s32> da(a);
  Buffer<s64> dy(4 * N);
  module.run("narrow", {.blockX = 128}, da, dy, N);
  expectEqual("narrow", dy.got, want);
}

void compilers::integers(Module &module) {
  Random random;
  divide<std::int8_t>(module, "divide_s8", random);
  divide<std::uint16_t>(module, "divide_u16", random);
  divide<s32>(module, "divide_s32", random);
  divide<u32>(module, "divide_u32", random);
  divide<s64>(module, "divide_s64", random);
  divide<u64>(module, "divide_u64", random);
  for (auto test : {bits, wide, narrow})
    test(module, random);
}
