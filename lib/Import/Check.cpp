//===- Check.cpp - what the elements of a plan say of each other ----------===//
//
// Resolves which edge is which operand, by the last segment of the edge's id, and checks nodes
// against layers, the plan against the config, and the flow of values and states as a whole. What
// is about groups is left to --plan-form-groups, what is about steps to --plan-verify-steps.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Plan.h"

#include "lib/Support/Cycles.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace planc;
using llvm::StringRef;
using llvm::Twine;

/// "'h' or 'y'"
static std::string wordsOf(StringRef alternativesList) {
  return alternatives(splitList(alternativesList, '|'));
}

/// Position of `word` in `a|b|c`, or -1.
static int positionIn(StringRef alternativesList, StringRef word) {
  auto words = splitList(alternativesList, '|');
  auto found = llvm::find(words, word);
  return found == words.end() ? -1 : int(found - words.begin());
}

namespace {
class Checker {
public:
  Checker(Problems &problems, PlanContents &plan, const ModelConfig &config)
      : problems(problems), plan(plan), config(config) {}

  void run() {
    indexEdges();
    checkBlocks();
    checkDims();
    for (const EdgeEntry &edge : plan.edges)
      checkEdgeOwner(edge);
    for (NodeEntry &node : plan.nodes) {
      resolveInputs(node);
      resolveOutputs(node);
      checkWeights(node);
    }
    checkStates();
    if (!problems.any())
      checkCycles();
  }

private:
  void error(const NodeEntry &node, const Twine &message) {
    problems.error(*node.json, node.who() + message);
  }

  /// Layers and blocks that nodes name are there, agree, and are all used.
  void checkBlocks() {
    llvm::StringMap<size_t> layerOf;
    llvm::StringSet<> used;
    for (auto [i, layer] : llvm::enumerate(plan.layers))
      for (const std::string &block : layer.blocks)
        layerOf[block] = i;
    for (const NodeEntry &node : plan.nodes) {
      used.insert(node.block);
      auto owner = layerOf.find(node.block);
      if (owner != layerOf.end() && int64_t(owner->second) != node.layer) {
        error(node, "'layer' is " + (node.layer < 0 ? "null" : std::to_string(node.layer)) +
                        ", but block '" + node.block + "' is in layer " + Twine(owner->second));
        continue;
      }
      if (node.layer < 0) {
        if (!node.kind.empty())
          error(node, "'kind' is " + inQuotes(node.kind) + ", expected null outside the layers");
        continue;
      }
      if (size_t(node.layer) >= plan.layers.size()) {
        error(node, "'layer' is " + Twine(node.layer) + ", but the plan has " +
                        Twine(plan.layers.size()) + " layers");
        continue;
      }
      const LayerEntry &layer = plan.layers[node.layer];
      if (owner == layerOf.end())
        problems.error(*node.json,
                       node.who() + "block " + inQuotes(node.block) + " is not in layer " +
                           Twine(node.layer),
                       *layer.json, "its blocks are listed here");
      if (node.kind != layer.kind)
        problems.error(*node.json,
                       node.who() + "'kind' is " +
                           (node.kind.empty() ? "null" : inQuotes(node.kind)) +
                           ", but its layer's is " + inQuotes(layer.kind),
                       *layer.json, "the layer");
    }
    for (const LayerEntry &layer : plan.layers)
      for (const std::string &block : layer.blocks)
        if (!used.contains(block))
          problems.error(*layer.json, "block '" + block + "' has no nodes");
  }

  /// Names in edge dims are dims of the config.
  void checkDims() {
    llvm::SmallVector<StringRef> known;
    for (const auto &[name, value] : config.dims)
      known.push_back(name);
    for (const EdgeEntry &edge : plan.edges)
      for (StringRef name : edge.dim.getNames())
        if (!llvm::is_contained(known, name))
          problems.error(*edge.json->find("dim"), "edge '" + edge.id + "': unknown dim " +
                                                      inQuotes(name) + ", " +
                                                      suggestion(name, known));
  }

  /// The id is the writer's block and what the value is to it.
  void checkEdgeOwner(const EdgeEntry &edge) {
    const NodeEntry &writer = plan.nodes[edge.from];
    StringRef block = StringRef(edge.id).rsplit('.').first;
    if (block != writer.block)
      problems.error(*edge.json,
                     "edge '" + edge.id + "': comes from a node of block '" + writer.block +
                         "', so its id should begin with '" + writer.block + ".'",
                     *writer.json, "written by node '" + writer.id + "'");
  }

  void resolveInputs(NodeEntry &node) {
    auto slots = splitList(node.spec->inputs);
    node.inputs.assign(slots.size(), nullptr);
    for (auto [edge, row] : into[node.order]) {
      auto slot = llvm::find_if(
          slots, [&, edge = edge](StringRef s) { return positionIn(s, edge->segment()) >= 0; });
      if (slot == slots.end()) {
        std::string reads;
        for (StringRef s : slots)
          reads += (reads.empty() ? ", which reads " : " and ") + wordsOf(s);
        problems.error(*row, node.who() + "edge '" + edge->id + "' is no input of op '" +
                                 node.spec->word + "'" +
                                 (reads.empty() ? std::string(", which reads no edge") : reads));
        continue;
      }
      const EdgeEntry *&taken = node.inputs[slot - slots.begin()];
      if (taken)
        problems.error(*row,
                       node.who() + "edges '" + taken->id + "' and '" + edge->id +
                           "' are the same input, " + wordsOf(*slot),
                       *taken->json, "the first one");
      else
        taken = edge;
    }
    for (auto [slot, edge] : llvm::zip(slots, node.inputs))
      if (!edge)
        error(node, "no edge brings its input " + wordsOf(slot));
  }

  void resolveOutputs(NodeEntry &node) {
    llvm::SmallVector<StringRef> words = splitList(node.spec->outputs);
    // Where an op has several kinds of input, the kind of the first says the kind of the output.
    int kind = 0;
    if (!node.inputs.empty() && node.inputs[0])
      kind = positionIn(splitList(node.spec->inputs)[0], node.inputs[0]->segment());
    for (StringRef &word : words)
      if (auto kinds = splitList(word, '|'); kinds.size() > 1)
        word = kinds[kind];
    node.outputs.assign(node.out.size(), nullptr);
    for (const EdgeEntry *edge : outOf[node.order]) {
      auto word = llvm::find(words, edge->segment());
      if (word == words.end()) {
        problems.error(*edge->json, node.who() + "edge '" + edge->id + "' is no output of op '" +
                                        node.spec->word + "'" +
                                        (words.empty() ? std::string(", which writes no edge")
                                                       : ", expected " + alternatives(words)));
        continue;
      }
      size_t index = word - words.begin();
      node.outputs[index] = edge;
      if (edge->format != node.out[index])
        problems.error(*node.json,
                       node.who() + "writes '" + plan::planSpelling(node.out[index]) +
                           "', but edge '" + edge->id + "' is stored as '" +
                           plan::planSpelling(edge->format) + "'",
                       *edge->json, "the edge");
    }
    for (auto [word, edge] : llvm::zip(words, node.outputs))
      if (!edge)
        error(node, "no edge carries its output '" + word + "'");
  }

  void checkWeights(const NodeEntry &node) {
    if (node.spec->weights.empty() || (!node.inputs.empty() && !node.inputs[0]))
      return;
    bool found = llvm::any_of(node.spec->weights, [&](const WeightSpec &weight) {
      return !*weight.when || positionIn(weight.when, node.blockType) >= 0 ||
             (!node.inputs.empty() && positionIn(weight.when, node.inputs[0]->segment()) >= 0);
    });
    bool ofLayer = StringRef(node.spec->weights[0].parts[0].tensor).starts_with("{L}");
    if (!found)
      error(node, "no weight is known for op '" + node.spec->word + "' in a block of type " +
                      inQuotes(node.blockType));
    else if (ofLayer != (node.layer >= 0))
      error(node, "op '" + node.spec->word + "' has " +
                      (ofLayer ? "weights of a layer, but 'layer' is null"
                               : "the model's own weight, but is in layer " +
                                     std::to_string(node.layer)));
  }

  /// Each state has one node that writes it.
  void checkStates() {
    llvm::StringMap<const NodeEntry *> writers;
    auto isWrite = [](const StateSpec &state) {
      return state.access == plan::Access::Write || state.access == plan::Access::Update;
    };
    for (const NodeEntry &node : plan.nodes)
      for (const StateSpec &state : node.spec->states)
        if (isWrite(state)) {
          auto [writer, isNew] = writers.try_emplace(node.block + "." + state.name, &node);
          if (!isNew)
            problems.error(*node.json,
                           node.who() + "writes state '" + writer->first() +
                               "', which another node writes already",
                           *writer->second->json, "by node '" + writer->second->id + "'");
        }
    for (const NodeEntry &node : plan.nodes)
      for (const StateSpec &state : node.spec->states)
        if (std::string name = node.block + "." + state.name; !writers.contains(name))
          error(node, "reads state '" + name + "', but no node writes it");
  }

  void checkCycles() {
    std::vector<std::vector<size_t>> next(plan.nodes.size());
    for (const EdgeEntry &edge : plan.edges)
      for (auto [to, row] : edge.readers)
        next[edge.from].push_back(to);
    for (const std::vector<size_t> &cycle : findCycles(next)) {
      std::string names;
      for (size_t member : llvm::ArrayRef(cycle).take_front(8))
        names += (names.empty() ? "'" : ", '") + plan.nodes[member].id + "'";
      if (cycle.size() > 8)
        names += " and " + std::to_string(cycle.size() - 8) + " more";
      error(plan.nodes[cycle[0]], cycle.size() == 1 ? "reads its own result"
                                                    : "nodes read each other in a cycle: " + names);
    }
  }

  using Incoming = llvm::SmallVector<std::pair<const EdgeEntry *, const JsonValue *>>;

  void indexEdges() {
    into.resize(plan.nodes.size());
    outOf.resize(plan.nodes.size());
    for (const EdgeEntry &edge : plan.edges) {
      outOf[edge.from].push_back(&edge);
      for (auto [to, row] : edge.readers)
        into[to].emplace_back(&edge, row);
    }
  }

  Problems &problems;
  PlanContents &plan;
  const ModelConfig &config;
  std::vector<Incoming> into;
  std::vector<llvm::SmallVector<const EdgeEntry *>> outOf;
};
} // namespace

/// The config's layers are the plan's.
static void checkLayers(Problems &problems, const PlanContents &plan, const ModelConfig &config,
                        StringRef configFile, const JsonValue &configRoot) {
  const JsonValue &types = *configRoot.find("text_config")->find("layer_types");
  mlir::Location place = locationIn(problems.getContext(), configFile, types.path());
  if (plan.layers.size() != config.layerTypes.size()) {
    std::string path = plan.layers.empty() ? "/layers" : plan.layers[0].json->parent->path();
    problems.errorAt(path,
                     "the plan has " + Twine(plan.layers.size()) + " layers, but the model has " +
                         Twine(config.layerTypes.size()),
                     place, "the model's layers");
    return;
  }
  for (auto [layer, type] : llvm::zip(plan.layers, config.layerTypes))
    if (layer.kind != type)
      problems.errorAt(layer.json->find("kind")->path(),
                       "'kind' is " + inQuotes(layer.kind) + ", but the model's layer is " +
                           inQuotes(type),
                       place, "the model's layers");
}

void planc::checkPlan(Problems &problems, PlanContents &plan, const ModelConfig &config,
                      StringRef configFile, const JsonValue &configRoot) {
  checkLayers(problems, plan, config, configFile, configRoot);
  Checker(problems, plan, config).run();
}
