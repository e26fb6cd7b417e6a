//===- Control.cpp - switches, loops, calls, local arrays -----------------===//
//
// test/Inputs/emulator/control.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <string>

using namespace compilers;

static int reversed(int value) {
  unsigned bits = static_cast<unsigned>(value), result = 0;
  for (int n = 0; n < 32; ++n)
    result |= (bits >> n & 1) << (31 - n);
  return static_cast<int>(result);
}

/// One element of dense_switch: returns what is left in y[i].
static int denseSwitch(int x, int stored) {
  unsigned v = static_cast<unsigned>(x); // unsigned, so that overflow wraps as on the device
  for (int round = 0; round < 3; ++round) {
    int s = static_cast<int>(v);
    switch (v & 15) {
    case 0:
      v = v * 3 + 1;
      break;
    case 1:
      v ^= 0x55;
      break;
    case 2:
      v += static_cast<unsigned>(stored);
      break;
    case 3:
      v = static_cast<unsigned>(std::popcount(v));
      break;
    case 4:
      v = static_cast<unsigned>(s / 7);
      break;
    case 5:
      v = static_cast<unsigned>(reversed(s));
      [[fallthrough]];
    case 6:
      v -= 11;
      break;
    case 7:
      v = v << 5 | 3;
      break;
    case 8:
      v = -v;
      break;
    case 9:
      v = static_cast<unsigned>(s % 1000);
      break;
    case 10:
      while (static_cast<int>(v) > 100)
        v >>= 1;
      break;
    case 11:
      v = static_cast<unsigned>(std::countl_zero(v));
      break;
    case 12:
      stored = s;
      v += 2;
      break;
    case 13:
      v = static_cast<unsigned>(s < 0 ? -s : s) + 13;
      break;
    case 14:
      if (s < 0)
        return stored;
      v += 14;
      break;
    default:
      v ^= static_cast<unsigned>(s >> 3);
      break;
    }
  }
  return static_cast<int>(v);
}

static void switches(Module &module, Random &random) {
  constexpr int N = 500;
  auto x = random.ints(N, -3000, 3000), y = random.ints(N, -50, 50);
  for (int i = 0; i < 40; ++i)
    x[i * 3] = static_cast<int>(random.bits());
  Buffer<int> dx(x), dy(y);
  module.run("dense_switch", {.gridX = 4, .blockX = 128}, dx, dy, N);
  std::vector<int> want;
  for (int i = 0; i < N; ++i)
    want.push_back(denseSwitch(x[i], y[i]));
  expectEqual("dense_switch", dy.got, want);

  std::vector<std::int64_t> cases = {-5,          0,         1000, 0x100000000,
                                     0x100000001, INT64_MIN, 1,    INT64_MAX};
  std::vector<std::int64_t> wide;
  want.clear();
  for (int i = 0; i < 100; ++i) {
    int which = random.below(8);
    wide.push_back(cases[which]);
    want.push_back(std::min(which + 1, 7));
  }
  Buffer<std::int64_t> dw(wide);
  Buffer<int> chosen(100);
  module.run("sparse_switch", {.blockX = 128}, dw, chosen, 100);
  expectEqual("sparse_switch", chosen.got, want);
}

static unsigned loopsOnHost(unsigned v) {
  unsigned steps = 0, sum = 0;
  while (v > 1 && steps < 200) {
    ++steps;
    if (v % 2 == 0) {
      v /= 2;
      continue;
    }
    v = 3 * v + 1;
    for (unsigned k = 0; k < v % 5 && k < 3; ++k)
      sum += k * steps;
  }
  do
    sum += v;
  while (v-- > 1 && sum < 1000);
  return sum * 256 + steps;
}

static void loops(Module &module, Random &random) {
  constexpr int N = 300;
  std::vector<unsigned> x, want;
  for (int i = 0; i < N; ++i) {
    x.push_back(i < 30 ? static_cast<unsigned>(i) : random.bits() >> random.below(32));
    want.push_back(loopsOnHost(x.back()));
  }
  Buffer<unsigned> dx(x), dy(N);
  module.run("loops", {.gridX = 3, .blockX = 128}, dx, dy, N);
  expectEqual("loops", dy.got, want);
}

static void calls(Module &module, Random &random) {
  constexpr int N = 90;
  auto x = random.ints(N, -200, 200);
  Buffer<int> dx(x), dz(N);
  Buffer<double> dy(N);
  module.run("calls", {.blockX = 96}, dx, dy, dz, N);
  std::vector<double> fibonacci;
  std::vector<int> digests;
  for (int v : x) {
    double a = 0, b = 1;
    for (int n = 0; n < (v & 31); ++n) {
      double next = a + b;
      a = b;
      b = next;
    }
    fibonacci.push_back(a);
    int digest = (v & 7) * 1000 + v * 2 + static_cast<int>(0.5f * v + 6.0f);
    int narrow = static_cast<std::int8_t>(static_cast<std::int8_t>(v) + (v * 3 & 0xffff));
    digests.push_back((v & 1 ? digest : -digest) + 10 - v + narrow);
  }
  expectEqual("calls: doubles", dy.got, fibonacci);
  expectEqual("calls: ints", dz.got, digests);
}

static void localArrays(Module &module, Random &random) {
  constexpr int N = 110;
  auto x = random.ints(N, -1000, 1000);
  Buffer<int> dx(x), dy(2 * N);
  module.run("local_arrays", {.gridX = 2, .blockX = 64}, dx, dy, N);
  std::vector<int> want;
  for (int i = 0; i < N; ++i) {
    std::vector<int> values;
    for (int k = 0; k < 3 + i % 10; ++k)
      values.push_back(x[(i * 7 + k * 13) % N]);
    std::sort(values.begin(), values.end());
    int at = x[i] & 15;
    want.push_back(values[values.size() / 2]);
    want.push_back((at * at & 0xff ^ (at == i % 16 ? 0xff : 0)) + values[0]);
  }
  expectEqual("local_arrays", dy.got, want);
}

static void machine(Module &module) {
  std::string text = "12 words 345 and  numbers; one! more 6789 to read, x1y2 z 0";
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  int length = static_cast<int>(text.size());
  std::vector<int> want;
  for (int i = 0; i < 64; ++i) {
    int words = 0, digits = 0;
    for (int p = i; p < length;) {
      if (text[p] >= '0' && text[p] <= '9') {
        ++p;
        ++digits;
      } else if (text[p] == ' ') {
        ++p;
      } else {
        ++words;
        while (p < length && text[p] != ' ' && text[p] != '!')
          ++p;
        if (p < length && text[p] == '!')
          break;
      }
    }
    want.push_back(words * 1000 + digits);
  }
  Buffer<std::uint8_t> dx(bytes);
  Buffer<int> dy(64);
  module.run("machine", {.blockX = 64}, dx, dy, length);
  expectEqual("machine", dy.got, want);
}

void compilers::control(Module &module) {
  Random random;
  for (auto test : {switches, loops, calls, localArrays})
    test(module, random);
  machine(module);
}
