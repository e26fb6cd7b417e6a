//===- SampleModel.cpp - the sample bundle with a checkpoint and an oracle --===//
//
// See SampleModel.h.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/SampleModel.h"

#include "test/unit/Check.h"

#include <cmath>
#include <cstdlib>

using namespace planc;

const char *sample::deviceName() {
  const char *name = std::getenv("PLANRT_TEST_DEVICE");
  return name ? name : "emulator";
}

float sample::widen(uint16_t half) {
  uint32_t word = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

uint16_t sample::narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

/// Values of some variety that bf16 holds exactly.
static float embedding(int token, int i) { return float((token * 37 + i * 11) % 64 - 32) / 16; }
static float factor(int i) { return float(i % 8 - 3) / 4; }

static std::string bf16(size_t count, float (*value)(size_t)) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = sample::narrow(value(i));
    bytes.append(reinterpret_cast<const char *>(&half), 2);
  }
  return bytes;
}

sample::Tensors sample::tensors() {
  Tensors result;
  result["m.embed.weight"] = {
      "BF16", {64, 64}, bf16(4096, [](size_t i) { return embedding(int(i / 64), int(i % 64)); })};
  result["m.layers.0.w"] = {"BF16", {64}, bf16(64, [](size_t i) { return factor(int(i)); })};
  for (int e = 0; e < 2; ++e)
    for (int up = 0; up < 2; ++up) {
      std::string name = fmt::format("m.layers.0.experts.{}.{}.weight", e, up ? "up" : "gate");
      result[name] = {"F8_E4M3", {128, 128}, std::string(16384, char('a' + 2 * e + up))};
      result[name + "_scale_inv"] = {"BF16", {1, 1}, bf16(1, [](size_t) { return 0.5f; })};
    }
  result["m.vision.unused"] = {"F32", {1}, "abcd"};
  return result;
}

std::string sample::writeTensors(const std::string &path, const Tensors &tensors) {
  Json header = Json::object();
  std::string data;
  for (const auto &[name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  std::string text = header.dump(), content(8, '\0');
  for (int i = 0; i < 8; ++i)
    content[size_t(i)] = char(text.size() >> 8 * i);
  if (Status status = writeFile(path, asBytes(content + text + data)); !status.ok())
    check::fail(__FILE__, __LINE__, status.error().text());
  return path;
}

static std::string write(const std::string &name, const bundle::Manifest &manifest,
                         std::span<const bundle::SectionData> sections) {
  std::string path = (check::folder() / name).string();
  if (Status status = bundle::writeBundle(path, manifest, sections); !status.ok())
    check::fail(__FILE__, __LINE__, status.error().text());
  return path;
}

std::string sample::writeBundleFile(uint32_t rows) {
  std::string text = ptx();
  return write(fmt::format("sample{}.bundle", rows), manifest(text, rows), sections(text));
}

std::string sample::writePagedBundleFile(uint32_t rows) {
  std::string text = ptx();
  bundle::Manifest model = manifest(text, rows);
  model.states.erase(model.states.begin());
  // Without slots the kernel reads zeros and writes nothing, whatever state it is given.
  model.kernels[0].params[4] = model.kernels[1].params[5];
  model.kernels[0].params[4].written = false;
  model.programs[0].launch_list[1].args[4].name = model.states[0].name;
  return write(fmt::format("paged{}.bundle", rows), model, sections(text));
}

std::string sample::writeManyProgramsFile() {
  std::string text = ptx();
  bundle::Manifest all = manifest(text, 2);
  std::vector<bundle::SectionData> parts = sections(text);
  for (uint32_t rows : {4u, 1u}) {
    bundle::Manifest other = manifest(text, rows);
    bundle::Program program = other.programs[0];
    for (bundle::Kernel kernel : other.kernels) {
      kernel.name += fmt::format("_{}", rows);
      bundle::KernelTarget &image = kernel.targets.begin()->second;
      image.ptx = kernel.name + ".sm_80.ptx";
      parts.insert(parts.end() - 1, {image.ptx, text});
      all.kernels.push_back(kernel);
    }
    for (bundle::Launch &launch : program.launch_list)
      if (launch.kernel)
        *launch.kernel += fmt::format("_{}", rows);
    program.mode = rows == 1 ? "decode" : "multi_seq";
    all.programs.push_back(program);
  }
  return write("many.bundle", all, parts);
}

const std::string &sample::checkpoint() {
  static const std::string path =
      writeTensors((check::folder() / "sample.safetensors").string(), tensors());
  return path;
}

std::vector<float> sample::Oracle::step(int32_t token) {
  if (!recurrent)
    std::fill(state.begin(), state.end(), 0.0f);
  for (int i = 0; i < 64; ++i)
    state[size_t(i)] = std::fma(embedding(token, i), factor(i), state[size_t(i)]);
  entries.push_back(widen(narrow(state[0] + float(entries.size()))));
  float sum = 0;
  for (float entry : entries)
    sum += entry;
  std::vector<float> logits;
  for (float value : state)
    logits.push_back(widen(narrow(value + sum)));
  return logits;
}

int32_t sample::Oracle::argmax(const std::vector<float> &logits) {
  return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

bool sample::Handles::take(planrt_status result, planrt_error *&error) {
  status = result;
  message = error ? planrt_error_message(error) : "";
  planrt_error_free(error);
  error = nullptr;
  return result == PLANRT_OK;
}

sample::Handles::Handles(const std::string &bundlePath) {
  planrt_error *error = nullptr;
  take(planrt_bundle_open(bundlePath.c_str(), &bundle, &error), error);
}

bool sample::Handles::open(planrt_session_options *sessionOptions,
                           planrt_step_options *stepOptions) {
  planrt_error *error = nullptr;
  if (!bundle)
    return false;
  if (!device && !take(planrt_device_open(deviceName(), nullptr, &device, &error), error))
    return false;
  if (!weights &&
      !take(planrt_weights_open(bundle, device, checkpoint().c_str(), nullptr, &weights, &error),
            error))
    return false;
  planrt_session_options options;
  planrt_session_options_init(&options);
  options.sequences = 2;
  if (sessionOptions)
    options = *sessionOptions;
  if (!session) {
    if (!take(planrt_session_open(weights, &options, &session, &error), error))
      return false;
    // All that it has room for, so that tests know their numbers.
    for (uint32_t i = 0, made = 0; i < std::max(options.sequences, 1u); ++i)
      if (!take(planrt_sequence_create(session, &made, &error), error) || made != i)
        return false;
  }
  return step || take(planrt_step_open(session, nullptr, stepOptions, &step, &error), error);
}

planrt_status sample::Handles::run(std::vector<uint32_t> sequences, std::vector<int32_t> tokens) {
  planrt_error *error = nullptr;
  next.assign(sequences.size(), -1);
  take(planrt_step_run(step, uint32_t(sequences.size()), sequences.data(), tokens.data(),
                       next.data(), &error),
       error);
  return status;
}

std::vector<float> sample::Handles::logits(uint32_t row) {
  std::vector<float> out(64);
  planrt_error *error = nullptr;
  take(planrt_step_logits(step, row, out.data(), out.size(), &error), error);
  return out;
}

sample::Handles::~Handles() {
  // In the order in which they were made, the opposite of the usual one: any order is allowed.
  planrt_bundle_free(bundle);
  planrt_device_free(device);
  planrt_weights_free(weights);
  planrt_session_free(session);
  planrt_step_free(step);
}
