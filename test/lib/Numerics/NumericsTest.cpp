//===- NumericsTest.cpp - bounds against what f32 really does ---------------===//
//
// Each formula is held against sums and functions carried out in f32, or truncated as a tensor core
// may, whose exact value is known from 80-bit arithmetic: random numbers, numbers of all sizes, and
// numbers chosen so that every rounding goes the same way, which a bound must cover and should
// nearly be reached by.
//
//===----------------------------------------------------------------------===//

#include "lib/Numerics/Bound.h"
#include "test/unit/Check.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <random>

using namespace planc::numerics;
using enum LevelKind;

namespace {
struct Term {
  float x, w;
};
} // namespace

static long double exactSum(const std::vector<Term> &terms) {
  long double sum = 0;
  for (Term term : terms)
    sum += (long double)(term.x) * term.w;
  return sum;
}

static double magnitudeOf(const std::vector<Term> &terms) {
  double sum = 0;
  for (Term term : terms)
    sum += std::fabs(double(term.x) * term.w);
  return sum;
}

/// Ordinary, of all sizes, and all of one sign.
static std::vector<Term> randomTerms(std::mt19937 &random, size_t count, int kind) {
  std::normal_distribution<float> normal;
  std::vector<Term> terms(count);
  for (Term &term : terms) {
    term = {normal(random), normal(random)};
    if (kind == 1)
      term.x = std::ldexp(term.x, int(random() % 40) - 20);
    if (kind == 2)
      term = {std::fabs(term.x), std::fabs(term.w)};
  }
  return terms;
}

/// Pairwise, the halves of an index bit at a time.
static float addPairwise(std::vector<float> values) {
  for (size_t n = values.size(); n > 1; n = (n + 1) / 2)
    for (size_t i = 0; i < n / 2; ++i)
      values[i] = values[i] + values[(n + 1) / 2 + i];
  return values[0];
}

/// Fraction of the bound of `part` that `sum` needs.
static double needed(const Part &part, const std::vector<Term> &terms, float sum) {
  double error = std::fabs(double((long double)(sum)-exactSum(terms)));
  return error / (planc::numerics::gamma(roundings(part)) * magnitudeOf(terms));
}

/// What a lane's chain, the lanes' tree and the splits' chain give, as a gemv does it.
static float gemv(const std::vector<Term> &terms, size_t serial, size_t lanes) {
  std::vector<float> splits;
  for (size_t begin = 0; begin < terms.size(); begin += serial * lanes) {
    std::vector<float> sums;
    for (size_t lane = 0; lane < lanes; ++lane) {
      float sum = 0;
      for (size_t i = 0; i < serial; ++i)
        sum = std::fma(terms[begin + lane * serial + i].x, terms[begin + lane * serial + i].w, sum);
      sums.push_back(sum);
    }
    splits.push_back(addPairwise(sums));
  }
  float sum = splits[0];
  for (size_t i = 1; i < splits.size(); ++i)
    sum = sum + splits[i];
  return sum;
}

TEST(a_tree_of_fma_chains_stays_inside) {
  std::mt19937 random(1);
  Part part = sum("dot", {{fused, 16}, {tree, 32}, {chain, 4}});
  CHECK_EQ(roundings(part), 16u + 5 + 3);
  double worst = 0;
  for (int round = 0; round < 600; ++round) {
    auto terms = randomTerms(random, 16 * 32 * 4, round % 3);
    worst = std::max(worst, needed(part, terms, gemv(terms, 16, 32)));
  }
  CHECK(worst <= 1);
  CHECK(worst > 1e-3);
}

TEST(a_chain_whose_roundings_all_go_up_needs_nearly_all) {
  // 1 + u * (1 + 2^-10) rounds up to 1 + 2u: each addition gains nearly u, and so on.
  std::vector<Term> terms{{1, 1}};
  float sum = 1;
  for (int i = 1; i < 1000; ++i) {
    float ulp = std::nextafter(sum, 2.0f) - sum;
    terms.push_back({ulp / 2 * (1 + 0x1p-10f), 1});
    sum = std::fma(terms.back().x, 1.0f, sum);
  }
  double fraction = needed(planc::numerics::sum("dot", {{fused, 1000}}), terms, sum);
  CHECK(fraction <= 1);
  CHECK(fraction > 0.9);
}

TEST(a_product_rounded_by_itself_is_one_more) {
  std::mt19937 random(2);
  Part part = sum("squares", {{product, 1}, {tree, 256}});
  CHECK_EQ(roundings(part), 9u);
  for (int round = 0; round < 600; ++round) {
    auto terms = randomTerms(random, 256, round % 3);
    std::vector<float> values;
    for (Term term : terms)
      values.push_back(term.x * term.w);
    CHECK(needed(part, terms, addPairwise(values)) <= 1);
  }
  CHECK_EQ(roundings(sum("x", {{tree, 1}})), 0u);
  CHECK_EQ(roundings(sum("x", {{tree, 2}})), 1u);
  CHECK_EQ(roundings(sum("x", {{tree, 33}})), 6u);
  CHECK_EQ(roundings(sum("x", {{chain, 1}})), 0u);
}

/// Toward zero at 24 bits.
static double truncated(double value) {
  if (value == 0)
    return 0;
  double unit = std::ldexp(1.0, std::ilogb(value) - 23);
  return std::trunc(value / unit) * unit;
}

/// One mma: the accumulator and 16 products, added in any order, every addition truncated.
static float mmaOf(float sum, std::vector<double> products, std::mt19937 &random) {
  products.push_back(sum);
  std::ranges::shuffle(products, random);
  double total = 0;
  for (double term : products)
    total = truncated(total + term);
  return float(total);
}

TEST(an_mma_in_any_order_that_truncates_stays_inside) {
  std::mt19937 random(3);
  Part part = sum("dot", {{mma, 128}, {fused, 2}, {chain, 8}});
  CHECK_EQ(roundings(part), 2u * 127 + 2 + 7);
  double worst = 0;
  for (int round = 0; round < 300; ++round) {
    // Factors of 8 bits, so that products are exact as they are on bf16.
    auto terms = randomTerms(random, 128 * 2 * 8, round % 3);
    for (Term &term : terms)
      for (float *factor : {&term.x, &term.w})
        *factor = std::bit_cast<float>(std::bit_cast<uint32_t>(*factor) & 0xFFFF0000);
    float total = 0;
    for (size_t split = 0; split < 8; ++split) {
      float outer = 0;
      for (size_t step = 0; step < 2; ++step) {
        float sum = 0;
        for (size_t i = 0; i < 128; i += 16) {
          std::vector<double> products;
          for (size_t k = i; k < i + 16; ++k) {
            const Term &term = terms[(split * 2 + step) * 128 + k];
            products.push_back(double(term.x) * term.w);
          }
          sum = mmaOf(sum, products, random);
        }
        outer = std::fma(1.0f, sum, outer);
      }
      total = split ? total + outer : outer;
    }
    worst = std::max(worst, needed(part, terms, total));
  }
  CHECK(worst <= 1);
  CHECK(worst > 1e-2); // truncation of numbers of one sign goes one way
}

TEST(a_sum_of_positive_numbers_that_truncates_needs_a_good_part) {
  // Each addition loses almost one unit of the last place: 1 + (2u - tiny).
  std::vector<Term> terms{{1, 1}};
  double sum = 1;
  for (int i = 1; i < 128; ++i) {
    terms.push_back({float(0x1p-23 * (1 - 0x1p-10)), 1});
    sum = truncated(sum + terms.back().x);
  }
  double fraction = needed(planc::numerics::sum("dot", {{mma, 128}}), terms, float(sum));
  CHECK(fraction <= 1);
  CHECK(fraction > 0.9);
}

TEST(merging_depends_on_how_many_pieces_there_are) {
  Part values = sum("values", {{fused, 16}, {chain, 8}, {merge, 16, 128}});
  CHECK_EQ(roundings(values, 3), 3u + 2);
  CHECK_EQ(roundings(values, 128), 16u + 7);
  CHECK_EQ(merges(values, 128), 0u);
  CHECK_EQ(roundings(values, 129), 16u + 7 + 2);
  CHECK_EQ(merges(values, 129), 1u);
  CHECK_EQ(roundings(values, 128 * 17), 16u + 7 + 16 + 2);
  CHECK_EQ(merges(values, 128 * 17), 2u);
}

TEST(a_bf16_accumulator_is_far_outside) {
  std::mt19937 random(4);
  auto terms = randomTerms(random, 2048, 0);
  float sum = 0;
  for (Term term : terms) {
    sum = std::fma(term.x, term.w, sum);
    auto bits = std::bit_cast<uint32_t>(sum);
    sum = std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
  }
  CHECK(needed(planc::numerics::sum("dot", {{fused, 64}, {tree, 32}}), terms, sum) > 10);
  CHECK(needed(planc::numerics::sum("dot", {{mma, 128}, {fused, 2}, {chain, 8}}), terms, sum) > 10);
}

/// The largest change of `f` over an interval, sampled, as a part of `bound`.
static double reached(const std::function<long double(long double)> &f, double x, double error,
                      double bound) {
  long double most = 0;
  for (int i = -64; i <= 64; ++i)
    most = std::max(most, std::fabs(f((long double)(x) + (long double)(error)*i / 64) - f(x)));
  return double(most / bound);
}

TEST(functions_move_as_far_as_their_arguments_let_them) {
  for (double x : {-80.0, -20.0, -3.0, -0.5, 0.0, 1e-3, 0.7, 4.0, 30.0, 80.0})
    for (double error : {1e-12, 1e-7, 1e-3, 0.25, 3.0}) {
      auto check = [&](auto &&f, Value result, const char *name) {
        if (result.error < 1e-13 * std::fabs(result.value))
          return; // 80 bits would not show it
        double fraction = reached(f, x, error, result.error);
        if (!(fraction <= 1 + 1e-4))
          check::fail(__FILE__, __LINE__,
                      name + std::string(" moves further at ") + check::show(x) + ": " +
                          check::show(fraction));
        if (!(fraction > 0.5))
          check::fail(__FILE__, __LINE__,
                      name + std::string(" does not need that much at ") + check::show(x) + ": " +
                          check::show(fraction));
      };
      check([](long double v) { return std::exp(v); }, exponential({x, error}), "exp");
      check([](long double v) { return 1 / (1 + std::exp(-v)); }, logistic({x, error}), "sigmoid");
      if (x >= 0 && error <= x)
        check([](long double v) { return std::log1p(v); }, logOnePlus({x, error}), "log1p");
      if (x > 2 * error) {
        check([](long double v) { return 1 / v; }, reciprocal({x, error}), "1/x");
        check([](long double v) { return 1 / std::sqrt(v); }, inverseRoot({x, error}), "1/sqrt");
      }
    }
  // What is all but unknown stays a number, or has no bound; it is never no number.
  CHECK_EQ(logistic({-1e15, 1e8}).error, 0);
  CHECK(logistic({0.5, 1e30}).error < 0.7);
  CHECK_EQ(exponential({-1e15, 1e8}).error, 0);
  CHECK(std::isinf(exponential({0, 1e8}).error));
  CHECK_EQ(times({0, 0}, {1, INFINITY}).error, 0);
  CHECK_EQ(atMost({25, 6}, 20).error, 1);
  CHECK(std::fabs(logOnePlus({1, 100}).error - (std::log1p(101) - std::log1p(1))) < 1e-12);
  CHECK(std::isinf(reciprocal({1, 1}).error));
  CHECK(std::isinf(inverseRoot({1, 2}).error));
}

TEST(products_and_roundings_keep_what_their_operands_may_be_off) {
  Value a{3, 0.5}, b{-2, 0.25};
  CHECK_EQ(times(a, b).value, -6);
  CHECK_EQ(times(a, b).error, 3.5 * 2.25 - 6);
  CHECK_EQ(plus(a, b).error, 0.75);
  Value once = rounded({1, 0}, 1);
  CHECK(once.error >= 0x1p-24 && once.error < 0x1.001p-24);
  CHECK_EQ(rounded(a, 0).error, 0.5);
  CHECK(rounded({0, 0}, 2).error > 0); // what underflows is not nothing
  Part sine{"sincos", {}, 0, 23, ""};
  CHECK_EQ(applied(sine, {0.5, 0}).error, 0x1p-23);
}

TEST(a_node_says_everything_and_nothing_else) {
  Node add{"residual_add", {rounding("add", 1)}};
  CHECK_EQ(problemOf(add), "");
  CHECK_EQ(problemOf({"split", {}}), "");
  CHECK_CONTAINS(problemOf({"residual_add", {}}), "does not say how its \"add\" is computed");
  CHECK_CONTAINS(problemOf({"sort", {}}), "\"sort\" is no op");
  CHECK_CONTAINS(problemOf({"split", {rounding("add", 1)}}), "has no part \"add\"");
  add.parts.push_back(rounding("add", 2));
  CHECK_CONTAINS(problemOf(add), "has its part \"add\" twice");
  CHECK_CONTAINS(problemOf({"linear", {sum("dot", {{merge, 16, 0}})}}), "is impossible");
  CHECK_CONTAINS(problemOf({"linear", {sum("dot", {{mma, 0}})}}), "is impossible");
}

TEST(an_explanation_names_the_steps) {
  std::string text =
      explain({"linear", {sum("dot", {{mma, 128}, {fused, 2}, {chain, 8}}, "mma.sync")}});
  CHECK_CONTAINS(text, "linear: |error| <= [dot] * sum |x w s|");
  CHECK_CONTAINS(text, "dot        263 roundings, 1.57e-05  (mma.sync)");
  CHECK_CONTAINS(text, " 254  128 products by mma, any order, additions truncate");
  CHECK_CONTAINS(text, "   7  8 added in order");
}

CHECK_MAIN
