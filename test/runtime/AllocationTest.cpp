//===- AllocationTest.cpp - how planrt uses the heap --------------------------===//
//
// malloc and its kin of this process are replaced by ones that count, and fail when told to. Steps
// are counted on the fake driver: what a driver does inside its own calls is not planrt's.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <atomic>

static std::atomic<long> allocations = 0;
/// This one fails, counted from 1, and no other; 0: none.
static std::atomic<long> failing = 0;

static bool fails() { return ++allocations == failing; }

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void *realloc(void *memory, size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
}

using sample::Handles;
using sample::Oracle;

TEST(replayed_steps_allocate_nothing) {
  Handles handles;
  REQUIRE(handles.open());
  uint32_t sequences[2] = {0, 1};
  int32_t tokens[2] = {5, 9}, next[2];
  auto run = [&](const int32_t *given, int32_t *out) {
    return planrt_step_run(handles.step, 2, sequences, given, out, nullptr);
  };
  long before = allocations;
  REQUIRE(run(tokens, next) == PLANRT_OK); // one by one
  REQUIRE(run(tokens, next) == PLANRT_OK); // captured
  CHECK(allocations > before);             // the hook sees the library
  before = allocations;
  for (int i = 0; i < 24; ++i) { // past ends of blocks
    REQUIRE(run(i % 3 == 0 ? tokens : nullptr, next) == PLANRT_OK);
    if (i >= 10)
      continue;
    REQUIRE(planrt_step_begin(handles.step, 1, sequences + i % 2, tokens, nullptr) == PLANRT_OK);
    REQUIRE(planrt_step_wait(handles.step, i % 4 ? next : nullptr, nullptr) == PLANRT_OK);
    REQUIRE(run(tokens, next) == PLANRT_OK);
  }
  CHECK_EQ(allocations.load(), before);
}

/// Makes `call` while its first allocation fails, its second one, and so on until it needs no more of
/// them. Each time it says so and `holds`, or it does without, which `undo` takes back.
template <class Call, class Holds, class Undo>
static void eachAllocationFails(const char *what, Call call, Holds holds, Undo undo) {
  for (long nth = 1;; ++nth) {
    failing = allocations + nth;
    planrt_error *error = nullptr;
    planrt_status status = call(&error);
    bool failed = allocations >= failing;
    failing = 0;
    std::string message = planrt_error_message(error);
    planrt_error_free(error);
    if (status == PLANRT_OK && !failed)
      return;
    bool said = status == PLANRT_ERR_MEMORY || status == PLANRT_ERR_ENVIRONMENT;
    if (status == PLANRT_OK)
      undo();
    else if (!said || !holds())
      check::fail(
          __FILE__, __LINE__,
          fmt::format("{}, allocation {}: {}: {}", what, nth, planrt_status_name(status), message));
    if (!failed)
      return;
  }
}

static planrt_session_usage usageOf(const planrt_session *session) {
  planrt_session_usage usage = {};
  usage.size = sizeof usage;
  planrt_session_get_usage(session, &usage, nullptr);
  return usage;
}

TEST(an_allocation_that_fails_is_an_error) {
  std::string bundlePath = sample::writeBundleFile();
  const std::string &checkpoint = sample::checkpoint();
  // A library's thread-local variables are made when they are first used, and the C library ends the
  // process where that fails.
  Handles first;
  REQUIRE(first.open());
  for (int32_t i = 0; i < 3; ++i)
    REQUIRE(first.run({0}, {i}) == PLANRT_OK);
  Handles handles;
  planrt_bundle_free(handles.bundle);
  handles.bundle = nullptr;
  auto open = [](const char *what, auto **handle, auto free, auto call) {
    eachAllocationFails(
        what, [&](planrt_error **error) { return call(handle, error); }, [&] { return !*handle; },
        [&] {
          free(*handle);
          *handle = nullptr;
        });
  };
  open("bundle", &handles.bundle, planrt_bundle_free, [&](auto **out, auto **error) {
    return planrt_bundle_open(bundlePath.c_str(), out, error);
  });
  open("device", &handles.device, planrt_device_free, [&](auto **out, auto **error) {
    return planrt_device_open(sample::deviceName(), nullptr, out, error);
  });
  open("weights", &handles.weights, planrt_weights_free, [&](auto **out, auto **error) {
    return planrt_weights_open(handles.bundle, handles.device, checkpoint.c_str(), nullptr, out,
                               error);
  });
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.sequences = 3;
  open("session", &handles.session, planrt_session_free, [&](auto **out, auto **error) {
    return planrt_session_open(handles.weights, &options, out, error);
  });
  open("step", &handles.step, planrt_step_free, [&](auto **out, auto **error) {
    return planrt_step_open(handles.session, nullptr, nullptr, out, error);
  });
  uint32_t sequences[2];
  for (uint32_t &sequence : sequences)
    REQUIRE(planrt_sequence_create(handles.session, &sequence, nullptr) == PLANRT_OK);

  // Steps that fail leave both sequences as they were, whichever way the step takes: one by one,
  // capturing, replaying, with a block to copy first.
  Oracle oracles[2];
  for (int i = 0; i < 20; ++i) {
    planrt_session_usage before = usageOf(handles.session);
    int32_t tokens[2] = {i, 40 - i}, next[2];
    eachAllocationFails(
        "one step",
        [&](planrt_error **error) {
          return planrt_step_run(handles.step, 2, sequences, tokens, next, error);
        },
        [&] {
          planrt_session_usage after = usageOf(handles.session);
          return std::memcmp(&before, &after, sizeof before) == 0 &&
                 planrt_sequence_length(handles.session, sequences[0]) == i &&
                 planrt_sequence_length(handles.session, sequences[1]) == i;
        },
        [&] { CHECK(false); });
    for (uint32_t row : {0u, 1u})
      CHECK(handles.logits(row) == oracles[row].step(tokens[row]));
    uint32_t fork = 0;
    REQUIRE(planrt_sequence_fork(handles.session, sequences[0], &fork, nullptr) == PLANRT_OK);
    REQUIRE(planrt_sequence_free(handles.session, sequences[0], nullptr) == PLANRT_OK);
    sequences[0] = fork;
  }
}

CHECK_MAIN
