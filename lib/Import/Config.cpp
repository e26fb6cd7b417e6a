//===- Config.cpp - a model's config.json as dims and parameters ----------===//
//
// The layout is that of Hugging Face: the text model's keys are nested in `text_config`. Three
// kinds of keys are read: dims, which must be there; parameters; and choices that the plan's ops
// take for granted, where another value is an error and absence means the value shown. All other
// keys are somebody else's and are ignored.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Config.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace planc;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// A dim of the plan and the key that holds it.
struct DimKey {
  const char *dim;
  const char *key;
};

constexpr DimKey kDims[] = {
    {"hidden", "hidden_size"},
    {"vocab", "vocab_size"},
    {"q_heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"lin_k_heads", "linear_num_key_heads"},
    {"lin_k_dim", "linear_key_head_dim"},
    {"lin_v_heads", "linear_num_value_heads"},
    {"lin_v_dim", "linear_value_head_dim"},
    {"experts", "num_experts"},
    {"top_k", "num_experts_per_tok"},
    {"moe_inter", "moe_intermediate_size"},
    {"shared_inter", "shared_expert_intermediate_size"},
};

/// A choice that the ops take for granted: `values` as JSON, any of them will do.
struct Required {
  const char *key;
  std::vector<StringRef> values;
};

const Required kRoot[] = {
    {"model_type", {"\"qwen3_5_moe\""}},
    {"tie_word_embeddings", {"false"}},
};
const Required kText[] = {
    {"hidden_act", {"\"silu\""}},         {"attention_bias", {"false"}},
    {"attn_output_gate", {"true"}},       {"output_gate_type", {"\"silu\"", "\"swish\""}},
    {"mamba_ssm_dtype", {"\"float32\""}}, {"linear_conv_kernel_dim", {"4"}},
    {"full_attention_interval", {"4"}},   {"mlp_only_layers", {"[]"}},
    {"decoder_sparse_step", {"1"}},       {"mtp_use_dedicated_embeddings", {"false"}},
    {"tie_word_embeddings", {"false"}},
};
const Required kRope[] = {
    {"rope_type", {"\"default\""}},
    {"mrope_interleaved", {"true"}},
};
const Required kQuantization[] = {
    {"quant_method", {"\"fp8\""}},
    {"fmt", {"\"e4m3\""}},
    {"weight_block_size", {"[128,128]"}},
};

constexpr StringRef kLayerKinds[] = {"linear_attention", "full_attention"};

/// Every dim and position fits 31 bits; sizes in bytes are checked where dims are multiplied.
constexpr int64_t kMaxDim = INT32_MAX;

/// Reads one object of the file.
class Section {
public:
  Section(Problems &problems, const JsonValue &object) : problems(problems), object(object) {}

  void require(llvm::ArrayRef<Required> choices) {
    for (const Required &choice : choices) {
      const JsonValue *found = object.find(choice.key);
      if (!found || llvm::is_contained(choice.values, StringRef(found->dump())))
        continue;
      std::string expected;
      for (StringRef value : choice.values)
        expected += (expected.empty() ? "" : " or ") + value.str();
      std::string text = found->dump();
      problems.error(*found, "'" + Twine(choice.key) + "' is " +
                                 (text.size() <= 40 ? text : found->describe()) + ", expected " +
                                 expected);
    }
  }

  const JsonValue *get(StringRef key) {
    const JsonValue *found = object.find(key);
    if (!found)
      problems.error(object, "key '" + key + "' is missing");
    return found;
  }

  std::optional<int64_t> size(StringRef key) {
    const JsonValue *found = get(key);
    if (!found)
      return std::nullopt;
    if (found->kind == JsonKind::Integer && found->integer > 0 && found->integer <= kMaxDim)
      return found->integer;
    problems.error(*found, "'" + key + "' is " + found->describe() +
                               ", expected an integer from 1 to " + Twine(kMaxDim));
    return std::nullopt;
  }

  /// A number in (0, max].
  std::optional<double> positive(StringRef key, double max) {
    const JsonValue *found = get(key);
    if (!found)
      return std::nullopt;
    double value = found->kind == JsonKind::Integer ? double(found->integer) : found->real;
    bool number = found->kind == JsonKind::Integer || found->kind == JsonKind::Real;
    if (number && std::isfinite(value) && value > 0 && value <= max)
      return value;
    problems.error(*found, "'" + key + "' is " + found->describe() +
                               ", expected a number above 0, at most " + Twine(int64_t(max)));
    return std::nullopt;
  }

private:
  Problems &problems;
  const JsonValue &object;
};

/// Reads the file into a ModelConfig.
class ConfigReader {
public:
  ConfigReader(Problems &problems, const JsonValue &root) : problems(problems), root(root) {}

  ModelConfig read() {
    if (root.kind != JsonKind::Object) {
      problems.error(root, "expected an object, found " + root.describe());
      return config;
    }
    Section(problems, root).require(kRoot);
    if (const JsonValue *quantization = optionalObject(root, "quantization_config"))
      Section(problems, *quantization).require(kQuantization);
    text = requiredObject(root, "text_config");
    if (!text)
      return config;
    Section section(problems, *text);
    section.require(kText);
    readDims(section);
    readLayers(section);
    config.rmsNormEps = section.positive("rms_norm_eps", 1).value_or(1);
    if (const JsonValue *positions = text->find("max_position_embeddings");
        positions && positions->kind != JsonKind::Null)
      config.maxPositions = section.size("max_position_embeddings");
    readRope();
    checkMultiples();
    return config;
  }

private:
  const JsonValue *requiredObject(const JsonValue &parent, StringRef key) {
    if (!parent.find(key))
      problems.error(parent, "key '" + key + "' is missing");
    return optionalObject(parent, key);
  }

  const JsonValue *optionalObject(const JsonValue &parent, StringRef key) {
    const JsonValue *found = parent.find(key);
    if (!found || found->kind == JsonKind::Object)
      return found;
    problems.error(*found, "'" + key + "' is " + found->describe() + ", expected an object");
    return nullptr;
  }

  void readDims(Section &section) {
    for (auto [dim, key] : kDims)
      if (std::optional<int64_t> size = section.size(key))
        config.dims.emplace_back(dim, *size);
  }

  void readLayers(Section &section) {
    const JsonValue *types = section.get("layer_types");
    if (types && types->kind != JsonKind::Array) {
      problems.error(*types, "'layer_types' is " + types->describe() + ", expected an array");
      types = nullptr;
    }
    for (const JsonValue *type :
         types ? llvm::ArrayRef(types->items) : llvm::ArrayRef<JsonValue *>()) {
      if (type->kind != JsonKind::String || !llvm::is_contained(kLayerKinds, StringRef(type->text)))
        problems.error(*type, "layer type is " + type->describe() + ", expected " +
                                  alternatives(kLayerKinds));
      config.layerTypes.push_back(type->text);
    }
    std::optional<int64_t> count = section.size("num_hidden_layers");
    if (count && types && uint64_t(*count) != types->items.size())
      problems.error(*text->find("num_hidden_layers"),
                     "'num_hidden_layers' is " + Twine(*count) + ", but 'layer_types' lists " +
                         Twine(types->items.size()),
                     *types, "listed here");
  }

  void readRope() {
    const JsonValue *rope = requiredObject(*text, "rope_parameters");
    if (!rope)
      return;
    Section section(problems, *rope);
    section.require(kRope);
    config.ropeTheta = section.positive("rope_theta", 1e15).value_or(1);
    // The rope parameters' own factor wins over the text model's.
    bool own = rope->find("partial_rotary_factor") || !text->find("partial_rotary_factor");
    std::optional<double> factor =
        Section(problems, own ? *rope : *text).positive("partial_rotary_factor", 1);
    std::optional<int64_t> headDim = config.dim("head_dim");
    if (!factor || !headDim)
      return;
    config.rotaryDim = int64_t(double(*headDim) * *factor);
    const JsonValue &named = *(own ? rope : text)->find("partial_rotary_factor");
    if (config.rotaryDim <= 0 || config.rotaryDim % 2)
      problems.error(named, "rotates " + Twine(config.rotaryDim) + " of " + Twine(*headDim) +
                                " dims of a head, expected an even number above 0");
    else
      readSections(section);
  }

  /// The streams t, h and w take turns over the pairs, so the sections follow from their number.
  void readSections(Section &section) {
    const JsonValue *sections = section.get("mrope_section");
    if (!sections)
      return;
    int64_t pairs = config.rotaryDim / 2;
    SmallSections expected = {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3};
    bool integers = sections->kind == JsonKind::Array;
    for (const JsonValue *item : sections->items) {
      integers &= item->kind == JsonKind::Integer;
      config.mropeSection.push_back(item->integer);
    }
    if (!integers || config.mropeSection != expected)
      problems.error(
          *sections,
          "'mrope_section' is " +
              (integers && sections->items.size() < 8 ? sections->dump() : sections->describe()) +
              ", expected [" + Twine(expected[0]) + "," + Twine(expected[1]) + "," +
              Twine(expected[2]) + "] for " + Twine(pairs) + " rotated pairs");
  }

  const JsonValue &keyOf(StringRef dim) {
    for (auto [name, key] : kDims)
      if (dim == name)
        return *text->find(key);
    llvm_unreachable("a dim of the table");
  }

  /// `product` of the dims named is a multiple of `divisor`.
  void checkMultiple(llvm::ArrayRef<StringRef> dims, int64_t divisor, StringRef what) {
    int64_t product = 1;
    for (StringRef dim : dims) {
      std::optional<int64_t> size = config.dim(dim);
      if (!size)
        return;                                        // missing, already said
      product = product % divisor * (*size % divisor); // enough to tell a multiple
    }
    if (product % divisor)
      problems.error(keyOf(dims.back()), what + ", expected a multiple of " + Twine(divisor));
  }

  void checkMultiples() {
    auto dim = [&](StringRef name) { return config.dim(name).value_or(0); };
    auto ratio = [&](StringRef big, StringRef small, StringRef key) {
      if (dim(big) && dim(small) && dim(big) % dim(small))
        problems.error(keyOf(big), "'" + key + "' is " + Twine(dim(big)) +
                                       ", expected a multiple of the " + Twine(dim(small)) +
                                       " key heads");
    };
    ratio("q_heads", "kv_heads", "num_attention_heads");
    ratio("lin_v_heads", "lin_k_heads", "linear_num_value_heads");
    if (dim("top_k") > dim("experts") && dim("experts"))
      problems.error(keyOf("top_k"), "chooses " + Twine(dim("top_k")) + " of " +
                                         Twine(dim("experts")) + " experts");
    // Rows and columns of every fp8 matrix, in blocks of 128; what is a product of others is not
    // listed.
    checkMultiple({"hidden"}, 128, "'hidden_size' is " + std::to_string(dim("hidden")));
    checkMultiple({"moe_inter"}, 128,
                  "'moe_intermediate_size' is " + std::to_string(dim("moe_inter")));
    checkMultiple({"shared_inter"}, 128,
                  "'shared_expert_intermediate_size' is " + std::to_string(dim("shared_inter")));
    checkMultiple({"kv_heads", "head_dim"}, 128,
                  "the key heads of an attention layer have " +
                      std::to_string(dim("kv_heads") * dim("head_dim")) + " rows");
    checkMultiple({"q_heads", "head_dim"}, 128,
                  "the query heads of an attention layer have " +
                      std::to_string(dim("q_heads") * dim("head_dim")) + " rows");
    checkMultiple({"lin_v_heads", "lin_v_dim"}, 128,
                  "the value heads of a linear attention layer have " +
                      std::to_string(dim("lin_v_heads") * dim("lin_v_dim")) + " rows");
    // C = 2*Kh*Kd + Vh*Vd, of which the second term is a multiple already.
    if (dim("lin_v_heads") * dim("lin_v_dim") % 128 == 0)
      checkMultiple({"lin_k_heads", "lin_k_dim"}, 64,
                    "the key heads of a linear attention layer have " +
                        std::to_string(dim("lin_k_heads") * dim("lin_k_dim")) + " rows");
    for (StringRef name : {"head_dim", "lin_k_dim", "lin_v_dim"})
      checkMultiple({name}, 32, (Twine("a head has ") + Twine(dim(name)) + " columns").str());
  }

  using SmallSections = llvm::SmallVector<int64_t>;

  Problems &problems;
  const JsonValue &root;
  const JsonValue *text = nullptr;
  ModelConfig config;
};
} // namespace

std::optional<int64_t> ModelConfig::dim(StringRef name) const {
  for (const auto &[key, value] : dims)
    if (key == name)
      return value;
  return std::nullopt;
}

ModelConfig planc::readConfig(Problems &problems, const JsonValue &root) {
  return ConfigReader(problems, root).read();
}
