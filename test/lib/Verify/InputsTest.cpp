//===- InputsTest.cpp - what a kernel is given to be wrong about ------------===//
//
// What the classes promise, for every seed: that a class without padding stores something, that
// limits are met on both sides, that nothing is at hand which a kernel has no business with.
//
//===----------------------------------------------------------------------===//

#include "lib/Verify/Inputs.h"
#include "test/unit/Check.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace planc;
using namespace planc::verify;

static constexpr int64_t kvBlock = 16, width = 8;

static const char *const kernels = R"(
plan.kernel @write rows 1 compute "memory" numerics "reference" {
^bb0(%k: tensor<1x32xbf16>, %v: tensor<1x32xbf16>, %slots: tensor<1xi64>, %kc: !plan.state<paged, 1 x 32, bf16>, %vc: !plan.state<paged, 1 x 32, bf16>):
  plan.kv_write %k, %v, %slots, %kc, %vc precision<act = bf16> steps<cache bf16> : (tensor<1x32xbf16>, tensor<1x32xbf16>, tensor<1xi64>, !plan.state<paged, 1 x 32, bf16>, !plan.state<paged, 1 x 32, bf16>) -> ()
  plan.yield
}
plan.kernel @attend rows 2 compute "cuda_core" numerics "reference" {
^bb0(%q: tensor<2x64xbf16>, %k: tensor<2x32xbf16>, %v: tensor<2x32xbf16>, %t: tensor<2x8xi32>, %n: tensor<2xi32>, %kc: !plan.state<paged, 1 x 32, bf16>, %vc: !plan.state<paged, 1 x 32, bf16>):
  %o = plan.paged_attention %q, %k, %v, %t, %n, %kc, %vc precision<act = bf16, out = [bf16]> steps<cache bf16, scores f32, softmax f32, accumulate f32> : (tensor<2x64xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x8xi32>, tensor<2xi32>, !plan.state<paged, 1 x 32, bf16>, !plan.state<paged, 1 x 32, bf16>) -> tensor<2x64xbf16>
  plan.yield %o : tensor<2x64xbf16>
}
plan.kernel @one_block rows 1 compute "cuda_core" numerics "reference" {
^bb0(%q: tensor<1x32xbf16>, %k: tensor<1x32xbf16>, %v: tensor<1x32xbf16>, %t: tensor<1x1xi32>, %n: tensor<1xi32>, %kc: !plan.state<paged, 1 x 32, bf16>, %vc: !plan.state<paged, 1 x 32, bf16>):
  %o = plan.paged_attention %q, %k, %v, %t, %n, %kc, %vc precision<act = bf16, out = [bf16]> steps<cache bf16, scores f32, softmax f32, accumulate f32> : (tensor<1x32xbf16>, tensor<1x32xbf16>, tensor<1x32xbf16>, tensor<1x1xi32>, tensor<1xi32>, !plan.state<paged, 1 x 32, bf16>, !plan.state<paged, 1 x 32, bf16>) -> tensor<1x32xbf16>
  plan.yield %o : tensor<1x32xbf16>
}
plan.kernel @write_attend rows 1 compute "cuda_core" numerics "reference" {
^bb0(%q: tensor<1x32xbf16>, %k: tensor<1x32xbf16>, %v: tensor<1x32xbf16>, %s: tensor<1xi64>, %t: tensor<1x8xi32>, %n: tensor<1xi32>, %kc: !plan.state<paged, 1 x 32, bf16>, %vc: !plan.state<paged, 1 x 32, bf16>):
  plan.kv_write %k, %v, %s, %kc, %vc precision<act = bf16> steps<cache bf16> : (tensor<1x32xbf16>, tensor<1x32xbf16>, tensor<1xi64>, !plan.state<paged, 1 x 32, bf16>, !plan.state<paged, 1 x 32, bf16>) -> ()
  %o = plan.paged_attention %q, %k, %v, %t, %n, %kc, %vc precision<act = bf16, out = [bf16]> steps<cache bf16, scores f32, softmax f32, accumulate f32> : (tensor<1x32xbf16>, tensor<1x32xbf16>, tensor<1x32xbf16>, tensor<1x8xi32>, tensor<1xi32>, !plan.state<paged, 1 x 32, bf16>, !plan.state<paged, 1 x 32, bf16>) -> tensor<1x32xbf16>
  plan.yield %o : tensor<1x32xbf16>
}
plan.kernel @gates rows 1 compute "cuda_core" numerics "reference" {
^bb0(%ba: tensor<1x8xf32>, %a: !plan.weight<4, f32>, %dt: !plan.weight<4, f32>):
  %decay, %beta = plan.gdn_gates %ba, %a, %dt precision<act = f32, out = [f32, f32]> steps<compute f32> : (tensor<1x8xf32>, !plan.weight<4, f32>, !plan.weight<4, f32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  plan.yield %decay, %beta : tensor<1x4xf32>, tensor<1x4xf32>
}
plan.kernel @recur rows 2 compute "cuda_core" numerics "reference" {
^bb0(%qkv: tensor<2x128xf32>, %d: tensor<2x2xf32>, %b: tensor<2x2xf32>, %in: tensor<2xi32>, %out: tensor<2xi32>, %s: !plan.state<slots, 2 x 32 x 32, f32>):
  %o = plan.gdn_recurrence %qkv, %d, %b, %in, %out, %s precision<act = f32, out = [f32]> steps<state f32, compute f32> : (tensor<2x128xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xi32>, tensor<2xi32>, !plan.state<slots, 2 x 32 x 32, f32>) -> tensor<2x64xf32>
  plan.yield %o : tensor<2x64xf32>
}
)";

namespace {
/// The kernels above, and what a class gives one of them.
class Case {
public:
  Case(const char *name, uint64_t seed, InputClass inputClass) {
    static MLIRContext context(MLIRContext::Threading::DISABLED);
    context.loadDialect<plan::PlanDialect>();
    static auto module = parseSourceString<ModuleOp>(kernels, &context);
    auto kernel = module->lookupSymbol<plan::KernelOp>(name);
    classes = inputClasses(kernel);
    inputs = makeInputs(kernel, seed, inputClass, kvBlock);
  }
  template <class T> std::vector<T> at(unsigned argument) const {
    const std::vector<std::byte> &data = inputs[argument].data;
    std::vector<T> values(data.size() / sizeof(T));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  }

  llvm::SmallVector<InputClass> classes; ///< of the kernel

private:
  std::vector<Input> inputs;
};
} // namespace

TEST(one_row_is_stored_where_its_class_has_no_padding) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    CHECK(Case("write", seed, InputClass::Gaussian).at<int64_t>(2)[0] >= 0);
    CHECK(Case("write", seed, InputClass::NegativeSlots).at<int64_t>(2)[0] < INT32_MIN);
  }
}

TEST(a_table_names_no_block_behind_its_sequence) {
  for (InputClass inputClass : {InputClass::Gaussian, InputClass::Lengths, InputClass::OneSequence,
                                InputClass::NoContext, InputClass::FullContext}) {
    Case given("attend", 1, inputClass);
    auto tables = given.at<int32_t>(3), lengths = given.at<int32_t>(4);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < width; ++i)
        CHECK_EQ(tables[row * width + i] < 2 * width, i * kvBlock < lengths[row]);
  }
}

TEST(positions_that_nobody_reads_are_no_numbers) {
  Case given("attend", 1, InputClass::Lengths);
  auto tables = given.at<int32_t>(3), lengths = given.at<int32_t>(4);
  auto keys = given.at<uint16_t>(5);
  std::vector<bool> isRead(keys.size() / 32);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < lengths[row]; ++i)
      isRead[tables[row * width + i / kvBlock] * kvBlock + i % kvBlock] = true;
  for (size_t position = 0; position < isRead.size(); ++position)
    CHECK_EQ(keys[position * 32] != 0xFFFF, isRead[position]);
}

// Who merges slices must not take the maximum of some for that of all: exponentials overflow then.
TEST(scores_of_the_halves_of_a_full_context_lie_far_apart) {
  Case given("attend", 1, InputClass::FullContext);
  auto queries = given.at<uint16_t>(0), keys = given.at<uint16_t>(5);
  auto tables = given.at<int32_t>(3);
  CHECK_EQ(queries[0], 0);       // head 0: all positions count
  CHECK_EQ(queries[32], 0x4348); // head 1: 200
  for (int64_t block = 0; block < width; ++block)
    CHECK_EQ(keys[tables[block] * kvBlock * 32], block < width / 2 ? 0x4100 : 0xC100); // 8, -8
}

// What a run of positions does at its end depends on where that is.
TEST(one_row_has_another_length_in_other_classes) {
  std::vector<int32_t> lengths;
  for (InputClass inputClass :
       {InputClass::Outliers, InputClass::Zeros, InputClass::NoContext, InputClass::FullContext})
    lengths.push_back(Case("one_block", 1, inputClass).at<int32_t>(4)[0]);
  CHECK(lengths == std::vector<int32_t>({16, 1, 0, 16}));
}

TEST(a_row_that_is_stored_and_read_is_the_last_of_its_sequence) {
  Case given("write_attend", 1, InputClass::OneSequence);
  CHECK(llvm::is_contained(given.classes, InputClass::OneSequence));
  int32_t last = given.at<int32_t>(5)[0] - 1;
  CHECK_EQ(given.at<int64_t>(3)[0],
           given.at<int32_t>(4)[last / kvBlock] * kvBlock + last % kvBlock);
}

TEST(a_block_is_none_that_nothing_at_all_would_give) {
  for (uint64_t seed = 0; seed < 12; ++seed)
    CHECK(Case("one_block", seed, InputClass::Gaussian).at<int32_t>(3)[0] > 0);
}

TEST(states_that_no_row_reads_are_no_numbers) {
  Case given("recur", 1, InputClass::Gaussian);
  auto slots = given.at<int32_t>(3);
  auto states = given.at<float>(5);
  size_t entry = 2 * 32 * 32;
  for (size_t slot = 0; slot < states.size() / entry; ++slot)
    CHECK_EQ(!std::isnan(states[slot * entry]),
             std::find(slots.begin(), slots.end(), int32_t(slot)) != slots.end());
}

TEST(clamps_have_both_sides) {
  bool hasLow = false, hasHigh = false;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (float decay : Case("recur", seed, InputClass::Clamps).at<float>(1)) {
      hasLow |= decay < 1e-6f;
      hasHigh |= decay > 1 - 1e-6f;
    }
    auto rates = Case("gates", seed, InputClass::Clamps).at<float>(1);
    CHECK(*std::max_element(rates.begin(), rates.end()) > 20);
    CHECK(*std::min_element(rates.begin(), rates.end()) < 20);
  }
  CHECK(hasLow && hasHigh);
}

CHECK_MAIN
