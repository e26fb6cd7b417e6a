//===- SampleBundle.cpp - a small bundle for tests --------------------------===//
//
// See SampleBundle.h. hidden = vocab = 64, so that a row of the hidden state is a row of logits.
//
//===----------------------------------------------------------------------===//
#include "test/lib/Bundle/SampleBundle.h"

#include "lib/Support/Hash.h"

using namespace planc;
using namespace planc::bundle;

std::string sample::ptx() {
  Result<Bytes> text = readFile(PLANC_TEST_INPUTS "/runtime/sample.ptx");
  return text.ok() ? std::string(asText(*text)) : "";
}

std::vector<SectionData> sample::sections(const std::string &ptx) {
  return {{"sum_state.sm_80.ptx", ptx}, {"cache_sum.sm_80.ptx", ptx}, {planIrSection, "MLIR"}};
}

static Kernel kernel(std::string name, uint32_t rows, std::vector<Param> params,
                     const std::string &ptx) {
  Kernel kernel;
  kernel.name = name;
  kernel.schedule = "rowwise";
  kernel.numerics = "reference";
  kernel.compute = "memory";
  kernel.arithmetic = {{"residual_add", {numerics::rounding("add", 1)}}};
  kernel.params = std::move(params);
  KernelTarget image;
  image.entry = name;
  image.grid = {rows, 1, 1};
  image.block = {64, 1, 1};
  image.ptx = name + ".sm_80.ptx";
  image.ptx_bytes = ptx.size();
  for (const Param &param : kernel.params) {
    if (param.kind == ArgKind::scratch)
      image.scratch_bytes = rows * 4;
    if (param.kind == ArgKind::counters)
      image.counters = rows;
  }
  kernel.targets["sm_80"] = image;
  return kernel;
}

static Weight weight(std::string name, std::string format, Shape shape, uint64_t bytes) {
  Weight weight;
  weight.name = std::move(name);
  weight.node = "l0.sum";
  weight.format = std::move(format);
  weight.layout = "row_major";
  weight.shape = std::move(shape);
  weight.bytes = bytes;
  return weight;
}

Manifest sample::manifest(const std::string &ptx, uint32_t rows) {
  int64_t n = rows;
  Manifest m;
  m.provenance = {"0.1.0", "LLVM 22.1.8", std::nullopt, "xxh3:0"};
  m.model = {64, 64, 16, {{"hidden", 64}, {"vocab", 64}}};
  m.targets = {{"sm_80", 80, "a100"}};

  Program p;
  p.name = fmt::format("decode_n{}", rows);
  p.mode = "decode";
  p.rows = rows;
  p.plan_digest = "xxh3:1";
  p.nodes = 5;
  p.groups = 5;
  p.launches = 2;
  p.inputs = {{"token_ids", Dtype::i32, {n}},    {"positions", Dtype::i32, {3, n}},
              {"slot_mapping", Dtype::i64, {n}}, {"block_tables", Dtype::i32, {n, 4}},
              {"seq_lens", Dtype::i32, {n}},     {"slots_in", Dtype::i32, {n}},
              {"slots_out", Dtype::i32, {n}}};
  uint64_t hBytes = rows * 128, yBytes = rows * 256;
  p.buffers = {
      {"embed.h", Dtype::bf16, n, 64, hBytes, std::nullopt, std::nullopt, 0, 1, true, false},
      {"l0.y", Dtype::f32, n, 64, yBytes, 0, 0, 1, 3, false, false},
      {"head.logits", Dtype::bf16, n, 64, hBytes, 1024, 1024, 3, 4, false, true}};
  p.workspace = {2048, 2048, rows * 4, rows};

  auto named = [](ArgKind kind, std::string name) { return Arg{kind, name, std::nullopt}; };
  auto device = [](uint32_t group, std::string node, std::string kernel, std::vector<Arg> args) {
    return Launch{group, "rule_" + kernel, "device", {node}, kernel, std::nullopt, args, {}};
  };
  auto host = [](uint32_t group, std::string node, HostOp op) {
    return Launch{group, node, "host", {node}, std::nullopt, std::nullopt, {}, {std::move(op)}};
  };
  p.launch_list = {
      host(0, "embed", {"embed", "embed", {"token_ids"}, {"embed.h"}, "embed"}),
      device(1, "l0.sum", "sum_state",
             {named(ArgKind::buffer, "embed.h"), named(ArgKind::input, "slots_in"),
              named(ArgKind::input, "slots_out"), named(ArgKind::weight, "l0.w"),
              named(ArgKind::state, "l0.acc"), named(ArgKind::buffer, "l0.y")}),
      Launch{
          2, "snapshot", "device", {"l0.snapshot"}, {}, "nothing to do at this row count", {}, {}},
      device(3, "l0.cache", "cache_sum",
             {named(ArgKind::buffer, "l0.y"), named(ArgKind::input, "positions"),
              named(ArgKind::input, "slot_mapping"), named(ArgKind::input, "block_tables"),
              named(ArgKind::input, "seq_lens"), named(ArgKind::state, "l0.k"),
              named(ArgKind::buffer, "head.logits"), Arg{ArgKind::scratch, {}, {}},
              Arg{ArgKind::counters, {}, {}}}),
      host(4, "head.argmax", {"argmax", "head.argmax", {"head.logits"}, {}, std::nullopt})};
  m.programs = {p};

  m.kernels = {kernel("sum_state", rows,
                      {{ArgKind::buffer, Dtype::bf16, {n, 64}, false},
                       {ArgKind::input, Dtype::i32, {n}, false},
                       {ArgKind::input, Dtype::i32, {n}, false},
                       {ArgKind::weight, Dtype::bf16, {64}, false},
                       {ArgKind::state, Dtype::f32, {64}, true},
                       {ArgKind::buffer, Dtype::f32, {n, 64}, true}},
                      ptx),
               kernel("cache_sum", rows,
                      {{ArgKind::buffer, Dtype::f32, {n, 64}, false},
                       {ArgKind::input, Dtype::i32, {3, n}, false},
                       {ArgKind::input, Dtype::i64, {n}, false},
                       {ArgKind::input, Dtype::i32, {n, 4}, false},
                       {ArgKind::input, Dtype::i32, {n}, false},
                       {ArgKind::state, Dtype::bf16, {16, 1, 1}, true},
                       {ArgKind::buffer, Dtype::bf16, {n, 64}, true},
                       {ArgKind::scratch, Dtype::f32, {n}, true},
                       {ArgKind::counters, Dtype::i32, {n}, true}},
                      ptx)};

  Weight embed = weight("embed", "bf16", {64, 64}, 8192);
  embed.host = true;
  embed.parts = {{"m.embed.weight", {64, 64}, {"BF16"}, "data", 0, {}}};
  Weight w = weight("l0.w", "bf16", {64}, 128);
  w.parts = {{"m.layers.0.w", {64}, {"BF16", "F32"}, "data", 0, {}}};
  Weight experts = weight("l0.experts", fp8Block128, {2, 256, 128}, 65536);
  experts.scale_shape = {2, 2, 1};
  experts.scale_bytes = 16;
  std::vector<std::string> scaleTypes = {"BF16", "F32"};
  std::string name = "m.layers.0.experts.{e:0..1}.";
  experts.parts = {{name + "gate.weight", {128, 128}, {"F8_E4M3"}, "data", 0, {32768}},
                   {name + "up.weight", {128, 128}, {"F8_E4M3"}, "data", 16384, {32768}},
                   {name + "gate.weight_scale_inv", {1, 1}, scaleTypes, "scales", 0, {8}},
                   {name + "up.weight_scale_inv", {1, 1}, scaleTypes, "scales", 4, {8}}};
  m.weights = {embed, w, experts};
  m.states = {{"l0.acc", 0, "slots", Dtype::f32, {64}, 256},
              {"l0.k", 0, "paged", Dtype::bf16, {16, 1, 1}, 32}};
  return m;
}

std::string sample::pack(Json manifest, std::span<const SectionData> sections) {
  auto put = [](std::string &out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out += char(value >> 8 * i);
  };
  std::string json = manifest.dump(), body = json;
  for (const SectionData &section : sections) {
    body.resize((body.size() + 63) / 64 * 64, '\0');
    body += section.bytes;
  }
  std::string out = "planbndl";
  put(out, formatVersion, 4);
  put(out, 64, 4);
  put(out, json.size(), 8);
  put(out, xxh3(asBytes(json)), 8);
  put(out, 64 + body.size(), 8);
  put(out, 0, 8);
  put(out, 0, 8);
  put(out, xxh3(asBytes(out)), 8);
  return out + body;
}
