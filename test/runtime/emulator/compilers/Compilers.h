//===- Compilers.h - kernels as compilers print them, against the host ----===//
//
// A theme is one file of test/Inputs/emulator/*.cu, compiled to PTX by some compiler, and the
// function here that runs its kernels and compares what they leave in memory with what the host
// computes. Every launch happens on one, two and three host threads, and must give the same
// bits.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_TEST_COMPILERS_H
#define PLANEMU_TEST_COMPILERS_H

#include "test/runtime/emulator/Emulator.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace compilers {

/// Says what is wrong; the program fails in the end.
void report(const std::string &message);

/// Numbers that look random and are the same in every run.
class Random {
public:
  std::uint32_t bits() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::uint32_t>(state >> 32);
  }
  std::uint64_t wide() {
    std::uint64_t high = bits();
    return high << 32 | bits();
  }
  int below(int limit) { return static_cast<int>(bits() % static_cast<unsigned>(limit)); }
  /// In [low, high).
  float real(float low, float high) {
    return low + (high - low) * static_cast<float>(bits() >> 8) * 0x1p-24f;
  }
  std::vector<float> reals(std::size_t count, float low, float high);
  std::vector<int> ints(std::size_t count, int low, int high);

private:
  std::uint64_t state = 12345;
};

/// A small floating-point format, in the host's double.
struct Format {
  int exponentBits, fractionBits;
  bool hasInfinity; // false: e4m3, whose only NaN is all ones and which saturates
  enum Rounding { Nearest, Zero, Up, Down };
  std::uint16_t encode(double value, Rounding rounding = Nearest) const;
  double decode(std::uint16_t code) const;
};
inline constexpr Format F16{5, 10, true}, Bf16{8, 7, true}, E4m3{4, 3, false}, E5m2{5, 2, true};
std::vector<std::uint16_t> encode(const Format &format, const std::vector<float> &values);

class BufferBase {
public:
  virtual ~BufferBase() = default;
  virtual void reset() = 0;           // device memory gets what the buffer began with
  virtual bool fetch(bool again) = 0; // false: differs from what the launch before left
  cudaabi::CUdeviceptr address = 0;
  /// Results depend on the order of CTAs (sums of floats by atomics): not compared between launches.
  bool anyOrder = false;
};

/// Device memory of a test; `got` is what the last launch left there.
template <class T> class Buffer : public BufferBase {
public:
  explicit Buffer(std::vector<T> values) : initial(std::move(values)) {
    using namespace emutest;
    address = upload(initial);
  }
  /// For results: bytes that no kernel writes by chance.
  explicit Buffer(std::size_t count) : Buffer(filled(count)) {}
  Buffer(const Buffer &) = delete;
  ~Buffer() override { emutest::api().cuMemFree_v2(address); }

  void reset() override {
    CU(cuMemcpyHtoD_v2, address, initial.data(), initial.size() * sizeof(T));
  }
  bool fetch(bool again) override {
    std::vector<T> values = emutest::download<T>(address, initial.size(), anyOrder);
    bool same = !again || std::memcmp(values.data(), got.data(), values.size() * sizeof(T)) == 0;
    got = std::move(values);
    return same;
  }

  std::vector<T> initial, got;

private:
  static std::vector<T> filled(std::size_t count) {
    std::vector<T> values(count);
    std::memset(static_cast<void *>(values.data()), 0xa5, count * sizeof(T));
    return values;
  }
};

struct Shape {
  unsigned gridX = 1, gridY = 1, blockX = 32, blockY = 1, shared = 0;
  bool cooperative = false;
};

class Module {
public:
  explicit Module(const std::string &path);
  ~Module();
  Module(const Module &) = delete;

  /// False for what the source leaves out on the module's architecture.
  bool has(const char *kernel) const;
  /// Launches `kernel` with buffers and values as arguments, on one, two and three threads.
  template <class... Arguments>
  void run(const char *kernel, const Shape &shape, Arguments &&...arguments) {
    std::vector<BufferBase *> buffers;
    std::vector<std::vector<char>> values;
    (pack(buffers, values, arguments), ...);
    launch(kernel, shape, buffers, values);
  }

private:
  template <class T>
  static void pack(std::vector<BufferBase *> &buffers, std::vector<std::vector<char>> &values,
                   T &argument) {
    if constexpr (std::is_base_of_v<BufferBase, std::remove_cv_t<T>>) {
      buffers.push_back(&argument);
      pack(buffers, values, argument.address);
    } else {
      const char *bytes = reinterpret_cast<const char *>(&argument);
      values.emplace_back(bytes, bytes + sizeof(T));
    }
  }
  void launch(const char *kernel, const Shape &shape, const std::vector<BufferBase *> &buffers,
              std::vector<std::vector<char>> &values);

  std::string path;
  cudaabi::CUmodule module = nullptr;
};

/// Element by element; reports the first that differs.
template <class Got, class Want>
void expectEqual(const char *what, const std::vector<Got> &got, const std::vector<Want> &want) {
  if (got.size() != want.size())
    return report(std::string(what) + ": " + std::to_string(got.size()) + " elements, not " +
                  std::to_string(want.size()));
  for (std::size_t n = 0; n < got.size(); ++n)
    if (got[n] != static_cast<Got>(want[n]))
      return report(std::string(what) + ": element " + std::to_string(n) + " is " +
                    std::to_string(got[n]) + ", not " + std::to_string(want[n]));
}
/// |got - want| <= absolute + relative * |want|; infinities are equal, NaN is NaN.
void expectNear(const char *what, const std::vector<double> &got, const std::vector<double> &want,
                double relative, double absolute = 0);

template <class T> std::vector<double> widen(const std::vector<T> &values) {
  return std::vector<double>(values.begin(), values.end());
}
std::vector<double> widen(const Format &format, const std::vector<std::uint16_t> &codes);

// The themes, one a file.
#define COMPILER_THEMES(X)                                                                         \
  X(kernels)                                                                                       \
  X(reductions)                                                                                    \
  X(scans)                                                                                         \
  X(matrices)                                                                                      \
  X(wmma)                                                                                          \
  X(rows)                                                                                          \
  X(atomics)                                                                                       \
  X(control)                                                                                       \
  X(maths)                                                                                         \
  X(integers)                                                                                      \
  X(halves)                                                                                        \
  X(warps)                                                                                         \
  X(memories)                                                                                      \
  X(grids)                                                                                         \
  X(libcu)                                                                                         \
  X(asyncs)                                                                                        \
  X(pointers)                                                                                      \
  X(recursion)                                                                                     \
  X(blocks)                                                                                        \
  X(shapes)                                                                                        \
  X(triton)
#define COMPILER_THEME(Name) void Name(Module &module);
COMPILER_THEMES(COMPILER_THEME)
#undef COMPILER_THEME

} // namespace compilers

#endif // PLANEMU_TEST_COMPILERS_H
