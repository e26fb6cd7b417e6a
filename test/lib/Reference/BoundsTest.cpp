//===- BoundsTest.cpp - just inside and just outside of a bound -------------===//
//
// Every family of ops: the outermost number inside an element's bound is accepted, the next one is
// not. And what a broken kernel would do is outside by far: a sum kept in bf16, a tile of k left
// out, one block scale that is wrong.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "test/unit/Check.h"

#include <cmath>
#include <random>

using namespace planc;
using namespace planc::reference;

namespace {
/// A kernel whose outputs a device may have stored; its own are the exact ones.
struct Judged {
  Judged(TestKernel &kernel, std::vector<numerics::Node> arithmetic)
      : kernel(kernel), arithmetic(std::move(arithmetic)) {
    for (const auto &bytes : kernel.memory)
      before.push_back(bytes);
    Result<Evaluation> made =
        evaluate(kernel.plan->kernel("k"), kernel.arguments, options, {}, this->arithmetic);
    restore();
    if (!made.ok()) {
      check::fail(__FILE__, __LINE__, made.error().message);
      return;
    }
    evaluation = std::move(*made);
    for (size_t i = 0; i < evaluation.outputs.size(); ++i)
      stored.push_back(encode(evaluation.output(i)));
  }

  static std::vector<char> encode(const Tensor &tensor) {
    std::vector<char> bytes(tensor.stored.size() * elementBytes(tensor.element));
    for (size_t i = 0; i < tensor.stored.size(); ++i)
      write(bytes, tensor.element, i, tensor.stored[i]);
    return bytes;
  }
  static void write(std::vector<char> &bytes, Element element, size_t i, double value) {
    auto put = [&](auto code) {
      std::memcpy(bytes.data() + i * sizeof(code), &code, sizeof(code));
    };
    switch (element) {
    case Element::BF16:
      return put(bf16FromDouble(value));
    case Element::F32:
      return put(float(value));
    case Element::I32:
      return put(int32_t(value));
    case Element::I64:
      return put(int64_t(value));
    }
  }
  void restore() {
    for (size_t i = 0; i < before.size(); ++i)
      std::copy(before[i].begin(), before[i].end(), kernel.memory[i].begin());
  }

  EdgeReport report(size_t output) {
    std::vector<Argument> outputs;
    for (std::vector<char> &bytes : stored)
      outputs.push_back({bytes.data(), bytes.size()});
    Result<Report> report =
        compare(kernel.plan->kernel("k"), {kernel.arguments, outputs, {}}, arithmetic, options);
    restore();
    if (!report.ok()) {
      check::fail(__FILE__, __LINE__, report.error().message);
      return {};
    }
    return report->edges[output];
  }

  /// Puts an element on the edge of its bound, and past it.
  void probe(size_t output, size_t element) {
    const Tensor &tensor = evaluation.output(output);
    double exact = tensor.exact[element], slack = tensor.slack[element];
    if (!(slack > 0)) {
      check::fail(__FILE__, __LINE__, "element " + std::to_string(element) + " has no bound");
      return;
    }
    auto round = [&](double value) {
      return tensor.element == Element::BF16 ? bf(value) : f32(value);
    };
    auto step = [&](double value, int direction) {
      uint32_t bits = std::bit_cast<uint32_t>(float(value));
      bits += (value >= 0) == (direction > 0) ? (tensor.element == Element::BF16 ? 0x10000 : 1)
                                              : -(tensor.element == Element::BF16 ? 0x10000 : 1);
      return double(std::bit_cast<float>(bits));
    };
    for (int direction : {-1, 1}) {
      double outermost = round(exact + direction * slack);
      std::vector<char> own = stored[output];
      write(stored[output], tensor.element, element, outermost);
      EdgeReport inside = report(output);
      if (inside.failures)
        check::fail(__FILE__, __LINE__, "refused at its edge: " + describe(inside));
      CHECK(inside.worstFraction <= 1);
      write(stored[output], tensor.element, element, step(outermost, direction));
      EdgeReport outside = report(output);
      CHECK_EQ(outside.failures, 1u);
      CHECK(outside.worstFraction > 1);
      stored[output] = own;
    }
  }
  void probe() {
    for (size_t output = 0; output < stored.size(); ++output)
      if (Element element = evaluation.output(output).element;
          element == Element::BF16 || element == Element::F32)
        for (size_t i = 0; i < evaluation.output(output).exact.size(); ++i)
          probe(output, i);
  }

  TestKernel &kernel;
  std::vector<numerics::Node> arithmetic;
  Options options{.kvBlock = 2, .threads = 1};
  Evaluation evaluation;
  std::vector<std::vector<char>> stored, before;
};
} // namespace

static void probe(TestKernel &kernel) {
  CHECK(kernel.plan.ok());
  if (kernel.plan.ok())
    Judged(kernel, kernel.arithmetic()).probe();
}

/// Numbers that look random, none of them zero.
static std::vector<double> numbers(size_t count, double scale = 1, int seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double &value : values)
    value = scale * (normal(random) + 0.01);
  return values;
}

static const std::string kCompute = " steps<compute f32>";

TEST(residual_adds) {
  TestKernel kernel("%x: tensor<1x4xbf16>, %o: tensor<1x4xbf16>",
                    "%y = plan.residual_add %x, %o precision<act = bf16, out = [bf16]>" + kCompute +
                        " : (tensor<1x4xbf16>, tensor<1x4xbf16>) -> tensor<1x4xbf16>\n"
                        "plan.yield %y : tensor<1x4xbf16>");
  probe(kernel.bf16(numbers(4)).bf16(numbers(4, 0.01, 2)));
}

TEST(norms) {
  TestKernel kernel("%x: tensor<1x8xbf16>, %w: !plan.weight<8, bf16>",
                    "%y = plan.rms_norm %x, %w precision<act = bf16, out = [bf16]>" + kCompute +
                        " {eps = 1.0e-06 : f32, offset = 1.0 : f32} : (tensor<1x8xbf16>, "
                        "!plan.weight<8, bf16>) -> tensor<1x8xbf16>\n"
                        "plan.yield %y : tensor<1x8xbf16>");
  probe(kernel.bf16(numbers(8)).bf16(numbers(8, 0.1, 2)));
  TestKernel l2("%x: tensor<1x8xf32>",
                "%y = plan.l2_norm %x precision<act = f32, out = [f32]>" + kCompute +
                    " {heads = #plan.dim<2>, head_dim = #plan.dim<4>, eps = 1.0e-06 : f32} : "
                    "(tensor<1x8xf32>) -> tensor<1x8xf32>\nplan.yield %y : tensor<1x8xf32>");
  probe(l2.f32(numbers(8)));
  TestKernel gated("%x: tensor<1x4xf32>, %z: tensor<1x6xbf16>, %w: !plan.weight<4, bf16>",
                   "%y = plan.gated_rms_norm %x, %z, %w precision<act = f32, out = [bf16]>" +
                       kCompute +
                       " {eps = 1.0e-06 : f32, offset = 0.0 : f32} : (tensor<1x4xf32>, "
                       "tensor<1x6xbf16>, !plan.weight<4, bf16>) -> tensor<1x4xbf16>\n"
                       "plan.yield %y : tensor<1x4xbf16>");
  probe(gated.f32(numbers(4)).bf16(numbers(6, 3, 2)).bf16(numbers(4, 1, 3)));
}

TEST(gates) {
  TestKernel silu("%x: tensor<1x8xbf16>",
                  "%y = plan.silu_mul %x precision<act = bf16, out = [f32]>" + kCompute +
                      " : (tensor<1x8xbf16>) -> tensor<1x4xf32>\nplan.yield %y : tensor<1x4xf32>");
  probe(silu.bf16(numbers(8, 3)));
  TestKernel gate("%x: tensor<1x4xbf16>, %g: tensor<1x4xbf16>",
                  "%y = plan.sigmoid_gate_mul %x, %g precision<act = bf16, out = [bf16]>" +
                      kCompute +
                      " : (tensor<1x4xbf16>, tensor<1x4xbf16>) -> tensor<1x4xbf16>\n"
                      "plan.yield %y : tensor<1x4xbf16>");
  probe(gate.bf16(numbers(4)).bf16(numbers(4, 3, 2)));
  TestKernel gates("%x: tensor<1x4xf32>, %a: !plan.weight<2, f32>, %b: !plan.weight<2, f32>",
                   "%d, %e = plan.gdn_gates %x, %a, %b precision<act = f32, out = [f32, f32]>" +
                       kCompute +
                       " : (tensor<1x4xf32>, !plan.weight<2, f32>, !plan.weight<2, f32>) -> "
                       "(tensor<1x2xf32>, tensor<1x2xf32>)\n"
                       "plan.yield %d, %e : tensor<1x2xf32>, tensor<1x2xf32>");
  probe(gates.f32(numbers(4)).f32(numbers(2, 1, 2)).f32(numbers(2, 1, 3)));
}

TEST(rope) {
  TestKernel kernel("%q: tensor<1x4xbf16>, %k: tensor<1x4xbf16>, %p: tensor<3x1xi32>",
                    "%a, %b = plan.rope %q, %k, %p precision<act = bf16, out = [bf16, bf16]>" +
                        kCompute +
                        " {head_dim = #plan.dim<4>, rotary_dim = 4 : i64, theta = 1.0e+07 : f64, "
                        "sections = array<i64: 1, 1, 0>} : (tensor<1x4xbf16>, tensor<1x4xbf16>, "
                        "tensor<3x1xi32>) -> (tensor<1x4xbf16>, tensor<1x4xbf16>)\n"
                        "plan.yield %a, %b : tensor<1x4xbf16>, tensor<1x4xbf16>");
  probe(kernel.bf16(numbers(4)).bf16(numbers(4, 1, 2)).i32({30011, 30013, 5}));
}

TEST(convolutions) {
  TestKernel kernel(
      "%x: tensor<1x4xbf16>, %i: tensor<1xi32>, %o: tensor<1xi32>, %w: !plan.weight<4 x 4, bf16>, "
      "%s: !plan.state<slots, 4 x 4, f32>",
      "%y = plan.conv1d_update %x, %i, %o, %w, %s precision<act = bf16, out = [f32]> steps<state "
      "f32, compute f32> : (tensor<1x4xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<4 x 4, "
      "bf16>, !plan.state<slots, 4 x 4, f32>) -> tensor<1x4xf32>\n"
      "plan.yield %y : tensor<1x4xf32>");
  probe(kernel.bf16(numbers(4)).i32({0}).i32({1}).bf16(numbers(16, 1, 2)).f32(numbers(32, 1, 3)));
}

TEST(recurrences) {
  TestKernel kernel(
      "%x: tensor<1x6xf32>, %d: tensor<1x1xf32>, %b: tensor<1x1xf32>, %i: tensor<1xi32>, "
      "%o: tensor<1xi32>, %s: !plan.state<slots, 1 x 2 x 2, f32>",
      "%c = plan.gdn_recurrence %x, %d, %b, %i, %o, %s precision<act = f32, out = [f32]>"
      " steps<state f32, compute f32> : (tensor<1x6xf32>, tensor<1x1xf32>, tensor<1x1xf32>, "
      "tensor<1xi32>, tensor<1xi32>, !plan.state<slots, 1 x 2 x 2, f32>) -> tensor<1x2xf32>\n"
      "plan.yield %c : tensor<1x2xf32>");
  probe(kernel.f32(numbers(6)).f32({0.9}).f32({0.4}).i32({0}).i32({1}).f32(numbers(8, 1, 2)));
}

TEST(routing) {
  TestKernel kernel("%l: tensor<1x8xbf16>",
                    "%w, %i = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score "
                    "f32> : (tensor<1x8xbf16>) -> (tensor<1x3xf32>, tensor<1x3xi32>)\n"
                    "plan.yield %w, %i : tensor<1x3xf32>, tensor<1x3xi32>");
  probe(kernel.bf16(numbers(8)));
  TestKernel blend(
      "%e: tensor<2x4xbf16>, %w: tensor<1x2xf32>, %s: tensor<1x4xbf16>, %g: tensor<1x1xf32>",
      "%y = plan.blend %e, %w, %s, %g precision<act = bf16, out = [bf16]> steps<scatter f32, "
      "combine f32> : (tensor<2x4xbf16>, tensor<1x2xf32>, tensor<1x4xbf16>, tensor<1x1xf32>) -> "
      "tensor<1x4xbf16>\nplan.yield %y : tensor<1x4xbf16>");
  probe(blend.bf16(numbers(8)).f32({0.7, 0.3}).bf16(numbers(4, 1, 2)).f32({0.2}));
}

TEST(attention) {
  TestKernel kernel = pagedAttentionKernel();
  kernel.bf16(numbers(4)).bf16({9, 9}).bf16({9, 9}).i32({1, 0}).i32({3});
  probe(kernel.bf16(numbers(8, 1, 2)).bf16(numbers(8, 1, 3)));
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

static constexpr int64_t kDepth = 1024;

static TestKernel projection(std::vector<float> &scales) {
  TestKernel kernel(
      "%x: tensor<1x1024xbf16>, %w: !plan.weight<128 x 1024, fp8_block128x128>",
      "%y = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]> "
      "steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale "
      "f32> {role = \"k\"} : (tensor<1x1024xbf16>, !plan.weight<128 x 1024, fp8_block128x128>) -> "
      "tensor<1x128xbf16>\nplan.yield %y : tensor<1x128xbf16>");
  kernel.bf16(numbers(kDepth));
  std::mt19937 random(5);
  std::vector<uint8_t> codes(128 * kDepth);
  for (uint8_t &code : codes)
    code = uint8_t(random() % 2 << 7 | (0x28 + random() % 0x20));
  kernel.argument(codes);
  scales.assign(kDepth / 128, 0.0078125f);
  kernel.arguments.back().scales = scales.data();
  return kernel;
}

/// As a tensor core's kernel of this depth rounds.
static std::vector<numerics::Node> onTensorCores() {
  using enum numerics::LevelKind;
  return {{"linear", {numerics::sum("dot", {{mma, 128}, {fused, 1}, {chain, 8}})}}};
}

TEST(dots_at_the_edge) {
  std::vector<float> scales;
  TestKernel kernel = projection(scales);
  Judged judged(kernel, onTensorCores());
  for (size_t i = 0; i < 128; i += 9)
    judged.probe(0, i);
}

TEST(a_wrong_scale_and_a_lost_tile_and_a_narrow_sum_are_found) {
  std::vector<float> scales;
  TestKernel kernel = projection(scales);
  Judged judged(kernel, onTensorCores());
  CHECK_EQ(judged.report(0).failures, 0u);

  auto asStored = [&](auto &&change) {
    std::vector<float> otherScales;
    TestKernel other = projection(otherScales);
    change(other, otherScales);
    judged.stored[0] = Judged::encode(Judged(other, onTensorCores()).evaluation.output(0));
    return judged.report(0);
  };
  EdgeReport scale = asStored([](TestKernel &, std::vector<float> &s) { s[3] *= 1.0625f; });
  CHECK(scale.failures > 64);
  CHECK(scale.worstFraction > 10);
  EdgeReport tile = asStored([](TestKernel &k, std::vector<float> &) {
    std::fill_n(k.memory[0].begin() + 2 * (kDepth - 128), 2 * 128, 0);
  });
  CHECK(tile.failures > 120);
  CHECK(tile.worstFraction > 100);

  // Each row once more, its sum rounded to bf16 at every term.
  const auto *x = reinterpret_cast<const uint16_t *>(kernel.memory[0].data());
  const auto *codes = reinterpret_cast<const uint8_t *>(kernel.memory[1].data());
  for (int64_t j = 0; j < 128; ++j) {
    double sum = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      uint8_t code = codes[j * kDepth + k];
      double w = std::ldexp(1 + (code & 7) / 8.0, (code >> 3 & 15) - 7) * (code & 0x80 ? -1 : 1);
      sum = bf(sum + bf16ToFloat(x[k]) * w * 0.0078125);
    }
    Judged::write(judged.stored[0], Element::BF16, j, sum);
  }
  CHECK(judged.report(0).failures > 100);
  CHECK(judged.report(0).worstFraction > 10);
}

TEST(a_bound_needs_the_arithmetic) {
  std::vector<float> scales;
  TestKernel kernel = projection(scales);
  mlir::Operation *region = kernel.plan->kernel("k");
  std::vector<char> own(256);
  std::vector<Argument> outputs{{own.data(), own.size()}};
  auto refusal = [&](std::vector<numerics::Node> arithmetic) {
    auto report = compare(region, {kernel.arguments, outputs, {}}, arithmetic);
    return report.ok() ? "" : report.error().message;
  };
  CHECK_CONTAINS(refusal({}), "nothing says how the kernel rounds");
  CHECK_CONTAINS(refusal({{"router", {numerics::rounding("dot", 1)}}}),
                 "the kernel's arithmetic has router here");
  CHECK_CONTAINS(refusal({{"linear", {}}}), "does not say how its \"dot\" is computed");
  CHECK_CONTAINS(refusal({onTensorCores()[0], onTensorCores()[0]}),
                 "the kernel's arithmetic has 2 nodes, the region 1");
}

CHECK_MAIN
