//===- AllocationTest.cpp - a replayed step allocates nothing -----------------===//
//
// malloc and its kin of this process are replaced by ones that count. Run on the fake driver: what a
// driver does inside its own calls is not planrt's.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <atomic>

static std::atomic<long> allocations = 0;

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void *realloc(void *memory, size_t bytes) { return ++allocations, __libc_realloc(memory, bytes); }
void *memalign(size_t alignment, size_t bytes) {
  return ++allocations, __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
}

using sample::Handles;

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

CHECK_MAIN
