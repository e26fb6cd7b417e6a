//===- Shapes.cpp - LLVM IR through llc -----------------------------------===//
//
// test/Inputs/emulator/shapes.ll, printed with several options of llc.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

using namespace compilers;

constexpr int Threads = 64;

static int switched(int v) {
  switch (v & 15) {
  case 0:
    return v + 100;
  case 1:
    return v * 2;
  case 2:
    return -v;
  case 3:
    return v * v;
  case 4:
    return v / 2;
  case 5:
    return ~v;
  case 6:
    return v + 6 + 5 + 4 + 3 + 2 + 1;
  case 7:
    return v;
  default:
    return -1;
  }
}

static int rotated(int n) {
  static constexpr int Steps[] = {1, 3, 5, 7};
  int sum = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j)
      sum += j ^ Steps[i & 3];
  return sum;
}

namespace {
struct Pair { // %pair
  std::int64_t a;
  double b;
  std::int32_t c;
};
} // namespace

void compilers::shapes(Module &module) {
  Random random;
  Shape shape{.blockX = Threads};
  auto x = random.ints(Threads, -10000, 10000), n = random.ints(Threads, -3, 12);
  Buffer<int> dx(x), dn(n), dy(Threads);
  std::vector<int> want;
  for (int v : x)
    want.push_back(switched(v));
  module.run("switches", shape, dx, dy);
  expectEqual("switches", dy.got, want);

  want.clear();
  for (int v : n)
    want.push_back(rotated(v));
  module.run("rotated", shape, dn, dy);
  expectEqual("rotated", dy.got, want);

  module.run("mirror", shape, dx, dy);
  expectEqual("mirror", dy.got, std::vector<int>(x.rbegin(), x.rend()));

  Pair pair{-7, 0.25, 1000};
  Buffer<Pair> pairs(Threads);
  module.run("values", shape, pair, pairs);
  std::vector<double> fields, wantFields;
  for (int t = 0; t < Threads; ++t) {
    const Pair &got = pairs.got[t];
    for (double field : {double(got.a), got.b, double(got.c)})
      fields.push_back(field);
    for (double field : {-7.0 * t, 0.25 + t, 1000.0 - t})
      wantFields.push_back(field);
  }
  expectEqual("values", fields, wantFields);
}
