/*===- planemu.h - what libplanemu offers beyond the CUDA driver API -------===*
 *
 * libplanemu exports the functions of the CUDA driver API that planrt uses and runs PTX modules on
 * the host's cores. The functions here are extensions; a program that runs on both looks them up
 * with dlsym and goes on without them on a GPU.
 *
 * Environment, read by the first cuInit:
 *   PLANEMU_TARGET   the reported device: gb10 (default), h200, or sm_NN
 *   PLANEMU_THREADS  worker threads; default one per core
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
 * not depend on it, but for sums of floating-point atomics over several CTAs. Takes effect with the
 * next launch. Since 0.1. */
PLANEMU_API void planemu_set_threads(unsigned threads);

/* Names a range of device memory for error messages. The name is copied and forgotten when the
 * memory is freed or unmapped. Since 0.1. */
PLANEMU_API void planemu_name_range(uint64_t address, size_t bytes, const char *name);

/* Labels the next launch, or captured launch, of the calling thread for error messages (the plan's
 * group, say). The text is copied. Since 0.1. */
PLANEMU_API void planemu_label_launch(const char *label);

/* Warp instructions executed since the library was loaded. Since 0.1. */
PLANEMU_API uint64_t planemu_warp_instructions(void);

#ifdef __cplusplus
}
#endif

#endif /* PLANEMU_PLANEMU_H */
