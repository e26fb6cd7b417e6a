//===- VerdictTest.cpp - what a worker says arrives -------------------------===//
//
// Verdicts go from worker to parent, and into the cache, as JSON text, which has no infinity. From
// the cache comes what went into it, or nothing.
//
//===----------------------------------------------------------------------===//

#include "lib/Support/File.h"
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

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

static Verdict cachedVerdict() {
  Verdict verdict;
  verdict.name = "top_k_e8_t2_n1__0123ab";
  verdict.groups = {10};
  verdict.contract = "reference";
  verdict.schedule = "select";
  verdict.worst = 0.4375;
  verdict.worstClass = "equal_logits";
  verdict.mutations = {{"wrong_id", "llvm.load #1", "gaussian: other ids"}};
  return verdict;
}

static std::string textOf(const Verdict &verdict) {
  std::string text = toJson(verdict).dump();
  for (const Planted &planted : verdict.mutations)
    text += "\n" + planted.name + ", " + planted.where + ", " + planted.how;
  return text;
}

namespace {
/// A cache with one verdict, and its file.
struct Cached {
  Cached() : cache(options()) { cache.store(key, cachedVerdict()); }
  static Options options() {
    Options options;
    options.cacheDir = check::folder().string();
    return options;
  }

  VerdictCache cache;
  std::string key = "0123456789abcdef";
  std::string path = options().cacheDir + "/verdict-" + key + ".json";
};
} // namespace

TEST(a_verdict_is_found_again) {
  Cached cached;
  auto found = cached.cache.find(cached.key);
  REQUIRE(found.has_value());
  CHECK_EQ(textOf(*found), textOf(cachedVerdict()));
  CHECK(!cached.cache.find("fedcba9876543210"));
}

TEST(a_damaged_verdict_is_none) {
  Cached cached;
  auto file = readFile(cached.path);
  REQUIRE(file.ok());
  std::string whole(asText(*file));
  auto isAsStoredOrNone = [&](const std::string &text) {
    CHECK(writeFile(cached.path, asBytes(text)).ok());
    auto found = cached.cache.find(cached.key);
    return !found || textOf(*found) == textOf(cachedVerdict());
  };
  for (size_t length = 0; length < whole.size(); ++length)
    CHECK(isAsStoredOrNone(whole.substr(0, length)));
  for (size_t at = 0; at < whole.size(); ++at)
    for (char other : {'0', '1', '9', '"', '{', ']', ' ', char(whole[at] ^ 1), char(0xFF)}) {
      std::string damaged = whole;
      damaged[at] = other;
      CHECK(isAsStoredOrNone(damaged));
    }
  for (const char *text : {"null", "1", "[]", "{}", "{\"key\": 1}", "{\"key\": null}",
                           "{\"key\": \"0123456789abcdef\"}"})
    CHECK(isAsStoredOrNone(text));
}

CHECK_MAIN
