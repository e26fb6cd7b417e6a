//===- Build.cpp - checked records as the plan dialect --------------------===//
//
// Operands of an op come in the order edges, step inputs, weights, states. Weights are named
// `<node>.<weight>`, states `<block>.<state>`; arms of one model share them.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Plan.h"

#include "dialects/Plan/PlanOps.h"

#include "llvm/ADT/StringMap.h"

#include <set>

using namespace planc;
using llvm::StringRef;
using llvm::Twine;
using plan::Format;

namespace {
class GraphBuilder {
public:
  GraphBuilder(Problems &problems, const PlanContents &contents, const ModelConfig &config,
               mlir::ModuleOp module)
      : problems(problems), contents(contents), config(config), module(module), symbols(module),
        builder(problems.getContext()) {}

  void build() {
    std::string name = contents.mode + "_n" + std::to_string(contents.rows);
    mlir::Location loc = locationIn(builder.getContext(), problems.file(), "");
    if (symbols.lookup(name)) {
      problems.errorAt("/arm", "another plan has mode '" + contents.mode + "' and " +
                                   Twine(contents.rows) + " rows too");
      return;
    }
    builder.setInsertionPointToEnd(module.getBody());
    llvm::SmallVector<mlir::Attribute> groups(contents.groups.begin(), contents.groups.end());
    graph = plan::GraphOp::create(builder, loc, name, contents.mode, contents.rows,
                                  builder.getArrayAttr(groups));
    if (contents.labels)
      graph->setAttr("plan.labels", contents.labels);
    builder.setInsertionPointToEnd(&graph.getBody().emplaceBlock());
    // Operands must exist before their readers; the nodes are put in the plan's order afterwards.
    for (size_t order : topologicalOrder())
      buildNode(contents.nodes[order]);
    for (const NodeEntry &node : contents.nodes)
      ops[node.order]->moveBefore(&graph.getBody().front(), graph.getBody().front().end());
  }

private:
  std::vector<size_t> topologicalOrder() {
    std::vector<size_t> waiting(contents.nodes.size()), order;
    for (const NodeEntry &node : contents.nodes)
      waiting[node.order] = node.inputs.size();
    std::set<size_t>
        ready; // the earliest first, so that the plan's order decides where data does not
    for (size_t i = 0; i < waiting.size(); ++i)
      if (!waiting[i])
        ready.insert(i);
    while (!ready.empty()) {
      size_t next = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(next);
      for (const EdgeEntry *edge : contents.nodes[next].outputs) {
        if (!edge)
          continue;
        for (auto [reader, row] : edge->readers)
          if (--waiting[reader] == 0)
            ready.insert(reader);
      }
    }
    return order;
  }

  plan::DimAttr dim(StringRef expr) {
    return plan::DimAttr::get(builder.getContext(), expr.trim());
  }

  llvm::SmallVector<plan::DimAttr> dims(StringRef shape) {
    llvm::SmallVector<StringRef> exprs;
    shape.split(exprs, " x ");
    return llvm::map_to_vector(exprs, [&](StringRef expr) { return dim(expr); });
  }

  void buildNode(const NodeEntry &node) {
    mlir::Location loc =
        mlir::NameLoc::get(builder.getStringAttr(node.id), problems.location(*node.json));
    mlir::OperationState state(loc, node.spec->mlirName);
    for (const EdgeEntry *edge : node.inputs)
      state.operands.push_back(values.lookup(edge->id));
    for (StringRef name : splitList(node.spec->stepInputs))
      state.operands.push_back(stepInput(name));
    for (const WeightSpec &spec : node.spec->weights)
      if (applies(spec, node))
        state.operands.push_back(weight(spec, node));
    for (const StateSpec &spec : node.spec->states)
      state.operands.push_back(stateOf(spec, node));
    llvm::SmallVector<mlir::Attribute> edgeIds, fused;
    for (auto [edge, format] : llvm::zip(node.outputs, node.out)) {
      state.types.push_back(
          edge ? plan::EdgeType::get(builder.getContext(), {edge->rows, edge->dim}, edge->format)
               : plan::EdgeType::get(builder.getContext(), {dim("n")}, format));
      edgeIds.push_back(
          builder.getStringAttr(edge ? edge->id : node.block + "." + node.spec->programOutput));
      fused.push_back(builder.getBoolAttr(edge && edge->fused));
    }
    auto text = [&](const std::string &t) {
      return t.empty() ? mlir::StringAttr() : builder.getStringAttr(t);
    };
    state.addAttribute(
        "node", plan::NodeAttr::get(builder.getContext(), node.id, node.order, node.group,
                                    node.layer, text(node.block), builder.getArrayAttr(edgeIds),
                                    builder.getArrayAttr(fused), node.where, text(node.compute),
                                    text(node.numerics), node.labels));
    state.addAttribute("precision", plan::PrecisionAttr::get(builder.getContext(), node.weight,
                                                             node.act, node.out));
    state.addAttribute("steps", plan::StepsAttr::get(builder.getContext(), node.steps));
    node.spec->attributes(state, builder, {config, node.spec->word, contents.mode});
    mlir::Operation *op = builder.create(state);
    ops[node.order] = op;
    for (auto [edge, result] : llvm::zip(node.outputs, op->getResults()))
      if (edge)
        values[edge->id] = result;
  }

  /// Inserts at the head of the graph, where nothing depends on the order of nodes.
  template <typename Op, typename... Args> mlir::Value atHead(StringRef key, Args &&...args) {
    mlir::Value &value = heads[key];
    if (!value) {
      mlir::OpBuilder::InsertionGuard guard(builder);
      if (lastHead)
        builder.setInsertionPointAfter(lastHead);
      else
        builder.setInsertionPointToStart(&graph.getBody().front());
      auto op = Op::create(builder, graph.getLoc(), std::forward<Args>(args)...);
      lastHead = op;
      value = op->getResult(0);
    }
    return value;
  }

  mlir::Value stepInput(StringRef name) {
    const StepInputSpec &spec = findStepInput(name);
    auto shape = llvm::map_to_vector(spec.shape, [&](const char *expr) { return dim(expr); });
    return atHead<plan::StepInputOp>(("input " + name).str(),
                                     plan::EdgeType::get(builder.getContext(), shape, spec.format),
                                     name);
  }

  static bool applies(const WeightSpec &spec, const NodeEntry &node) {
    auto words = splitList(spec.when, '|');
    return words.empty() || llvm::is_contained(words, StringRef(node.blockType)) ||
           (!node.inputs.empty() && llvm::is_contained(words, node.inputs[0]->segment()));
  }

  /// A weight's or a state's symbol; made unless another arm has it. Null after an error.
  template <typename Op, typename... Args>
  Op symbol(const NodeEntry &node, StringRef name, mlir::Type type, Args &&...args) {
    if (mlir::Operation *known = symbols.lookup(name)) {
      auto same = llvm::dyn_cast<Op>(known);
      if (!same || same.getType() != type)
        problems.error(*node.json, node.who() + "'" + name +
                                       "' differs from the one of the same name in another plan");
      return same;
    }
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(graph);
    auto op = Op::create(
        builder, mlir::NameLoc::get(builder.getStringAttr(node.id), problems.location(*node.json)),
        builder.getStringAttr(name), mlir::TypeAttr::get(type), std::forward<Args>(args)...);
    symbols.insert(op);
    return op;
  }

  mlir::Value weight(const WeightSpec &spec, const NodeEntry &node) {
    Format format = spec.kind == WeightKind::Matrix  ? node.weight
                    : spec.kind == WeightKind::Table ? node.out[0]
                    : spec.kind == WeightKind::ToF32 ? Format::F32
                                                     : Format::BF16;
    auto type = plan::WeightType::get(builder.getContext(), dims(spec.shape), format);
    std::string name = node.id + "." + spec.name;
    symbol<plan::WeightOp>(node, name, type, partsOf(spec, node, format),
                           node.where == plan::Where::Host ? builder.getUnitAttr()
                                                           : mlir::UnitAttr());
    return atHead<plan::WeightRefOp>("weight " + name, type,
                                     mlir::FlatSymbolRefAttr::get(builder.getContext(), name));
  }

  mlir::ArrayAttr partsOf(const WeightSpec &spec, const NodeEntry &node, Format format) {
    bool blocks = format == Format::FP8Block128x128;
    Format convert = spec.kind == WeightKind::ToBf16  ? Format::BF16
                     : spec.kind == WeightKind::ToF32 ? Format::F32
                                                      : Format::None;
    mlir::ArrayAttr accepts = builder.getStrArrayAttr(
        convert != Format::None ? llvm::ArrayRef<StringRef>{"BF16", "F32"}
                                : llvm::ArrayRef<StringRef>{blocks ? "F8_E4M3" : "BF16"});
    llvm::SmallVector<mlir::Attribute> parts, scales;
    for (const PartSpec &part : spec.parts) {
      std::string tensor = part.tensor;
      if (StringRef(tensor).starts_with("{L}"))
        tensor = "model.language_model.layers." + std::to_string(node.layer) + tensor.substr(3);
      if (spec.kind == WeightKind::Matrix)
        tensor += ".weight";
      llvm::SmallVector<plan::DimAttr> shape = dims(part.shape);
      parts.push_back(plan::PartAttr::get(builder.getContext(), builder.getStringAttr(tensor),
                                          shape, accepts, false, convert));
      if (!blocks)
        continue;
      // A dim expression knows no division: the scales' shape is given in numbers.
      for (plan::DimAttr &extent : shape)
        extent = plan::DimAttr::get(builder.getContext(), evaluate(extent) / 128);
      scales.push_back(
          plan::PartAttr::get(builder.getContext(), builder.getStringAttr(tensor + "_scale_inv"),
                              shape, builder.getStrArrayAttr({"BF16", "F32"}), true, Format::F32));
    }
    parts.append(scales.begin(), scales.end());
    return builder.getArrayAttr(parts);
  }

  int64_t evaluate(plan::DimAttr dim) {
    return dim.evaluate(module->getAttrOfType<mlir::DictionaryAttr>(plan::kDimsAttrName))
        .value_or(0);
  }

  mlir::Value stateOf(const StateSpec &spec, const NodeEntry &node) {
    auto type =
        plan::StateType::get(builder.getContext(), spec.kind, dims(spec.shape), spec.format);
    std::string name = node.block + "." + spec.name;
    symbol<plan::StateOp>(node, name, type);
    return atHead<plan::StateRefOp>("state " + name, type,
                                    mlir::FlatSymbolRefAttr::get(builder.getContext(), name));
  }

  Problems &problems;
  const PlanContents &contents;
  const ModelConfig &config;
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  mlir::OpBuilder builder;
  plan::GraphOp graph;
  llvm::StringMap<mlir::Value> values, heads;
  mlir::Operation *lastHead = nullptr;
  std::vector<mlir::Operation *> ops = std::vector<mlir::Operation *>(contents.nodes.size());
};
} // namespace

mlir::LogicalResult planc::buildPlan(Problems &problems, const PlanContents &contents,
                                     const ModelConfig &config, mlir::ModuleOp module) {
  GraphBuilder(problems, contents, config, module).build();
  return mlir::failure(problems.any());
}
