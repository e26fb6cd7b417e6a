//===- EntryPoints.cpp - names, per-thread variants, what is missing ------===//
//
// What follows from the list in Functions.def alone: the variants whose null stream is the thread's
// own, the functions that only say that they are not supported, and cuGetProcAddress, by which the
// CUDA runtime finds everything.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <cstdio>
#include <cstring>
#include <mutex>

using namespace planemu;

// Names for the parameters of a list of types, and the names alone.
#define COUNT_(A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, N, ...) N
#define COUNT(...) COUNT_(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define CONCAT_(A, B) A##B
#define CONCAT(A, B) CONCAT_(A, B)
#define NAME1(T) T a
#define NAME2(T, ...) T b, NAME1(__VA_ARGS__)
#define NAME3(T, ...) T c, NAME2(__VA_ARGS__)
#define NAME4(T, ...) T d, NAME3(__VA_ARGS__)
#define NAME5(T, ...) T e, NAME4(__VA_ARGS__)
#define NAME6(T, ...) T f, NAME5(__VA_ARGS__)
#define NAME7(T, ...) T g, NAME6(__VA_ARGS__)
#define NAME8(T, ...) T h, NAME7(__VA_ARGS__)
#define NAME9(T, ...) T i, NAME8(__VA_ARGS__)
#define NAME10(T, ...) T j, NAME9(__VA_ARGS__)
#define NAME11(T, ...) T k, NAME10(__VA_ARGS__)
#define PASS1 a
#define PASS2 b, PASS1
#define PASS3 c, PASS2
#define PASS4 d, PASS3
#define PASS5 e, PASS4
#define PASS6 f, PASS5
#define PASS7 g, PASS6
#define PASS8 h, PASS7
#define PASS9 i, PASS8
#define PASS10 j, PASS9
#define PASS11 k, PASS10
#define NAMED(...) CONCAT(NAME, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define PASSED(...) CONCAT(PASS, COUNT(__VA_ARGS__))

#define PLANEMU_PER_THREAD(Symbol, Suffix, Version, Types)                                         \
  PLANEMU_EXPORT Symbol##Suffix(NAMED Types) {                                                     \
    PerThreadStream scope;                                                                         \
    return Symbol(PASSED Types);                                                                   \
  }
// Arguments, whatever they are, stay where the caller put them.
#define PLANEMU_UNSUPPORTED(Symbol, Version)                                                       \
  PLANEMU_EXPORT Symbol() { return failWith(CUDA_ERROR_NOT_SUPPORTED, #Symbol " is not emulated"); }
#include "runtime/emulator/driver/Functions.def"

// --- By name ----------------------------------------------------------------------

namespace {
struct EntryPoint {
  std::string_view symbol;
  int version;
  void *address;
};
} // namespace

static const EntryPoint EntryPoints[] = {
#define PLANEMU_FUNCTION(Symbol, Version, Types)                                                   \
  {#Symbol, Version, reinterpret_cast<void *>(static_cast<CUresult(*) Types>(&Symbol))},
#define PLANEMU_PER_THREAD(Symbol, Suffix, Version, Types)                                         \
  {#Symbol #Suffix, Version,                                                                       \
   reinterpret_cast<void *>(static_cast<CUresult(*) Types>(&Symbol##Suffix))},
#define PLANEMU_UNSUPPORTED(Symbol, Version)                                                       \
  {#Symbol, Version, reinterpret_cast<void *>(static_cast<CUresult (*)()>(&Symbol))},
#include "runtime/emulator/driver/Functions.def"
};

/// Splits "cuMemcpyHtoD_v2_ptds" into its base name and whether it is a per-thread variant.
static std::string_view baseOf(std::string_view symbol, bool &perThread) {
  perThread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
  if (perThread)
    symbol.remove_suffix(5);
  if (symbol.size() > 3 && symbol[symbol.size() - 3] == '_' && symbol[symbol.size() - 2] == 'v')
    symbol.remove_suffix(3);
  return symbol;
}

PLANEMU_EXPORT cuGetProcAddress_v2(const char *symbol, void **address, int version,
                                   std::uint64_t flags, CUdriverProcAddressQueryResult *status) {
  constexpr std::uint64_t Known =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !address || (flags & ~Known) || flags == Known || version > DriverVersion)
    return CUDA_ERROR_INVALID_VALUE;
  bool wantsPerThread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  // The newest variant that the version knows; per-thread ones go before others of their age.
  const EntryPoint *best = nullptr;
  bool bestIsPerThread = false, exists = false;
  for (const EntryPoint &entry : EntryPoints) {
    bool perThread = false;
    if (baseOf(entry.symbol, perThread) != symbol || (perThread && !wantsPerThread))
      continue;
    exists = true;
    if (entry.version > version)
      continue;
    if (!best || (perThread && !bestIsPerThread) ||
        (perThread == bestIsPerThread && entry.version > best->version)) {
      best = &entry;
      bestIsPerThread = perThread;
    }
  }
  *address = best ? best->address : nullptr;
  if (status)
    *status = best     ? CU_GET_PROC_ADDRESS_SUCCESS
              : exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return best || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

PLANEMU_EXPORT cuGetProcAddress(const char *symbol, void **address, int version,
                                std::uint64_t flags) {
  CUdriverProcAddressQueryResult status;
  PLANEMU_TRY(cuGetProcAddress_v2(symbol, address, version, flags, &status));
  return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/// Tables of functions that are not documented, by which NVIDIA's libcudart starts. Its own message
/// would not say what is missing.
PLANEMU_EXPORT cuGetExportTable(const void **table, const CUuuid *id) {
  if (!table || !id)
    return CUDA_ERROR_INVALID_VALUE;
  const char *message =
      "NVIDIA's CUDA runtime uses interfaces of the driver that are not documented "
      "and cannot run here; link the program with -cudart shared, and it runs on "
      "the emulator's libcudart.so.13";
  static std::once_flag once;
  std::call_once(once, [&] { std::fprintf(stderr, "planemu: %s\n", message); });
  return failWith(CUDA_ERROR_NOT_SUPPORTED, message);
}
