/*===- planemu.h - what libplanemu offers beyond the CUDA driver API -------===*
 *
 * libplanemu exports functions of the CUDA driver API and runs PTX modules on the host's cores. The
 * functions here are extensions; a program that runs on both looks them up with dlsym and goes on
 * without them on a GPU.
 *
 * Environment, read by the first cuInit; it wins over the functions of the same purpose:
 *   PLANEMU_TARGET     the reported device: gb10 (default), h200, or sm_NN
 *   PLANEMU_THREADS    worker threads, 1 to 1024; default one per core
 *   PLANEMU_MAX_STEPS  warp instructions one warp may execute in a launch
 *   PLANEMU_CHECKS     checks to turn on, a list of mem, init, race, sync, or all (these four), and
 *                      reads (a stricter init); what they find is printed on stderr as it is found,
 *                      so that any program can be checked
 *   PLANEMU_JIT        0 (default), 1: kernels that run for long are compiled, always: all are
 * An empty value counts as none. One that makes no sense fails cuInit, and the reason is printed.
 *
 * Any thread may call any function at any time.
 *===----------------------------------------------------------------------===*/

#ifndef PLANEMU_PLANEMU_H
#define PLANEMU_PLANEMU_H

#include <stddef.h>
#include <stdint.h>

#if defined(PLANEMU_BUILD)
#define PLANEMU_API __attribute__((visibility("default")))
#else
#define PLANEMU_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The message of the last failure of the calling process: why a module was refused (PTX line,
 * kernel, instruction) or how a kernel failed (kernel, label, PTX line, CTA, thread, address,
 * region). Empty if nothing failed.
 *
 * The pointer is valid until the calling thread's next call of this function. Since 0.1. */
PLANEMU_API const char *planemu_last_error(void);

/* Sets the number of worker threads, the calling thread included; 0 means one per core. Results do
 * not depend on it. Takes effect with the next launch. Since 0.1. */
PLANEMU_API void planemu_set_threads(unsigned threads);

/* Names a range of device memory for messages, counters and PLANEMU_CHECK_MEM, which finds what runs
 * over its end if no other range starts there. The name is copied and forgotten when the memory is
 * freed or unmapped. Since 0.1. */
PLANEMU_API void planemu_name_range(uint64_t address, size_t bytes, const char *name);

/* Labels the next launch, or captured launch, of the calling thread for error messages (the plan's
 * group, say). The text is copied. Since 0.1. */
PLANEMU_API void planemu_label_launch(const char *label);

/* The device to report, as PLANEMU_TARGET; before the first cuInit, but for asking again for the
 * same. 0, or a CUresult if the name is unknown or it is too late. Since 0.2. */
PLANEMU_API int planemu_set_target(const char *target);

/* The most warp instructions one warp may execute in a launch, looked at whenever it jumps back; a
 * launch that exceeds it ends with
 * CUDA_ERROR_LAUNCH_TIMEOUT, and the message says where it spins. 0: the default. Since 0.2. */
PLANEMU_API void planemu_set_max_steps(uint64_t steps);

/* Permutes the order of CTAs and of the warps of a CTA by `seed`, from the next launch on; 0 is the
 * natural order. A kernel without races computes the same under every seed. Since 0.2. */
PLANEMU_API void planemu_set_schedule_seed(uint64_t seed);

/* Whether kernels are compiled for the host. Results, faults and limits are the same; launches that
 * are checked or counted are interpreted. */
enum planemu_jit_mode {
  PLANEMU_JIT_OFF = 0,
  PLANEMU_JIT_HOT = 1,    /* what has run so often that compiling it pays */
  PLANEMU_JIT_ALWAYS = 2, /* all of a kernel when it first runs: for tests */
};

/* The planemu_jit_mode of launches from now on. Compiling takes libplanemu-jit.so, which lies beside
 * libplanemu.so and brings LLVM into the process. 0, or a CUresult if it is not there or does not
 * fit, and planemu_last_error says why. Since 0.2. */
PLANEMU_API int planemu_set_jit(unsigned mode);

/* `asked` is called by every graph launch of the calling thread before each of the graph's nodes.
 * Unless it returns 0 the rest of the graph does not run and the launch gives CUDA_ERROR_NOT_READY,
 * which does not stick. It may not call the driver. NULL: nothing is asked. Since 0.2. */
PLANEMU_API void planemu_set_interrupt(int (*asked)(void *user), void *user);

/* What to check while kernels run. Off by default. */
enum planemu_check {
  /* Accesses stay inside one named range (planemu_name_range) of an allocation; freed memory is
   * known. Without it they only have to stay inside one allocation, and be aligned. */
  PLANEMU_CHECK_MEM = 1,
  /* Bytes are written before they are read: global, shared and local memory, and shared memory
   * that a cp.async has not been waited for. A value that nothing wrote may be loaded; it is found
   * where a result depends on it. */
  PLANEMU_CHECK_INIT = 2,
  /* Conflicting accesses of two threads are ordered by barriers, or by fences and atomics of
   * sufficient scope; in shared memory, and in global memory within one launch. */
  PLANEMU_CHECK_RACE = 4,
  /* Warp-wide instructions are executed by the lanes their member masks name. */
  PLANEMU_CHECK_SYNC = 8,
  /* PLANEMU_CHECK_INIT, and what nothing wrote is not even loaded. Compilers load more than they need,
   * so this is for kernels that are known not to. */
  PLANEMU_CHECK_READS = 16,
};

/* Turns on the checks of `checks`, a union of planemu_check, for memory that is allocated and
 * kernels that are launched from now on. Memory allocated before counts as initialised. With a check
 * on, the CTAs of a launch run on one thread. Since 0.2. */
PLANEMU_API void planemu_set_checks(unsigned checks);

/* Findings are collected until they are cleared; equal ones (same check, kernel, label and PTX
 * lines) are counted, not repeated. A finding does not change what the kernel computes, but an
 * access that leaves its memory is also a fault of the launch. Since 0.2. */
PLANEMU_API size_t planemu_finding_count(void);

/* Text of a finding, of several lines: what is wrong; kernel and label; PTX line and instruction;
 * CTA, warp, lane and thread; the bytes as `name + offset`; of a race, the other access. Null if
 * `index` is too large. The pointer is valid until the calling thread's next call. Since 0.2. */
PLANEMU_API const char *planemu_finding(size_t index);

PLANEMU_API void planemu_clear_findings(void);

/* Turns counters on (1) or off (0) for the launches that follow. Since 0.2. */
PLANEMU_API void planemu_set_counters(int on);

/* The counters of all launches since they were turned on or cleared, as JSON text; all numbers are
 * integers, and do not depend on the number of threads. README.md of the emulator explains the
 * keys. The pointer is valid until the calling thread's next call. Since 0.2. */
PLANEMU_API const char *planemu_counters(void);

PLANEMU_API void planemu_clear_counters(void);

/* Warp instructions executed since the library was loaded. Since 0.1. */
PLANEMU_API uint64_t planemu_warp_instructions(void);

#ifdef __cplusplus
}
#endif

#endif /* PLANEMU_PLANEMU_H */
