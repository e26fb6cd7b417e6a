//===- RunPtx.cpp - planemu-run: run one kernel of a .ptx file ------------===//
//
// For lit tests: arguments come from the command line, outputs go to stdout.
//
//   planemu-run FILE [--kernel NAME] [--grid X[,Y[,Z]]] [--block X[,Y[,Z]]] [--shared BYTES]
//               [--threads N] [--seed N] [--max-steps N] [--repeat N] [--label TEXT]
//               [--check mem,init,race,sync,reads] [--arena] [--counters] [--log]
//               ARG...
//   ARG   in=TYPE:V,V,...    a buffer with these values; V*N repeats, A..B counts
//         out=TYPE:COUNT     a buffer of zeros, printed after the run
//         inout=TYPE:V,...   both
//         new=TYPE:COUNT     a buffer that nothing has written
//         freed=TYPE:COUNT   a buffer that is freed before the launch
//         val=TYPE:V         a value passed itself
//   TYPE  u8 u16 u32 s32 u64 s64 f32 f64 x16 x32 x64 (x prints hexadecimal)
//
// Outputs are printed as `out0: v v v`, with --log what loading has to say before them. A failure prints `error: NAME: message` and exits with 1.
//===----------------------------------------------------------------------===//

#include "planemu/planemu.h"
#include "test/runtime/emulator/Emulator.h"

#include <cinttypes>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace emutest;

namespace {
struct Argument {
  std::string type;
  std::vector<std::uint8_t> bytes;
  CUdeviceptr address = 0;
  bool output = false, value = false, unwritten = false, freed = false;
};
} // namespace

static unsigned widthOf(const std::string &type) {
  return static_cast<unsigned>(std::stoul(type.substr(1))) / 8;
}

static void append(Argument &argument, const std::string &text) {
  std::uint64_t bits = 0;
  if (argument.type == "f32") {
    float value = std::strtof(text.c_str(), nullptr);
    std::memcpy(&bits, &value, 4);
  } else if (argument.type == "f64") {
    double value = std::strtod(text.c_str(), nullptr);
    std::memcpy(&bits, &value, 8);
  } else {
    bits = text[0] == '-' ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 0))
                          : std::strtoull(text.c_str(), nullptr, 0);
  }
  for (unsigned byte = 0; byte < widthOf(argument.type); ++byte)
    argument.bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
}

static Argument parse(const std::string &text) {
  std::size_t equals = text.find('='), colon = text.find(':');
  if (equals == std::string::npos || colon == std::string::npos)
    die("bad argument '" + text + "'");
  Argument argument;
  std::string kind = text.substr(0, equals);
  argument.type = text.substr(equals + 1, colon - equals - 1);
  argument.output = kind == "out" || kind == "inout";
  argument.value = kind == "val";
  argument.unwritten = kind == "new" || kind == "freed";
  argument.freed = kind == "freed";
  std::string values = text.substr(colon + 1);
  if (kind == "out" || argument.unwritten) {
    argument.bytes.resize(std::stoul(values) * widthOf(argument.type));
    return argument;
  }
  std::stringstream list(values);
  for (std::string item; std::getline(list, item, ',');) {
    std::size_t star = item.find('*'), dots = item.find("..");
    if (dots != std::string::npos) {
      for (long n = std::stol(item), last = std::stol(item.substr(dots + 2)); n <= last; ++n)
        append(argument, std::to_string(n));
      continue;
    }
    unsigned long repeat = star == std::string::npos ? 1 : std::stoul(item.substr(star + 1));
    while (repeat--)
      append(argument, item.substr(0, star));
  }
  return argument;
}

static void print(const Argument &argument, unsigned number) {
  std::printf("out%u:", number);
  unsigned width = widthOf(argument.type);
  for (std::size_t at = 0; at + width <= argument.bytes.size(); at += width) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, argument.bytes.data() + at, width);
    char kind = argument.type[0];
    if (argument.type == "f32") {
      float value;
      std::memcpy(&value, &bits, 4);
      std::printf(" %.9g", static_cast<double>(value));
    } else if (argument.type == "f64") {
      double value;
      std::memcpy(&value, &bits, 8);
      std::printf(" %.17g", value);
    } else if (kind == 'x') {
      std::printf(" 0x%0*" PRIx64, static_cast<int>(2 * width), bits);
    } else if (kind == 's') {
      std::printf(" %" PRId64,
                  static_cast<std::int64_t>(bits << (64 - 8 * width)) >> (64 - 8 * width));
    } else {
      std::printf(" %" PRIu64, bits);
    }
  }
  std::printf("\n");
}

static void parseTriple(const char *text, unsigned *triple) {
  std::sscanf(text, "%u,%u,%u", &triple[0], &triple[1], &triple[2]);
}

static unsigned parseChecks(const std::string &list) {
  unsigned checks = 0;
  std::stringstream names(list);
  for (std::string name; std::getline(names, name, ',');)
    checks |= name == "mem"     ? PLANEMU_CHECK_MEM
              : name == "init"  ? PLANEMU_CHECK_INIT
              : name == "race"  ? PLANEMU_CHECK_RACE
              : name == "sync"  ? PLANEMU_CHECK_SYNC
              : name == "reads" ? PLANEMU_CHECK_READS
                                : (die("no check '" + name + "'"), 0);
  return checks;
}

/// Prints what the checks found; true if there is anything.
static bool printFindings() {
  for (std::size_t n = 0; n < api().findingCount(); ++n)
    std::printf("%s\n", api().finding(n));
  return api().findingCount() != 0;
}

static void require(CUresult result) {
  if (result == CUDA_SUCCESS)
    return;
  printFindings();
  std::printf("error: %s: %s\n", nameOf(result).c_str(), api().lastError());
  std::exit(1);
}

int main(int argc, char **argv) {
  if (argc < 2)
    die("usage: planemu-run FILE [options] ARG...");
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    die(std::string("cannot read ") + argv[1]);
  std::string kernel = "k";
  unsigned grid[3] = {1, 1, 1}, block[3] = {32, 1, 1}, shared = 0, repeat = 1;
  std::vector<Argument> arguments;
  const char *label = nullptr;
  bool printLog = false, arena = false, counters = false;
  for (int n = 2; n < argc; ++n) {
    std::string option = argv[n];
    auto next = [&] { return ++n < argc ? argv[n] : (die("no value for " + option), nullptr); };
    if (option == "--kernel")
      kernel = next();
    else if (option == "--grid")
      parseTriple(next(), grid);
    else if (option == "--block")
      parseTriple(next(), block);
    else if (option == "--shared")
      shared = static_cast<unsigned>(std::stoul(next()));
    else if (option == "--threads")
      api().setThreads(static_cast<unsigned>(std::stoul(next())));
    else if (option == "--max-steps")
      api().setMaxSteps(std::stoull(next()));
    else if (option == "--seed")
      api().setScheduleSeed(std::stoull(next()));
    else if (option == "--repeat")
      repeat = static_cast<unsigned>(std::stoul(next()));
    else if (option == "--check")
      api().setChecks(parseChecks(next()));
    else if (option == "--label")
      label = next();
    else if (option == "--counters")
      counters = true;
    else if (option == "--arena")
      arena = true;
    else if (option == "--log")
      printLog = true;
    else
      arguments.push_back(parse(option));
  }
  open();
  CUmodule module;
  std::vector<char> log(4096);
  CUjit_option logOptions[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void *logValues[] = {log.data(), reinterpret_cast<void *>(log.size())};
  require(api().cuModuleLoadDataEx(&module, text.str().c_str(), 2, logOptions, logValues));
  if (printLog)
    std::printf("%s", log.data());
  CUfunction function;
  require(api().cuModuleGetFunction(&function, module, kernel.c_str()));
  if (shared > 48 << 10)
    require(api().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(shared)));
  constexpr std::size_t Gap = 256;
  CUdeviceptr arenaAt = 0;
  if (arena) {
    std::size_t bytes = 0;
    for (const Argument &argument : arguments)
      bytes += argument.bytes.size() + 2 * Gap;
    CU(cuMemAlloc_v2, &arenaAt, bytes);
  }
  std::vector<void *> pointers;
  unsigned number = 0;
  for (Argument &argument : arguments) {
    if (argument.value) {
      pointers.push_back(argument.bytes.data());
      continue;
    }
    std::size_t size = argument.bytes.size();
    if (arena) {
      argument.address = arenaAt;
      arenaAt += (size + Gap - 1) / Gap * Gap + Gap;
    } else {
      CU(cuMemAlloc_v2, &argument.address, size);
    }
    if (!argument.unwritten)
      CU(cuMemcpyHtoD_v2, argument.address, argument.bytes.data(), size);
    api().nameRange(argument.address, size, ("arg" + std::to_string(number++)).c_str());
    if (argument.freed)
      CU(cuMemFree_v2, argument.address);
    pointers.push_back(&argument.address);
  }
  api().setCounters(counters);
  for (unsigned n = 0; n < repeat; ++n) {
    if (label)
      api().labelLaunch(label);
    require(api().cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                 shared, nullptr, pointers.data(), nullptr));
    require(api().cuCtxSynchronize());
  }
  number = 0;
  for (Argument &argument : arguments)
    if (argument.output) {
      argument.bytes = download<std::uint8_t>(argument.address, argument.bytes.size());
      print(argument, number++);
    }
  if (counters)
    std::printf("%s", api().counters());
  return printFindings();
}
