//===- CheckpointTest.cpp - binding weights -----------------------------------===//
//
// Checkpoints in one file and in shards, conversions, everything that can be wrong with them, and
// the random ones.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"
#include "test/unit/Check.h"

#include <cmath>

using namespace planc;
using sample::Handles;

/// Opens weights and gives the message, or "bound".
static std::string bindFrom(const std::string &path) {
  Handles handles;
  planrt_error *error = nullptr;
  if (!handles.take(planrt_device_open(sample::deviceName(), nullptr, &handles.device, &error),
                    error))
    return handles.message;
  planrt_status status = planrt_weights_open(handles.bundle, handles.device, path.c_str(), nullptr,
                                             &handles.weights, &error);
  std::string file = planrt_error_file(error);
  handles.take(status, error);
  if (status == PLANRT_OK)
    return fmt::format("bound, {} unread", planrt_weights_unread(handles.weights));
  return fmt::format("{}: {}: {}", status == PLANRT_ERR_WEIGHTS ? "weights" : "input", file,
                     handles.message);
}

static std::string bindTensors(const sample::Tensors &tensors) {
  return bindFrom(sample::writeTensors((check::folder() / "bind.safetensors").string(), tensors));
}

TEST(weights_of_one_file) { CHECK_EQ(bindTensors(sample::tensors()), "bound, 1 unread"); }

TEST(weights_are_placed) {
  Handles handles;
  REQUIRE(handles.open());
  std::string data(65536, ' ');
  auto read = [&](const char *name, int scales, void *out, uint64_t bytes) {
    planrt_error *error = nullptr;
    return handles.take(planrt_weights_read(handles.weights, name, scales, 0, out, bytes, &error),
                        error);
  };
  REQUIRE(read("l0.experts", 0, data.data(), data.size()));
  // Expert 0's gate above its up, then expert 1.
  CHECK_EQ(std::string({data[0], data[16383], data[16384], data[32768], data[65535]}), "aabcd");
  float scales[4];
  REQUIRE(read("l0.experts", 1, scales, 16));
  CHECK(scales[0] == 0.5f && scales[3] == 0.5f);
  CHECK(!read("l0.experts", 1, scales, 17));
  CHECK_CONTAINS(handles.message, "weight \"l0.experts\" has 16 bytes, not 17 at offset 0");
  uint16_t embed[64];
  REQUIRE(read("embed", 0, embed, 128));
  CHECK_EQ(std::string(reinterpret_cast<char *>(embed), 128),
           sample::tensors()["m.embed.weight"].bytes.substr(0, 128));
  CHECK(!read("l9.w", 0, embed, 128));
}

TEST(weights_are_converted) {
  sample::Tensors tensors = sample::tensors();
  // f32 for a bf16 operand, rounded to nearest even; f32 for f32 scales, taken as it is.
  sample::Tensor &w = tensors["m.layers.0.w"];
  w.dtype = "F32";
  w.bytes.clear();
  const float values[] = {1.00390625f, 1.01171875f, -1.0039064f, NAN};
  for (int i = 0; i < 64; ++i)
    w.bytes.append(reinterpret_cast<const char *>(&values[i % 4]), 4);
  sample::Tensor &scale = tensors["m.layers.0.experts.1.up.weight_scale_inv"];
  scale.dtype = "F32";
  const float third = 1.0f / 3;
  scale.bytes.assign(reinterpret_cast<const char *>(&third), 4);
  std::string path = sample::writeTensors((check::folder() / "f32.safetensors").string(), tensors);
  Handles handles;
  planrt_error *error = nullptr;
  REQUIRE(handles.take(planrt_device_open(sample::deviceName(), nullptr, &handles.device, &error),
                       error));
  REQUIRE(handles.take(planrt_weights_open(handles.bundle, handles.device, path.c_str(), nullptr,
                                           &handles.weights, &error),
                       error));
  uint16_t halves[4];
  CHECK_EQ(planrt_weights_read(handles.weights, "l0.w", 0, 0, halves, 8, nullptr), PLANRT_OK);
  CHECK_EQ(halves[0], 0x3f80); // a tie, to even
  CHECK_EQ(halves[1], 0x3f82); // a tie, to even
  CHECK_EQ(halves[2], 0xbf81);
  CHECK(std::isnan(sample::widen(halves[3])));
  float scales[4];
  CHECK_EQ(planrt_weights_read(handles.weights, "l0.experts", 1, 0, scales, 16, nullptr),
           PLANRT_OK);
  CHECK(scales[2] == 0.5f && scales[3] == third);
}

TEST(weights_list_all_problems) {
  sample::Tensors tensors = sample::tensors();
  tensors.erase("m.layers.0.experts.1.gate.weight");
  tensors.erase("m.layers.0.w");
  tensors["m.embed.weight"].shape = {32, 128};
  tensors["m.layers.0.experts.0.up.weight"].dtype = "I8";
  std::string message = bindTensors(tensors);
  CHECK(message.starts_with("weights: "));
  CHECK_CONTAINS(message, "4 tensors are missing or different:");
  CHECK_CONTAINS(message, "m.layers.0.w is missing, expected BF16 or F32 [64]");
  CHECK_CONTAINS(message, "m.embed.weight is BF16 [32, 128], expected BF16 [64, 64]");
  CHECK_CONTAINS(message, "m.layers.0.experts.0.up.weight is I8 [128, 128], expected F8_E4M3");
  CHECK_CONTAINS(message, "m.layers.0.experts.1.gate.weight is missing");
}

/// A folder with an index, its text given, and the sample's tensors in two shards.
static std::string sharded(const char *name, const std::string *index = nullptr) {
  std::filesystem::path folder = check::folder() / name;
  std::filesystem::create_directories(folder);
  sample::Tensors shards[2];
  Json map = Json::object();
  size_t i = 0;
  for (const auto &[tensor, value] : sample::tensors()) {
    shards[i % 2][tensor] = value;
    map[tensor] = fmt::format("model-{}.safetensors", i++ % 2);
  }
  for (int s = 0; s < 2; ++s)
    sample::writeTensors((folder / fmt::format("model-{}.safetensors", s)).string(), shards[s]);
  std::string text =
      index ? *index : Json({{"metadata", Json::object()}, {"weight_map", map}}).dump();
  CHECK(writeFile((folder / "model.safetensors.index.json").string(), asBytes(text)).ok());
  return folder.string();
}

TEST(weights_of_shards) {
  CHECK_EQ(bindFrom(sharded("shards")), "bound, 1 unread");
  CHECK_EQ(bindFrom(sharded("shards") + "/"), "bound, 1 unread");
}

TEST(links_that_lead_nowhere_are_named) {
  namespace fs = std::filesystem;
  fs::path folder = check::folder() / "links";
  fs::create_directories(folder);
  for (const char *name : {"model.safetensors", "model.safetensors.index.json"}) {
    fs::create_symlink(folder / name, folder / name);
    CHECK_EQ(bindFrom(folder.string()), fmt::format("input: {}: cannot open: Too many levels of "
                                                    "symbolic links",
                                                    (folder / name).string()));
  }
}

TEST(wrong_indices_are_refused) {
  auto with = [](std::string text) { return bindFrom(sharded("wrong", &text)); };
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":\"../b.safetensors\"}}"), "outside the folder");
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":\"/etc/passwd\"}}"), "outside the folder");
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":\"x/../../b\"}}"), "outside the folder");
  // What would end the message early, or reach a terminal, is written out.
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\\u001b[m\":\"\\u0000b\"}}"),
                 "tensor \"a\\x1b[m\" is in \"\\x00b\", which is outside the folder");
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":3}}"), "the shard of tensor \"a\" is not a string");
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":\"no.safetensors\"}}"), "cannot open");
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":\"model-0.safetensors\"}}"), "is not in its shard");
  CHECK_CONTAINS(with("{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}"), "key \"a\" occurs twice");
  CHECK_CONTAINS(with("{\"weights\":{}}"), "expected an object with the object \"weight_map\"");
  CHECK_CONTAINS(with("[]"), "expected an object");
  CHECK_CONTAINS(with("{"), "not JSON at byte");
}

TEST(folders_without_weights_say_what_they_hold) {
  std::filesystem::path folder = check::folder() / "none";
  std::filesystem::create_directories(folder);
  CHECK_CONTAINS(bindFrom(folder.string()), "nor model.safetensors; it is empty");
  CHECK(writeFile((folder / "config.json").string(), asBytes("{}")).ok());
  CHECK(writeFile((folder / "pytorch_model.bin").string(), asBytes("x")).ok());
  CHECK_CONTAINS(bindFrom(folder.string()), "there are: config.json, pytorch_model.bin");
  sample::writeTensors((folder / "model.safetensors").string(), sample::tensors());
  CHECK_EQ(bindFrom(folder.string()), "bound, 1 unread");
  CHECK_CONTAINS(bindFrom((folder / "missing").string()), "cannot open");
}

TEST(random_weights) {
  std::string data[3];
  uint16_t embed[3][64];
  float scales[4];
  for (int i = 0; i < 3; ++i) {
    Handles handles;
    planrt_error *error = nullptr;
    REQUIRE(handles.take(planrt_device_open(sample::deviceName(), nullptr, &handles.device, &error),
                         error));
    REQUIRE(handles.take(planrt_weights_random(handles.bundle, handles.device, i == 2 ? 8 : 7,
                                               nullptr, &handles.weights, &error),
                         error));
    data[i].resize(65536);
    auto read = [&](const char *name, int part, uint64_t offset, void *out, uint64_t bytes) {
      return planrt_weights_read(handles.weights, name, part, offset, out, bytes, nullptr);
    };
    CHECK_EQ(read("l0.experts", 0, 0, data[i].data(), 65536), PLANRT_OK);
    CHECK_EQ(read("l0.experts", 1, 0, scales, 16), PLANRT_OK);
    CHECK_EQ(read("embed", 0, 128, embed[i], 128), PLANRT_OK);
    // It runs, and the logits are numbers.
    REQUIRE(handles.open());
    REQUIRE(handles.run({0, 1}, {3, 4}) == PLANRT_OK);
    for (float logit : handles.logits(1))
      CHECK(std::isfinite(logit));
  }
  CHECK(data[0] == data[1] && data[0] != data[2]);
  CHECK(std::memcmp(embed[0], embed[1], 128) == 0 && std::memcmp(embed[0], embed[2], 128) != 0);
  CHECK(data[0].find('\x7f') == std::string::npos && data[0].find('\xff') == std::string::npos);
  for (float scale : scales)
    CHECK(scale > 0.05f && scale < 0.15f); // about 1/sqrt(128)
}
