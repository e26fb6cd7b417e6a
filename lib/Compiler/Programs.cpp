//===- Programs.cpp - launch lists, buffers and inputs of a manifest --------===//
//
// In     a plan.graph of plan.launch operations and host groups, in the plan's order, its memory
// assigned Out    a bundle::Program with the same order: one entry per group, one buffer per stored
// edge
//
// A launch names its operands by where their values come from: a stored edge by its id, the others
// by their symbol or their name.
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ManifestBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using planc::bundle::Arg;
using planc::bundle::ArgKind;
using planc::bundle::Buffer;

namespace {

class ProgramBuilder {
public:
  explicit ProgramBuilder(plan::GraphOp graph)
      : graph(graph), places(graph->getAttrOfType<ArrayAttr>("plan.buffers").getValue()) {}

  planc::bundle::Program build() {
    program.name = graph.getSymName().str();
    program.mode = graph.getMode().str();
    program.rows = graph.getRows();
    program.workspace.bytes = graph->getAttrOfType<IntegerAttr>("plan.workspace").getInt();
    program.workspace.unshared_bytes =
        graph->getAttrOfType<IntegerAttr>("plan.workspace_unshared").getInt();
    for (Operation &op : graph.getBody().front())
      llvm::TypeSwitch<Operation *>(&op)
          .Case<plan::StepInputOp>([&](auto input) { addInput(input); })
          .Case<plan::LaunchOp>([&](auto launch) { addLaunch(launch); })
          .Case<plan::GroupOp>([&](auto group) { addHostGroup(group); });
    return std::move(program);
  }

private:
  void addInput(plan::StepInputOp input);
  void addLaunch(plan::LaunchOp launch);
  void addHostGroup(plan::GroupOp group);

  planc::bundle::Launch &beginGroup(plan::GroupInfoAttr info, ArrayRef<plan::NodeAttr> nodes);
  void addBuffer(Value value);
  void passOperand(planc::bundle::Launch &launch, Value operand);

  plan::GraphOp graph;
  ArrayRef<Attribute> places; // #plan.buffer of the results that are still to come
  planc::bundle::Program program;
  DenseMap<Value, std::string> edges; // of stored values
};

} // namespace

void ProgramBuilder::addInput(plan::StepInputOp input) {
  auto type = cast<RankedTensorType>(input.getType());
  program.inputs.push_back({input.getName().str(),
                            planc::dtypeOf(type.getElementType()),
                            {type.getShape().begin(), type.getShape().end()}});
}

planc::bundle::Launch &ProgramBuilder::beginGroup(plan::GroupInfoAttr info,
                                                  ArrayRef<plan::NodeAttr> nodes) {
  planc::bundle::Launch launch;
  launch.group = info.getId();
  launch.where = plan::stringifyWhere(info.getWhere()).str();
  if (auto labels = info.getLabels())
    if (auto rule = labels.getAs<StringAttr>("rule"))
      launch.rule = rule.str();
  for (plan::NodeAttr node : nodes)
    launch.nodes.push_back(node.getId().str());
  program.nodes += nodes.size();
  ++program.groups;
  return program.launch_list.emplace_back(std::move(launch));
}

void ProgramBuilder::addBuffer(Value value) {
  auto place = cast<plan::BufferAttr>(places.front());
  places = places.drop_front();
  bool byHost = place.getWritten() == plan::Where::Host;
  // What the host makes and nobody reads is the result of the step, no part of the workspace.
  if (byHost && value.use_empty())
    return;
  auto type = cast<RankedTensorType>(value.getType());
  Buffer buffer;
  buffer.edge = place.getEdge().str();
  buffer.dtype = planc::dtypeOf(type.getElementType());
  buffer.rows = type.getDimSize(0);
  buffer.dim = type.getNumElements() / buffer.rows;
  buffer.bytes = place.getBytes();
  if (!byHost) {
    buffer.offset = place.getOffset();
    buffer.unshared_offset = place.getUnshared();
  }
  buffer.def = place.getFirst();
  buffer.last_use = place.getLast();
  buffer.host_writes = byHost;
  buffer.host_reads = place.getRead() == plan::Where::Host;
  edges[value] = buffer.edge;
  program.buffers.push_back(std::move(buffer));
}

/// What a launch passes for `operand`: one argument, or two for a weight with scales.
void ProgramBuilder::passOperand(planc::bundle::Launch &launch, Value operand) {
  if (auto edge = edges.find(operand); edge != edges.end()) {
    launch.args.push_back({ArgKind::buffer, edge->second, std::nullopt});
  } else if (auto input = operand.getDefiningOp<plan::StepInputOp>()) {
    launch.args.push_back({ArgKind::input, input.getName().str(), std::nullopt});
  } else if (auto state = operand.getDefiningOp<plan::StateRefOp>()) {
    launch.args.push_back({ArgKind::state, state.getState().str(), std::nullopt});
  } else {
    auto weight = operand.getDefiningOp<plan::WeightRefOp>();
    launch.args.push_back({ArgKind::weight, weight.getWeight().str(), "data"});
    if (planc::hasScales(cast<plan::WeightType>(weight.getType()).getFormat()))
      launch.args.push_back({ArgKind::weight, weight.getWeight().str(), "scales"});
  }
}

void ProgramBuilder::addLaunch(plan::LaunchOp op) {
  planc::bundle::Launch &launch =
      beginGroup(op.getInfo(), llvm::to_vector(op.getNodes().getAsRange<plan::NodeAttr>()));
  if (op.getNote())
    launch.note = op.getNote()->str();
  for (Value output : op.getOutputs())
    addBuffer(output);
  if (!op.getKernelAttr())
    return;
  launch.kernel = op.getKernel()->str();
  ++program.launches;
  for (Value operand : op.getInputs())
    passOperand(launch, operand);
  for (Value output : op.getOutputs())
    passOperand(launch, output);
}

void ProgramBuilder::addHostGroup(plan::GroupOp op) {
  SmallVector<plan::NodeAttr> nodes;
  for (auto node : op.getBody().getOps<plan::PlanNode>())
    nodes.push_back(node.getNodeAttr());
  planc::bundle::Launch &launch = beginGroup(op.getInfo(), nodes);
  for (Value output : op.getOutputs())
    addBuffer(output);

  Operation *yield = op.getBody().front().getTerminator();
  for (auto node : op.getBody().getOps<plan::PlanNode>()) {
    planc::bundle::HostOp host;
    host.op = node->getName().stripDialect().str();
    host.node = node.getNodeAttr().getId().str();
    for (Value operand : node->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument)
        continue; // handed over inside the group
      Value outside = op.getInputs()[argument.getArgNumber()];
      if (auto weight = outside.getDefiningOp<plan::WeightRefOp>())
        host.weight = weight.getWeight().str();
      else if (auto input = outside.getDefiningOp<plan::StepInputOp>())
        host.inputs.push_back(input.getName().str());
      else
        host.inputs.push_back(edges.at(outside));
    }
    for (auto [output, yielded] : llvm::zip_equal(op.getOutputs(), yield->getOperands()))
      if (auto edge = edges.find(output); edge != edges.end() && yielded.getDefiningOp() == node)
        host.outputs.push_back(edge->second);
    launch.host.push_back(std::move(host));
  }
}

planc::bundle::Program planc::describeProgram(plan::GraphOp graph) {
  return ProgramBuilder(graph).build();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Does a node of the kernel change what `argument`, a state, refers to?
static bool isWritten(BlockArgument argument) {
  return llvm::any_of(argument.getUses(), [](OpOperand &use) {
    auto node = dyn_cast<plan::PlanNode>(use.getOwner());
    return node && llvm::any_of(node.getAccesses(), [&](std::pair<unsigned, plan::Access> access) {
             return access.first == use.getOperandNumber() && access.second != plan::Access::Read;
           });
  });
}

std::vector<planc::bundle::Param> planc::describeParams(plan::LaunchOp launch, int64_t kvBlock) {
  auto kernel =
      SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(launch, launch.getKernelAttr());
  std::vector<bundle::Param> params;
  auto add = [&](ArgKind kind, bundle::Dtype dtype, ArrayRef<int64_t> shape, bool written) {
    params.push_back({kind, dtype, {shape.begin(), shape.end()}, written});
  };
  auto addTensor = [&](ArgKind kind, Type type, bool written) {
    auto tensor = cast<RankedTensorType>(type);
    add(kind, dtypeOf(tensor.getElementType()), tensor.getShape(), written);
  };
  for (auto [operand, argument] :
       llvm::zip_equal(launch.getInputs(), kernel.getBody().getArguments())) {
    if (auto ref = operand.getDefiningOp<plan::StateRefOp>()) {
      auto state = SymbolTable::lookupNearestSymbolFrom<plan::StateOp>(launch, ref.getStateAttr());
      bundle::State described = describeState(state, 0, kvBlock);
      add(ArgKind::state, described.dtype, described.shape, isWritten(argument));
    } else if (auto ref = operand.getDefiningOp<plan::WeightRefOp>()) {
      auto weight =
          SymbolTable::lookupNearestSymbolFrom<plan::WeightOp>(launch, ref.getWeightAttr());
      bundle::Weight described = describeWeight(weight, "");
      add(ArgKind::weight, dtypeOf(weight.getType().getFormat()), described.shape, false);
      if (described.scale_bytes)
        add(ArgKind::weight, bundle::Dtype::f32, described.scale_shape, false);
    } else {
      bool input = operand.getDefiningOp<plan::StepInputOp>() != nullptr;
      addTensor(input ? ArgKind::input : ArgKind::buffer, argument.getType(), false);
    }
  }
  for (Value output : launch.getOutputs())
    addTensor(ArgKind::buffer, output.getType(), true);
  return params;
}

//===----------------------------------------------------------------------===//
// First uses
//===----------------------------------------------------------------------===//

/// The member of a region that takes `argument` first.
static size_t firstMember(BlockArgument argument) {
  for (auto [index, member] : llvm::enumerate(*argument.getOwner()))
    if (llvm::is_contained(member.getOperands(), argument))
      return index;
  llvm_unreachable("an argument of a kernel or group is used");
}

static StringRef symbolOf(Value operand) {
  if (auto weight = operand.getDefiningOp<plan::WeightRefOp>())
    return weight.getWeight();
  if (auto state = operand.getDefiningOp<plan::StateRefOp>())
    return state.getState();
  return {};
}

llvm::StringMap<plan::NodeAttr> planc::firstUses(ModuleOp module) {
  llvm::StringMap<plan::NodeAttr> uses;
  SymbolTable symbols(module);
  auto addUses = [&](OperandRange inputs, Block &body, auto nodeOf) {
    for (auto [operand, argument] : llvm::zip_equal(inputs, body.getArguments()))
      if (StringRef symbol = symbolOf(operand); !symbol.empty())
        uses.try_emplace(symbol, nodeOf(firstMember(argument)));
  };
  for (auto graph : module.getOps<plan::GraphOp>())
    for (Operation &op : graph.getBody().front()) {
      if (auto group = dyn_cast<plan::GroupOp>(op)) {
        Block &body = group.getBody().front();
        addUses(group.getInputs(), body, [&](size_t member) {
          return cast<plan::PlanNode>(*std::next(body.begin(), member)).getNodeAttr();
        });
      }
      auto launch = dyn_cast<plan::LaunchOp>(op);
      if (!launch || !launch.getKernelAttr())
        continue;
      auto kernel = symbols.lookup<plan::KernelOp>(*launch.getKernel());
      addUses(launch.getInputs(), kernel.getBody().front(),
              [&](size_t member) { return cast<plan::NodeAttr>(launch.getNodes()[member]); });
    }
  return uses;
}
