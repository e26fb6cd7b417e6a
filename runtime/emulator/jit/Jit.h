//===- Jit.h - between the emulator and its JIT compiler ------------------===//
//
// libplanemu opens libplanemu-jit of the same build and calls the one function below. What crosses is
// C, so libplanemu needs nothing of LLVM.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_JIT_JIT_H
#define PLANEMU_JIT_JIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Raised with every change of this file.
#define PLANEMU_JIT_VERSION 1u

/// One instruction of a block. It works on lanes, or it is called.
typedef struct {
  const char *lanes; // name of the function on eight lanes; null: it is called
  void (*run)(void); // what is called, with the warp and `inst`
  const void *inst;
  int64_t imm;
  const uint32_t *operands; // where they are in the warp's file
  const uint8_t *bytes;     // of a lane of each operand, 0 for predicates; only if it has lanes
  uint32_t count;
  uint32_t written; // bit n: operand n is a destination; those from 32 on may be both
  uint32_t dying;   // bit n: what destination n receives is not read behind the block
  uint32_t guard, guard_xor;
} planemu_jit_step;

typedef struct {
  uint32_t first, count; // of the kernel's steps
} planemu_jit_block;

/// 32 lanes of the file that always hold the same.
typedef struct {
  uint32_t offset, bytes; // of a lane
  uint64_t value;
} planemu_jit_constant;

typedef struct {
  const char *isa; // the host's instruction set, by planemu's name
  const planemu_jit_step *steps;
  const planemu_jit_block *blocks;
  const planemu_jit_constant *constants;
  size_t block_count, constant_count;
} planemu_jit_kernel;

/// The straight part of a block, for a warp all of whose lanes are active.
typedef void (*planemu_jit_run)(void *warp, char *file);

typedef struct {
  /// True if there is code for the host's instruction set `isa`.
  int (*knows)(const char *isa);
  /// Compiles blocks of a kernel: entries[n] receives the code of block n. Returns what `release`
  /// takes, or null, and `error` receives why. Any number of threads may compile at once.
  void *(*compile)(const planemu_jit_kernel *kernel, planemu_jit_run *entries, char *error,
                   size_t error_bytes);
  void (*release)(void *code);
} planemu_jit_compiler;

/// The compiler; null if it is not of this version.
const planemu_jit_compiler *planemu_jit(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif /* PLANEMU_JIT_JIT_H */
