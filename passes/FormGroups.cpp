//===- FormGroups.cpp - put the nodes of each group into a region ---------===//
//
// In     plan.graph of nodes, dims bound; `groups` lists the declared groups.
// Out    plan.group ops in the order of that list; what a group stores are its results.
// After  groups are isolated and run one after the other; in a graph, values come before their
// readers.
//
// Refused, all at once:
//   G1   an id that is not the group's position
//   G2   a node in no group, in two, or twice in one; an empty group; a node that names another
//   G3   host and device in one group, or a `where` that is not the members'
//   G4   a fused edge that leaves its group
//   G5   a read wider than stored across groups (S1 of VerifySteps.cpp)
//   G6   a member before another whose value it reads
//   G7   a group that is not convex: a path between members leads through a node outside
//   G8   groups in a ring
//   G9   a group before one it reads from
//   G10  a state or cache read or snapshotted before the write or update of the same step
//   G11  a tensor core unit without a member that multiplies its formats
//   G12  a member that asks for a tensor core unit which its group does not declare
//   G13  a member whose numerics contract is stricter than its group's, which is the one that is kept
// G4 to G13 need to know each node's group, so they are checked once G1 and G2 hold.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Reads.h"

#include "dialects/Plan/Contract.h"
#include "dialects/Plan/PlanOps.h"
#include "lib/Support/Cycles.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <deque>

using namespace mlir;
using plan::PlanNode;

namespace planc {
#define GEN_PASS_DEF_FORMGROUPS
#include "passes/Passes.h.inc"
} // namespace planc

/// In a plan file the group has a place of its own.
static Location groupLoc(plan::GraphOp graph, int64_t id) {
  auto file = dyn_cast<FileLineColLoc>(graph.getLoc());
  if (!file || file.getLine())
    return graph.getLoc();
  std::string place = file.getFilename().str() + "#/groups/" + std::to_string(id);
  return FileLineColLoc::get(graph.getContext(), place, 0, 0);
}

namespace {
/// That `to` runs after `from`: it reads a value or a state.
struct Dependency {
  size_t from, to;
  std::string what; // `edge 'l0.gdn.y'` or `state 'l3.attn.k'`
  bool isState;
};

/// The nodes and groups of a graph, by index.
struct Graph {
  explicit Graph(plan::GraphOp op);

  plan::GraphOp op;
  std::vector<PlanNode> nodes;
  llvm::DenseMap<Operation *, size_t> indexOf;
  SmallVector<plan::GroupInfoAttr> groups;
  /// Group of each node, and members of each group in their order; complete once G2 holds.
  std::vector<size_t> groupOf;
  std::vector<SmallVector<size_t>> members;

  int64_t order(size_t node) { return nodes[node].getNodeAttr().getOrder(); }
};

/// The checks; each reports all it finds.
class Checker {
public:
  explicit Checker(Graph &graph) : graph(graph) {}
  bool run();

private:
  void checkMembers();
  void checkWhere();
  void checkFused();
  void collectDependencies();
  void checkConvex();
  void checkOrder();
  void checkUnits();
  void checkContracts();

  InFlightDiagnostic nodeError(size_t node) {
    ok = false;
    return plan::emitNodeError(graph.nodes[node]);
  }
  InFlightDiagnostic groupError(size_t group) {
    ok = false;
    return mlir::emitError(groupLoc(graph.op, graph.groups[group].getId()))
           << "group " << graph.groups[group].getId() << ": ";
  }
  std::string quote(size_t node) {
    return ("'" + graph.nodes[node].getNodeAttr().getId() + "'").str();
  }

  Graph &graph;
  std::vector<Dependency> dependencies;
  std::vector<bool> inRing; // by group
  bool ok = true;
};
} // namespace

static constexpr size_t kNone = size_t(-1);

Graph::Graph(plan::GraphOp op) : op(op) {
  for (auto node : op.getBody().getOps<PlanNode>()) {
    indexOf[node] = nodes.size();
    nodes.push_back(node);
  }
  if (op.getGroups())
    groups.append(op.getGroupsAttr().getAsRange<plan::GroupInfoAttr>().begin(),
                  op.getGroupsAttr().getAsRange<plan::GroupInfoAttr>().end());
  groupOf.assign(nodes.size(), kNone);
  members.resize(groups.size());
}

bool Checker::run() {
  checkMembers(); // G1, G2
  checkWhere();   // G3
  if (!ok)
    return false;
  collectDependencies();
  checkFused();     // G4, G5
  checkConvex();    // G7
  checkOrder();     // G6, G8, G9, G10
  checkUnits();     // G11, G12
  checkContracts(); // G13
  return ok;
}

void Checker::checkMembers() {
  llvm::DenseMap<int64_t, size_t> byOrder;
  for (auto [index, node] : llvm::enumerate(graph.nodes)) {
    plan::NodeAttr id = node.getNodeAttr();
    if (!id) {
      ok = false;
      mlir::emitError(node->getLoc()) << plan::describe(node) << ": has no place in a plan";
    } else if (!byOrder.try_emplace(id.getOrder(), index).second) {
      nodeError(index) << "order " << id.getOrder() << " is taken by "
                       << quote(byOrder[id.getOrder()]);
    }
  }
  if (!ok)
    return;
  for (auto [position, info] : llvm::enumerate(graph.groups)) {
    if (info.getId() != int64_t(position))
      groupError(position) << "the id is " << info.getId() << ", expected " << position
                           << ", its position";
    if (!info.getNodes() || info.getNodes().empty())
      groupError(position) << "has no nodes";
    for (auto order : info.getNodes()
                          ? info.getNodes().getAsRange<IntegerAttr>()
                          : ArrayAttr::get(graph.op.getContext(), {}).getAsRange<IntegerAttr>()) {
      auto found = byOrder.find(order.getInt());
      if (found == byOrder.end()) {
        groupError(position) << "lists node " << order.getInt() << ", which there is not";
        continue;
      }
      size_t node = found->second;
      if (graph.groupOf[node] == position)
        groupError(position) << "lists node " << quote(node) << " (" << order.getInt() << ") twice";
      else if (graph.groupOf[node] != kNone)
        groupError(position) << "lists node " << quote(node) << " (" << order.getInt()
                             << "), which is in group " << graph.groupOf[node] << " as well";
      else {
        graph.groupOf[node] = position;
        graph.members[position].push_back(node);
      }
    }
    llvm::sort(graph.members[position],
               [&](size_t a, size_t b) { return graph.order(a) < graph.order(b); });
  }
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    int64_t named = graph.nodes[node].getNodeAttr().getGroup();
    if (graph.groupOf[node] == kNone)
      nodeError(node) << "no group lists it";
    else if (int64_t(graph.groupOf[node]) != named)
      nodeError(node) << "names group " << named << ", but group " << graph.groupOf[node]
                      << " lists it";
  }
}

void Checker::checkWhere() {
  for (auto [position, info] : llvm::enumerate(graph.groups)) {
    auto whereOf = [&](size_t node) { return graph.nodes[node].getNodeAttr().getWhere(); };
    ArrayRef<size_t> members = graph.members[position];
    auto host = llvm::find_if(members, [&](size_t n) { return whereOf(n) == plan::Where::Host; });
    auto device =
        llvm::find_if(members, [&](size_t n) { return whereOf(n) == plan::Where::Device; });
    if (host != members.end() && device != members.end())
      groupError(position) << "mixes host and device: node " << quote(*host)
                           << " runs on the host, node " << quote(*device) << " on the device";
    else if (!members.empty() && whereOf(members[0]) != info.getWhere())
      groupError(position) << "'where' is '" << plan::stringifyWhere(info.getWhere())
                           << "', but node " << quote(members[0]) << " runs on the "
                           << plan::stringifyWhere(whereOf(members[0]));
  }
}

void Checker::collectDependencies() {
  llvm::MapVector<Value, SmallVector<size_t>> writers, readers; // of states
  for (auto [index, node] : llvm::enumerate(graph.nodes)) {
    for (OpResult result : node->getResults())
      for (Operation *user : result.getUsers())
        if (auto reader = graph.indexOf.find(user); reader != graph.indexOf.end())
          dependencies.push_back(
              {index, reader->second,
               ("edge '" + node.getNodeAttr().getEdge(result.getResultNumber()) + "'").str(),
               false});
    for (auto [operand, access] : node.getAccesses()) {
      bool writes = access == plan::Access::Write || access == plan::Access::Update;
      (writes ? writers : readers)[node->getOperand(operand)].push_back(index);
    }
  }
  for (auto &[state, nodes] : readers) {
    auto ref = state.getDefiningOp<plan::StateRefOp>();
    std::string name = ref ? ("state '" + ref.getState() + "'").str() : "a state";
    for (size_t writer : writers.lookup(state))
      for (size_t reader : nodes)
        dependencies.push_back({writer, reader, name, true});
  }
}

void Checker::checkFused() {
  for (auto [index, node] : llvm::enumerate(graph.nodes)) {
    for (OpResult result : node->getResults()) {
      if (!node.getNodeAttr().isFused(result.getResultNumber()))
        continue;
      llvm::SmallSetVector<Operation *, 4> users(result.user_begin(), result.user_end());
      for (Operation *user : users) {
        size_t reader = graph.indexOf.lookup(user);
        if (!graph.indexOf.contains(user) || graph.groupOf[reader] == graph.groupOf[index])
          continue;
        InFlightDiagnostic diag = nodeError(reader);
        diag << "reads edge '" << node.getNodeAttr().getEdge(result.getResultNumber())
             << "' from group " << graph.groupOf[index]
             << ", but the edge is fused and never stored";
        diag.attachNote(node->getLoc()) << "made here by " << plan::describe(node);
      }
    }
    for (OpOperand &operand : node->getOpOperands().take_front(node.getNumEdges()))
      ok &= succeeded(planc::checkRead(node, operand));
  }
}

void Checker::checkConvex() {
  std::vector<std::vector<size_t>> next(graph.nodes.size());
  for (const Dependency &d : dependencies)
    next[d.from].push_back(d.to);
  inRing.assign(graph.groups.size(), false);
  std::vector<size_t> via(graph.nodes.size());
  for (size_t group = 0; group < graph.groups.size(); ++group) {
    if (graph.members[group].size() < 2)
      continue;
    // From the members outwards; who comes back to a member was on a path outside.
    std::fill(via.begin(), via.end(), kNone);
    std::deque<size_t> queue(graph.members[group].begin(), graph.members[group].end());
    size_t back = kNone, end = kNone;
    while (!queue.empty() && back == kNone) {
      size_t node = queue.front();
      queue.pop_front();
      for (size_t to : next[node]) {
        bool inside = graph.groupOf[to] == group;
        if (inside && graph.groupOf[node] != group) {
          back = node;
          end = to;
          break;
        }
        if (inside || via[to] != kNone)
          continue;
        via[to] = node;
        queue.push_back(to);
      }
    }
    if (back == kNone)
      continue;
    SmallVector<size_t> path; // outside nodes, last first
    size_t start = back;
    for (; graph.groupOf[start] != group; start = via[start]) {
      path.push_back(start);
      inRing[graph.groupOf[start]] = true;
    }
    inRing[group] = true;
    InFlightDiagnostic diag = groupError(group);
    diag << "is not convex: member " << quote(end) << " needs member " << quote(start)
         << (path.size() > 1 ? " through nodes " : " through node ");
    for (auto [i, node] : llvm::enumerate(llvm::reverse(ArrayRef(path).take_back(4))))
      diag << (i ? ", " : "") << quote(node) << " (group " << graph.groupOf[node] << ")";
    diag << (path.size() > 4 ? ", ... outside" : " outside");
    diag.attachNote(graph.nodes[path.back()]->getLoc())
        << plan::describe(graph.nodes[path.back()]) << " is on the path";
  }
}

void Checker::checkOrder() {
  std::vector<std::vector<size_t>> next(graph.groups.size());
  for (const Dependency &d : dependencies)
    if (graph.groupOf[d.from] != graph.groupOf[d.to])
      next[graph.groupOf[d.from]].push_back(graph.groupOf[d.to]);
  std::vector<size_t> ring(graph.groups.size(), kNone);
  for (auto [number, groups] : llvm::enumerate(planc::findCycles(next))) {
    bool told = llvm::any_of(groups, [&](size_t group) { return bool(inRing[group]); });
    for (size_t group : groups)
      ring[group] = number;
    if (told)
      continue; // a group that is not convex closes the ring
    InFlightDiagnostic diag = groupError(groups[0]);
    diag << "groups need each other in a ring: ";
    llvm::interleaveComma(groups, diag);
    for (const Dependency &d : dependencies) {
      size_t from = graph.groupOf[d.from], to = graph.groupOf[d.to];
      if (from != to && ring[from] == number && ring[to] == number)
        diag.attachNote(graph.nodes[d.to]->getLoc())
            << "group " << to << " needs " << d.what << " of group " << from;
    }
  }
  llvm::DenseSet<std::pair<size_t, size_t>> reported;
  for (const Dependency &d : dependencies) {
    size_t from = graph.groupOf[d.from], to = graph.groupOf[d.to];
    bool early = from == to ? graph.order(d.from) >= graph.order(d.to)
                            : from > to && (ring[from] == kNone || ring[from] != ring[to]);
    if (!early || (!d.isState && !reported.insert({d.from, d.to}).second))
      continue;
    InFlightDiagnostic diag = nodeError(d.to);
    if (d.isState)
      diag << "takes " << d.what << " before node " << quote(d.from) << " of "
           << (from == to ? "the same group" : "group " + std::to_string(from)) << " writes it";
    else if (from == to)
      diag << "comes before member " << quote(d.from) << ", whose " << d.what << " it reads";
    else
      diag << "its group comes before group " << from << ", whose " << d.what << " it reads";
    diag.attachNote(graph.nodes[d.from]->getLoc())
        << "written here by " << plan::describe(graph.nodes[d.from]);
  }
}

void Checker::checkUnits() {
  for (auto [position, info] : llvm::enumerate(graph.groups)) {
    StringRef unit = info.getCompute() ? info.getCompute().getValue() : "";
    for (size_t member : graph.members[position]) {
      StringAttr wanted = graph.nodes[member].getNodeAttr().getCompute();
      if (wanted && wanted.getValue().starts_with("tensor_core:") && wanted.getValue() != unit)
        nodeError(member) << "asks for unit '" << wanted.getValue() << "', but its group declares '"
                          << unit << "'";
    }
    if (!unit.consume_front("tensor_core:"))
      continue;
    // The unit's name ends in the format of its operands: mma.sync.m16n8k16.bf16.
    StringRef format = unit.rsplit('.').second;
    bool multiplies = llvm::any_of(graph.members[position], [&](size_t node) {
      plan::StepAttr mma = graph.nodes[node].getStepsAttr().find(plan::StepKind::Mma);
      return mma && plan::planSpelling(mma.getFirst()) == format &&
             plan::planSpelling(mma.getSecond()) == format;
    });
    if (!multiplies)
      groupError(position) << "declares unit '" << info.getCompute().getValue()
                           << "', but no member has a step 'mma " << format << "*" << format << "'";
  }
}

static plan::Contract contractOf(StringAttr text) {
  return (text ? plan::contractOf(text.getValue()) : std::nullopt)
      .value_or(plan::Contract::Reference);
}

void Checker::checkContracts() {
  for (auto [position, info] : llvm::enumerate(graph.groups))
    for (size_t member : graph.members[position]) {
      StringAttr claimed = graph.nodes[member].getNodeAttr().getNumerics();
      if (!claimed || contractOf(claimed) <= contractOf(info.getNumerics()))
        continue;
      nodeError(member) << "its numerics contract is '" << claimed.getValue()
                        << "', but its group keeps only '"
                        << plan::toString(contractOf(info.getNumerics())) << "'";
    }
}

//===----------------------------------------------------------------------===//
// Forming
//===----------------------------------------------------------------------===//

/// Where an operand stands in a group's argument list.
static unsigned rank(Value value) {
  return isa<plan::WeightType>(value.getType())                      ? 2
         : isa<plan::StateType>(value.getType())                     ? 3
         : isa_and_nonnull<plan::StepInputOp>(value.getDefiningOp()) ? 1
                                                                     : 0;
}

/// Moves the members of a group into a plan.group at the end of the graph.
static void formGroup(Graph &graph, size_t group, OpBuilder &builder) {
  llvm::SmallPtrSet<Operation *, 8> inside;
  for (size_t node : graph.members[group])
    inside.insert(graph.nodes[node]);
  llvm::SetVector<Value> inputs[4];
  SmallVector<Value> outputs;
  for (size_t member : graph.members[group]) {
    PlanNode node = graph.nodes[member];
    for (Value operand : node->getOperands())
      if (!inside.contains(operand.getDefiningOp()))
        inputs[rank(operand)].insert(operand);
    for (OpResult result : node->getResults())
      if (!node.getNodeAttr().isFused(result.getResultNumber()))
        outputs.push_back(result);
  }
  SmallVector<Value> operands;
  for (auto &some : inputs)
    operands.append(some.begin(), some.end());

  plan::GroupInfoAttr info = graph.groups[group];
  auto op = plan::GroupOp::create(builder, groupLoc(graph.op, info.getId()),
                                  TypeRange(ValueRange(outputs)), info, operands);
  Block &body = op.getBody().emplaceBlock();
  IRMapping arguments;
  for (Value operand : operands)
    arguments.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  for (size_t member : graph.members[group]) {
    PlanNode node = graph.nodes[member];
    node->moveBefore(&body, body.end());
    for (OpOperand &operand : node->getOpOperands())
      operand.set(arguments.lookupOrDefault(operand.get()));
  }
  OpBuilder end = OpBuilder::atBlockEnd(&body);
  plan::YieldOp::create(end, op.getLoc(), outputs);
  for (auto [stored, result] : llvm::zip(outputs, op.getResults()))
    stored.replaceUsesWithIf(
        result, [&](OpOperand &use) { return use.getOwner()->getParentOp() != op.getOperation(); });
}

namespace {
class FormGroups : public planc::impl::FormGroupsBase<FormGroups> {
  void runOnOperation() override {
    bool ok = true;
    for (auto op : getOperation().getOps<plan::GraphOp>()) {
      Graph graph(op);
      if (graph.nodes.empty())
        continue;
      if (!Checker(graph).run()) {
        ok = false;
        continue;
      }
      OpBuilder builder = OpBuilder::atBlockEnd(&op.getBody().front());
      for (size_t group = 0; group < graph.groups.size(); ++group)
        formGroup(graph, group, builder);
      op.removeGroupsAttr();
    }
    if (!ok)
      signalPassFailure();
  }
};
} // namespace
