//===- Compilers.cpp - planemu-compilers-test -----------------------------===//
//
//   planemu-compilers-test THEME FILE...
//
// Each file holds the kernels of test/Inputs/emulator/THEME.cu as some compiler prints them.
// Prints `FILE: ok`, or what differs from the host, and exits with 1 then.
//===----------------------------------------------------------------------===//

#include "test/runtime/emulator/compilers/Compilers.h"

#include <algorithm>
#include <fstream>
#include <sstream>

using namespace compilers;
using namespace emutest;

static bool failed = false;
static const char *currentFile = "";

void compilers::report(const std::string &message) {
  std::printf("%s: %s\n", currentFile, message.c_str());
  failed = true;
}

std::vector<float> Random::reals(std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float &value : values)
    value = real(low, high);
  return values;
}

std::vector<int> Random::ints(std::size_t count, int low, int high) {
  std::vector<int> values(count);
  for (int &value : values)
    value = low + below(high - low);
  return values;
}

std::uint16_t Format::encode(double value, Rounding rounding) const {
  int bias = (1 << (exponentBits - 1)) - 1;
  std::uint16_t sign = std::signbit(value) ? 1 << (exponentBits + fractionBits) : 0;
  std::uint16_t infinity = static_cast<std::uint16_t>(((1 << exponentBits) - 1) << fractionBits);
  std::uint16_t most = hasInfinity
                           ? infinity - 1
                           : static_cast<std::uint16_t>((1 << (exponentBits + fractionBits)) - 2);
  if (std::isnan(value))
    return static_cast<std::uint16_t>((1 << (exponentBits + fractionBits)) - 1);
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | (hasInfinity ? infinity : most);
  // In units of the last place; the integer then reads as exponent and fraction, carries included.
  int exponent = 1 - bias;
  if (magnitude > 0)
    std::frexp(magnitude, &exponent);
  int scale = std::max(exponent - 1, 1 - bias) - fractionBits;
  double units = std::ldexp(magnitude, -scale), whole = std::floor(units), rest = units - whole;
  bool away = rounding == Up ? !sign : rounding == Down ? sign != 0 : false;
  if (rounding == Nearest ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1)
                          : away && rest > 0)
    whole += 1;
  double code = whole + std::ldexp(scale + fractionBits - (1 - bias), fractionBits);
  if (code > most) {
    bool toInfinity = hasInfinity && (rounding == Nearest || away);
    return sign | (toInfinity ? infinity : most);
  }
  return sign | static_cast<std::uint16_t>(code);
}

double Format::decode(std::uint16_t code) const {
  int bias = (1 << (exponentBits - 1)) - 1, ones = (1 << exponentBits) - 1;
  int exponent = code >> fractionBits & ones, fraction = code & ((1 << fractionBits) - 1);
  double magnitude =
      exponent ? std::ldexp((1 << fractionBits) + fraction, exponent - bias - fractionBits)
               : std::ldexp(fraction, 1 - bias - fractionBits);
  if (exponent == ones && (hasInfinity || fraction == (1 << fractionBits) - 1))
    magnitude = hasInfinity && fraction == 0 ? INFINITY : NAN;
  return code >> (exponentBits + fractionBits) & 1 ? -magnitude : magnitude;
}

std::vector<std::uint16_t> compilers::encode(const Format &format,
                                             const std::vector<float> &values) {
  std::vector<std::uint16_t> codes;
  for (float value : values)
    codes.push_back(format.encode(value));
  return codes;
}

std::vector<double> compilers::widen(const Format &format,
                                     const std::vector<std::uint16_t> &codes) {
  std::vector<double> values;
  for (std::uint16_t code : codes)
    values.push_back(format.decode(code));
  return values;
}

void compilers::expectNear(const char *what, const std::vector<double> &got,
                           const std::vector<double> &want, double relative, double absolute) {
  if (got.size() != want.size())
    return report(std::string(what) + ": " + std::to_string(got.size()) + " elements, not " +
                  std::to_string(want.size()));
  for (std::size_t n = 0; n < got.size(); ++n) {
    if (got[n] == want[n] || (std::isnan(got[n]) && std::isnan(want[n])))
      continue;
    if (std::fabs(got[n] - want[n]) <= absolute + relative * std::fabs(want[n]))
      continue;
    char text[160];
    std::snprintf(text, sizeof(text), "%s: element %zu is %.17g, not %.17g", what, n, got[n],
                  want[n]);
    return report(text);
  }
}

Module::Module(const std::string &path) : path(path) {
  std::ifstream file(path);
  if (!file)
    die("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  check(api().cuModuleLoadDataEx(&module, text.str().c_str(), 0, nullptr, nullptr), path.c_str());
}

Module::~Module() { api().cuModuleUnload(module); }

bool Module::has(const char *kernel) const {
  CUfunction function;
  return api().cuModuleGetFunction(&function, module, kernel) == CUDA_SUCCESS;
}

void Module::launch(const char *kernel, const Shape &shape,
                    const std::vector<BufferBase *> &buffers,
                    std::vector<std::vector<char>> &values) {
  CUfunction function;
  check(api().cuModuleGetFunction(&function, module, kernel), kernel);
  std::vector<void *> pointers;
  for (std::vector<char> &value : values)
    pointers.push_back(value.data());
  for (unsigned threads : {1u, 2u, 3u}) {
    api().setThreads(threads);
    for (BufferBase *buffer : buffers)
      buffer->reset();
    check(shape.cooperative
              ? api().launchCooperative(function, shape.gridX, shape.gridY, 1, shape.blockX,
                                        shape.blockY, 1, shape.shared, nullptr, pointers.data())
              : api().cuLaunchKernel(function, shape.gridX, shape.gridY, 1, shape.blockX,
                                     shape.blockY, 1, shape.shared, nullptr, pointers.data(),
                                     nullptr),
          kernel);
    check(api().cuCtxSynchronize(), kernel);
    for (BufferBase *buffer : buffers)
      if (!buffer->fetch(threads > 1) && !buffer->anyOrder)
        report(std::string(kernel) + ": results differ between fewer threads and " +
               std::to_string(threads));
  }
}

int main(int argc, char **argv) {
  void (*theme)(Module &) = nullptr;
#define CHOOSE(Name)                                                                               \
  if (argc > 1 && argv[1] == std::string(#Name))                                                   \
    theme = Name;
  COMPILER_THEMES(CHOOSE)
#undef CHOOSE
  if (!theme || argc < 3) {
    std::string themes;
#define LIST(Name) themes += " " #Name;
    COMPILER_THEMES(LIST)
#undef LIST
    die("usage: planemu-compilers-test THEME FILE...\nthemes:" + themes);
  }
  open();
  bool anyFailed = false;
  for (int n = 2; n < argc; ++n) {
    currentFile = argv[n];
    failed = false;
    Module module(argv[n]);
    theme(module);
    if (!failed)
      std::printf("%s: ok\n", argv[n]);
    anyFailed |= failed;
  }
  return anyFailed;
}
