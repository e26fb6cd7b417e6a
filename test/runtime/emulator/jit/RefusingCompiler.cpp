//===- RefusingCompiler.cpp - stands for libplanemu-jit in a test ---------===//
//
// Compiles nothing. Its message says what it was asked for, and so when libplanemu asks.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/jit/Jit.h"

#include <cstdio>

static int knows(const char *) { return 1; }

static void *compile(const planemu_jit_kernel *kernel, planemu_jit_run *, char *error,
                     size_t errorBytes) {
  size_t lanes = 0, calls = 0;
  for (size_t block = 0; block < kernel->block_count; ++block)
    for (uint32_t n = 0; n < kernel->blocks[block].count; ++n)
      (kernel->steps[kernel->blocks[block].first + n].lanes ? lanes : calls) += 1;
  std::snprintf(error, errorBytes, "refused %zu blocks, %zu instructions on lanes, %zu others",
                kernel->block_count, lanes, calls);
  return nullptr;
}

static void release(void *) {}

extern "C" __attribute__((visibility("default"))) const planemu_jit_compiler *
planemu_jit(uint32_t) {
  static constexpr planemu_jit_compiler Compiler = {knows, compile, release};
  return &Compiler;
}
