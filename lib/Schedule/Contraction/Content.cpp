//===- Content.cpp - take a kernel apart into components -------------------===//

#include "lib/Schedule/Contraction/Content.h"
#include "lib/Schedule/Reduce.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace planc;
using namespace planc::contraction;

int64_t contraction::rowsOf(Value edge) { return *plan::knownDim(edge.getType(), 0); }
int64_t contraction::columnsOf(Value edge) { return *plan::knownDim(edge.getType(), 1); }

bool contraction::isPointwise(Operation *op) {
  return isa<plan::ResidualAddOp, plan::SigmoidGateMulOp, plan::SiluMulOp, plan::GdnGatesOp,
             plan::SplitOp, plan::BlendOp>(op);
}

Value ColumnMap::column(KernelBuilder &b, Value element, Value part) const {
  if (parts == 1)
    return element;
  if (stretch == elements)
    return b.add(element, b.mul(part, elements));
  Value start = b.mul(b.div(element, stretch), parts * stretch);
  return b.add(b.add(start, b.mul(part, stretch)), b.rem(element, stretch));
}

Value ColumnMap::column(KernelBuilder &b, Value element, int64_t part) const {
  return column(b, element, b.i32(part));
}

std::pair<Value, Value> ColumnMap::place(KernelBuilder &b, Value column) const {
  if (parts == 1)
    return {column, b.i32(0)};
  if (stretch == elements) {
    Value part = b.div(column, elements);
    return {b.sub(column, b.mul(part, elements)), part};
  }
  Value block = b.div(column, parts * stretch), within = b.rem(column, parts * stretch);
  return {b.add(b.mul(block, stretch), b.rem(within, stretch)), b.div(within, stretch)};
}

ColumnMap contraction::plainColumns(int64_t columns) { return {columns, 1, columns}; }

std::optional<ColumnMap> contraction::pairing(Operation *op, unsigned operand) {
  if (operand != 0)
    return std::nullopt;
  int64_t elements = columnsOf(op->getResult(0));
  if (isa<plan::SiluMulOp, plan::GdnGatesOp>(op))
    return ColumnMap{elements, 2, elements};
  if (auto split = dyn_cast<plan::SplitOp>(op))
    return ColumnMap{elements, 2, *split.getHeadDim().getConstant()};
  return std::nullopt;
}

bool Component::gathered() const {
  return llvm::any_of(dots, [](const Dot &dot) { return bool(dot.ids()); });
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

static Dot describeDot(plan::PlanContraction op) {
  Dot dot;
  dot.op = op;
  dot.format = lookupWeightFormat(cast<plan::WeightType>(dot.matrix().getType()).getFormat());
  dot.activation = cast<plan::PlanNode>(op.getOperation()).getPrecisionAttr().getAct();
  dot.rows = rowsOf(dot.result());
  dot.columns = columnsOf(dot.result());
  dot.depth = columnsOf(dot.x());
  return dot;
}

static std::optional<Refusal> refuseDot(const Dot &dot, const Ability &ability) {
  auto op = const_cast<Dot &>(dot).op;
  if (!dot.format)
    return Refusal{"no contraction reads its weight format", op};
  plan::StepAttr accumulate =
      cast<plan::PlanNode>(op.getOperation()).getStepsAttr().find(plan::StepKind::Accumulate);
  if (accumulate && accumulate.getFirst() != plan::Format::F32)
    return Refusal{"sums are formed in f32 only", op};
  if (dot.activation != plan::Format::BF16 && dot.activation != plan::Format::F32)
    return Refusal{"the activation is neither bf16 nor f32", op};
  if (dot.ids() && dot.ids().getDefiningOp())
    return Refusal{"the expert ids are made in the same kernel, before a barrier of the whole grid",
                   dot.ids().getDefiningOp()};
  if (std::string reason = ability.judge(dot); !reason.empty())
    return Refusal{reason, op};
  return std::nullopt;
}

namespace {
/// What lies behind a value on the way over element-wise ops.
struct Sources {
  llvm::SetVector<Operation *> dots, elementwise;

  void collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return;
    if (isa<plan::PlanContraction>(op)) {
      dots.insert(op);
      return;
    }
    if (elementwise.insert(op))
      for (Value operand : op->getOperands())
        collect(operand);
  }
};
} // namespace

/// What `reader` takes whole rows of must be there before it begins; a sum is spread over the grid.
static std::optional<Refusal> refuseRows(Operation *reader, Value rows) {
  Sources sources;
  sources.collect(rows);
  if (sources.dots.empty())
    return std::nullopt;
  return Refusal{"needs whole rows of " + plan::describe(sources.dots.front()) +
                     ", which other blocks of the grid compute",
                 reader};
}

//===----------------------------------------------------------------------===//
// Components
//===----------------------------------------------------------------------===//

/// The gate of a blend is one value a row: all readers must take it as that.
static bool isGate(const Dot &dot) {
  Value result = dot.result();
  return dot.columns == 1 && !result.use_empty() &&
         llvm::any_of(result.getUsers(), llvm::IsaPred<plan::BlendOp>) &&
         llvm::all_of(result.getUses(), [](OpOperand &use) {
           auto blend = dyn_cast<plan::BlendOp>(use.getOwner());
           return isa<plan::YieldOp>(use.getOwner()) ||
                  (blend && use.get() == blend.getGate() && columnsOf(blend.getResult()) > 1);
         });
}

/// Fills `rows` and `map` from the outputs and the epilogue, or says what does not fit.
static std::optional<Refusal> shapeComponent(Component &component, const Sources &epilogue) {
  component.rows = rowsOf(component.outputs.front());
  for (Value output : component.outputs)
    component.rows = std::min(component.rows, rowsOf(output));
  for (Operation *op : epilogue.elementwise)
    component.rows = std::min(component.rows, rowsOf(op->getResult(0)));

  std::optional<ColumnMap> paired;
  for (Operation *op : epilogue.elementwise)
    if (auto map = pairing(op, 0)) {
      Sources behind;
      behind.collect(op->getOperand(0));
      if (behind.dots.empty() && !component.dots.empty())
        continue; // reads what is stored, wherever it lies
      if (paired && *paired != *map)
        return Refusal{"two ops of the kernel pair columns in different ways", op};
      paired = map;
    }
  int64_t columns = 0;
  for (const Dot &dot : component.dots)
    if (!dot.gate)
      columns = std::max(columns, dot.columns);
  if (component.dots.empty() || columns == 0) {
    // No dot but gates: every output is read and made column by column.
    for (Value output : component.outputs)
      columns = std::max(columns, columnsOf(output));
    component.map = plainColumns(columns);
  } else {
    component.map = paired ? *paired : plainColumns(columns);
  }
  for (Dot &dot : component.dots)
    if (!dot.gate && dot.columns != component.map.columns())
      return Refusal{"its " + std::to_string(dot.columns) + " columns do not meet the " +
                         std::to_string(component.map.columns()) + " of the other members",
                     dot.op};
  for (Value output : component.outputs) {
    int64_t width = columnsOf(output);
    if (width != component.map.elements && width != component.map.columns() && width != 1)
      return Refusal{"its columns do not meet those of the other members", output.getDefiningOp()};
    if (rowsOf(output) % component.rows)
      return Refusal{"its rows do not meet those of the other members", output.getDefiningOp()};
  }
  return std::nullopt;
}

Content contraction::analyze(plan::KernelOp kernel, const Ability &ability) {
  Content content;
  auto refuse = [&](std::string reason, Operation *node) -> Content & {
    content.components.clear();
    content.refusal = Refusal{std::move(reason), node};
    return content;
  };
  Block &body = kernel.getBody().front();
  llvm::SmallVector<Dot> dots;
  for (Operation &member : body.without_terminator()) {
    auto op = dyn_cast<plan::PlanContraction>(member);
    if (!op && !isPointwise(&member) && !normLength(&member))
      return refuse("it is neither a contraction, nor element-wise, nor a norm", &member);
    if (int64_t length = normLength(&member); length % 32 || length > 16384)
      return refuse("a norm over " + std::to_string(length) +
                        " elements, expected a multiple of 32 up to 16384",
                    &member);
    if (op || normLength(&member))
      if (auto refusal = refuseRows(&member, member.getOperand(0)))
        return refuse(refusal->reason, refusal->node);
    if (!op)
      continue;
    Dot &dot = dots.emplace_back(describeDot(op));
    if (auto refusal = refuseDot(dot, ability))
      return refuse(refusal->reason, refusal->node);
    dot.gate = isGate(dot);
  }

  // Outputs that share a dot share a component; so do the results of one op.
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::SmallVector<std::pair<Value, Sources>> outputs;
  for (Value output : body.getTerminator()->getOperands()) {
    Operation *maker = output.getDefiningOp();
    Sources sources;
    sources.collect(output);
    classes.insert(maker);
    for (Operation *dot : sources.dots)
      classes.unionSets(maker, dot);
    outputs.emplace_back(output, std::move(sources));
  }
  llvm::MapVector<Operation *, std::pair<Component, Sources>> found;
  for (auto &[output, sources] : outputs) {
    auto &[component, all] = found[classes.getLeaderValue(output.getDefiningOp())];
    component.outputs.push_back(output);
    for (Operation *op : sources.elementwise)
      all.elementwise.insert(op);
  }
  for (Dot &dot : dots) {
    if (!classes.contains(dot.op))
      return refuse("nothing of it is stored", dot.op);
    found[classes.getLeaderValue(dot.op)].first.dots.push_back(dot);
  }
  for (auto &[leader, entry] : found) {
    Sources sources = entry.second;
    for (Dot &dot : entry.first.dots)
      sources.collect(dot.x());
    for (Operation &member : body.without_terminator())
      if (normLength(&member) && sources.elementwise.contains(&member))
        entry.first.norms.push_back(&member);
    if (auto refusal = shapeComponent(entry.first, entry.second))
      return refuse(refusal->reason, refusal->node);
    content.components.push_back(std::move(entry.first));
  }
  return content;
}
