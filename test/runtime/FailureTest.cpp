//===- FailureTest.cpp - what fails below planrt ------------------------------===//
//
// On the fake driver only, which fails when told to.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <dlfcn.h>

using namespace planc;
using namespace planc::bundle;
using sample::Handles;
using sample::Oracle;

/// Calls a fakecuda_* function.
template <class Result, class... Args> static Result fake(const char *name, Args... args) {
  static void *library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Result (*)(Args...)>(dlsym(library, name))(args...);
}

static bool onFake() {
  bool yes = std::string_view(sample::deviceName()) == "cuda";
  if (yes)
    fake<void>("fakecuda_reset");
  return yes;
}

TEST(failed_launch_commits_nothing) {
  if (!onFake())
    return;
  Handles handles;
  REQUIRE(handles.open());
  Oracle oracle;
  for (int i = 0; i < 48; ++i) {
    // Every third step fails first: in the kernel that leaves a counter behind, or the one before.
    if (i % 3 == 0) {
      fake<void>("fakecuda_fail_launch", i % 2, 304);
      CHECK_EQ(handles.run({0}, {i + 9}), PLANRT_ERR_ENVIRONMENT);
      CHECK_CONTAINS(handles.message, "groups 1 to 3 failed: CUDA_ERROR_OPERATING_SYSTEM");
      CHECK_EQ(planrt_sequence_length(handles.session, 0), i);
    }
    REQUIRE(handles.run({0}, {i}) == PLANRT_OK);
    CHECK(handles.logits(0) == oracle.step(i));
  }
  CHECK(fake<int>("fakecuda_graph_launches") > 40);
}

TEST(debug_names_the_group_kernel_and_nodes) {
  if (!onFake())
    return;
  Handles handles;
  planrt_step_options options;
  planrt_step_options_init(&options);
  options.debug = 1;
  REQUIRE(handles.open(nullptr, &options));
  fake<void>("fakecuda_fail_launch", 1, 304);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_ENVIRONMENT);
  CHECK_CONTAINS(handles.message, "group 3 \"rule_cache_sum\" (nodes l0.cache), kernel "
                                  "\"cache_sum\" failed: CUDA_ERROR_OPERATING_SYSTEM");
  REQUIRE(handles.run({0}, {1}) == PLANRT_OK);
  CHECK(handles.logits(0) == Oracle().step(1));
  fake<void>("fakecuda_fail_launch", 0, 700);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_DEVICE_LOST);
  CHECK_CONTAINS(handles.message, "group 1 \"rule_sum_state\" (nodes l0.sum), kernel "
                                  "\"sum_state\" failed: CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST(failed_launch_in_place_needs_a_truncation) {
  if (!onFake())
    return;
  Handles handles;
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.in_place = 1;
  REQUIRE(handles.open(&options));
  REQUIRE(handles.run({0}, {1}) == PLANRT_OK);
  fake<void>("fakecuda_fail_launch", 1, 304);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_ENVIRONMENT);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_INPUT);
  CHECK_CONTAINS(handles.message,
                 "sequence 0 lost its state in a step that failed; truncate it to 0 or ");
  CHECK_EQ(planrt_sequence_truncate(handles.session, 0, 0, nullptr), PLANRT_OK);
  REQUIRE(handles.run({0}, {1}) == PLANRT_OK);
  CHECK(handles.logits(0) == Oracle().step(1));
}

TEST(lost_device_stays_lost) {
  if (!onFake())
    return;
  Handles handles;
  REQUIRE(handles.open());
  fake<void>("fakecuda_fail_launch", 0, 700);
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_DEVICE_LOST);
  CHECK_CONTAINS(handles.message, "CUDA_ERROR_ILLEGAL_ADDRESS (on demand)");
  CHECK_EQ(handles.run({0}, {1}), PLANRT_ERR_DEVICE_LOST);
  CHECK_CONTAINS(handles.message, "device cuda was lost by an earlier failure");
  char byte;
  CHECK_EQ(planrt_weights_read(handles.weights, "l0.w", 0, 0, &byte, 1, nullptr),
           PLANRT_ERR_DEVICE_LOST);
  CHECK_EQ(planrt_session_state_read(handles.session, "l0.k", 0, &byte, 1, nullptr),
           PLANRT_ERR_DEVICE_LOST);
  planrt_step *second = nullptr;
  CHECK_EQ(planrt_step_open(handles.session, nullptr, nullptr, &second, nullptr),
           PLANRT_ERR_DEVICE_LOST);
  CHECK_EQ(planrt_sequence_length(handles.session, 0), 0);
}

TEST(every_allocation_may_fail) {
  if (!onFake())
    return;
  bool opened = false;
  for (int i = 0; !opened && i < 100; ++i) {
    {
      Handles handles;
      fake<void>("fakecuda_fail_alloc", i);
      opened = handles.open();
      CHECK(opened || handles.status == PLANRT_ERR_MEMORY);
      CHECK(opened || handles.message.find("cannot allocate") != std::string::npos);
    }
    CHECK_EQ(fake<int>("fakecuda_live_allocations"), 0);
    fake<void>("fakecuda_reset");
  }
  CHECK(opened);
}

TEST(random_weights_may_fail) {
  if (!onFake())
    return;
  for (int i = 0; i < 3; ++i) {
    {
      Handles handles;
      REQUIRE(planrt_device_open("cuda", nullptr, &handles.device, nullptr) == PLANRT_OK);
      fake<void>("fakecuda_fail_alloc", i);
      planrt_error *error = nullptr;
      handles.take(planrt_weights_random(handles.bundle, handles.device, 1, nullptr,
                                         &handles.weights, &error),
                   error);
      CHECK_EQ(handles.status, PLANRT_ERR_MEMORY);
      CHECK_CONTAINS(handles.message, "of random");
    }
    CHECK_EQ(fake<int>("fakecuda_live_allocations"), 0);
  }
}

/// The sample bundle for several targets, each image's text saying which it is.
static std::string manyTargets(bool cubins) {
  std::string ptx = sample::ptx();
  Manifest manifest = sample::manifest(ptx);
  std::vector<SectionData> sections;
  manifest.targets = {{"sm_90", 90, "h200"},
                      {"sm_80", 80, "a100"},
                      {"sm_120a", 120, "rtx5090"},
                      {"sm_100f", 100, "b200"}};
  for (Kernel &kernel : manifest.kernels) {
    KernelTarget image = kernel.targets.at("sm_80");
    kernel.targets.clear();
    for (const Target &target : manifest.targets) {
      image.ptx = kernel.name + "." + target.name + ".ptx";
      sections.push_back({image.ptx, "PTX " + target.name});
      image.ptx_bytes = sections.back().bytes.size();
      image.cubin.reset();
      if (cubins) {
        image.cubin = kernel.name + "." + target.name + ".cubin";
        sections.push_back({*image.cubin, "CUBIN " + target.name});
      }
      kernel.targets[target.name] = image;
    }
  }
  std::string path = (check::folder() / "targets.bundle").string();
  if (Status status = writeBundle(path, manifest, sections); !status.ok())
    check::fail(__FILE__, __LINE__, status.error().text());
  return path;
}

TEST(image_choice) {
  if (!onFake())
    return;
  auto choice = [](bool cubins, int sm, bool noBinary = false) {
    fake<void>("fakecuda_reset");
    fake<void>("fakecuda_set_sm", sm);
    fake<void>("fakecuda_no_binary", int(noBinary));
    Handles handles(manyTargets(cubins));
    return handles.open() ? std::string(planrt_step_image(handles.step)) : handles.message;
  };
  CHECK_EQ(choice(true, 90), "sm_90 cubin");
  CHECK_EQ(choice(true, 90, true), "sm_90 ptx");
  CHECK_EQ(choice(false, 90), "sm_90 ptx");
  CHECK_EQ(choice(true, 89), "sm_80 ptx");
  CHECK_EQ(choice(true, 103), "sm_100f ptx");
  CHECK_EQ(choice(true, 110), "sm_90 ptx"); // another family
  CHECK_EQ(choice(true, 120), "sm_120a cubin");
  CHECK_EQ(choice(true, 121), "sm_90 ptx"); // `a` is for one architecture only
  CHECK_CONTAINS(choice(true, 75), "images for sm_90, sm_80, sm_120a, sm_100f, none runs on sm_75");
}

TEST(a_refused_image_is_an_error) {
  if (!onFake())
    return;
  fake<void>("fakecuda_set_sm", 90);
  fake<void>("fakecuda_refuse_image", "CUBIN sm_90");
  Handles handles(manyTargets(true));
  CHECK(!handles.open());
  CHECK_EQ(handles.status, PLANRT_ERR_DEVICE);
  CHECK_CONTAINS(handles.message, "kernel \"sum_state\", sm_90 cubin: CUDA_ERROR_INVALID_PTX");
  CHECK_CONTAINS(handles.message, "line 1: refused on demand");
}

TEST(devices_that_are_not_there) {
  for (const char *name : {"cpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:4294967296",
                           "cuda:99999999999999999999", ""}) {
    planrt_device *device = nullptr;
    CHECK_EQ(planrt_device_open(name, nullptr, &device, nullptr), PLANRT_ERR_ARGUMENT);
  }
  if (!onFake())
    return;
  planrt_device *device = nullptr;
  CHECK_EQ(planrt_device_open("cuda:1", nullptr, &device, nullptr), PLANRT_ERR_ENVIRONMENT);
}
