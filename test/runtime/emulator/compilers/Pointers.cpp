//===- Pointers.cpp - calls through pointers ------------------------------===//
//
// test/Inputs/emulator/pointers.cu.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <bit>

using namespace compilers;

/// The functions of the source, in the order of its table.
static float apply(int which, float x) { return which == 0 ? x + 1 : which == 1 ? x * 2 : x - 5; }

void compilers::pointers(Module &module) {
  Random random;
  constexpr unsigned Threads = 64;
  std::vector<float> x = random.reals(Threads, -8, 8), want(Threads);
  std::vector<int> which = random.ints(Threads, 0, 3);
  Buffer<float> dx(x), dy(Threads);
  Buffer<int> dwhich(which);
  module.run("table", {.blockX = Threads}, dx, dwhich);
  for (unsigned t = 0; t < Threads; ++t)
    want[t] = apply(which[t], x[t]);
  expectEqual("table", dx.got, want);

  for (int constant : {0, 1}) {
    module.run("chosen", {.blockX = Threads}, dx, constant);
    for (unsigned t = 0; t < Threads; ++t) {
      want[t] = apply(constant + 1, x[t]);
      if (t % 3 != 0)
        want[t] = apply(t & 1 ? 0 : 2, want[t]);
    }
    expectEqual("chosen", dx.got, want);
  }

  // Items of weight, sum, price and, in the bits of a float here too, count.
  std::vector<float> items, changed;
  for (unsigned t = 0; t < Threads; ++t) {
    float weight = random.real(0, 4), sum = random.real(0, 4), price = random.real(0, 4);
    int count = random.below(100);
    bool adds = (t + 1) & 1;
    auto push = [](std::vector<float> &to, float a, float b, float c, int d) {
      to.insert(to.end(), {a, b, c, std::bit_cast<float>(d)});
    };
    push(items, weight, sum, price, count);
    push(changed, weight, adds ? sum + weight : sum, adds ? price : price * weight,
         adds ? count + 1 : count - 1);
  }
  Buffer<float> ditems(items);
  module.run("structs", {.blockX = Threads}, ditems, 1);
  expectEqual("structs", ditems.got, changed);

  module.run("shapes", {.blockX = Threads}, dx, dy);
  for (unsigned t = 0; t < Threads; ++t) {
    float area = x[t] * (t % 3 == 1 ? 3 : x[t]);
    want[t] = (t % 3 == 1 ? area * 2 * 2 : area * 2) + area;
  }
  expectNear("shapes", widen(dy.got), widen(want), 0x1p-22);
}
