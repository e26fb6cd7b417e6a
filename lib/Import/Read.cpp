//===- Read.cpp - each element of a plan by itself ------------------------===//
//
// Every key of kbp-graph/v1 that decides something has one type and a known set of words; labels
// are kept as they are. Nothing here looks at two elements at once, save positions and row
// agreement.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace planc;
using llvm::StringRef;
using llvm::Twine;
using plan::Format;
using plan::StepKind;

// The words of the schema.
static constexpr StringRef kSchema = "kbp-graph/v1";
static constexpr StringRef kModes[] = {"decode", "multi_seq"};
/// Modes that the schema has and this compiler does not take: their rows share states.
static constexpr StringRef kOtherModes[] = {"verify", "draft"};
static constexpr StringRef kLayerKinds[] = {"linear_attention", "full_attention"};
static constexpr StringRef kWhere[] = {"device", "host"};
static constexpr StringRef kComputes[] = {"memory", "cuda_core",
                                          "tensor_core:mma.sync.m16n8k16.bf16"};
static constexpr Format kEdgeFormats[] = {Format::BF16, Format::F32, Format::I32};
static constexpr Format kMatrixFormats[] = {Format::BF16, Format::FP8Block128x128};
static constexpr Format kReadFormats[] = {Format::BF16, Format::F32};
static constexpr Format kStepFormats[] = {Format::BF16, Format::F32, Format::E4M3,
                                          Format::FP8Block128x128, Format::None};
/// More rows than any arm has; what a kernel takes is its schedule's to say.
static constexpr int64_t kMaxRows = 1024;
static constexpr int64_t kMaxInt = INT32_MAX;

/// A label: a string as it is, anything else as JSON text; nothing for null.
static mlir::Attribute label(mlir::Builder &builder, const JsonValue *value) {
  if (!value || value->kind == JsonKind::Null)
    return {};
  return builder.getStringAttr(value->kind == JsonKind::String ? value->text : value->dump());
}

static mlir::DictionaryAttr
makeLabels(mlir::Builder &builder,
           std::initializer_list<std::pair<StringRef, const JsonValue *>> members) {
  llvm::SmallVector<mlir::NamedAttribute> labels;
  for (auto [key, value] : members)
    if (mlir::Attribute text = label(builder, value))
      labels.push_back(builder.getNamedAttr(key, text));
  return labels.empty() ? mlir::DictionaryAttr() : builder.getDictionaryAttr(labels);
}

/// Ids go into symbols, messages and file names.
static bool isId(StringRef text) {
  return !text.empty() && text.size() <= 200 && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-' || c == ':';
  });
}

static std::optional<Format> findFormat(StringRef spelling, llvm::ArrayRef<Format> allowed) {
  std::optional<Format> format = plan::formatFromPlan(spelling);
  return format && llvm::is_contained(allowed, *format) ? format : std::nullopt;
}

static std::string expectFormat(llvm::ArrayRef<Format> allowed) {
  return "expected " +
         alternatives(llvm::map_to_vector(allowed, [](Format f) { return plan::planSpelling(f); }));
}

/// `reference`, `bit_identical(test)`, `differs` where it is asked for, or why not.
static std::string checkNumerics(StringRef text, bool allowDiffers) {
  if (text == "reference" || (text == "differs" && allowDiffers))
    return {};
  if (text == "differs")
    return "'numerics' is 'differs': nothing bounds the result; --allow-differs takes it";
  StringRef test = text;
  if (test.consume_front("bit_identical(") && test.consume_back(")") && isId(test))
    return {};
  return "unknown numerics contract " + inQuotes(text) +
         ", expected 'reference' or 'bit_identical(<test>)'";
}

namespace {
class PlanReader {
public:
  PlanReader(Problems &problems, const JsonValue &root, bool allowDiffers)
      : problems(problems), builder(problems.getContext()), root(root), allowDiffers(allowDiffers) {
  }

  PlanContents read() {
    ObjectReader top(problems, root);
    if (!top.valid())
      return std::move(plan);
    std::optional<std::string> schema = top.string("schema");
    if (schema && *schema != kSchema)
      top.error("schema", "schema is " + inQuotes(*schema) + ", expected '" + kSchema + "'");
    if (!schema || *schema != kSchema)
      return std::move(plan); // nothing below would mean what it seems to
    if (const JsonValue *arm = top.object("arm"))
      readArm(*arm);
    const JsonValue *layers = top.array("layers"), *nodes = top.array("nodes"),
                    *edges = top.array("edges"), *groups = top.array("groups");
    readLabels(top);
    top.finish();
    if (!layers || !nodes || !edges || !groups)
      return std::move(plan);
    if (nodes->items.empty())
      problems.error(*nodes, "the plan has no nodes");
    numNodes = nodes->items.size();
    numGroups = groups->items.size();
    for (auto [i, layer] : llvm::enumerate(layers->items))
      readLayer(*layer, i);
    for (auto [i, node] : llvm::enumerate(nodes->items))
      readNode(*node, i);
    for (const JsonValue *edge : edges->items)
      readEdge(*edge);
    for (auto [i, group] : llvm::enumerate(groups->items))
      readGroup(*group, i);
    return std::move(plan);
  }

private:
  void readArm(const JsonValue &json) {
    ObjectReader arm(problems, json);
    arm.optional("digest");
    std::optional<std::string> mode = arm.string("mode");
    std::optional<int64_t> rows = arm.integer("rows", 1, kMaxRows);
    arm.finish();
    if (mode && llvm::is_contained(kOtherModes, StringRef(*mode)))
      arm.error("mode", "mode '" + *mode + "' is not compiled by this version, expected " +
                            alternatives(kModes));
    else if (mode && !llvm::is_contained(kModes, StringRef(*mode)))
      arm.error("mode", "unknown mode " + inQuotes(*mode) + ", expected " + alternatives(kModes));
    if (mode && rows && *mode == "decode" && *rows != 1)
      arm.error("rows", "mode 'decode' has one row, found " + Twine(*rows));
    plan.mode = mode.value_or("");
    plan.rows = rows.value_or(1);
  }

  void readLabels(ObjectReader &top) {
    const JsonValue *arm = root.find("arm");
    plan.labels = makeLabels(
        builder,
        {{"blueprint_id", top.optional("blueprint_id")},
         {"lineage", top.optional("lineage")},
         {"revision", top.optional("revision")},
         {"exported_by", top.optional("exported_by")},
         {"collapsed", top.optional("collapsed")},
         {"provenance", top.optional("provenance")},
         {"digest", arm && arm->kind == JsonKind::Object ? arm->find("digest") : nullptr}});
  }

  void readLayer(const JsonValue &json, size_t position) {
    ObjectReader layer(problems, json);
    if (!layer.valid())
      return;
    LayerEntry entry{&json, {}, {}};
    std::optional<int64_t> index = layer.integer("index", 0, kMaxInt);
    if (index && uint64_t(*index) != position)
      layer.error("index", "'index' is " + Twine(*index) + ", expected " + Twine(position) +
                               ", its position");
    if (std::optional<std::string> kind = layer.string("kind")) {
      if (!llvm::is_contained(kLayerKinds, StringRef(*kind)))
        layer.error("kind", "unknown layer kind " + inQuotes(*kind) + ", " +
                                suggestion(*kind, kLayerKinds));
      entry.kind = *kind;
    }
    std::optional<std::string> pattern = layer.string("template");
    const JsonValue *blocks = layer.array("blocks");
    layer.finish();
    std::string types;
    for (const JsonValue *block :
         blocks ? llvm::ArrayRef(blocks->items) : llvm::ArrayRef<JsonValue *>()) {
      if (block->kind != JsonKind::String || !isId(block->text)) {
        problems.error(*block, "block is " + block->describe() + ", expected an id");
        continue;
      }
      if (!blockIds.insert(block->text).second)
        problems.error(*block, "block " + inQuotes(block->text) + " is listed twice");
      entry.blocks.push_back(block->text);
      types += (types.empty() ? "" : "+") + StringRef(block->text).rsplit('.').second.str();
    }
    if (blocks && blocks->items.empty())
      problems.error(*blocks, "the layer has no blocks");
    else if (pattern && blocks && entry.blocks.size() == blocks->items.size() && *pattern != types)
      layer.error("template",
                  "'template' is " + inQuotes(*pattern) + ", but the blocks are '" + types + "'");
    plan.layers.push_back(std::move(entry));
  }

  void readNode(const JsonValue &json, size_t position) {
    ObjectReader node(problems, json);
    NodeEntry &entry = plan.nodes.emplace_back();
    entry.json = &json;
    entry.order = position;
    if (!node.valid())
      return;
    std::optional<std::string> id = node.string("id");
    entry.id = id.value_or("");
    node.setWho(entry.who());
    entry.layer = node.integerOrNull("layer", 0, kMaxInt).value_or(-1);
    entry.group = node.integer("group", 0, int64_t(numGroups) - 1).value_or(-1);
    std::string who = entry.who();
    node.setWho(who);
    if (id && !isId(*id))
      node.error("id", "'id' is " + inQuotes(*id) + ", expected letters, digits and any of _.-:");
    if (auto [first, isNew] = nodeIds.try_emplace(entry.id, &json); id && !isNew)
      problems.error(json, Twine(who) + "the id is taken", *first->second, "by this node");
    std::optional<int64_t> order = node.integer("order", 0, kMaxInt);
    if (order && uint64_t(*order) != position)
      node.error("order", "'order' is " + std::to_string(*order) + ", expected " +
                              std::to_string(position) + ", its position");
    if (std::optional<std::string> block = node.string("block")) {
      entry.block = *block;
      if (!isId(*block))
        node.error("block", "'block' is " + inQuotes(*block) + ", expected an id");
      else if (id && isId(*id) && !StringRef(*id).starts_with(*block + "."))
        node.error("id", "the id does not begin with the node's block, '" + *block + ".'");
    }
    entry.blockType = node.string("block_type").value_or("");
    if (!entry.blockType.empty() && !entry.block.empty() &&
        StringRef(entry.block).rsplit('.').second != entry.blockType &&
        entry.block != entry.blockType)
      node.error("block_type", "'block_type' is " + inQuotes(entry.blockType) +
                                   ", but the block is " + inQuotes(entry.block));
    entry.kind = node.stringOrNull("kind").value_or("");
    node.boolean("inserted");
    readOp(node, entry);
    if (const JsonValue *precision = node.object("precision"))
      readPrecision(*precision, entry, who);
    if (const JsonValue *steps = node.array("steps"))
      readSteps(*steps, entry, who);
    readPlace(node, entry.where, entry.compute, entry.numerics);
    if (entry.spec && entry.where == plan::Where::Host && !entry.spec->mayRunOnHost)
      node.error("where", "op '" + entry.spec->word + "' runs on the device, found 'host'");
    entry.labels = makeLabels(
        builder, {{"kernel", node.require("kernel")}, {"family", node.require("family")}});
    readPoint(node, entry, who);
    readState(node, entry);
    node.finish();
  }

  void readOp(ObjectReader &node, NodeEntry &entry) {
    std::optional<std::string> op = node.string("op");
    const JsonValue *roles = node.array("roles");
    if (!op)
      return;
    entry.spec = findOp(*op);
    if (!entry.spec) {
      node.error("op", "unknown op " + inQuotes(*op) + ", " +
                           suggestion(*op, llvm::map_to_vector(opSpecs(), [](const OpSpec &spec) {
                             return spec.word;
                           })));
      return;
    }
    StringRef role = StringRef(*op).split(':').second;
    bool agree = role.empty() ? roles && roles->items.empty()
                              : roles && roles->items.size() == 1 &&
                                    roles->items[0]->kind == JsonKind::String &&
                                    roles->items[0]->text == role;
    if (roles && !agree)
      problems.error(*roles, entry.who() + "'roles' contradict op '" + *op + "', expected [" +
                                 (role.empty() ? "" : "\"" + role.str() + "\"") + "]");
  }

  std::optional<Format> readFormat(ObjectReader &reader, StringRef key,
                                   llvm::ArrayRef<Format> allowed) {
    std::optional<std::string> text = reader.stringOrNull(key);
    if (!text)
      return std::nullopt;
    if (text->empty())
      return Format::None;
    std::optional<Format> format = findFormat(*text, allowed);
    if (!format)
      reader.error(key, "'" + key + "' is " + inQuotes(*text) + ", " + expectFormat(allowed));
    return format;
  }

  void readPrecision(const JsonValue &json, NodeEntry &entry, const std::string &who) {
    ObjectReader precision(problems, json, who);
    std::optional<Format> weight = readFormat(precision, "weight", kMatrixFormats);
    std::optional<Format> act = readFormat(precision, "activation", kReadFormats);
    std::optional<std::string> out = precision.stringOrNull("output");
    precision.finish();
    entry.weight = weight.value_or(Format::None);
    entry.act = act.value_or(Format::None);
    bool outputsKnown = out.has_value();
    StringRef outputs = out ? StringRef(*out) : StringRef();
    for (StringRef word : splitList(outputs)) {
      std::optional<Format> format = findFormat(word, kEdgeFormats);
      if (!format) {
        precision.error("output",
                        "output format is " + inQuotes(word) + ", " + expectFormat(kEdgeFormats));
        outputsKnown = false;
      }
      entry.out.push_back(format.value_or(Format::None));
    }
    if (!outputs.empty() && outputs.count(',') + 1 != entry.out.size()) {
      precision.error("output", "'output' is " + inQuotes(*out) + ", expected formats and commas");
      outputsKnown = false;
    }
    if (!entry.spec)
      return;
    const OpSpec &spec = *entry.spec;
    bool reads = *spec.inputs;
    size_t writes = splitList(spec.outputs).size() + (*spec.programOutput ? 1 : 0);
    if (weight && (*weight != Format::None) != spec.hasMatrix())
      precision.error("weight",
                      "op '" + spec.word +
                          (spec.hasMatrix() ? "' multiplies by a matrix, but 'weight' is null"
                                            : "' has no matrix, expected 'weight' to be null"));
    if (act && (*act != Format::None) != reads)
      precision.error("activation",
                      "op '" + spec.word +
                          (reads ? "' reads a value, but 'activation' is null"
                                 : "' reads no value, expected 'activation' to be null"));
    if (outputsKnown && entry.out.size() != writes)
      precision.error("output", "'output' lists " + Twine(entry.out.size()) + " formats, but op '" +
                                    spec.word + "' writes " + Twine(writes));
  }

  /// `weight S->P`, `mma A*B`, `word F`.
  std::optional<plan::StepAttr> parseStep(const JsonValue &json, const std::string &who) {
    if (json.kind != JsonKind::String) {
      problems.error(json, who + "step is " + json.describe() + ", expected a string");
      return std::nullopt;
    }
    auto [word, rest] = StringRef(json.text).split(' ');
    std::optional<StepKind> kind = plan::symbolizeStepKind(word);
    if (!kind) {
      llvm::SmallVector<StringRef> known;
      for (uint32_t i = 0; i <= plan::getMaxEnumValForStepKind(); ++i)
        known.push_back(plan::stringifyStepKind(StepKind(i)));
      problems.error(json,
                     who + "unknown step " + inQuotes(json.text) + ", " + suggestion(word, known));
      return std::nullopt;
    }
    bool pair = *kind == StepKind::Weight || *kind == StepKind::Mma;
    StringRef separator = *kind == StepKind::Weight ? "->" : "*";
    if (rest.empty() || (pair && !rest.contains(separator))) {
      problems.error(json, who + "step " + inQuotes(json.text) + " lacks a format, expected '" +
                               word +
                               (pair ? " <format>" + separator.str() + "<format>'" : " <format>'"));
      return std::nullopt;
    }
    llvm::SmallVector<StringRef> spellings = {rest};
    if (pair)
      spellings = {rest.split(separator).first, rest.split(separator).second};
    Format formats[2] = {Format::None, Format::None};
    for (auto [i, text] : llvm::enumerate(spellings)) {
      // Only a scale may be absent.
      auto allowed = llvm::ArrayRef(kStepFormats).drop_back(*kind == StepKind::Scale ? 0 : 1);
      std::optional<Format> format = findFormat(text, allowed);
      if (!format) {
        problems.error(json, who + "step " + inQuotes(json.text) + " has format " + inQuotes(text) +
                                 ", " + expectFormat(allowed));
        return std::nullopt;
      }
      formats[i] = *format;
    }
    return plan::StepAttr::get(builder.getContext(), *kind, formats[0], formats[1]);
  }

  void readSteps(const JsonValue &json, NodeEntry &entry, const std::string &who) {
    if (json.items.empty())
      problems.error(json, who + "'steps' is empty");
    for (const JsonValue *item : json.items)
      if (std::optional<plan::StepAttr> step = parseStep(*item, who))
        entry.steps.push_back(*step);
  }

  /// What nodes and groups share.
  void readPlace(ObjectReader &reader, plan::Where &where, std::string &compute,
                 std::string &numerics) {
    std::optional<std::string> place = reader.string("where");
    if (place && !llvm::is_contained(kWhere, StringRef(*place)))
      reader.error("where",
                   "'where' is " + inQuotes(*place) + ", expected " + alternatives(kWhere));
    where = plan::symbolizeWhere(place.value_or("device")).value_or(plan::Where::Device);
    std::optional<std::string> unit = reader.stringOrNull("compute");
    if (unit && !unit->empty() && !llvm::is_contained(kComputes, StringRef(*unit)))
      reader.error("compute", "unknown compute unit " + inQuotes(*unit) + ", expected " +
                                  alternatives(kComputes));
    else if (unit && place && unit->empty() != (*place == "host"))
      reader.error("compute", unit->empty()
                                  ? "'compute' is null, which is for the host alone"
                                  : "'compute' is '" + *unit + "', expected null on the host");
    compute = unit.value_or("");
    std::optional<std::string> contract = reader.string("numerics");
    if (std::string problem = contract ? checkNumerics(*contract, allowDiffers) : "";
        !problem.empty())
      reader.error("numerics", problem);
    numerics = contract.value_or("");
  }

  void readPoint(ObjectReader &node, NodeEntry &entry, const std::string &who) {
    const JsonValue *point = node.require("point");
    if (!point || point->kind == JsonKind::Null || !entry.spec)
      return;
    if (point->kind != JsonKind::Object) {
      problems.error(*point,
                     who + "'point' is " + point->describe() + ", expected an object or null");
      return;
    }
    llvm::SmallVector<StringRef> known = splitList(entry.spec->points);
    if (known.empty() || point->items.empty()) {
      problems.error(*point, who +
                                 (known.empty() ? "op '" + entry.spec->word + "' has no variants"
                                                : Twine("'point' is empty")) +
                                 ", expected 'point' to be null");
      return;
    }
    for (auto [key, value] : llvm::zip(point->keys, point->items)) {
      auto variant =
          llvm::find_if(known, [&, &key = key](StringRef v) { return v.split('=').first == key; });
      if (variant == known.end())
        problems.error(*value, who + "unknown variant " + inQuotes(key) + " of op '" +
                                   entry.spec->word + "', " +
                                   suggestion(key, llvm::map_to_vector(known, [](StringRef v) {
                                                return v.split('=').first;
                                              })));
      else if (value->kind != JsonKind::String || value->text != variant->split('=').second)
        problems.error(*value, who + "variant '" + key + "' is " + value->describe() +
                                   ", expected '" + variant->split('=').second + "'");
    }
  }

  void readState(ObjectReader &node, NodeEntry &entry) {
    std::optional<std::string> state = node.stringOrNull("state");
    if (!state || !entry.spec)
      return;
    std::string expected;
    for (const StateSpec &spec : entry.spec->states)
      expected += (expected.empty() ? "" : ",") + std::string(spec.name) + ":" +
                  plan::stringifyAccess(spec.access).str();
    if (*state != expected)
      node.error("state", "'state' is " + (state->empty() ? "null" : inQuotes(*state)) +
                              ", but op '" + entry.spec->word + "' has " +
                              (expected.empty() ? "none" : "'" + expected + "'"));
  }

  /// A dim expression over the plan's names, or null after an error.
  plan::DimAttr readDim(ObjectReader &edge, StringRef key) {
    std::optional<std::string> text = edge.string(key);
    if (!text)
      return {};
    if (text->size() <= 200 && plan::DimAttr::isValid(*text))
      return plan::DimAttr::get(builder.getContext(), StringRef(*text));
    edge.error(key, "'" + key + "' is " + inQuotes(*text) +
                        ", expected a sum of products of names and integers");
    return {};
  }

  void readEdge(const JsonValue &json) {
    ObjectReader edge(problems, json);
    if (!edge.valid())
      return;
    std::optional<std::string> id = edge.string("id");
    std::string who = "edge " + inQuotes(id.value_or("?")) + ": ";
    edge.setWho(who);
    const JsonValue *source = json.find("from");
    std::optional<int64_t> from;
    if (source && source->kind == JsonKind::Null) {
      edge.require("from");
      edge.error("from",
                 "the value comes from another plan, which is not compiled by this version");
    } else {
      from = edge.integer("from", 0, int64_t(numNodes) - 1);
    }
    std::optional<int64_t> to = edge.integer("to", 0, int64_t(numNodes) - 1);
    std::optional<std::string> formatText = edge.string("format");
    std::optional<Format> format =
        formatText ? findFormat(*formatText, kEdgeFormats) : std::nullopt;
    if (formatText && !format)
      edge.error("format",
                 "'format' is " + inQuotes(*formatText) + ", " + expectFormat(kEdgeFormats));
    plan::DimAttr rows = readDim(edge, "rows"), dim = readDim(edge, "dim");
    if (rows && rows.getExpr() != "n" && rows.getExpr() != "n*top_k") {
      edge.error("rows", "'rows' is " + inQuotes(rows.getExpr()) + ", expected 'n' or 'n*top_k'");
      rows = {};
    }
    std::optional<bool> fused = edge.boolean("fused");
    edge.finish();
    if (id && !isId(*id)) {
      edge.error("id", "'id' is " + inQuotes(*id) + ", expected letters, digits and any of _.-:");
      return;
    }
    if (!id || !from || !to || !format || !rows || !dim || !fused)
      return;
    auto [known, isNew] = edgeIndex.try_emplace(*id, plan.edges.size());
    if (isNew) {
      edgeRows[{known->second, *to}] = &json;
      plan.edges.push_back({&json, *id, *from, *format, rows, dim, *fused, {{*to, &json}}});
      return;
    }
    EdgeEntry &entry = plan.edges[known->second];
    const char *differs = entry.from != *from       ? "from"
                          : entry.format != *format ? "format"
                          : entry.rows != rows      ? "rows"
                          : entry.dim != dim        ? "dim"
                          : entry.fused != *fused   ? "fused"
                                                    : nullptr;
    if (differs)
      problems.error(*json.find(differs),
                     Twine(who) + "'" + differs + "' is " + json.find(differs)->describe() +
                         ", but another row of this edge says " +
                         entry.json->find(differs)->describe(),
                     *entry.json, "here");
    if (auto [first, fresh] = edgeRows.try_emplace({known->second, *to}, &json); !fresh)
      problems.error(json, Twine(who) + "the row to node " + Twine(*to) + " occurs twice",
                     *first->second, "first here");
    entry.readers.emplace_back(*to, &json);
  }

  void readGroup(const JsonValue &json, size_t position) {
    ObjectReader group(problems, json, "group " + std::to_string(position) + ": ");
    if (!group.valid())
      return;
    std::optional<int64_t> id = group.integer("id", 0, kMaxInt);
    if (id && uint64_t(*id) != position)
      group.error("id",
                  "'id' is " + Twine(*id) + ", expected " + Twine(position) + ", its position");
    plan::Where where;
    std::string compute, numerics;
    readPlace(group, where, compute, numerics);
    mlir::DictionaryAttr labels = makeLabels(
        builder, {{"rule", group.require("rule")}, {"kernels", group.require("kernels")}});
    const JsonValue *nodes = group.array("nodes");
    group.finish();
    llvm::SmallVector<mlir::Attribute> orders;
    for (const JsonValue *item :
         nodes ? llvm::ArrayRef(nodes->items) : llvm::ArrayRef<JsonValue *>()) {
      if (item->kind == JsonKind::Integer && item->integer >= 0 &&
          uint64_t(item->integer) < numNodes)
        orders.push_back(builder.getI64IntegerAttr(item->integer));
      else
        problems.error(*item, "group " + Twine(position) + ": member is " + item->describe() +
                                  ", expected the order of a node, up to " + Twine(numNodes - 1));
    }
    auto text = [&](const std::string &t) {
      return t.empty() ? mlir::StringAttr() : builder.getStringAttr(t);
    };
    plan.groups.push_back(plan::GroupInfoAttr::get(builder.getContext(), position, where,
                                                   text(compute), text(numerics),
                                                   builder.getArrayAttr(orders), labels));
  }

  Problems &problems;
  mlir::Builder builder;
  const JsonValue &root;
  bool allowDiffers;
  PlanContents plan;
  size_t numNodes = 0, numGroups = 0;
  llvm::StringSet<> blockIds;
  llvm::StringMap<const JsonValue *> nodeIds;
  llvm::StringMap<size_t> edgeIndex;
  llvm::DenseMap<std::pair<size_t, int64_t>, const JsonValue *> edgeRows; // by edge and reader
};
} // namespace

std::string NodeEntry::who() const {
  std::string text = "node " + inQuotes(id);
  if (group >= 0)
    text += " (group " + std::to_string(group) +
            (layer >= 0 ? ", layer " + std::to_string(layer) : "") + ")";
  return text + ": ";
}

PlanContents planc::readPlan(Problems &problems, const JsonValue &root, bool allowDiffers) {
  return PlanReader(problems, root, allowDiffers).read();
}
