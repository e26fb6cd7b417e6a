//===- Programs.cpp - launch lists, buffers and inputs of a manifest --------===//
//
// In     a plan.graph of plan.launch operations and host groups, in the plan's order, its memory
// assigned Out    a bundle::Program with the same order: one entry per group, one buffer per stored
// edge
//
// A launch names its operands by where their values come from: a stored edge by the id that its
// producing node gives it, the others by their symbol or their name.
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
  explicit ProgramBuilder(plan::GraphOp graph) : graph(graph) {}

  planc::bundle::Program build() {
    program.name = graph.getSymName().str();
    program.mode = graph.getMode().str();
    program.rows = graph.getRows();
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
  void addBuffer(Value value, StringRef edge, uint32_t group, bool byHost);
  void passOperand(planc::bundle::Launch &launch, Value operand, uint32_t group);

  plan::GraphOp graph;
  planc::bundle::Program program;
  DenseMap<Value, size_t> buffers; // to their index
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

void ProgramBuilder::addBuffer(Value value, StringRef edge, uint32_t group, bool byHost) {
  auto type = cast<RankedTensorType>(value.getType());
  Buffer buffer;
  buffer.edge = edge.str();
  buffer.dtype = planc::dtypeOf(type.getElementType());
  buffer.rows = type.getDimSize(0);
  buffer.dim = type.getNumElements() / buffer.rows;
  buffer.bytes = type.getNumElements() * byteSize(buffer.dtype);
  buffer.def = buffer.last_use = group;
  buffer.host_writes = byHost;
  buffers[value] = program.buffers.size();
  program.buffers.push_back(std::move(buffer));
}

/// What a launch passes for `operand`: one argument, or two for a weight with scales.
void ProgramBuilder::passOperand(planc::bundle::Launch &launch, Value operand, uint32_t group) {
  if (auto at = buffers.find(operand); at != buffers.end()) {
    Buffer &buffer = program.buffers[at->second];
    buffer.last_use = group;
    launch.args.push_back({ArgKind::buffer, buffer.edge, std::nullopt});
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

/// The edge that a region's yielded value is stored as: its node's place among the members says who
/// makes it.
static StringRef storedEdge(Value yielded, ArrayRef<plan::NodeAttr> nodes) {
  auto result = cast<OpResult>(yielded);
  Operation *node = result.getOwner();
  size_t member = std::distance(node->getBlock()->begin(), node->getIterator());
  return nodes[member].getEdge(result.getResultNumber());
}

void ProgramBuilder::addLaunch(plan::LaunchOp op) {
  SmallVector<plan::NodeAttr> nodes(op.getNodes().getAsRange<plan::NodeAttr>());
  planc::bundle::Launch &launch = beginGroup(op.getInfo(), nodes);
  if (op.getNote())
    launch.note = op.getNote()->str();
  if (!op.getKernelAttr())
    return;
  launch.kernel = op.getKernel()->str();
  ++program.launches;
  for (Value operand : op.getInputs())
    passOperand(launch, operand, launch.group);
  auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(op, op.getKernelAttr());
  Operation *yield = kernel.getBody().front().getTerminator();
  for (auto [result, yielded] : llvm::zip_equal(op.getResults(), yield->getOperands())) {
    addBuffer(result, storedEdge(yielded, nodes), launch.group, /*byHost=*/false);
    passOperand(launch, result, launch.group);
  }
}

void ProgramBuilder::addHostGroup(plan::GroupOp op) {
  SmallVector<plan::NodeAttr> nodes;
  for (auto node : op.getBody().getOps<plan::PlanNode>())
    nodes.push_back(node.getNodeAttr());
  planc::bundle::Launch &launch = beginGroup(op.getInfo(), nodes);

  Block &body = op.getBody().front();
  for (auto [result, yielded] :
       llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
    addBuffer(result, storedEdge(yielded, nodes), launch.group, /*byHost=*/true);
  for (auto node : body.getOps<plan::PlanNode>()) {
    planc::bundle::HostOp host;
    host.op = node->getName().stripDialect().str();
    host.node = node.getNodeAttr().getId().str();
    for (Value operand : node->getOperands()) {
      Value outside = op.getInputs()[cast<BlockArgument>(operand).getArgNumber()];
      if (auto weight = outside.getDefiningOp<plan::WeightRefOp>()) {
        host.weight = weight.getWeight().str();
      } else if (auto input = outside.getDefiningOp<plan::StepInputOp>()) {
        host.inputs.push_back(input.getName().str());
      } else {
        Buffer &buffer = program.buffers[buffers.at(outside)];
        buffer.last_use = launch.group;
        buffer.host_reads = true;
        host.inputs.push_back(buffer.edge);
      }
    }
    for (unsigned i = 0; i < node->getNumResults(); ++i)
      if (llvm::is_contained(body.getTerminator()->getOperands(), node->getResult(i)))
        host.outputs.push_back(node.getNodeAttr().getEdge(i).str());
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
