//===- AsyncTest.cpp - steps in two halves, cancelled, greedy, timed ----------===//
//
// Whatever way a step is run in, its sequences end up as one plain step would leave them, or as they
// were.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

using sample::Handles;
using sample::Oracle;

static planrt_status begin(Handles &handles, std::vector<uint32_t> sequences,
                           const std::vector<int32_t> &tokens) {
  planrt_error *error = nullptr;
  handles.take(planrt_step_begin(handles.step, uint32_t(sequences.size()), sequences.data(),
                                 tokens.empty() ? nullptr : tokens.data(), &error),
               error);
  return handles.status;
}

static planrt_status wait(Handles &handles, int32_t *next = nullptr) {
  planrt_error *error = nullptr;
  handles.take(planrt_step_wait(handles.step, next, &error), error);
  return handles.status;
}

TEST(two_halves) {
  Handles handles;
  REQUIRE(handles.open());
  CHECK_EQ(wait(handles), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "no step is running");
  Oracle oracle;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(begin(handles, {0}, {i}) == PLANRT_OK);
    // Until it is waited for, the sequence is as it was and busy, the other one is not.
    CHECK_EQ(planrt_sequence_length(handles.session, 0), i);
    CHECK_EQ(begin(handles, {1}, {i}), PLANRT_ERR_ARGUMENT);
    CHECK_CONTAINS(handles.message, "the step is running; wait for it first");
    CHECK_EQ(planrt_sequence_free(handles.session, 0, nullptr), PLANRT_ERR_ARGUMENT);
    CHECK_EQ(planrt_sequence_truncate(handles.session, 0, 0, nullptr), PLANRT_ERR_ARGUMENT);
    uint32_t fork = 0;
    CHECK_EQ(planrt_sequence_fork(handles.session, 0, &fork, nullptr), PLANRT_ERR_ARGUMENT);
    handles.logits(0);
    CHECK_CONTAINS(handles.message, "the step is running");
    int32_t next = -1;
    REQUIRE(wait(handles, &next) == PLANRT_OK);
    std::vector<float> expected = oracle.step(i);
    CHECK_EQ(next, Oracle::argmax(expected));
    CHECK(handles.logits(0) == expected);
  }
}

TEST(two_steps_of_one_session) {
  Handles handles;
  REQUIRE(handles.open());
  planrt_step *first = handles.step, *second = nullptr;
  REQUIRE(planrt_step_open(handles.session, nullptr, nullptr, &second, nullptr) == PLANRT_OK);
  Oracle oracles[2];
  for (int i = 0; i < 20; ++i) {
    REQUIRE(begin(handles, {0}, {i}) == PLANRT_OK);
    handles.step = second;
    CHECK_EQ(begin(handles, {0}, {i}), PLANRT_ERR_ARGUMENT);
    CHECK_CONTAINS(handles.message, "sequence 0 is in a step that runs");
    REQUIRE(begin(handles, {1}, {i + 30}) == PLANRT_OK);
    handles.step = first;
    REQUIRE(wait(handles) == PLANRT_OK);
    CHECK(handles.logits(0) == oracles[0].step(i));
    handles.step = second;
    REQUIRE(wait(handles) == PLANRT_OK);
    CHECK(handles.logits(0) == oracles[1].step(i + 30));
    handles.step = first;
  }
  // Freed in flight, a step leaves its sequence as it was.
  handles.step = second;
  REQUIRE(begin(handles, {1}, {1}) == PLANRT_OK);
  planrt_step_free(second);
  handles.step = first;
  CHECK_EQ(planrt_sequence_length(handles.session, 1), 20);
  REQUIRE(handles.run({1}, {9}) == PLANRT_OK);
  CHECK(handles.logits(0) == oracles[1].step(9));
}

TEST(cancelled_steps_change_nothing) {
  Handles handles;
  REQUIRE(handles.open());
  Oracle oracle;
  for (int i = 0; i < 40; ++i) {
    if (i % 4 == 0) {
      REQUIRE(begin(handles, {0}, {i + 9}) == PLANRT_OK);
      planrt_step_cancel(handles.step);
      CHECK_EQ(wait(handles), PLANRT_ERR_CANCELLED);
      CHECK_CONTAINS(handles.message, "the step was cancelled");
      CHECK_EQ(planrt_sequence_length(handles.session, 0), i);
    }
    // When no step is running it does nothing.
    planrt_step_cancel(handles.step);
    REQUIRE(handles.run({0}, {i}) == PLANRT_OK);
    CHECK(handles.logits(0) == oracle.step(i));
  }
}

TEST(another_thread_may_cancel_at_any_time) {
  Handles handles;
  REQUIRE(handles.open());
  std::atomic<bool> over = false;
  std::thread canceller([&] {
    while (!over) {
      planrt_step_cancel(handles.step);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  Oracle oracle;
  int64_t length = 0;
  for (int i = 0; i < 100 && length < 40; ++i) {
    int32_t token = i % 64;
    planrt_status status = handles.run({0}, {token});
    CHECK(status == PLANRT_OK || status == PLANRT_ERR_CANCELLED);
    if (status == PLANRT_OK) {
      CHECK(handles.logits(0) == oracle.step(token));
      ++length;
    }
    CHECK_EQ(planrt_sequence_length(handles.session, 0), length);
  }
  over = true;
  canceller.join();
  REQUIRE(handles.run({0}, {7}) == PLANRT_OK);
  CHECK(handles.logits(0) == oracle.step(7));
}

TEST(a_visitor_that_throws_ends_its_step) {
  Handles handles;
  REQUIRE(handles.open());
  auto visit = [](void *, const planrt_launch *launch, int done) -> int {
    if (launch->group == 1 && done)
      throw std::runtime_error("thrown by the visitor");
    return 0;
  };
  uint32_t sequence = 0;
  int32_t token = 5;
  planrt_error *error = nullptr;
  handles.take(
      planrt_step_run_visited(handles.step, 1, &sequence, &token, nullptr, visit, nullptr, &error),
      error);
  CHECK_EQ(handles.status, PLANRT_ERR_INTERNAL);
  CHECK_CONTAINS(handles.message, "thrown by the visitor");
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 0);
  REQUIRE(handles.run({0}, {5}) == PLANRT_OK);
  CHECK(handles.logits(0) == Oracle().step(5));
}

TEST(a_cancelled_step_stops_before_its_next_kernel) {
  Handles handles;
  planrt_step_options options;
  planrt_step_options_init(&options);
  options.no_graph = 1;
  REQUIRE(handles.open(nullptr, &options));
  struct Seen {
    planrt_step *step;
    int launches = 0;
  } seen{handles.step};
  auto visit = [](void *user, const planrt_launch *launch, int done) {
    auto *seen = static_cast<Seen *>(user);
    seen->launches += launch->kernel && !done;
    if (launch->group == 1 && done)
      planrt_step_cancel(seen->step);
    return 0;
  };
  uint32_t sequence = 0;
  int32_t token = 5;
  CHECK_EQ(
      planrt_step_run_visited(handles.step, 1, &sequence, &token, nullptr, visit, &seen, nullptr),
      PLANRT_ERR_CANCELLED);
  CHECK_EQ(seen.launches, 1);
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 0);
}

TEST(a_visitor_cannot_run_its_own_step) {
  Handles handles;
  REQUIRE(handles.open());
  struct Seen {
    planrt_step *step;
    int refused = 0;
  } seen{handles.step};
  auto visit = [](void *user, const planrt_launch *, int) {
    auto *seen = static_cast<Seen *>(user);
    uint32_t sequence = 0;
    int32_t token = 1;
    seen->refused += planrt_step_wait(seen->step, &token, nullptr) == PLANRT_ERR_ARGUMENT;
    seen->refused +=
        planrt_step_run(seen->step, 1, &sequence, &token, nullptr, nullptr) == PLANRT_ERR_ARGUMENT;
    return 0;
  };
  uint32_t sequence = 0;
  int32_t token = 5, next = -1;
  Oracle oracle;
  CHECK_EQ(
      planrt_step_run_visited(handles.step, 1, &sequence, &token, &next, visit, &seen, nullptr),
      PLANRT_OK);
  CHECK_EQ(seen.refused, 20); // two calls, before and after each of five entries
  CHECK_EQ(next, Oracle::argmax(oracle.step(5)));
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 1);
  // Freed by its visitor, a step comes to its end first.
  auto freeIt = [](void *user, const planrt_launch *launch, int) {
    if (launch->group == 1)
      planrt_step_free(static_cast<planrt_step *>(user));
    return 0;
  };
  CHECK_EQ(planrt_step_run_visited(handles.step, 1, &sequence, &token, &next, freeIt, handles.step,
                                   nullptr),
           PLANRT_OK);
  handles.step = nullptr;
  CHECK_EQ(next, Oracle::argmax(oracle.step(5)));
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 2);
}

TEST(greedy_goes_on_with_what_was_chosen) {
  Handles handles;
  REQUIRE(handles.open());
  uint32_t sequence = 0;
  int32_t token = 5, next = -1;
  auto run = [&](const int32_t *tokens, int32_t *out) {
    planrt_error *error = nullptr;
    handles.take(planrt_step_run(handles.step, 1, &sequence, tokens, out, &error), error);
    return handles.status;
  };
  CHECK_EQ(run(nullptr, &next), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "sequence 0 has no next token: no step since has asked for one");
  Oracle oracle;
  REQUIRE(run(&token, &next) == PLANRT_OK);
  std::vector<float> expected = oracle.step(token);
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(next, Oracle::argmax(expected));
    expected = oracle.step(next);
    REQUIRE(run(nullptr, &next) == PLANRT_OK);
    CHECK(handles.logits(0) == expected);
  }
  // Logits alone: nobody has chosen, so there is nothing to go on with.
  expected = oracle.step(next);
  REQUIRE(run(nullptr, nullptr) == PLANRT_OK);
  CHECK(handles.logits(0) == expected);
  CHECK_EQ(run(nullptr, &next), PLANRT_ERR_ARGUMENT);
  // A cancelled step leaves the choice.
  token = 3;
  REQUIRE(run(&token, &next) == PLANRT_OK);
  expected = oracle.step(token);
  REQUIRE(begin(handles, {0}, {}) == PLANRT_OK);
  planrt_step_cancel(handles.step);
  CHECK_EQ(wait(handles), PLANRT_ERR_CANCELLED);
  int32_t after = -1;
  REQUIRE(run(nullptr, &after) == PLANRT_OK);
  CHECK_EQ(after, Oracle::argmax(oracle.step(next)));
}

TEST(debug_and_timeline) {
  for (int debug : {0, 1}) {
    Handles handles;
    planrt_step_options options;
    planrt_step_options_init(&options);
    options.debug = debug;
    options.timeline = 1;
    REQUIRE(handles.open(nullptr, &options));
    planrt_slice slice = {};
    slice.size = sizeof slice;
    planrt_error *error = nullptr;
    CHECK(!handles.take(planrt_step_slice(handles.step, 0, &slice, &error), error));
    CHECK_CONTAINS(handles.message, "no step has run");
    Oracle oracle;
    for (int i = 0; i < 4; ++i) {
      REQUIRE(handles.run({0}, {i}) == PLANRT_OK);
      CHECK(handles.logits(0) == oracle.step(i));
      double end = 0;
      for (uint32_t entry : {0u, 1u, 3u, 4u}) {
        REQUIRE(planrt_step_slice(handles.step, entry, &slice, nullptr) == PLANRT_OK);
        CHECK_EQ(slice.track, entry == 1 || entry == 3 ? 1u : 0u);
        CHECK_EQ(slice.launch.group, entry);
        CHECK_EQ(slice.launch.kernel != nullptr, entry == 1 || entry == 3);
        CHECK(slice.start >= 0 && slice.duration >= 0);
        if (entry == 3)
          CHECK(slice.start >= end);
        end = slice.start + slice.duration;
      }
      CHECK(!handles.take(planrt_step_slice(handles.step, 2, &slice, &error), error));
      CHECK_CONTAINS(handles.message, "group 2 \"snapshot\" (nodes l0.snapshot) had nothing to do");
      CHECK_EQ(planrt_step_slice(handles.step, 5, &slice, nullptr), PLANRT_ERR_ARGUMENT);
    }
  }
  Handles plain;
  REQUIRE(plain.open());
  planrt_slice slice = {};
  slice.size = sizeof slice;
  planrt_error *error = nullptr;
  CHECK(!plain.take(planrt_step_slice(plain.step, 0, &slice, &error), error));
  CHECK_CONTAINS(plain.message, "the step was not opened with `timeline`");
}
