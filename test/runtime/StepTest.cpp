//===- StepTest.cpp - sessions and steps --------------------------------------===//
//
// The sample program against its oracle, bit for bit, in every way a step can be run; and whatever
// a step refuses, which must leave everything as it was.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <functional>
#include <thread>

using sample::Handles;
using sample::Oracle;

/// Forty steps of two sequences: both rows, one row, rows swapped; past two block boundaries.
static void compareWithOracle(Handles &handles) {
  Oracle oracles[2];
  for (int i = 0; i < 40; ++i) {
    std::vector<uint32_t> sequences = i % 3 == 0   ? std::vector<uint32_t>{0, 1}
                                      : i % 3 == 1 ? std::vector<uint32_t>{1}
                                                   : std::vector<uint32_t>{1, 0};
    std::vector<int32_t> tokens;
    for (uint32_t sequence : sequences)
      tokens.push_back((i * 13 + int(sequence) * 29) % 64);
    if (handles.run(sequences, tokens) != PLANRT_OK)
      return check::fail(__FILE__, __LINE__, handles.message);
    for (uint32_t row = 0; row < sequences.size(); ++row) {
      std::vector<float> expected = oracles[sequences[row]].step(tokens[row]);
      CHECK(handles.logits(row) == expected);
      CHECK_EQ(handles.next[row], Oracle::argmax(expected));
    }
  }
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 27);
  CHECK_EQ(planrt_sequence_length(handles.session, 1), 40);
}

TEST(step_graph) {
  Handles handles;
  REQUIRE(handles.open());
  CHECK_CONTAINS(planrt_step_image(handles.step), "sm_80 ptx");
  compareWithOracle(handles);
}

TEST(step_without_graph_unshared) {
  Handles handles;
  planrt_step_options options;
  planrt_step_options_init(&options);
  options.no_graph = options.unshared = 1;
  REQUIRE(handles.open(nullptr, &options));
  compareWithOracle(handles);
  // With the unshared layout edges outlive the step.
  std::vector<float> y(128);
  CHECK_EQ(planrt_step_buffer_read(handles.step, "l0.y", y.data(), 512, nullptr), PLANRT_OK);
}

TEST(step_in_place) {
  Handles handles;
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.sequences = 2;
  options.in_place = 1;
  REQUIRE(handles.open(&options));
  compareWithOracle(handles);
  planrt_memory memory = {};
  memory.size = sizeof memory;
  CHECK_EQ(planrt_step_memory(handles.step, &memory, nullptr), PLANRT_OK);
  CHECK_EQ(memory.states, 2u * 256);
}

TEST(step_after_reset) {
  Handles handles;
  REQUIRE(handles.open());
  compareWithOracle(handles);
  CHECK_EQ(planrt_sequence_truncate(handles.session, 0, 0, nullptr), PLANRT_OK);
  CHECK_EQ(planrt_sequence_truncate(handles.session, 1, 0, nullptr), PLANRT_OK);
  compareWithOracle(handles);
}

TEST(step_one_row) {
  Handles handles(sample::writeBundleFile(1));
  REQUIRE(handles.open());
  Oracle oracles[2];
  // Two sequences take turns on a program of one row.
  for (int i = 0; i < 20; ++i)
    for (uint32_t sequence : {0u, 1u}) {
      int32_t token = (i * 7 + int(sequence) * 5) % 64;
      REQUIRE(handles.run({sequence}, {token}) == PLANRT_OK);
      CHECK(handles.logits(0) == oracles[sequence].step(token));
    }
  CHECK_EQ(handles.run({0, 1}, {1, 2}), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "a step of 2 sequences, program \"decode_n1\" has 1 rows");
}

TEST(memory_figures) {
  Handles handles;
  REQUIRE(handles.open());
  planrt_memory memory = {};
  memory.size = sizeof memory;
  CHECK_EQ(planrt_step_memory(handles.step, &memory, nullptr), PLANRT_OK);
  CHECK_EQ(memory.weights, 128u + 65536 + 16);
  CHECK_EQ(memory.host_weights, 8192u);
  CHECK_EQ(memory.states, 2u * 2 * 256);
  CHECK_EQ(memory.kv, 2u * 4 * 32);
  CHECK_EQ(memory.workspace, 2048u);
  CHECK_EQ(memory.scratch, 16u);
}

TEST(refusals_change_nothing) {
  Handles handles;
  REQUIRE(handles.open());
  auto refused = [&](std::vector<uint32_t> sequences, std::vector<int32_t> tokens,
                     planrt_status status, const char *message) {
    CHECK_EQ(handles.run(sequences, tokens), status);
    CHECK_CONTAINS(handles.message, message);
  };
  refused({0}, {64}, PLANRT_ERR_INPUT, "token 64 of sequence 0 is outside the vocabulary of 64");
  refused({0, 1}, {5, -1}, PLANRT_ERR_INPUT, "token -1 of sequence 1 is outside");
  refused({2}, {5}, PLANRT_ERR_ARGUMENT, "there is no sequence 2, the session has 2 of 2");
  refused({1, 1}, {5, 6}, PLANRT_ERR_ARGUMENT, "sequence 1 is in the step twice");
  refused({0, 1, 0}, {1, 2, 3}, PLANRT_ERR_ARGUMENT, "a step of 3 sequences");
  compareWithOracle(handles);
  for (int i = 40; i < 64; ++i)
    REQUIRE(handles.run({1}, {0}) == PLANRT_OK);
  refused({0, 1}, {0, 0}, PLANRT_ERR_INPUT, "sequence 1 has 64 tokens, which is all the context");
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 27);
}

TEST(kv_blocks_run_out) {
  Handles handles;
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.sequences = 2;
  options.kv_tokens = 16; // and one block more, since two sequences may both have begun one
  REQUIRE(handles.open(&options));
  for (int i = 0; i < 16; ++i)
    REQUIRE(handles.run({0, 1}, {i, i}) == PLANRT_OK);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_EXHAUSTED);
  CHECK_CONTAINS(handles.message, "sequence 0 needs a KV block, all 2 of the session are taken");
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 16);
  // The other sequence's block becomes free, and is used.
  CHECK_EQ(planrt_sequence_truncate(handles.session, 1, 0, nullptr), PLANRT_OK);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_OK);
}

TEST(logits_need_a_step) {
  Handles handles;
  REQUIRE(handles.open());
  handles.logits(0);
  CHECK_CONTAINS(handles.message, "there is no row 0, the last step had 0");
  REQUIRE(handles.run({1}, {3}) == PLANRT_OK);
  handles.logits(1);
  CHECK_CONTAINS(handles.message, "there is no row 1, the last step had 1");
  float few[8];
  CHECK_EQ(planrt_step_logits(handles.step, 0, few, 8, nullptr), PLANRT_ERR_ARGUMENT);
}

/// Runs one step under a visitor.
static planrt_status visit(Handles &handles, std::vector<uint32_t> sequences,
                           std::vector<int32_t> tokens,
                           std::function<int(const planrt_launch &, int)> visitor) {
  planrt_error *error = nullptr;
  auto call = [](void *user, const planrt_launch *launch, int done) {
    return (*static_cast<std::function<int(const planrt_launch &, int)> *>(user))(*launch, done);
  };
  handles.take(planrt_step_run_visited(handles.step, uint32_t(sequences.size()), sequences.data(),
                                       tokens.data(), nullptr, call, &visitor, &error),
               error);
  return handles.status;
}

TEST(visitor_sees_every_group) {
  Handles handles;
  REQUIRE(handles.open());
  Oracle oracle;
  std::string order;
  std::vector<uint16_t> h(128), logits(128);
  std::vector<float> state(2 * 2 * 64);
  std::vector<int32_t> ids(2);
  auto visitor = [&](const planrt_launch &launch, int done) {
    order += fmt::format("{}{} ", launch.group, done ? "+" : "-");
    auto read = [&](const char *edge, void *out, uint64_t bytes) {
      return planrt_step_buffer_read(handles.step, edge, out, bytes, nullptr);
    };
    if (launch.group == 0 && !done) {
      CHECK_EQ(read("token_ids", ids.data(), 8), PLANRT_OK);
      CHECK_EQ(read("embed.h", h.data(), 256), PLANRT_ERR_ARGUMENT);
    }
    if (launch.group == 1) {
      CHECK_EQ(std::string(launch.kernel), "sum_state");
      CHECK_EQ(read("embed.h", h.data(), 256), PLANRT_OK);
      CHECK_EQ(read("embed.h", h.data(), 255), PLANRT_ERR_ARGUMENT);
    }
    if (launch.group == 2)
      CHECK(!launch.kernel);
    if (launch.group == 3 && done) {
      CHECK_EQ(read("head.logits", logits.data(), 256), PLANRT_OK);
      CHECK_EQ(read("embed.h", h.data(), 256), PLANRT_ERR_ARGUMENT);
      CHECK_EQ(planrt_session_state_read(handles.session, "l0.acc", 0, state.data(), 1024, nullptr),
               PLANRT_OK);
    }
    return 0;
  };
  REQUIRE(visit(handles, {1}, {9}, visitor) == PLANRT_OK);
  CHECK_EQ(order, "0- 0+ 1- 1+ 2- 2+ 3- 3+ 4- 4+ ");
  CHECK_EQ(ids[0], 9);
  std::vector<float> expected = oracle.step(9);
  CHECK(handles.logits(0) == expected);
  CHECK_EQ(sample::widen(logits[5]), expected[5]);
  CHECK(handles.run({1}, {10}) == PLANRT_OK);
  CHECK(handles.logits(0) == oracle.step(10));
}

TEST(visitor_that_ends_the_step_commits_nothing) {
  Handles handles;
  REQUIRE(handles.open());
  Oracle oracle;
  for (int i = 0; i < 16; ++i) {
    REQUIRE(handles.run({0}, {i}) == PLANRT_OK);
    oracle.step(i);
  }
  CHECK_EQ(visit(handles, {0}, {50},
                 [](const planrt_launch &l, int done) { return l.group == 3 && done; }),
           PLANRT_ERR_CANCELLED);
  CHECK_CONTAINS(handles.message, "the visitor ended the step after group 3 (rule_cache_sum)");
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 16);
  for (int i = 16; i < 40; ++i) {
    REQUIRE(handles.run({0}, {i}) == PLANRT_OK);
    CHECK(handles.logits(0) == oracle.step(i));
  }
}

/// Half of the threads share the weights too, the others bind their own at once.
TEST(threads_share_bundle_device_and_weights) {
  if (std::string_view(sample::deviceName()) == "cuda")
    return; // the fake driver is for one thread
  Handles shared;
  REQUIRE(shared.open());
  std::vector<std::string> problems(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < problems.size(); ++t)
    threads.emplace_back([&, t] {
      planrt_weights *own = nullptr;
      planrt_session *session = nullptr;
      planrt_step *step = nullptr;
      Oracle oracle;
      uint32_t sequence = 7;
      if ((t % 2 && planrt_weights_open(shared.bundle, shared.device, sample::checkpoint().c_str(),
                                        nullptr, &own, nullptr)) ||
          planrt_session_open(own ? own : shared.weights, nullptr, &session, nullptr) ||
          planrt_sequence_create(session, &sequence, nullptr) ||
          planrt_step_open(session, nullptr, nullptr, &step, nullptr))
        problems[t] = "cannot open";
      for (int i = 0; problems[t].empty() && i < 20; ++i) {
        int32_t token = int32_t(i * 3 + int(t) * 7) % 64, next = -1;
        if (planrt_step_run(step, 1, &sequence, &token, &next, nullptr))
          problems[t] = "cannot run";
        else if (next != Oracle::argmax(oracle.step(token)))
          problems[t] = "wrong token";
      }
      planrt_step_free(step);
      planrt_session_free(session);
      planrt_weights_free(own);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &problem : problems)
    CHECK_EQ(problem, "");
}
