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
  CHECK_CONTAINS(asks.message, "asks for more than this planrt knows");
  options->size = 0;
  CHECK_EQ(open(asks, *options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(asks.message, "the size of an options struct is not set");
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
  options.checks = 16 | PLANRT_CHECK_MEM;
  Handles unknown;
  CHECK_EQ(open(unknown, options), PLANRT_ERR_ARGUMENT);
  CHECK_CONTAINS(unknown.message, "checks 0x10 are unknown, known are 0xf");
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
