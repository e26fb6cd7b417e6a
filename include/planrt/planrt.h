/*===- planrt.h - run a bundle --------------------------------------------------------------===*
 *
 * A complete program: teacher-force three tokens, print the token that follows.
 *
 *   #include <planrt/planrt.h>
 *   #include <stdio.h>
 *
 *   int main(void) {
 *     planrt_error *error = NULL;
 *     planrt_bundle *bundle = NULL;
 *     planrt_device *device = NULL;
 *     planrt_weights *weights = NULL;
 *     planrt_session *session = NULL;
 *     planrt_step *step = NULL;
 *     int32_t prompt[] = {5, 17, 3}, next = 0;
 *     uint32_t sequence = 0;
 *     if (planrt_bundle_open("model.bundle", &bundle, &error) ||
 *         planrt_device_open("emulator", NULL, &device, &error) ||
 *         planrt_weights_open(bundle, device, "checkpoint/", &weights, &error) ||
 *         planrt_session_open(weights, NULL, &session, &error) ||
 *         planrt_step_open(session, NULL, NULL, &step, &error))
 *       return fprintf(stderr, "%s\n", planrt_error_message(error)), 1;
 *     for (int i = 0; i < 3; ++i)
 *       if (planrt_step_run(step, 1, &sequence, &prompt[i], &next, &error))
 *         return fprintf(stderr, "%s\n", planrt_error_message(error)), 1;
 *     printf("%d\n", next);
 *     planrt_step_free(step), planrt_session_free(session), planrt_weights_free(weights);
 *     planrt_device_free(device), planrt_bundle_free(bundle);
 *   }
 *
 * Ownership   Every handle that a function gives belongs to the caller, who frees it with the
 *             function of its noun. Handles keep alive what they were made from, so they may be
 *             freed in any order. Freeing NULL does nothing.
 * Threads     Different handles may be used by different threads at once, also when they were made
 *             from a common one. One session and its steps are used by one thread at a time.
 * Errors      Functions return PLANRT_OK or another status. A `planrt_error **` (it may be NULL)
 *             then receives a message, to be freed with planrt_error_free; on success it is left
 *             alone. Outputs are written on success only. What a failure leaves behind is said at
 *             each function; unless it says otherwise, nothing has changed.
 * State       There is no global state, but for the emulator, which is one for the process. Nothing
 *             is printed; libplanemu alone reads the environment (planemu.h).
 *
 * Option structs begin with their size; initialise them with the function beside them, then change
 * what you need: they may grow. Where options are taken, NULL means the initial ones.
 *===------------------------------------------------------------------------------------------===*/
#ifndef PLANRT_PLANRT_H
#define PLANRT_PLANRT_H

#include <stddef.h>
#include <stdint.h>

#if defined(PLANRT_BUILD)
#define PLANRT_API __attribute__((visibility("default")))
#else
#define PLANRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===- Status and errors --------------------------------------------------------------------===*/

/* Values are pinned; new ones are added at the end. */
typedef enum planrt_status {
  PLANRT_OK = 0,
  PLANRT_ERR_INPUT = 1,       /* a file's content, a token or a length is wrong */
  PLANRT_ERR_ARGUMENT = 2,    /* the call makes no sense */
  PLANRT_ERR_WEIGHTS = 3,     /* tensors are missing or have another dtype or shape */
  PLANRT_ERR_ENVIRONMENT = 4, /* no such device, or a library is missing or too old */
  PLANRT_ERR_MEMORY = 5,      /* the host or the device has no more of it */
  PLANRT_ERR_DEVICE = 6,      /* the device refused or failed a call */
  PLANRT_ERR_DEVICE_LOST = 7, /* the device failed for good: free its handles and open it again */
  PLANRT_ERR_INTERNAL = 8     /* a defect of planrt; please report it */
} planrt_status;

typedef struct planrt_error planrt_error;

/* The message, one or more lines without a final newline. Lives as long as `error`. Since 0.1. */
PLANRT_API const char *planrt_error_message(const planrt_error *error);
/* The file at fault, or "". The message does not repeat it. Since 0.1. */
PLANRT_API const char *planrt_error_file(const planrt_error *error);
PLANRT_API void planrt_error_free(planrt_error *error);

/* "0.1.0". Since 0.1. */
PLANRT_API const char *planrt_version(void);

/*===- Bundle -------------------------------------------------------------------------------===*/

typedef struct planrt_bundle planrt_bundle;

/* Reads a bundle and checks everything in it. The file is not touched afterwards.
 *
 * Fails with PLANRT_ERR_INPUT if it cannot be read, is damaged, or was made for a newer planrt; the
 * message says which part. Since 0.1. */
PLANRT_API planrt_status planrt_bundle_open(const char *path, planrt_bundle **out,
                                            planrt_error **error);
PLANRT_API void planrt_bundle_free(planrt_bundle *bundle);

/* What a caller needs to know of a program: one plan, at a fixed number of rows. */
typedef struct planrt_program_info {
  size_t size;         /* sizeof(planrt_program_info), set by the caller */
  const char *name;    /* "decode_n1"; lives as long as the bundle */
  uint32_t rows;       /* sequences that one step can advance */
  uint32_t groups;     /* of the plan */
  uint32_t launches;   /* kernel starts a step */
  int64_t vocab;       /* token ids are below this */
  int64_t max_context; /* tokens a sequence can have */
  int64_t kv_block;    /* positions in a block of the KV cache */
} planrt_program_info;

PLANRT_API uint32_t planrt_bundle_program_count(const planrt_bundle *bundle);

/* Describes program `index`. Fails with PLANRT_ERR_ARGUMENT if there is none. Since 0.1. */
PLANRT_API planrt_status planrt_bundle_program_info(const planrt_bundle *bundle, uint32_t index,
                                                    planrt_program_info *out, planrt_error **error);

/*===- Device -------------------------------------------------------------------------------===*/

typedef struct planrt_device planrt_device;

/* What the emulator checks while kernels run. Values are those of planemu.h. Since 0.2. */
typedef enum planrt_check {
  PLANRT_CHECK_MEM = 1,  /* accesses stay inside one tensor, aligned, and not in freed memory */
  PLANRT_CHECK_INIT = 2, /* bytes are written before they are read */
  PLANRT_CHECK_RACE = 4, /* conflicting accesses of two threads are ordered */
  PLANRT_CHECK_SYNC = 8  /* warp-wide instructions are executed by the lanes they name */
} planrt_check;

typedef struct planrt_device_options {
  size_t size;
  uint32_t threads; /* of the emulator; 0: one a core. A GPU has no use for it. */

  /* The emulator's, refused for a GPU unless they are 0. There is one emulator in a process: of
   * several devices the one opened last decides. Since 0.2. */
  uint64_t schedule_seed; /* 0. Otherwise CTAs and warps run in an order drawn from it */
  const char *target; /* NULL: its default. Otherwise the GPU to report: "gb10", "h200", "sm_90";
                             the same for every device of a process */
  uint32_t checks;    /* 0. Otherwise a union of planrt_check; then every tensor has memory of
                             its own, and steps are `unshared` */
  int counters;       /* 0. Otherwise every launch is counted, and steps are `unshared` */
} planrt_device_options;

/* The function of programs made with 0.1 fills the struct of 0.1; newer programs fill theirs. */
PLANRT_API void planrt_device_options_init(planrt_device_options *options);
PLANRT_API void planrt_device_options_init_sized(planrt_device_options *options, size_t size);
#define planrt_device_options_init(options)                                                        \
  planrt_device_options_init_sized((options), sizeof(planrt_device_options))

/* Opens "cuda" or "cuda:N" (a GPU, through libcuda.so.1) or "emulator" (the CPU, through
 * libplanemu.so, looked for beside planrt and then on the loader's path).
 *
 * Fails with PLANRT_ERR_ENVIRONMENT if the library or the device is not there, or the library is too
 * old for an option; with PLANRT_ERR_ARGUMENT for another name, an unknown check or target, and an
 * option that only the emulator has. What the emulator has found and counted before is forgotten.
 * Since 0.1. */
PLANRT_API planrt_status planrt_device_open(const char *name, const planrt_device_options *options,
                                            planrt_device **out, planrt_error **error);
PLANRT_API void planrt_device_free(planrt_device *device);

/* What the driver calls it. Lives as long as the handle. Since 0.1. */
PLANRT_API const char *planrt_device_product(const planrt_device *device);
/* 121 for compute capability 12.1. Since 0.1. */
PLANRT_API uint32_t planrt_device_sm(const planrt_device *device);

/* What the checks have found since the device was opened; equal findings are counted, not repeated.
 * A step that completes may have findings too. Since 0.2. */
PLANRT_API size_t planrt_device_finding_count(const planrt_device *device);
/* A finding's text of several lines: what is wrong, the kernel, the plan's group and nodes, the PTX
 * line, CTA and threads, the tensor and offset. NULL if there is no such finding. The pointer is
 * valid until the calling thread's next call. Since 0.2. */
PLANRT_API const char *planrt_device_finding(const planrt_device *device, size_t index);

/* The counters of all launches since the device was opened, as JSON text (the emulator's README
 * explains it); NULL if they were not asked for. The pointer is valid until the calling thread's
 * next call. Since 0.2. */
PLANRT_API const char *planrt_device_counters(const planrt_device *device);

/*===- Weights ------------------------------------------------------------------------------===*/

typedef struct planrt_weights planrt_weights;

/* Binds every weight the bundle names to tensors of a checkpoint and uploads them.
 *
 * path    a .safetensors file, or a directory with model.safetensors.index.json or else
 *         model.safetensors; read while binding, not touched afterwards
 *
 * Fails with PLANRT_ERR_WEIGHTS if tensors are missing or have another dtype or shape: the message
 * lists all of them and nothing has been uploaded. Tensors that the bundle does not name are
 * counted, not refused. Any number of threads may bind one bundle at once. Since 0.1. */
PLANRT_API planrt_status planrt_weights_open(const planrt_bundle *bundle,
                                             const planrt_device *device, const char *path,
                                             planrt_weights **out, planrt_error **error);

/* Weights from a random generator, the same for a seed everywhere: for trying out a model of any
 * size without a checkpoint. They take little memory, since operands of one kind share one block
 * that is mapped again and again. Since 0.1. */
PLANRT_API planrt_status planrt_weights_random(const planrt_bundle *bundle,
                                               const planrt_device *device, uint64_t seed,
                                               planrt_weights **out, planrt_error **error);
PLANRT_API void planrt_weights_free(planrt_weights *weights);

/* Tensors of the checkpoint that nobody reads. Since 0.1. */
PLANRT_API uint64_t planrt_weights_unread(const planrt_weights *weights);

/* Copies bytes of an operand back: of its data, or of its scales. `name` is one of the bundle's
 * weights. Since 0.1. */
PLANRT_API planrt_status planrt_weights_read(const planrt_weights *weights, const char *name,
                                             int scales, uint64_t offset, void *out, uint64_t bytes,
                                             planrt_error **error);

/*===- Session ------------------------------------------------------------------------------===*/

/* Sequences with their states and KV cache. Sequences are numbered from 0 and start empty. */
typedef struct planrt_session planrt_session;

typedef struct planrt_session_options {
  size_t size;
  uint32_t sequences; /* 1 */
  int in_place;       /* 0. Otherwise a sequence has one state slot, not two: less memory, but a
                         step that fails on the device leaves it unusable until reset */
  int64_t kv_tokens;  /* 0: room for max_context tokens a sequence; else this many in all */
} planrt_session_options;
PLANRT_API void planrt_session_options_init(planrt_session_options *options);

/* Allocates states and caches for every state the bundle names. Fails with PLANRT_ERR_MEMORY when
 * there is no room for them. Since 0.1. */
PLANRT_API planrt_status planrt_session_open(const planrt_weights *weights,
                                             const planrt_session_options *options,
                                             planrt_session **out, planrt_error **error);
PLANRT_API void planrt_session_free(planrt_session *session);

/* Makes a sequence empty again and its KV blocks free. Since 0.1. */
PLANRT_API planrt_status planrt_session_reset(planrt_session *session, uint32_t sequence,
                                              planrt_error **error);

/* Tokens that the sequence has; 0 too where there is no such sequence. Since 0.1. */
PLANRT_API int64_t planrt_session_length(const planrt_session *session, uint32_t sequence);

/* Bytes of memory that things take; figures of virtual sizes for random weights. */
typedef struct planrt_memory {
  size_t size;
  uint64_t weights; /* operands on the device */
  uint64_t host_weights;
  uint64_t states;    /* recurrent, all slots */
  uint64_t kv;        /* paged, all blocks */
  uint64_t workspace; /* of one step object: stored edges */
  uint64_t scratch;   /* of one step object: partial sums and counters */
} planrt_memory;

/* The pool of a state: bytes from `offset`, of slot or block 0 first. Since 0.1. */
PLANRT_API planrt_status planrt_session_state_read(const planrt_session *session, const char *name,
                                                   uint64_t offset, void *out, uint64_t bytes,
                                                   planrt_error **error);
/* The size of that pool; 0 if there is no such state. Since 0.1. */
PLANRT_API uint64_t planrt_session_state_bytes(const planrt_session *session, const char *name);

/*===- Step ---------------------------------------------------------------------------------===*/

/* Runs one program on the sequences of a session. Owns the workspace, the block that is copied to
 * the device at the start of a step, and the captured graph. */
typedef struct planrt_step planrt_step;

typedef struct planrt_step_options {
  size_t size;
  int unshared; /* 0. Otherwise every stored edge has memory of its own and outlives the step. */
  int no_graph; /* 0. Otherwise kernels are started one by one, also after the first step. */
} planrt_step_options;
PLANRT_API void planrt_step_options_init(planrt_step_options *options);

/* Loads the program's kernels and allocates its workspace.
 *
 * program  a name, or NULL for the bundle's only (or else first) program
 *
 * Of the images in the bundle the device's own cubin is taken; if the device has no use for any,
 * the PTX of the highest target that is not above it. Fails with PLANRT_ERR_ENVIRONMENT if neither
 * is there, with PLANRT_ERR_INPUT if there is no such program. Since 0.1. */
PLANRT_API planrt_status planrt_step_open(planrt_session *session, const char *program,
                                          const planrt_step_options *options, planrt_step **out,
                                          planrt_error **error);
PLANRT_API void planrt_step_free(planrt_step *step);

/* The image that was taken: "sm_90 cubin" or "sm_121 ptx". Lives as long as the step. Since 0.1. */
PLANRT_API const char *planrt_step_image(const planrt_step *step);

/* Memory of the step and of the session and weights it works with. Since 0.1. */
PLANRT_API planrt_status planrt_step_memory(const planrt_step *step, planrt_memory *out,
                                            planrt_error **error);

/* Appends one token to each of `count` different sequences.
 *
 * count      1 up to the program's rows; the rest of the rows idles
 * sequences  their numbers
 * tokens     their tokens
 * next       receives the token of the highest logit of each; may be NULL
 *
 * Refused with PLANRT_ERR_INPUT, before anything is started: a token outside the vocabulary, a
 * sequence that is full, a KV cache without a free block; with PLANRT_ERR_ARGUMENT: a wrong count,
 * an unknown or repeated sequence. A step that fails on the device commits nothing: the sequences
 * have the tokens and states they had. Since 0.1. */
PLANRT_API planrt_status planrt_step_run(planrt_step *step, uint32_t count,
                                         const uint32_t *sequences, const int32_t *tokens,
                                         int32_t *next, planrt_error **error);

/* The last step's logits of its `row`-th sequence, widened to float. `count` is the vocabulary's
 * size. Fails with PLANRT_ERR_ARGUMENT if no step has run or there is no such row. Since 0.1. */
PLANRT_API planrt_status planrt_step_logits(const planrt_step *step, uint32_t row, float *out,
                                            uint64_t count, planrt_error **error);

/* What a visitor sees of the launch that is about to run or has run. */
typedef struct planrt_launch {
  size_t size;
  uint32_t index;     /* in the program's launch list */
  uint32_t group;     /* the plan's id */
  const char *rule;   /* the plan's label */
  const char *kernel; /* or NULL: a host group, or one with nothing to do */
} planrt_launch;

/* Return 0 to go on; anything else ends the step, which then commits nothing. */
typedef int (*planrt_visitor)(void *user, const planrt_launch *launch, int done);

/* planrt_step_run, group by group: `visit` is called before (done = 0) and after (done = 1) every
 * entry of the launch list, with the device idle. It may call planrt_step_buffer_read,
 * planrt_session_state_read and planrt_weights_read. If it ends the step, the status is
 * PLANRT_ERR_ARGUMENT and the message says at which group. Since 0.1. */
PLANRT_API planrt_status planrt_step_run_visited(planrt_step *step, uint32_t count,
                                                 const uint32_t *sequences, const int32_t *tokens,
                                                 int32_t *next, planrt_visitor visit, void *user,
                                                 planrt_error **error);

/* Copies a stored edge, or a step input by its name, as it is on the device now. `bytes` must be
 * its size. Between steps an edge is there only with the `unshared` option, or with checks or
 * counters. Since 0.1. */
PLANRT_API planrt_status planrt_step_buffer_read(const planrt_step *step, const char *edge,
                                                 void *out, uint64_t bytes, planrt_error **error);

#ifdef __cplusplus
}
#endif

#endif /* PLANRT_PLANRT_H */
