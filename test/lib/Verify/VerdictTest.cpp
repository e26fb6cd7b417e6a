//===- VerdictTest.cpp - what a worker says arrives -------------------------===//
//
// Verdicts go from worker to parent, and into the cache, as JSON text, which has no infinity.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/VerdictCache.h"
#include "test/unit/Check.h"

#include <limits>

using namespace planc;
using namespace planc::verify;

static Verdict sent(const Verdict &verdict) {
  return verdictFromJson(Json::parse(toJson(verdict).dump()));
}

TEST(a_verdict_arrives) {
  Verdict verdict;
  verdict.name = "blend_h256_n1__0123ab";
  verdict.groups = {7, 9};
  verdict.contract = "reference";
  verdict.worst = 0.25;
  verdict.worstClass = "near_overflow";
  verdict.failures = {{"near_overflow", "first [0, 12]: -inf instead of inf"}};
  Verdict arrived = sent(verdict);
  CHECK_EQ(arrived.name, verdict.name);
  CHECK(arrived.groups == verdict.groups);
  CHECK_EQ(arrived.worst, 0.25);
  CHECK_EQ(arrived.worstClass, verdict.worstClass);
  CHECK_EQ(arrived.failures.at(0).message, verdict.failures[0].message);
}

TEST(an_infinite_error_arrives) {
  Verdict verdict;
  verdict.worst = std::numeric_limits<double>::infinity();
  CHECK_EQ(sent(verdict).worst, verdict.worst);
}

CHECK_MAIN
