//===- WrapperTest.cpp - planrt.h for C++ ---------------------------------------===//
//
// The wrapper adds only ownership and exceptions; both are seen here once.
//
//===----------------------------------------------------------------------===//
#include "include/planrt/planrt.hpp"
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

TEST(wrapper_runs_a_step) {
  planrt::Bundle bundle(sample::writeBundleFile());
  REQUIRE(bundle.programs().size() == 1);
  CHECK_EQ(bundle.programs()[0].vocab, 64);
  CHECK_EQ(std::string(bundle.programs()[0].name), "decode_n2");
  planrt::Device device(sample::deviceName());
  planrt::Weights weights(bundle, device, sample::checkpoint());
  planrt::Session session(weights);
  planrt::Step step(session);
  uint32_t sequence = session.create();
  CHECK_EQ(sequence, 0u);
  sample::Oracle oracle;
  std::vector<float> expected = oracle.step(5);
  CHECK(step.run({0}, {5}) == std::vector<int32_t>{sample::Oracle::argmax(expected)});
  CHECK(step.logits(0, 64) == expected);
  CHECK_EQ(session.length(0), 1);
  CHECK(device.findings().empty() && device.counters().empty());
  // Greedy, in two halves.
  expected = oracle.step(sample::Oracle::argmax(expected));
  step.begin({0});
  CHECK(step.wait() == std::vector<int32_t>{sample::Oracle::argmax(expected)});
  CHECK(step.logits(0, 64) == expected);
  session.truncate(0, 0);
  CHECK_EQ(session.length(0), 0);
  CHECK_EQ(session.usage().free_sequences, 0u);
  session.free(0);
  CHECK_EQ(session.usage().free_sequences, 1u);
  CHECK_EQ(session.length(0), -1);
}

TEST(wrapper_throws) {
  try {
    planrt::Bundle bundle("/no/such/file");
    check::fail(__FILE__, __LINE__, "opened a bundle that is not there");
  } catch (const planrt::Error &error) {
    CHECK_EQ(error.status(), PLANRT_ERR_INPUT);
    CHECK_CONTAINS(error.what(), "/no/such/file: cannot open");
  }
}
