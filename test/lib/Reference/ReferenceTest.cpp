//===- ReferenceTest.cpp - the cases that a model never meets --------------===//
//
// The fixture shows that ordinary numbers are right; here are the edges of each definition.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "test/unit/Check.h"

#include <cmath>

using namespace planc::reference;

static const double kNan = std::nan("");

#define REQUIRE_OK(Value)                                                                          \
  do {                                                                                             \
    if (!(Value).ok())                                                                             \
      return check::fail(__FILE__, __LINE__, (Value).error().message);                             \
  } while (false)

static std::vector<double> topK(const std::vector<double> &logits, std::vector<double> &weights) {
  TestKernel kernel(
      "%l: tensor<1x8xbf16>",
      "%w, %i = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score f32>"
      " : (tensor<1x8xbf16>) -> (tensor<1x3xf32>, tensor<1x3xi32>)\n"
      "plan.yield %w, %i : tensor<1x3xf32>, tensor<1x3xi32>");
  auto evaluation = kernel.bf16(logits).run();
  if (!evaluation.ok())
    return {};
  weights = evaluation->output(0).stored;
  return evaluation->output(1).stored;
}

TEST(top_k_takes_the_lower_id_of_equal_logits) {
  std::vector<double> weights;
  CHECK(topK({1, 2, 2, 0, 2, 2, 1, 1}, weights) == std::vector<double>{1, 2, 4});
  CHECK_EQ(weights[0], f32(1 / 3.0));
  CHECK(topK({0, 0, 0, 0, 0, 0, 0, 0}, weights) == std::vector<double>{0, 1, 2});
}

TEST(top_k_orders_nan_below_every_number) {
  std::vector<double> weights;
  CHECK(topK({kNan, -1, kNan, -2, kNan, -3, kNan, kNan}, weights) == std::vector<double>{1, 3, 5});
  CHECK(topK({kNan, kNan, kNan, -2, kNan, kNan, kNan, kNan}, weights) ==
        std::vector<double>{3, 0, 1});
}

TEST(argmax_takes_the_first_maximum_and_0_of_nothing_but_nan) {
  auto run = [](const std::vector<double> &logits) {
    TestKernel kernel("%l: tensor<1x4xbf16>",
                      "%t = plan.argmax %l precision<act = bf16, out = [i32]> steps<compare bf16>"
                      " : (tensor<1x4xbf16>) -> tensor<1xi32>\nplan.yield %t : tensor<1xi32>");
    auto evaluation = kernel.bf16(logits).run();
    return evaluation.ok() ? evaluation->output(0).stored[0] : -1;
  };
  CHECK_EQ(run({1, 3, 3, 2}), 1);
  CHECK_EQ(run({kNan, -3, kNan, -2}), 3);
  CHECK_EQ(run({kNan, kNan, kNan, kNan}), 0);
}

static TestKernel attention(int32_t length) {
  TestKernel kernel = pagedAttentionKernel();
  kernel.bf16({1, 0, 0, 0}).bf16({9, 9}).bf16({9, 9}).i32({1, 0}).i32({length});
  // Blocks of two positions; the sequence begins in block 1.
  kernel.bf16({7, 7, 7, 7, 0, 0, 0, 0}).bf16({5, 6, 100, 100, 1, 2, 3, 4});
  return kernel;
}

TEST(attention_ends_inside_a_block_and_at_nothing) {
  Options options;
  options.kvBlock = 2;
  TestKernel three = attention(3);
  auto evaluation = three.run({}, options);
  REQUIRE_OK(evaluation);
  // Head 0 sees keys 0, 0, 7 and values (1,2), (3,4), (5,6); head 1 has a zero query: the mean.
  double e = std::exp(7 / std::sqrt(2.0));
  CHECK_EQ(evaluation->output(0).stored[0], bf((1 + 3 + 5 * e) / (2 + e)));
  CHECK_EQ(evaluation->output(0).stored[2], 3);
  TestKernel none = attention(0);
  auto empty = none.run({}, options);
  REQUIRE_OK(empty);
  CHECK(empty->output(0).stored == std::vector<double>(4, 0));
  TestKernel many = attention(5);
  auto refused = many.run({}, options);
  CHECK(!refused.ok());
  CHECK_CONTAINS(refused.error().message, "attends to 5 positions, but its block table holds 4");
}

TEST(kv_write_skips_negative_slots) {
  TestKernel kernel("%k: tensor<2x2xbf16>, %v: tensor<2x2xbf16>, %s: tensor<2xi64>, "
                    "%kc: !plan.state<paged, 1 x 2, bf16>, %vc: !plan.state<paged, 1 x 2, bf16>",
                    "plan.kv_write %k, %v, %s, %kc, %vc precision<act = bf16> steps<cache bf16> : "
                    "(tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2xi64>, "
                    "!plan.state<paged, 1 x 2, bf16>, !plan.state<paged, 1 x 2, bf16>) -> ()");
  kernel.bf16({1, 2, 3, 4}).bf16({5, 6, 7, 8}).i64({-1, 2});
  kernel.bf16(std::vector<double>(8, 0)).bf16(std::vector<double>(8, 0));
  auto evaluation = kernel.run();
  REQUIRE_OK(evaluation);
  CHECK_EQ(evaluation->states.size(), 2u);
  auto *keys = static_cast<uint16_t *>(kernel.arguments[3].data);
  for (int i = 0; i < 8; ++i)
    CHECK_EQ(bf16ToFloat(keys[i]), i == 4 ? 3 : i == 5 ? 4 : 0);
}

static TestKernel recurrence(double decay, int32_t in, int32_t out) {
  TestKernel kernel(
      "%x: tensor<1x6xf32>, %d: tensor<1x1xf32>, %b: tensor<1x1xf32>, %i: tensor<1xi32>, "
      "%o: tensor<1xi32>, %s: !plan.state<slots, 1 x 2 x 2, f32>",
      "%c = plan.gdn_recurrence %x, %d, %b, %i, %o, %s precision<act = f32, out = [f32]>"
      " steps<state f32, compute f32> : (tensor<1x6xf32>, tensor<1x1xf32>, tensor<1x1xf32>, "
      "tensor<1xi32>, tensor<1xi32>, !plan.state<slots, 1 x 2 x 2, f32>) -> tensor<1x2xf32>\n"
      "plan.yield %c : tensor<1x2xf32>");
  kernel.f32({1, 0, 0, 1, 5, 7}).f32({decay}).f32({0.5}).i32({in}).i32({out});
  kernel.f32({1e6, 2e6, 3, 4, 0, 0, 0, 0});
  return kernel;
}

TEST(the_recurrence_clamps_the_decay) {
  TestKernel kernel = recurrence(1, 0, 1);
  auto evaluation = kernel.run();
  REQUIRE_OK(evaluation);
  double g = 0x1.ffffdep-1; // the f32 nearest to 1 - 1e-6
  auto *state = static_cast<float *>(kernel.arguments[5].data);
  CHECK_EQ(state[4], float(1e6 * g)); // its key is 0: only decays
  CHECK_EQ(state[6], float(3 * g + (5 - 3 * g) * 0.5));
  CHECK_EQ(state[0], 1e6f); // the slot it read is as it was
  CHECK_EQ(evaluation->output(0).stored[0], f32(1e6 * g / std::sqrt(2.0)));
  TestKernel low = recurrence(0, 0, 1);
  REQUIRE_OK(low.run());
  CHECK_EQ(static_cast<float *>(low.arguments[5].data)[4], 1.0f);
}

TEST(slot_minus_1_reads_zeros_and_writes_nothing) {
  TestKernel kernel = recurrence(0.5, -1, -1);
  auto evaluation = kernel.run();
  REQUIRE_OK(evaluation);
  CHECK(evaluation->states.empty());
  CHECK_EQ(static_cast<float *>(kernel.arguments[5].data)[0], 1e6f);
  CHECK_EQ(evaluation->output(0).stored[0], 0); // k is orthogonal to q and the state was zero
  TestKernel outside = recurrence(0.5, 0, 2);
  auto refused = outside.run();
  CHECK(!refused.ok());
  CHECK_CONTAINS(refused.error().message, "writes slot 2, but the pool has 2");
}

TEST(rope_rounds_the_angle_as_f32_does) {
  TestKernel kernel(
      "%q: tensor<1x4xbf16>, %k: tensor<1x4xbf16>, %p: tensor<3x1xi32>",
      "%a, %b = plan.rope %q, %k, %p precision<act = bf16, out = [bf16, bf16]> steps<compute f32>"
      " {head_dim = #plan.dim<4>, rotary_dim = 4 : i64, theta = 1.0e+07 : f64, "
      "sections = array<i64: 1, 1, 0>} : (tensor<1x4xbf16>, tensor<1x4xbf16>, tensor<3x1xi32>) -> "
      "(tensor<1x4xbf16>, tensor<1x4xbf16>)\nplan.yield %a, %b : tensor<1x4xbf16>, "
      "tensor<1x4xbf16>");
  // Pair 0 turns by the t stream, pair 1 by the h stream.
  auto evaluation = kernel.bf16({1, 1, 0, 0}).bf16({0, 0, 1, 1}).i32({262143, 262141, 5}).run();
  REQUIRE_OK(evaluation);
  float slow = float(std::pow(1e7, -0.5)), angle = 262141.0f * slow;
  CHECK(double(angle) != 262141 * std::pow(1e7, -0.5));
  CHECK_EQ(evaluation->output(0).exact[0], std::cos(262143.0));
  CHECK_EQ(evaluation->output(0).exact[1], std::cos(double(angle)));
  CHECK_EQ(evaluation->output(0).exact[3], std::sin(double(angle)));
  CHECK_EQ(evaluation->output(1).exact[1], -std::sin(double(angle)));
}

static const std::string kAddNormArguments =
    "%x: tensor<1x4xbf16>, %o: tensor<1x4xbf16>, %w: !plan.weight<4, bf16>";
static std::string addNorm(const std::string &act) {
  return "%y = plan.residual_add %x, %o precision<act = bf16, out = [bf16]> steps<compute f32> : "
         "(tensor<1x4xbf16>, tensor<1x4xbf16>) -> tensor<1x4xbf16>\n"
         "%n = plan.rms_norm %y, %w precision<act = " +
         act +
         ", out = [bf16]> steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32} : "
         "(tensor<1x4xbf16>, !plan.weight<4, bf16>) -> tensor<1x4xbf16>\n"
         "plan.yield %y, %n : tensor<1x4xbf16>, tensor<1x4xbf16>";
}

TEST(a_held_sum_is_squared_unrounded_and_scaled_rounded) {
  std::vector<double> x{256, 1, 1, 1}, o{0.9375, 0, 0, 0}; // 256.9375 is stored as 256 or 258
  double y = bf(256.9375);
  for (bool held : {false, true}) {
    TestKernel kernel(kAddNormArguments, addNorm(held ? "f32" : "bf16"));
    auto evaluation = kernel.bf16(x).bf16(o).bf16({0, 0, 0, 0}).run();
    REQUIRE_OK(evaluation);
    double s = held ? 256.9375 : y;
    double r = 1 / std::sqrt((s * s + 3) / 4 + double(1e-6f));
    CHECK_EQ(evaluation->output(0).stored[0], y);
    CHECK_EQ(evaluation->output(0).exact[0], 256.9375);
    CHECK(std::fabs(evaluation->output(1).exact[0] - y * r) < 1e-14);
  }
}

TEST(readers_follow_what_a_device_stored) {
  TestKernel kernel(kAddNormArguments, addNorm("bf16"));
  kernel.bf16({1, 2, 3, 4}).bf16({0, 0, 0, 0}).bf16({0, 0, 0, 0});
  std::vector<uint16_t> own;
  for (double value : {2.0, 2.0, 2.0, 2.0})
    own.push_back(bf16FromDouble(value));
  std::vector<Argument> observed{{own.data(), 8}, {}};
  auto evaluation = kernel.run(observed);
  REQUIRE_OK(evaluation);
  CHECK_EQ(evaluation->output(0).exact[3], 4);
  CHECK(std::fabs(evaluation->output(1).exact[3] - 1) < 1e-6);
}

TEST(compare_finds_a_wrong_element_and_a_stray_write) {
  TestKernel kernel = recurrence(0.5, 0, 1), device = recurrence(0.5, 0, 1);
  auto right = device.run();
  REQUIRE_OK(right);
  std::vector<float> core(right->output(0).stored.begin(), right->output(0).stored.end());
  std::vector<Argument> outputs{{core.data(), 8}};
  std::vector<Argument> states(6);
  states[5] = device.arguments[5];
  auto *pool = static_cast<float *>(device.arguments[5].data);
  mlir::Operation *region = kernel.plan->kernel("k");
  auto run = [&] {
    return compare(region, {kernel.arguments, outputs, states}, kernel.arithmetic());
  };

  auto report = run();
  REQUIRE_OK(report);
  CHECK(report->passed());
  core[1] *= 1.01f;
  report = run();
  CHECK(!report->passed());
  CHECK_CONTAINS(describe(report->edges[0]), "1 of 2 outside their bound, first [0, 1]");
  core[1] /= 1.01f;
  pool[7] += 1;
  CHECK_CONTAINS(describe(run()->edges[1]), "state at element 4");
  CHECK(!run()->passed());
  pool[7] -= 1;
  pool[3] += 1; // the slot that was only read
  report = run();
  CHECK(!report->passed());
  CHECK_CONTAINS(report->edges[1].edge, "argument 5 outside of what is written");
}

TEST(unseen_logits_that_are_close_may_rank_either_way) {
  auto slackOf = [](const std::vector<double> &weights, std::span<const Argument> observed) {
    TestKernel kernel("%x: tensor<1x1xbf16>, %m: !plan.weight<3 x 1, bf16>",
                      "%l = plan.router %x, %m precision<weight = bf16, act = bf16, out = [bf16]> "
                      "steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale "
                      "none> : (tensor<1x1xbf16>, !plan.weight<3 x 1, bf16>) -> tensor<1x3xbf16>\n"
                      "%w, %i = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score "
                      "f32> : (tensor<1x3xbf16>) -> (tensor<1x1xf32>, tensor<1x1xi32>)\n"
                      "plan.yield %l, %i : tensor<1x3xbf16>, tensor<1x1xi32>");
    auto evaluation = kernel.bf16({1}).bf16(weights).run(observed);
    return evaluation.ok() ? evaluation->output(1).slack[0] : -1;
  };
  CHECK_EQ(slackOf({1, 2, 3}, {}), 0);
  CHECK(slackOf({1, 3, 3}, {}) > 0);
  std::vector<uint16_t> own(3, 0x3F80);
  std::vector<Argument> observed{{own.data(), 6}, {}};
  CHECK_EQ(slackOf({1, 3, 3}, observed), 0);
}

TEST(arguments_that_do_not_fit_are_refused) {
  TestKernel kernel(kAddNormArguments, addNorm("bf16"));
  auto few = kernel.bf16({1, 2, 3, 4}).bf16({0, 0, 0, 0}).run();
  CHECK(!few.ok());
  CHECK_CONTAINS(few.error().message, "2 arguments given, the region has 3");
  auto small = kernel.bf16({0, 0}).run();
  CHECK(!small.ok());
  CHECK_CONTAINS(small.error().message, "argument 2: a weight of 4 bytes given, 8 needed");
}

TEST(block_scales_follow_rows_columns_and_experts) {
  TestKernel kernel(
      "%x: tensor<1x256xbf16>, %i: tensor<1x1xi32>, %w: !plan.weight<2 x 256 x 256, "
      "fp8_block128x128>",
      "%y = plan.expert_gate_up %x, %i, %w precision<weight = fp8_block128x128, act = bf16, out = "
      "[bf16]> steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, "
      "scale f32> : (tensor<1x256xbf16>, tensor<1x1xi32>, !plan.weight<2 x 256 x 256, "
      "fp8_block128x128>) -> tensor<1x256xbf16>\nplan.yield %y : tensor<1x256xbf16>");
  std::vector<double> x(256, 0);
  x[0] = 1, x[200] = 1;
  kernel.bf16(x).i32({1});
  kernel.argument(std::vector<uint8_t>(2 * 256 * 256, 0x38)); // 1.0 everywhere
  std::vector<float> scales{-1, -1, -1, -1, 1, 10, 100, 1000};
  kernel.arguments.back().scales = scales.data();
  auto evaluation = kernel.run();
  REQUIRE_OK(evaluation);
  CHECK_EQ(evaluation->output(0).exact[127], 11);
  CHECK_EQ(evaluation->output(0).exact[128], 1100);
  CHECK_EQ(evaluation->output(0).magnitude[128], 1100);
}

CHECK_MAIN
