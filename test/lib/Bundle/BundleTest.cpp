//===- BundleTest.cpp - the bundle file and its checks ----------------------===//
//
// A good bundle loads; whatever single thing is broken in it is refused with a message that says
// so.
//
//===----------------------------------------------------------------------===//
#include "lib/Bundle/Inspect.h"
#include "test/lib/Bundle/SampleBundle.h"
#include "test/unit/Check.h"

#include <functional>

using namespace planc;
using namespace planc::bundle;

static const std::string &ptxText() {
  static const std::string text = sample::ptx();
  return text;
}

static std::string good() {
  Result<std::string> bytes = serialize(sample::manifest(ptxText()), sample::sections(ptxText()));
  if (!bytes.ok())
    check::fail(__FILE__, __LINE__, bytes.error().message);
  return bytes.ok() ? *bytes : "";
}

/// The message with which `content` is refused, or "accepted".
static std::string load(std::string_view content) {
  ByteView bytes = asBytes(content);
  Result<Bundle> bundle = Bundle::parse("m.bundle", Bytes(bytes.begin(), bytes.end()));
  return bundle.ok() ? "accepted" : bundle.error().text();
}

TEST(round_trip) {
  std::string bytes = good();
  ByteView view = asBytes(bytes);
  Result<Bundle> bundle = Bundle::parse("m.bundle", Bytes(view.begin(), view.end()));
  REQUIRE(bundle.ok());
  Json written = toJson(bundle->manifest());
  written["sections"] = Json::array();
  CHECK_EQ(written.dump(), toJson(sample::manifest(ptxText())).dump());
  CHECK_EQ(asText(bundle->section("cache_sum.sm_80.ptx")), ptxText());
  CHECK_EQ(asText(bundle->section(planIrSection)), "MLIR");
  CHECK(bundle->section("missing").empty());
  CHECK_EQ(good(), bytes);
}

TEST(writing_a_wrong_manifest_leaves_no_file) {
  Manifest manifest = sample::manifest(ptxText());
  manifest.programs[0].rows = 0;
  std::string path = (check::folder() / "w.bundle").string();
  CHECK(!writeBundle(path, manifest, sample::sections(ptxText())).ok());
  CHECK(std::filesystem::is_empty(check::folder()));
}

TEST(every_truncation_is_refused) {
  std::string bytes = good();
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 97)
    if (load(std::string_view(bytes).substr(0, size)) == "accepted")
      check::fail(__FILE__, __LINE__, "accepted at " + std::to_string(size));
  CHECK_EQ(load(""), "m.bundle: error: has 0 bytes, a bundle has at least 64");
  CHECK_CONTAINS(
      load(std::string_view(bytes).substr(0, 4000)),
      fmt::format("truncated: the header says {} bytes, but the file ends at 4000", bytes.size()));
  CHECK_CONTAINS(load(bytes + "x"), "too long: the header says");
}

TEST(every_flipped_byte_is_refused) {
  std::string bytes = good();
  for (size_t at = 0; at < bytes.size(); at += at < 200 ? 1 : 13) {
    bytes[at] ^= 0x10;
    if (load(bytes) == "accepted")
      check::fail(__FILE__, __LINE__, "accepted with byte " + std::to_string(at) + " flipped");
    bytes[at] ^= 0x10;
  }
  bytes[3] ^= 1;
  CHECK_CONTAINS(load(bytes), "is not a bundle");
  bytes = good();
  bytes[8] = 9;
  CHECK_CONTAINS(load(bytes), "has bundle format version 9, this program reads versions 1 to 1");
  bytes = good();
  bytes[16] ^= 1;
  CHECK_CONTAINS(load(bytes), "header is damaged");
  bytes = good();
  bytes[80] ^= 1;
  CHECK_CONTAINS(load(bytes), "manifest is damaged");
  bytes = good();
  bytes.back() ^= 1;
  CHECK_CONTAINS(load(bytes), "section 2 (plan_ir) is damaged");
}

/// Loads a bundle whose manifest was changed after the writer's checks, checksums put right.
static std::string loadChanged(const std::function<void(Json &)> &change) {
  static const Json base = [] {
    std::string bytes = good();
    ByteView view = asBytes(bytes);
    return toJson(Bundle::parse("", Bytes(view.begin(), view.end()))->manifest());
  }();
  Json json = base;
  change(json);
  return load(sample::pack(json, sample::sections(ptxText())));
}

/// The same, by JSON pointer and new value.
static std::string loadWith(const char *pointer, const Json &value) {
  return loadChanged([&](Json &json) { json.at(Json::json_pointer(pointer)) = value; });
}

TEST(fields_are_strict) {
  CHECK_EQ(loadChanged([](Json &) {}), "accepted");
  CHECK_CONTAINS(loadChanged([](Json &j) { j["extra"] = 1; }),
                 "manifest at /: unknown key \"extra\"");
  CHECK_CONTAINS(loadChanged([](Json &j) { j["model"].erase("vocab"); }),
                 "manifest at /model: key \"vocab\" is missing");
  CHECK_CONTAINS(loadWith("/programs/0/rows", -1),
                 "manifest at /programs/0/rows: expected a non-negative integer");
  CHECK_CONTAINS(loadWith("/programs/0/rows", 4294967296), "4294967296 does not fit");
  CHECK_CONTAINS(loadWith("/kernels/0/targets/sm_80/grid", {1, 2}), "expected three numbers");
  CHECK_CONTAINS(
      loadWith("/programs/0/buffers/1/dtype", "f16"),
      "manifest at /programs/0/buffers/1/dtype: expected one of bf16, f32, i32, i64, e4m3");
  CHECK_CONTAINS(loadWith("/weights", Json::object()), "manifest at /weights: expected a list");
  CHECK_CONTAINS(loadWith("/format_version", 7), "header has format version 1, but its manifest 7");
}

TEST(sections_are_checked) {
  CHECK_CONTAINS(loadWith("/sections/1/offset", 1 << 20), "section 1 (cache_sum.sm_80.ptx) needs");
  CHECK_CONTAINS(loadWith("/sections/1/offset", UINT64_MAX), "but the file ends at");
  CHECK_CONTAINS(loadWith("/sections/2/bytes", UINT64_MAX), "section 2 (plan_ir) needs");
  CHECK_CONTAINS(loadWith("/sections/1/offset", 64), "overlaps what ends at");
  CHECK_CONTAINS(loadWith("/sections/0/offset", 64), "expected at");
  CHECK_CONTAINS(loadWith("/sections/1/name", "sum_state.sm_80.ptx"), "occurs twice");
  CHECK_CONTAINS(loadWith("/sections/0/xxh3", "0"), "section 0 (sum_state.sm_80.ptx) is damaged");
  CHECK_CONTAINS(loadChanged([](Json &j) { j["sections"].erase(2); }), "last section ends at");
}

TEST(kernels_are_checked) {
  CHECK_CONTAINS(loadWith("/kernels/0/name", "cache_sum"), "kernel \"cache_sum\" occurs twice");
  CHECK_CONTAINS(loadWith("/kernels/0/targets/sm_80/block/0", 2048),
                 "has grid [2, 1, 1] and block");
  CHECK_CONTAINS(loadWith("/kernels/0/targets/sm_80/block/1", 64), "4096 threads a block");
  CHECK_CONTAINS(loadWith("/kernels/0/targets/sm_80/ptx", "x"), "needs section \"x\"");
  CHECK_CONTAINS(loadWith("/kernels/0/targets/sm_80/cubin", "x"), "needs section \"x\"");
  CHECK_CONTAINS(loadWith("/kernels/0/targets/sm_80/ptx_bytes", 5), "has 5 bytes of PTX");
  CHECK_CONTAINS(loadWith("/kernels/1/targets/sm_80/scratch_bytes", 0), "has 0 bytes of scratch");
  CHECK_CONTAINS(loadWith("/kernels/0/targets", Json::object()), "has no image for target sm_80");
  CHECK_CONTAINS(loadWith("/targets/0/sm", 90), "target \"sm_80\" has sm 90");
  CHECK_CONTAINS(loadWith("/targets", Json::array()), "for no target");
  CHECK_CONTAINS(loadWith("/kernels/0/arithmetic", Json::array()),
                 "kernel \"sum_state\" does not say how its members round");
  CHECK_CONTAINS(loadWith("/kernels/0/arithmetic/0/parts", Json::array()),
                 "kernel \"sum_state\": residual_add does not say how its \"add\" is computed");
  CHECK_CONTAINS(loadWith("/kernels/0/arithmetic/0/op", "sort"), "\"sort\" is no op");
  CHECK_CONTAINS(loadWith("/kernels/0/arithmetic/0/parts/0/levels",
                          {{{"kind", "merge"}, {"terms", 1}, {"span", 128}}}),
                 "merge of 1 terms and a span of 128 is impossible");
  CHECK_CONTAINS(loadWith("/kernels/0/arithmetic/0/parts/0/levels",
                          {{{"kind", "sorted"}, {"terms", 1}, {"span", 0}}}),
                 "expected one of product, fused, mma, chain, tree, scale, merge");
}

TEST(weights_are_checked) {
  CHECK_CONTAINS(loadWith("/weights/1/format", "fp4"), "unknown format \"fp4\"");
  CHECK_CONTAINS(loadWith("/weights/1/layout", "packed"), "unknown layout \"packed\"");
  CHECK_CONTAINS(loadWith("/weights/1/bytes", 64), "has 64 bytes, but bf16 [64] are 128");
  CHECK_CONTAINS(loadWith("/weights/1/shape", {1 << 30, 1 << 30, 1 << 30}), "impossible shape");
  CHECK_CONTAINS(loadWith("/weights/2/shape", {2, 128, 256, 1}), "does not divide into blocks");
  CHECK_CONTAINS(loadWith("/weights/2/scale_bytes", 8), "expected 16 of [2, 2, 1]");
  CHECK_CONTAINS(loadWith("/weights/2/parts/1/offset", 0), "but what is before it ends at");
  CHECK_CONTAINS(loadWith("/weights/2/parts/1/offset", UINT64_MAX), "has offset");
  CHECK_CONTAINS(loadWith("/weights/2/parts/1/strides", {UINT64_MAX}), "a stride of");
  CHECK_CONTAINS(loadWith("/weights/2/parts/1/strides", Json::array()), "1 indices, but 0 strides");
  CHECK_CONTAINS(loadWith("/weights/2/parts/0/pattern", "a{e:0..}"), "needs indices like");
  CHECK_CONTAINS(loadWith("/weights/2/parts/0/pattern", "a{e:0..900000}"), "more tensors than fit");
  CHECK_CONTAINS(loadWith("/weights/2/parts/0/dtypes/0", "BF16"), "accepts BF16, which does not");
  CHECK_CONTAINS(loadWith("/weights/2/parts/0/target", "both"), "expected data or scales");
  CHECK_CONTAINS(loadChanged([](Json &j) { j["weights"][1]["parts"].erase(0); }),
                 "bytes 0 to 128 belong to no part");
  CHECK_CONTAINS(loadWith("/states/0/kind", "x"), "expected slots or paged");
  CHECK_CONTAINS(loadWith("/states/1/shape/0", 8), "expected 16 positions");
  CHECK_CONTAINS(loadWith("/states/0/bytes", 4), "has 4 bytes, but f32 [64] are 256");
  CHECK_CONTAINS(loadWith("/model/kv_block", 12), "expected a power of two");
  CHECK_CONTAINS(loadWith("/model/max_context", 65), "block_tables");
}

TEST(programs_are_checked) {
  CHECK_CONTAINS(loadWith("/programs/0/groups", 6), "5 nodes, 6 groups and 2 launches");
  CHECK_CONTAINS(loadWith("/programs/0/launches", 3), "but its launch list 5, 5 and 2");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/3/group", 4), "has group 4 where 3 comes next");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/nodes/0", "embed"), "in two groups");
  CHECK_CONTAINS(loadWith("/programs/0/inputs/0/name", "tokens"), "unknown step input \"tokens\"");
  CHECK_CONTAINS(loadWith("/programs/0/inputs/3/shape/1", 5), "expected i32 [2, 4]");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/kernel", "x"), "starts kernel \"x\"");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/note", "idle"), "needs one of a kernel");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/where", "host"), "runs on the device");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/args/0/name", "l9.y"),
                 "group 1 (rule_sum_state): argument 0: passes buffer \"l9.y\", which is not");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/args/0/kind", "state"), "expects a buffer");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/args/3/name", "embed"), "is on the host");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/1/args/3/part", "scales"), "has none");
  CHECK_CONTAINS(loadChanged([](Json &j) { j["programs"][0]["launch_list"][1]["args"].erase(0); }),
                 "passes 5 arguments, but kernel \"sum_state\" has 6 parameters");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/0/host/0/op", "softmax"), "is not known");
  CHECK_CONTAINS(loadWith("/programs/0/launch_list/0/host/0/weight", "l0.w"), "not on the host");
  CHECK_CONTAINS(loadWith("/programs/0/workspace/scratch_bytes", 0), "the workspace has 0");
}

TEST(buffers_are_checked) {
  CHECK_CONTAINS(loadWith("/programs/0/buffers/2/offset", 0), "share bytes 0 to 256");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/2/unshared_offset", 0), "of the unshared workspace");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/2/offset", 2048), "of a workspace of 2048");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/2/offset", 8), "not a multiple of 256");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/2/offset", nullptr), "has no workspace offset");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/1/last_use", 2), "lives from group 1 to 2");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/1/last_use", 9), "lives from group 1 to 9 of 5");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/1/def", 0), "writes buffer \"l0.y\", which group 0");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/1/edge", "embed.h"), "occurs twice");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/1/rows", 3), "512 bytes, but f32 [3, 64] are 768");
  CHECK_CONTAINS(loadWith("/programs/0/buffers/1/host_reads", true), "but no host op does");
}

/// Every value of the manifest replaced by each of these: refused or accepted, but never a crash.
TEST(no_value_crashes_the_loader) {
  const Json hostile[] = {nullptr,          0,  1,   -1, INT64_MAX, UINT64_MAX, 0.5, "", "{e:0..9}",
                          Json::array({1}), {}, true};
  Json flat = toJson(sample::manifest(ptxText())).flatten();
  size_t refused = 0;
  for (const auto &[pointer, value] : flat.items())
    for (const Json &replacement : hostile)
      refused += loadWith(pointer.c_str(), replacement) != "accepted";
  CHECK(refused > flat.size() * std::size(hostile) / 2);
}

TEST(inspect) {
  std::string bytes = good();
  ByteView view = asBytes(bytes);
  Result<Bundle> bundle = Bundle::parse("m.bundle", Bytes(view.begin(), view.end()));
  REQUIRE(bundle.ok());
  Json json = inspectJson(*bundle);
  CHECK_EQ(json["programs"][0]["groups"], 5);
  CHECK_EQ(json["programs"][0]["launch_list"][1]["kernel"], "sum_state");
  CHECK_EQ(json["kernels"][1]["groups"].dump(), "[3]");
  CHECK_EQ(json["kernels"][1]["programs"].dump(), "{\"decode_n2\":[3]}");
  CHECK_EQ(json["kernels"][0]["targets"]["sm_80"]["registers"], nullptr);
  CHECK_EQ(json["buffers"][1]["program"], "decode_n2");
  CHECK_EQ(json["workspace"]["unshared_bytes"], 2048);
  std::string text = inspectText(*bundle);
  CHECK_CONTAINS(text, "program decode_n2: mode decode, 2 rows, 5 nodes, 5 groups, 2 launches");
  CHECK_CONTAINS(text, "group 2 (snapshot) has no launch: nothing to do at this row count");
  CHECK_CONTAINS(text, "without ptxas: PTX only");
  Result<std::string> explained = explainText(*bundle, "sum_state");
  REQUIRE(explained.ok());
  CHECK_CONTAINS(*explained, "kernel sum_state (rowwise, reference)\n  program decode_n2, groups");
  CHECK_CONTAINS(*explained,
                 "  residual_add: |error| <= [add] * |x + update|\n    add        1 roundings");
  CHECK(explained->find("cache_sum") == std::string::npos);
  CHECK_CONTAINS(explainText(*bundle, "x").error().message, "there is no kernel \"x\"");
}

CHECK_MAIN
