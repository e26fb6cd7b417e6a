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
 *         planrt_weights_open(bundle, device, "checkpoint/", NULL, &weights, &error) ||
 *         planrt_session_open(weights, NULL, &session, &error) ||
 *         planrt_sequence_create(session, &sequence, &error) ||
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
 *             from a common one. One session and its steps are used by one thread at a time; only
 *             planrt_step_cancel may be called by any. Callbacks run on the calling thread.
 * Errors      Functions return PLANRT_OK or another status. A `planrt_error **` (it may be NULL)
 *             then receives a message, to be freed with planrt_error_free; on success it is left
 *             alone. Outputs are written on success only. What a failure leaves behind is said at
 *             each function; unless it says otherwise, nothing has changed.
 * State       There is no global state, but for the emulator, which is one for the process. Nothing
 *             is printed; libplanemu alone reads the environment (planemu.h).
 * Structs     Every struct begins with its size, which the caller sets: they may grow. An older size
 *             is taken as it is, a newer one if what is behind is zero; one that ends inside a
 *             field is PLANRT_ERR_ARGUMENT. Of options zero is always the initial value, so `memset`
 *             and `size` are all that a language without the _init functions needs; NULL instead
 *             of options means the initial ones.
 *===------------------------------------------------------------------------------------------===*/
#ifndef PLANRT_PLANRT_H
#define PLANRT_PLANRT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(PLANRT_BUILD)
#define PLANRT_API __attribute__((visibility("default")))
#else
#define PLANRT_API
#endif

/* Defines `type_init(type *options)`: the initial options. */
#define PLANRT_OPTIONS_INIT(type)                                                                  \
  static inline void type##_init(type *options) {                                                  \
    memset(options, 0, sizeof *options);                                                           \
    options->size = sizeof *options;                                                               \
  }

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
  PLANRT_ERR_INTERNAL = 8,    /* a defect of planrt; please report it */
  PLANRT_ERR_CANCELLED = 9,   /* planrt_step_cancel or a callback ended the call */
  PLANRT_ERR_EXHAUSTED = 10   /* a session has no sequence, state slot or KV block left */
} planrt_status;

/* "PLANRT_ERR_INPUT"; NULL for a number that is no status. Since 0.2. */
PLANRT_API const char *planrt_status_name(planrt_status status);

typedef struct planrt_error planrt_error;

/* The message, one or more lines without a final newline. Lives as long as `error`. Since 0.1. */
PLANRT_API const char *planrt_error_message(const planrt_error *error);
/* The file at fault, or "". The message does not repeat it. Since 0.1. */
PLANRT_API const char *planrt_error_file(const planrt_error *error);
PLANRT_API void planrt_error_free(planrt_error *error);

/* "0.2.0". Since 0.1. */
PLANRT_API const char *planrt_version(void);

/*===- Bundle -------------------------------------------------------------------------------===*/

typedef struct planrt_bundle planrt_bundle;

/* Reads a bundle and checks everything in it. The file is not touched afterwards.
 *
 * Fails with PLANRT_ERR_INPUT if it cannot be read, is damaged, or was made for a newer planrt; the
 * message says which part. Since 0.1. */
PLANRT_API planrt_status planrt_bundle_open(const char *path, planrt_bundle **out,
                                            planrt_error **error);
/* The same, from memory, which is copied. `name` stands for the file in messages. Since 0.2. */
PLANRT_API planrt_status planrt_bundle_open_memory(const void *data, size_t bytes, const char *name,
                                                   planrt_bundle **out, planrt_error **error);
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
  const char *mode;    /* "decode", "multi_seq"; lives as long as the bundle. Since 0.2 */
} planrt_program_info;

PLANRT_API uint32_t planrt_bundle_program_count(const planrt_bundle *bundle);

/* Describes program `index`. Fails with PLANRT_ERR_ARGUMENT if there is none. Since 0.1. */
PLANRT_API planrt_status planrt_bundle_program_info(const planrt_bundle *bundle, uint32_t index,
                                                    planrt_program_info *out, planrt_error **error);

/* Chooses a program: of those of `mode` (NULL: of any that planrt_step_open takes) with at least
 * `rows` rows, the one with the fewest, and of equals the first. Fails with PLANRT_ERR_INPUT if there
 * is none; the message lists what there is. Since 0.2. */
PLANRT_API planrt_status planrt_bundle_find_program(const planrt_bundle *bundle, const char *mode,
                                                    uint32_t rows, uint32_t *index,
                                                    planrt_error **error);

/*===- Device -------------------------------------------------------------------------------===*/

typedef struct planrt_device planrt_device;

/* What the emulator checks while kernels run. Values are those of planemu.h. Since 0.2. */
typedef enum planrt_check {
  PLANRT_CHECK_MEM = 1,   /* accesses stay inside one tensor, aligned, and not in freed memory */
  PLANRT_CHECK_INIT = 2,  /* bytes are written before a result depends on them */
  PLANRT_CHECK_RACE = 4,  /* conflicting accesses of two threads are ordered */
  PLANRT_CHECK_SYNC = 8,  /* warp-wide instructions are executed by the lanes they name */
  PLANRT_CHECK_READS = 16 /* INIT, and bytes are written before they are even loaded */
} planrt_check;

/* Receives a line about what planrt has chosen (the image of a kernel, a host thread's work), one
 * line without newline. Called by the thread that calls planrt. Since 0.2. */
typedef void (*planrt_log)(void *user, const char *message);

typedef struct planrt_device_options {
  size_t size;
  uint32_t threads; /* of the emulator; 0: one a core. A GPU has no use for it */

  /* The emulator's, refused for a GPU unless they are 0. There is one emulator in a process: of
   * several devices the one opened last decides. Since 0.2. */
  uint64_t schedule_seed; /* otherwise CTAs and warps run in an order drawn from it */
  const char *target;     /* NULL: its default; else the GPU to report: "gb10", "h200", "sm_90";
                             the same for every device of a process */
  uint32_t checks;        /* a union of planrt_check. Every tensor then has memory of its own, and
                             steps are `unshared` */
  int counters;           /* otherwise every launch is counted, and steps are `unshared` */

  planrt_log log; /* NULL: nobody listens. Since 0.2 */
  void *log_user;
} planrt_device_options;
PLANRT_OPTIONS_INIT(planrt_device_options)

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

/* Called before the first byte is uploaded and after every chunk of some MB; returns 0 to go on, or
 * else the call that uploads ends with PLANRT_ERR_CANCELLED. Since 0.2. */
typedef int (*planrt_progress)(void *user, uint64_t bytes_done, uint64_t bytes_total);

typedef struct planrt_weights_options {
  size_t size;
  planrt_progress progress; /* NULL: nobody watches */
  void *progress_user;
} planrt_weights_options;
PLANRT_OPTIONS_INIT(planrt_weights_options)

/* Binds every weight the bundle names to tensors of a checkpoint and uploads them.
 *
 * path    a .safetensors file, or a directory with model.safetensors.index.json or else
 *         model.safetensors; read while binding, not touched afterwards
 *
 * Fails with PLANRT_ERR_WEIGHTS if tensors are missing or have another dtype or shape: the message
 * lists all of them and nothing has been uploaded. Tensors that the bundle does not name are
 * counted, not refused. Fails with PLANRT_ERR_ENVIRONMENT or PLANRT_ERR_MEMORY as planrt_preflight
 * does. Any number of threads may bind one bundle at once. Since 0.1. */
PLANRT_API planrt_status planrt_weights_open(const planrt_bundle *bundle,
                                             const planrt_device *device, const char *path,
                                             const planrt_weights_options *options,
                                             planrt_weights **out, planrt_error **error);

/* Weights from a random generator, the same for a seed everywhere: for trying out a model of any
 * size without a checkpoint. They take little memory, since operands of one kind share one block
 * that is mapped again and again. Since 0.1. */
PLANRT_API planrt_status planrt_weights_random(const planrt_bundle *bundle,
                                               const planrt_device *device, uint64_t seed,
                                               const planrt_weights_options *options,
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

/* Sequences with their recurrent states and a paged KV cache. A sequence is a number; it has tokens,
 * KV blocks for them, and one state slot. A step reads one slot and writes another, and only its
 * success makes the new one the sequence's: so a step that fails or is cancelled changes nothing. */
typedef struct planrt_session planrt_session;

typedef struct planrt_session_options {
  size_t size;
  uint32_t sequences; /* that may exist at once; 0: one */
  int in_place; /* otherwise a step writes the slot that it reads, unless a fork shares it: less
                         memory, but a step that fails or is cancelled once the device has begun
                         leaves its sequences without a state: PLANRT_ERR_INPUT until they are
                         truncated to 0 or freed */
  int64_t kv_tokens; /* 0: room for max_context tokens a sequence; else for this many in all */
  uint32_t slots;    /* of recurrent states; 0: two a sequence, or one `in_place`. Since 0.2 */
} planrt_session_options;
PLANRT_OPTIONS_INIT(planrt_session_options)

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

/* What program `index` would take, with such a session and one step; nothing is allocated for it.
 * Scratch is the largest of the bundle's targets. Since 0.2. */
PLANRT_API planrt_status planrt_program_memory(const planrt_bundle *bundle, uint32_t index,
                                               const planrt_session_options *options,
                                               planrt_memory *out, planrt_error **error);

/* Could program `index` run on the device? PLANRT_ERR_ENVIRONMENT: the bundle has no image for this
 * GPU, or its driver is too old for the image; PLANRT_ERR_MEMORY: the program takes more than the
 * device has free. The message names both sides and what would help. The functions that load and
 * allocate ask the same of what they need. Since 0.2. */
PLANRT_API planrt_status planrt_preflight(const planrt_bundle *bundle, const planrt_device *device,
                                          uint32_t index, const planrt_session_options *options,
                                          planrt_error **error);

/* Allocates states and caches for every state the bundle names; there are no sequences yet. Fails
 * with PLANRT_ERR_MEMORY when there is no room for them. Since 0.1. */
PLANRT_API planrt_status planrt_session_open(const planrt_weights *weights,
                                             const planrt_session_options *options,
                                             planrt_session **out, planrt_error **error);
PLANRT_API void planrt_session_free(planrt_session *session);

/* What is left of a session: whether a sequence can be admitted. Since 0.2. */
typedef struct planrt_session_usage {
  size_t size;
  uint32_t sequences, free_sequences;
  uint32_t slots, free_slots;
  int64_t kv_blocks, free_kv_blocks;
} planrt_session_usage;
PLANRT_API planrt_status planrt_session_get_usage(const planrt_session *session,
                                                  planrt_session_usage *out, planrt_error **error);

/* Makes an empty sequence and gives its number, the lowest that is free. Fails with
 * PLANRT_ERR_EXHAUSTED if the session has all its sequences. Since 0.2. */
PLANRT_API planrt_status planrt_sequence_create(planrt_session *session, uint32_t *out,
                                                planrt_error **error);

/* Makes a sequence with the tokens and state of another. They share KV blocks and the slot; whoever
 * goes on first gets a copy of the block that both would write. Fails like planrt_sequence_create.
 * Since 0.2. */
PLANRT_API planrt_status planrt_sequence_fork(planrt_session *session, uint32_t sequence,
                                              uint32_t *out, planrt_error **error);

/* Drops the tokens from position `length` on, and the KV blocks that hold nothing else. A recurrent
 * state cannot go back: a model that has one takes 0 and the current length only, and refuses others
 * with PLANRT_ERR_ARGUMENT. Since 0.2. */
PLANRT_API planrt_status planrt_sequence_truncate(planrt_session *session, uint32_t sequence,
                                                  int64_t length, planrt_error **error);

/* Its blocks and slot become free, unless a fork shares them, and its number too. Since 0.2. */
PLANRT_API planrt_status planrt_sequence_free(planrt_session *session, uint32_t sequence,
                                              planrt_error **error);

/* Tokens that the sequence has; -1 if there is no such sequence. Since 0.2. */
PLANRT_API int64_t planrt_sequence_length(const planrt_session *session, uint32_t sequence);

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
  int unshared; /* otherwise every stored edge has memory of its own and outlives the step */
  int no_graph; /* otherwise kernels are started one by one, also after the first step */
  int debug; /* otherwise every kernel is waited for, so that an error names its group, kernel and
                   nodes; implies no_graph. Since 0.2 */
  int timeline; /* otherwise planrt_step_slice knows when groups ran; implies no_graph. Since 0.2 */
} planrt_step_options;
PLANRT_OPTIONS_INIT(planrt_step_options)

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

/* Appends one token to each of `count` different sequences. From the third step on a run of device
 * groups is one graph launch, and nothing is allocated, locked or updated for it.
 *
 * count      1 up to the program's rows; the rest of the rows idles
 * sequences  their numbers
 * tokens     their tokens; NULL (greedy): each sequence's token of the highest logit after its last
 *            step, which must have been asked for then
 * next       receives the token of the highest logit of each; NULL: it is not looked for, the logits
 *            are all that is wanted
 *
 * Refused before anything is started, with PLANRT_ERR_INPUT: a token outside the vocabulary, a
 * sequence that is full; with PLANRT_ERR_EXHAUSTED: no free KV block or slot; with
 * PLANRT_ERR_ARGUMENT: a wrong count, an unknown, repeated or busy sequence, a greedy step without a
 * token. A step that fails on the device or is cancelled commits nothing: the sequences have the
 * tokens and states they had. Since 0.1. */
PLANRT_API planrt_status planrt_step_run(planrt_step *step, uint32_t count,
                                         const uint32_t *sequences, const int32_t *tokens,
                                         int32_t *next, planrt_error **error);

/* The two halves of planrt_step_run: `begin` returns once the device has its work, `wait` when it is
 * done and the sequences have their tokens. Between them the step and its sequences are busy; other
 * steps may run other sequences of the session. (The emulator works inside `begin`.) If `begin` fails
 * there is nothing to wait for. Since 0.2. */
PLANRT_API planrt_status planrt_step_begin(planrt_step *step, uint32_t count,
                                           const uint32_t *sequences, const int32_t *tokens,
                                           planrt_error **error);
PLANRT_API planrt_status planrt_step_wait(planrt_step *step, int32_t *next, planrt_error **error);

/* Ends the step that is running, from any thread: it stops before its next kernel (a GPU's graph
 * runs to its end), and planrt_step_run or planrt_step_wait gives PLANRT_ERR_CANCELLED. Does nothing
 * if no step is running. Since 0.2. */
PLANRT_API void planrt_step_cancel(planrt_step *step);

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
 * planrt_session_state_read, planrt_weights_read and planrt_step_cancel; what would run or change the
 * step or its sequences is refused, and a step that it frees is freed when the call is over. If it
 * ends the step, the status is PLANRT_ERR_CANCELLED and the message says at which group. Since 0.1. */
PLANRT_API planrt_status planrt_step_run_visited(planrt_step *step, uint32_t count,
                                                 const uint32_t *sequences, const int32_t *tokens,
                                                 int32_t *next, planrt_visitor visit, void *user,
                                                 planrt_error **error);

/* Copies a stored edge, or a step input by its name, as it is on the device now. `bytes` must be
 * its size. Between steps an edge is there only with the `unshared` option, or with checks or
 * counters. Since 0.1. */
PLANRT_API planrt_status planrt_step_buffer_read(const planrt_step *step, const char *edge,
                                                 void *out, uint64_t bytes, planrt_error **error);

/* When an entry of the launch list ran in the last step, in microseconds of the step's own clock:
 * `track` 0 is the calling thread, 1 the stream. Since 0.2. */
typedef struct planrt_slice {
  size_t size;
  uint32_t track;
  double start, duration;
  planrt_launch launch; /* its size is set here */
} planrt_slice;

/* Entry `index` of the last step. Fails with PLANRT_ERR_ARGUMENT if there is none, if it had nothing
 * to do, or without the `timeline` option. Since 0.2. */
PLANRT_API planrt_status planrt_step_slice(const planrt_step *step, uint32_t index,
                                           planrt_slice *out, planrt_error **error);

#ifdef __cplusplus
}
#endif

#endif /* PLANRT_PLANRT_H */
