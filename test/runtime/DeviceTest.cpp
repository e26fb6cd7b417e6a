//===- DeviceTest.cpp - what a device can be asked for ------------------------===//
//
// The emulator's checks, counters, seed and target behind planrt_device_options.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <cstring>

using sample::Handles;
using sample::Oracle;

static bool onEmulator() { return std::string_view(sample::deviceName()) == "emulator"; }

/// Opens the device with these options; gives the status.
static planrt_status open(Handles &handles, const planrt_device_options &options) {
  planrt_error *error = nullptr;
  handles.take(planrt_device_open(sample::deviceName(), &options, &handles.device, &error), error);
  return handles.status;
}

TEST(options_of_other_versions) {
  // An older program's struct is shorter; what lies behind it is not read.
  std::byte memory[sizeof(planrt_device_options) + 16];
  std::memset(memory, 0x5a, sizeof memory);
  auto *options = reinterpret_cast<planrt_device_options *>(memory);
  options->size = offsetof(planrt_device_options, schedule_seed);
  options->threads = 0;
  Handles older;
  CHECK_EQ(open(older, *options), PLANRT_OK);
  // A newer program's is longer: taken as long as it asks for nothing unknown.
  std::memset(memory, 0, sizeof memory);
  options->size = sizeof memory;
  Handles newer;
  CHECK_EQ(open(newer, *options), PLANRT_OK);
  memory[sizeof memory - 1] = std::byte(1);
  Handles asks;
  CHECK_EQ(open(asks, *options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(asks.message, "a planrt_device_options of 72 bytes sets what this planrt does not "
                               "know, at byte 71; it knows 56 bytes");
  options->size = 20;
  CHECK_EQ(open(asks, *options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(asks.message, "the `size` of a planrt_device_options is 20; expected 56, or less "
                               "of an older planrt.h: 16, 24, 32, 40, 48");
}

/// `call` with a struct of `bytes` bytes, at every size: taken are sizes at which a struct may end,
/// which is a word that no field reaches over, and larger ones while there is nothing behind.
template <class Call> static void checkSizes(size_t bytes, size_t longField, Call call) {
  std::vector<std::byte> memory(1100);
  for (size_t size = 0; size <= memory.size(); ++size) {
    bool right = size >= 16 && size % 8 == 0 && (size <= longField || size == bytes);
    std::memset(memory.data(), 0, memory.size());
    std::memcpy(memory.data(), &size, sizeof size);
    planrt_status expected =
        right || (size > bytes && size <= 1024) ? PLANRT_OK : PLANRT_ERR_ARGUMENT;
    if (planrt_status status = call(memory.data()); status != expected)
      check::fail(__FILE__, __LINE__, fmt::format("size {} gives {}", size, int(status)));
  }
}

TEST(every_struct_has_a_size) {
  Handles handles;
  planrt_step_options timed;
  planrt_step_options_init(&timed);
  timed.timeline = 1;
  REQUIRE(handles.open(nullptr, &timed));
  REQUIRE(handles.run({0}, {1}) == PLANRT_OK);
  auto sizes = [&]<class T>(T *, size_t longField, auto call) {
    checkSizes(sizeof(T), longField, [&](void *memory) { return call(static_cast<T *>(memory)); });
  };
  auto within = [&]<class T>(T *kind, auto call) { sizes(kind, sizeof(T), call); };
  within((planrt_program_info *)nullptr, [&](planrt_program_info *info) {
    return planrt_bundle_program_info(handles.bundle, 0, info, nullptr);
  });
  within((planrt_device_options *)nullptr, [&](planrt_device_options *options) {
    planrt_device *device = nullptr;
    planrt_status status = planrt_device_open(sample::deviceName(), options, &device, nullptr);
    planrt_device_free(device);
    return status;
  });
  within((planrt_weights_options *)nullptr, [&](planrt_weights_options *options) {
    planrt_weights *weights = nullptr;
    planrt_status status =
        planrt_weights_random(handles.bundle, handles.device, 1, options, &weights, nullptr);
    planrt_weights_free(weights);
    return status;
  });
  within((planrt_session_options *)nullptr, [&](planrt_session_options *options) {
    planrt_session *session = nullptr;
    planrt_status status = planrt_session_open(handles.weights, options, &session, nullptr);
    planrt_session_free(session);
    return status;
  });
  within((planrt_step_options *)nullptr, [&](planrt_step_options *options) {
    planrt_step *step = nullptr;
    planrt_status status = planrt_step_open(handles.session, nullptr, options, &step, nullptr);
    planrt_step_free(step);
    return status;
  });
  within((planrt_memory *)nullptr,
         [&](planrt_memory *memory) { return planrt_step_memory(handles.step, memory, nullptr); });
  within((planrt_session_usage *)nullptr, [&](planrt_session_usage *usage) {
    return planrt_session_get_usage(handles.session, usage, nullptr);
  });
  sizes((planrt_slice *)nullptr, offsetof(planrt_slice, launch),
        [&](planrt_slice *slice) { return planrt_step_slice(handles.step, 1, slice, nullptr); });
}

TEST(gpu_has_no_emulator_options) {
  if (onEmulator())
    return;
  for (int which = 0; which < 4; ++which) {
    planrt_device_options options;
    planrt_device_options_init(&options);
    options.checks = which == 0 ? PLANRT_CHECK_MEM : 0;
    options.counters = which == 1;
    options.schedule_seed = which == 2;
    options.target = which == 3 ? "gb10" : nullptr;
    Handles handles;
    CHECK_EQ(open(handles, options), PLANRT_ERR_ARGUMENT);
    CHECK_CONTAINS(handles.message, "a target are the emulator's, device cuda has none of them");
  }
  Handles handles;
  REQUIRE(handles.open());
  CHECK_EQ(planrt_device_finding_count(handles.device), 0u);
  CHECK(!planrt_device_finding(handles.device, 0) && !planrt_device_counters(handles.device));
}

TEST(emulator_options_are_judged) {
  if (!onEmulator())
    return;
  planrt_device_options options;
  planrt_device_options_init(&options);
  options.checks = 32 | PLANRT_CHECK_MEM;
  Handles unknown;
  CHECK_EQ(open(unknown, options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(unknown.message, "checks 0x20 are unknown, known are 0x1f");
  options.checks = 0;
  options.target = "gtx970";
  Handles target;
  CHECK_EQ(open(target, options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(target.message, "the emulator cannot report target \"gtx970\"");

  // One process has one target: the same may be asked for again, another not.
  for (int i = 0; i < 2; ++i) {
    Handles same;
    options.target = "gb10";
    CHECK_EQ(open(same, options), PLANRT_OK);
    CHECK_EQ(std::string(planrt_device_product(same.device)), "Emulated GB10");
  }
  Handles other;
  options.target = "h200";
  CHECK_EQ(open(other, options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(other.message, "must come before the first cuInit; the device is 'gb10'");
}

/// Two sequences against the oracle, past a block's end.
static void compareWithOracle(Handles &handles) {
  Oracle oracles[2];
  for (int i = 0; i < 20; ++i) {
    REQUIRE(handles.run({0, 1}, {i, 63 - i}) == PLANRT_OK);
    for (uint32_t row = 0; row < 2; ++row)
      CHECK(handles.logits(row) == oracles[row].step(row ? 63 - i : i));
  }
}

TEST(checked_and_counted_steps) {
  if (!onEmulator())
    return;
  Handles handles;
  planrt_device_options options;
  planrt_device_options_init(&options);
  options.checks = PLANRT_CHECK_MEM | PLANRT_CHECK_INIT | PLANRT_CHECK_RACE | PLANRT_CHECK_SYNC;
  options.counters = 1;
  options.schedule_seed = 5;
  REQUIRE(open(handles, options) == PLANRT_OK);
  REQUIRE(handles.open());
  compareWithOracle(handles);
  for (size_t i = 0; i < planrt_device_finding_count(handles.device); ++i)
    check::fail(__FILE__, __LINE__, planrt_device_finding(handles.device, i));
  CHECK(!planrt_device_finding(handles.device, planrt_device_finding_count(handles.device)));

  // Each tensor is by itself, so edges outlive the step.
  std::vector<float> y(128);
  CHECK_EQ(planrt_step_buffer_read(handles.step, "l0.y", y.data(), 512, nullptr), PLANRT_OK);

  // Launches carry the plan's names, tensors too.
  std::string counters = planrt_device_counters(handles.device);
  CHECK_CONTAINS(counters, R"(group 3 \"rule_cache_sum\" (nodes )");
  for (const char *tensor : {R"(edge \"l0.y\")", R"(step input \"slot_mapping\")",
                             R"(weight \"l0.w\")", R"(counters of group 3)"})
    CHECK_CONTAINS(counters, tensor);

  // Another device without options turns everything off again.
  Handles plain;
  REQUIRE(plain.open());
  REQUIRE(plain.run({0}, {1}) == PLANRT_OK);
  CHECK(!planrt_device_counters(plain.device));
}
