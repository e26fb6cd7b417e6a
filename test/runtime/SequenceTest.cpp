//===- SequenceTest.cpp - the life of sequences -------------------------------===//
//
// Create, fork, truncate, free: what they share and copy, what becomes free, what they refuse. Every
// sequence is compared with an oracle of its own, bit for bit.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

using sample::Handles;
using sample::Oracle;

static planrt_session_options sessionOf(uint32_t sequences) {
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.sequences = sequences;
  return options;
}

static planrt_session_usage usage(const Handles &handles) {
  planrt_session_usage result = {};
  result.size = sizeof result;
  CHECK_EQ(planrt_session_get_usage(handles.session, &result, nullptr), PLANRT_OK);
  return result;
}

/// Frees all sequences that Handles::open has made.
static void freeAll(Handles &handles, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    CHECK_EQ(planrt_sequence_free(handles.session, i, nullptr), PLANRT_OK);
}

static uint32_t create(Handles &handles) {
  uint32_t sequence = ~0u;
  planrt_error *error = nullptr;
  handles.take(planrt_sequence_create(handles.session, &sequence, &error), error);
  return sequence;
}

static uint32_t fork(Handles &handles, uint32_t from) {
  uint32_t sequence = ~0u;
  planrt_error *error = nullptr;
  handles.take(planrt_sequence_fork(handles.session, from, &sequence, &error), error);
  return sequence;
}

static planrt_status truncate(Handles &handles, uint32_t sequence, int64_t length) {
  planrt_error *error = nullptr;
  handles.take(planrt_sequence_truncate(handles.session, sequence, length, &error), error);
  return handles.status;
}

/// One step, each row against its oracle.
static void step(Handles &handles, std::vector<std::pair<uint32_t, Oracle *>> rows, int32_t token) {
  std::vector<uint32_t> sequences;
  std::vector<int32_t> tokens;
  for (auto &[sequence, oracle] : rows) {
    sequences.push_back(sequence);
    tokens.push_back((token + int32_t(sequence) * 5) % 64);
  }
  if (handles.run(sequences, tokens) != PLANRT_OK)
    return check::fail(__FILE__, __LINE__, handles.message);
  for (uint32_t row = 0; row < rows.size(); ++row)
    CHECK(handles.logits(row) == rows[row].second->step(tokens[row]));
}

TEST(sequences_come_and_go) {
  Handles handles;
  planrt_session_options options = sessionOf(3);
  REQUIRE(handles.open(&options));
  CHECK_EQ(usage(handles).free_sequences, 0u);
  create(handles);
  CHECK_EQ(handles.status, PLANRT_ERR_EXHAUSTED);
  CHECK_CONTAINS(handles.message, "the session has all its 3 sequences");
  Oracle oracle;
  for (int i = 0; i < 20; ++i)
    step(handles, {{1, &oracle}}, i);
  planrt_session_usage before = usage(handles);
  CHECK_EQ(before.kv_blocks - before.free_kv_blocks, 2);
  CHECK_EQ(before.slots - before.free_slots, 1u);
  CHECK_EQ(planrt_sequence_free(handles.session, 1, nullptr), PLANRT_OK);
  CHECK_EQ(usage(handles).free_kv_blocks, before.kv_blocks);
  CHECK_EQ(usage(handles).free_slots, before.slots);
  CHECK_EQ(planrt_sequence_length(handles.session, 1), -1);
  CHECK_EQ(handles.run({1}, {0}), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "there is no sequence 1, the session has 2 of 3");
  CHECK_EQ(planrt_sequence_free(handles.session, 1, nullptr), PLANRT_ERR_ARGUMENT);
  CHECK_EQ(planrt_sequence_free(handles.session, 99, nullptr), PLANRT_ERR_ARGUMENT);
  // Its number is the lowest that is free, and nothing of its life is left.
  CHECK_EQ(create(handles), 1u);
  CHECK_EQ(planrt_sequence_length(handles.session, 1), 0);
  Oracle second;
  for (int i = 0; i < 20; ++i)
    step(handles, {{1, &second}}, i + 3);
}

/// Forks in the middle of a block and at its end, of forks, one by one and together.
static void forkAndCompare(bool inPlace) {
  Handles handles(sample::writeManyProgramsFile());
  planrt_session_options options = sessionOf(4);
  options.in_place = inPlace;
  options.slots = inPlace ? 5 : 0; // one more, to step forks of one sequence together
  REQUIRE(handles.open(&options));
  planrt_step_free(handles.step);
  REQUIRE(planrt_step_open(handles.session, "decode_n4", nullptr, &handles.step, nullptr) ==
          PLANRT_OK);
  freeAll(handles, 4);
  for (int length : {0, 1, 5, 16, 17, 31}) {
    Oracle first;
    uint32_t a = create(handles);
    for (int i = 0; i < length; ++i)
      step(handles, {{a, &first}}, i);
    Oracle second = first, third = first;
    uint32_t b = fork(handles, a), c = fork(handles, b);
    CHECK_EQ(planrt_sequence_length(handles.session, c), length);
    planrt_session_usage shared = usage(handles);
    CHECK_EQ(shared.kv_blocks - shared.free_kv_blocks, (length + 15) / 16);
    CHECK_EQ(shared.slots - shared.free_slots, length ? 1u : 0u);
    step(handles, {{b, &second}}, 7);
    step(handles, {{a, &first}, {c, &third}}, 9);
    for (int i = 0; i < 20; ++i)
      step(handles, {{a, &first}, {b, &second}, {c, &third}}, 20 + i);
    planrt_session_usage apart = usage(handles);
    CHECK_EQ(apart.slots - apart.free_slots, 3u);
    for (uint32_t sequence : {a, b, c})
      CHECK_EQ(planrt_sequence_free(handles.session, sequence, nullptr), PLANRT_OK);
    CHECK_EQ(usage(handles).free_kv_blocks, shared.kv_blocks);
    CHECK_EQ(usage(handles).free_slots, shared.slots);
  }
}

TEST(forks_share_until_they_go_on) { forkAndCompare(false); }
TEST(forks_in_place) { forkAndCompare(true); }

TEST(the_last_holder_needs_no_copy) {
  Handles handles;
  planrt_session_options options = sessionOf(2);
  options.kv_tokens = 16; // and one block more for the second sequence
  REQUIRE(handles.open(&options));
  freeAll(handles, 2);
  Oracle first;
  uint32_t a = create(handles);
  for (int i = 0; i < 5; ++i)
    step(handles, {{a, &first}}, i);
  Oracle second = first;
  uint32_t b = fork(handles, a);
  // Two blocks in all: one of the two copies, the other keeps what both had.
  step(handles, {{a, &first}, {b, &second}}, 40);
  CHECK_EQ(usage(handles).free_kv_blocks, 0);
  for (int i = 6; i < 16; ++i)
    step(handles, {{b, &second}, {a, &first}}, i);
  CHECK_EQ(handles.run({a, b}, {1, 1}), PLANRT_ERR_EXHAUSTED);
  // Nothing was taken for the row that came first.
  CHECK_EQ(planrt_sequence_free(handles.session, b, nullptr), PLANRT_OK);
  step(handles, {{a, &first}}, 3);
}

TEST(a_fork_of_a_full_session_is_refused) {
  Handles handles;
  REQUIRE(handles.open());
  fork(handles, 0);
  CHECK_EQ(handles.status, PLANRT_ERR_EXHAUSTED);
  freeAll(handles, 1);
  fork(handles, 0);
  CHECK_EQ(handles.status, PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "there is no sequence 0");
}

TEST(recurrent_states_cannot_go_back) {
  Handles handles;
  REQUIRE(handles.open());
  Oracle oracle;
  for (int i = 0; i < 5; ++i)
    step(handles, {{0, &oracle}}, i);
  CHECK_EQ(truncate(handles, 0, 3), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "cannot be truncated from 5 tokens to 3: state \"l0.acc\" is "
                                  "recurrent and cannot go back; 0 is possible");
  CHECK_EQ(truncate(handles, 0, 6), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "has 5 tokens, it cannot be truncated to 6");
  CHECK_EQ(truncate(handles, 0, -1), PLANRT_ERR_ARGUMENT);
  CHECK_EQ(truncate(handles, 0, 5), PLANRT_OK);
  step(handles, {{0, &oracle}}, 5);
  CHECK_EQ(truncate(handles, 0, 0), PLANRT_OK);
  Oracle again;
  step(handles, {{0, &again}}, 1);
}

TEST(caches_alone_go_back_anywhere) {
  Handles handles(sample::writePagedBundleFile());
  REQUIRE(handles.open());
  Oracle oracle(false);
  for (int i = 0; i < 40; ++i)
    step(handles, {{0, &oracle}}, i);
  planrt_session_usage full = usage(handles);
  CHECK_EQ(full.kv_blocks - full.free_kv_blocks, 3);
  int at = 40;
  for (int length : {39, 33, 32, 17, 16, 3, 0}) {
    CHECK_EQ(truncate(handles, 0, length), PLANRT_OK);
    CHECK_EQ(planrt_sequence_length(handles.session, 0), length);
    planrt_session_usage left = usage(handles);
    CHECK_EQ(left.kv_blocks - left.free_kv_blocks, (length + 15) / 16);
    oracle.truncate(size_t(length));
    step(handles, {{0, &oracle}}, ++at);
    // Greedy has no token to go on with after a truncation.
    CHECK_EQ(truncate(handles, 0, length), PLANRT_OK);
    oracle.truncate(size_t(length));
    uint32_t sequence = 0;
    CHECK_EQ(planrt_step_run(handles.step, 1, &sequence, nullptr, nullptr, nullptr),
             PLANRT_ERR_ARGUMENT);
  }
  // A fork keeps what the truncated one drops.
  freeAll(handles, 2);
  uint32_t a = create(handles);
  Oracle first(false);
  for (int i = 0; i < 20; ++i)
    step(handles, {{a, &first}}, i);
  Oracle second = first;
  uint32_t b = fork(handles, a);
  CHECK_EQ(truncate(handles, a, 10), PLANRT_OK);
  first.truncate(10);
  for (int i = 0; i < 12; ++i)
    step(handles, {{a, &first}, {b, &second}}, 30 + i);
}

TEST(slots_run_out) {
  Handles handles;
  planrt_session_options options = sessionOf(2);
  options.slots = 2;
  handles.open(&options);
  CHECK_EQ(handles.status, PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "2 state slots are too few: 2 sequences need at least 3");
  options.slots = 4000000000u; // refused before anything is made for them
  handles.open(&options);
  CHECK_EQ(handles.status, PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(handles.message, "4000000000 state slots are too many: 2 sequences use at most 4");
  options.slots = 3;
  REQUIRE(handles.open(&options));
  Oracle oracles[2];
  // One after the other there is always a slot to write, together there is none for the second.
  for (int i = 0; i < 3; ++i)
    for (uint32_t sequence : {0u, 1u})
      step(handles, {{sequence, &oracles[sequence]}}, i);
  CHECK_EQ(handles.run({0, 1}, {1, 1}), PLANRT_ERR_EXHAUSTED);
  CHECK_CONTAINS(handles.message, "sequence 1 needs a state slot, all 3 of the session are taken");
  CHECK_EQ(usage(handles).free_slots, 1u);
  step(handles, {{1, &oracles[1]}}, 9);
}
