//===- ProgramTest.cpp - what can be asked before anything is loaded ----------===//
//
// Bundles from memory, the choice of a program, what it takes, and devices that cannot have it.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/File.h"
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <dlfcn.h>

using sample::Handles;

static bool onFake() { return std::string_view(sample::deviceName()) == "cuda"; }

template <class... Args> static void fake(const char *name, Args... args) {
  static void *library = dlopen("libcuda.so.1", RTLD_NOW);
  reinterpret_cast<void (*)(Args...)>(dlsym(library, name))(args...);
}

TEST(statuses_have_names) {
  CHECK_EQ(std::string(planrt_status_name(PLANRT_OK)), "PLANRT_OK");
  CHECK_EQ(std::string(planrt_status_name(PLANRT_ERR_EXHAUSTED)), "PLANRT_ERR_EXHAUSTED");
  for (int status = 0; status <= PLANRT_ERR_EXHAUSTED; ++status)
    CHECK(planrt_status_name(planrt_status(status)));
  CHECK(!planrt_status_name(planrt_status(PLANRT_ERR_EXHAUSTED + 1)));
  CHECK(!planrt_status_name(planrt_status(-1)));
}

TEST(bundle_from_memory) {
  planc::Result<planc::Bytes> bytes = planc::readFile(sample::writeBundleFile());
  REQUIRE(bytes.ok());
  Handles handles("");
  planrt_error *error = nullptr;
  REQUIRE(handles.take(
      planrt_bundle_open_memory(bytes->data(), bytes->size(), "embedded", &handles.bundle, &error),
      error));
  (*bytes)[100] = std::byte(0); // it has a copy
  REQUIRE(handles.open());
  CHECK_EQ(handles.run({0}, {5}), PLANRT_OK);
  CHECK(handles.logits(0) == sample::Oracle().step(5));

  planrt_bundle *none = nullptr;
  planrt_status status =
      planrt_bundle_open_memory(bytes->data(), bytes->size(), "embedded", &none, &error);
  CHECK_EQ(status, PLANRT_ERR_INPUT);
  CHECK_EQ(std::string(planrt_error_file(error)), "embedded");
  CHECK(!handles.take(status, error));
  CHECK_CONTAINS(handles.message, "manifest");
}

TEST(choosing_a_program) {
  Handles handles(sample::writeManyProgramsFile());
  REQUIRE(handles.bundle);
  CHECK_EQ(planrt_bundle_program_count(handles.bundle), 3u);
  auto find = [&](const char *mode, uint32_t rows) -> std::string {
    uint32_t index = 99;
    planrt_error *error = nullptr;
    if (!handles.take(planrt_bundle_find_program(handles.bundle, mode, rows, &index, &error),
                      error))
      return handles.message;
    planrt_program_info info = {};
    info.size = sizeof info;
    CHECK_EQ(planrt_bundle_program_info(handles.bundle, index, &info, nullptr), PLANRT_OK);
    CHECK(!mode || std::string(info.mode) == mode);
    return info.name;
  };
  CHECK_EQ(find(nullptr, 0), "decode_n1");
  CHECK_EQ(find(nullptr, 1), "decode_n1");
  CHECK_EQ(find(nullptr, 2), "decode_n2");
  CHECK_EQ(find(nullptr, 3), "decode_n4");
  CHECK_EQ(find("multi_seq", 1), "decode_n4");
  CHECK_EQ(find("decode", 2), "decode_n2");
  std::string all = "there is \"decode_n2\" (decode, rows 2), \"decode_n4\" (multi_seq, rows 4), "
                    "\"decode_n1\" (decode, rows 1)";
  CHECK_EQ(find(nullptr, 5), "there is no program with 5 rows or more; " + all);
  CHECK_EQ(find("draft", 1), "there is no program of mode \"draft\" with 1 rows or more; " + all);
}

TEST(memory_is_known_beforehand) {
  Handles handles;
  for (int inPlace : {0, 1}) {
    Handles opened;
    planrt_session_options options;
    planrt_session_options_init(&options);
    options.sequences = 3;
    options.in_place = inPlace;
    options.kv_tokens = 50;
    planrt_memory before = {}, after = {};
    before.size = after.size = sizeof before;
    CHECK_EQ(planrt_program_memory(opened.bundle, 0, &options, &before, nullptr), PLANRT_OK);
    REQUIRE(opened.open(&options));
    CHECK_EQ(planrt_step_memory(opened.step, &after, nullptr), PLANRT_OK);
    CHECK_EQ(before.weights, after.weights);
    CHECK_EQ(before.host_weights, after.host_weights);
    CHECK_EQ(before.states, after.states);
    CHECK_EQ(before.states, (inPlace ? 3u : 6u) * 256);
    CHECK_EQ(before.kv, after.kv);
    CHECK_EQ(before.workspace, after.workspace);
    CHECK_EQ(before.scratch, 8u + 8); // counters too
  }
  planrt_memory memory = {};
  memory.size = sizeof memory;
  CHECK_EQ(planrt_program_memory(handles.bundle, 1, nullptr, &memory, nullptr),
           PLANRT_ERR_ARGUMENT);
  planrt_session_options absurd;
  planrt_session_options_init(&absurd);
  absurd.sequences = 1u << 30;
  CHECK_EQ(planrt_program_memory(handles.bundle, 0, &absurd, &memory, nullptr),
           PLANRT_ERR_ARGUMENT);
}

TEST(preflight_names_both_sides) {
  if (!onFake())
    return;
  fake("fakecuda_reset");
  auto preflight = [](Handles &handles) {
    if (!handles.device)
      CHECK_EQ(planrt_device_open("cuda", nullptr, &handles.device, nullptr), PLANRT_OK);
    planrt_error *error = nullptr;
    handles.take(planrt_preflight(handles.bundle, handles.device, 0, nullptr, &error), error);
    return handles.status;
  };
  Handles good;
  CHECK_EQ(preflight(good), PLANRT_OK);

  // Refused when asked, and again by whoever loads.
  fake("fakecuda_set_sm", 75);
  Handles old;
  CHECK_EQ(preflight(old), PLANRT_ERR_ENVIRONMENT);
  CHECK_CONTAINS(old.message, "the bundle has images for sm_80, none runs on sm_75, which device "
                              "cuda (Fake) is; compile the plan with --target sm_75");
  CHECK(!old.open());
  CHECK_EQ(old.status, PLANRT_ERR_ENVIRONMENT);
  CHECK(!old.weights);

  fake("fakecuda_reset");
  fake("fakecuda_set_driver", 11070);
  Handles driver;
  CHECK_EQ(preflight(driver), PLANRT_ERR_ENVIRONMENT);
  CHECK_CONTAINS(driver.message, "PTX 7.8 needs a driver of CUDA 11.8 or newer, the driver of "
                                 "device cuda is of CUDA 11.7");
  CHECK(!driver.open());
  CHECK(!driver.weights);
  fake("fakecuda_set_driver", 11080);
  CHECK_EQ(preflight(driver), PLANRT_OK);

  fake("fakecuda_reset");
  fake("fakecuda_set_free", 66000);
  Handles memory;
  CHECK_EQ(preflight(memory), PLANRT_ERR_MEMORY);
  CHECK_CONTAINS(memory.message, "program \"decode_n2\" takes 68");
  CHECK_CONTAINS(memory.message, "device cuda (Fake) has 66000 of 1073741824 free");
  fake("fakecuda_set_free", 65000);
  CHECK(!memory.open());
  CHECK_EQ(memory.status, PLANRT_ERR_MEMORY);
  CHECK_CONTAINS(memory.message, "the weights take 65680 bytes, device cuda (Fake) has 65000");
  fake("fakecuda_set_free", 1 << 30);
  REQUIRE(planrt_weights_open(memory.bundle, memory.device, sample::checkpoint().c_str(), nullptr,
                              &memory.weights, nullptr) == PLANRT_OK);
  fake("fakecuda_set_free", 100);
  CHECK(!memory.open());
  CHECK_EQ(memory.status, PLANRT_ERR_MEMORY);
  CHECK_CONTAINS(memory.message, "states and KV cache of the session take");
  fake("fakecuda_reset");
}

TEST(uploads_report_and_can_be_cancelled) {
  struct Watch {
    std::vector<uint64_t> done;
    uint64_t total = 0, stopAt = ~0ull;
  };
  auto progress = [](void *user, uint64_t done, uint64_t total) {
    auto *watch = static_cast<Watch *>(user);
    watch->done.push_back(done);
    watch->total = total;
    return int(done >= watch->stopAt);
  };
  for (bool random : {false, true}) {
    Handles handles;
    REQUIRE(planrt_device_open(sample::deviceName(), nullptr, &handles.device, nullptr) ==
            PLANRT_OK);
    auto load = [&](Watch &watch) {
      planrt_weights_options options;
      planrt_weights_options_init(&options);
      options.progress = progress;
      options.progress_user = &watch;
      planrt_error *error = nullptr;
      planrt_status status =
          random ? planrt_weights_random(handles.bundle, handles.device, 1, &options,
                                         &handles.weights, &error)
                 : planrt_weights_open(handles.bundle, handles.device, sample::checkpoint().c_str(),
                                       &options, &handles.weights, &error);
      handles.take(status, error);
      return status;
    };
    Watch stopped;
    stopped.stopAt = 1;
    CHECK_EQ(load(stopped), PLANRT_ERR_CANCELLED);
    CHECK_CONTAINS(handles.message, "the upload was cancelled after");
    CHECK(!handles.weights && stopped.done.size() == 2);
    Watch watch;
    CHECK_EQ(load(watch), PLANRT_OK);
    CHECK_EQ(watch.done.front(), 0u);
    CHECK_EQ(watch.done.back(), watch.total);
    for (size_t i = 1; i < watch.done.size(); ++i)
      CHECK(watch.done[i] > watch.done[i - 1]);
    if (!random)
      CHECK_EQ(watch.total, 128u + 65536 + 16 + 8192);
    REQUIRE(handles.open());
    CHECK_EQ(handles.run({0}, {5}), PLANRT_OK);
  }
}

TEST(the_log_says_what_was_chosen) {
  std::string lines;
  planrt_device_options options;
  planrt_device_options_init(&options);
  options.log = [](void *user, const char *line) {
    *static_cast<std::string *>(user) += std::string(line) + "\n";
  };
  options.log_user = &lines;
  Handles handles;
  REQUIRE(planrt_device_open(sample::deviceName(), &options, &handles.device, nullptr) ==
          PLANRT_OK);
  REQUIRE(handles.open());
  CHECK_CONTAINS(lines, std::string("device ") + sample::deviceName() + ": ");
  CHECK_CONTAINS(lines, "kernel \"sum_state\": sm_80 ptx\n");
  CHECK_CONTAINS(lines, "kernel \"cache_sum\": sm_80 ptx\n");
}
