//===- Tasks.cpp - divide a kernel into tasks --------------------------------===//

#include "lib/Schedule/Rowwise/Tasks.h"
#include "lib/Schedule/Reduce.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace planc;
using namespace planc::rowwise;
using plan::Format;

static int64_t rowsOf(Value edge) { return *plan::knownDim(edge.getType(), 0); }
static int64_t columnsOf(Value edge) { return *plan::knownDim(edge.getType(), 1); }

/// Norms longer than this do not fit the registers of a CTA.
static constexpr int64_t kMaxNormLength = 16384;

/// Static shared memory ends at 48 KiB; the partial sums of norms need some of it.
static constexpr uint64_t kMaxShared = 40 * 1024;

namespace {
/// How a column of an operand relates to the column of the sink that it is pulled for.
struct Way {
  bool sameColumn = true;  ///< the same chunk
  bool sameSegment = true; ///< the same stretch
  bool sameRow = true;
};

/// Everything on the way to a sink.
struct Cone {
  llvm::SetVector<Operation *> norms, convs;
  int64_t length = 0;     ///< of the norms
  bool mixed = false;     ///< norms of several lengths, or whose stretches move
  bool scattered = false; ///< reads a convolved channel elsewhere than at its own column
  bool rotated = false;   ///< turned by a rope
  bool wide = false;      ///< touches f32 edges
  unsigned vector = 8;
  std::optional<Refusal> refusal;
};

class ConeWalk {
public:
  explicit ConeWalk(Cone &cone) : cone(cone) {}

  void visit(Value value, Way way) {
    if (plan::storedFormat(value) == Format::F32 && columnsOf(value) >= 32)
      cone.wide = true;
    while (columnsOf(value) % cone.vector && way.sameColumn)
      cone.vector /= 2;
    Operation *op = value.getDefiningOp();
    if (!op)
      return;
    cone.vector = std::min(cone.vector, maxChunk(op));
    if (int64_t length = normLength(op))
      visitNorm(op, length, way);
    if (isa<plan::Conv1dUpdateOp>(op)) {
      cone.convs.insert(op);
      cone.scattered |= !way.sameColumn;
      if (!way.sameRow)
        refuse(op, "its rows are read as other rows by a later member");
    }
    for (unsigned i = 0; i < cast<plan::PlanNode>(op).getNumEdges(); ++i)
      // A rope is two: queries come from queries, keys from keys.
      if (!isa<plan::RopeOp>(op) || i == cast<OpResult>(value).getResultNumber())
        visit(op->getOperand(i), through(op, i, way));
  }

private:
  void refuse(Operation *op, std::string reason) {
    if (!cone.refusal)
      cone.refusal = Refusal{std::move(reason), op};
  }

  void visitNorm(Operation *op, int64_t length, Way way) {
    cone.norms.insert(op);
    cone.mixed |= !way.sameSegment || (cone.length && cone.length != length);
    cone.length = length;
    if (!way.sameRow)
      refuse(op, "its rows are read as other rows by a later member");
    if (length % 32 || length > kMaxNormLength)
      refuse(op, "a norm over " + std::to_string(length) +
                     " elements, expected a multiple of 32 up to 16384");
  }

  Way through(Operation *op, unsigned operand, Way way) {
    return llvm::TypeSwitch<Operation *, Way>(op)
        .Case<plan::SplitOp, plan::SiluMulOp, plan::GdnGatesOp>(
            [&](auto) { return Way{false, false, way.sameRow}; })
        .Case([&](plan::GatedRmsNormOp) {
          return operand == 0 ? way : Way{false, false, way.sameRow};
        })
        .Case([&](plan::BlendOp) {
          if (operand == 2)
            return way;
          return Way{false, false, way.sameRow && operand != 0};
        })
        .Case([&](plan::RopeOp rope) {
          // A rotation stays inside its head.
          int64_t headDim = *rope.getHeadDim().getConstant();
          bool inside = !cone.length || cone.length % headDim == 0;
          ropeHeads.push_back(headDim);
          cone.rotated = true;
          return Way{false, way.sameSegment && inside, way.sameRow};
        })
        .Default(way);
  }

  Cone &cone;

public:
  SmallVector<int64_t> ropeHeads;
};
} // namespace

static Cone coneOf(const Sink &sink) {
  Cone cone;
  ConeWalk walk(cone);
  walk.visit(sink.value, {});
  for (int64_t headDim : walk.ropeHeads)
    cone.mixed |= cone.length % headDim != 0;
  // Four f32 elements a lane are one access, the neighbour's beside it: whole sectors.
  if (cone.wide)
    cone.vector = std::min(cone.vector, 4u);
  // A rotation is a long computation for few of a head's columns: it is spread over the lanes.
  if (cone.rotated && !cone.length)
    cone.vector = std::min(cone.vector, 2u);
  return cone;
}

//===----------------------------------------------------------------------===//
// Sinks
//===----------------------------------------------------------------------===//

static std::optional<Refusal> refuseMembers(plan::KernelOp kernel) {
  if (kernel.getCompute().starts_with("tensor_core"))
    return Refusal{"declared for tensor cores, which this schedule does not use"};
  for (Operation &member : kernel.getBody().front().without_terminator()) {
    if (isa<plan::KvWriteOp, plan::StateSnapshotOp>(member))
      continue;
    if (!isElementwise(&member))
      return Refusal{isa<plan::Conv1dUpdateOp>(member)
                         ? "a window of other than 4 taps"
                         : "neither element-wise nor a norm over rows or heads",
                     &member};
  }
  return std::nullopt;
}

static SmallVector<Sink> sinksOf(plan::KernelOp kernel) {
  SmallVector<Sink> sinks;
  auto add = [&](SinkKind kind, Value value, Operation *op, unsigned cache) {
    sinks.push_back({kind, value, op, cache, rowsOf(value), columnsOf(value)});
  };
  for (Value yielded : kernel.getBody().front().getTerminator()->getOperands())
    add(SinkKind::Store, yielded, nullptr, 0);
  for (Operation &member : kernel.getBody().front()) {
    if (auto write = dyn_cast<plan::KvWriteOp>(member))
      for (unsigned cache : {0, 1})
        add(SinkKind::Cache, member.getOperand(cache), write, cache);
    if (auto conv = dyn_cast<plan::Conv1dUpdateOp>(member))
      add(SinkKind::Window, conv.getResult(), conv, 0);
  }
  return sinks;
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

static void addTo(Task &task, const Sink &sink, const Cone &cone) {
  task.sinks.push_back(sink);
  task.vector = task.sinks.size() == 1 ? cone.vector : std::min(task.vector, cone.vector);
  auto merge = [](SmallVector<Operation *> &into, ArrayRef<Operation *> from) {
    for (Operation *op : from)
      if (!llvm::is_contained(into, op))
        into.push_back(op);
    llvm::sort(into, [](Operation *a, Operation *c) { return a->isBeforeInBlock(c); });
  };
  merge(task.norms, cone.norms.getArrayRef());
  merge(task.convs, cone.convs.getArrayRef());
}

/// The task of that shape, made if there is none.
static Task &taskFor(SmallVector<Task> &tasks, Task shape) {
  for (Task &task : tasks)
    if (task.kind == shape.kind && task.rows == shape.rows && task.width == shape.width &&
        task.segment == shape.segment)
      return task;
  return tasks.emplace_back(shape);
}

/// Settles the chunks of a task whose sinks are all there.
static std::optional<Refusal> finish(Task &task) {
  // A lane with one channel reads its window beside its neighbour's: whole sectors an access. Long
  // stretches go over several warps, between which pairs of elements do not mix.
  bool isLong = llvm::any_of(task.norms, [](Operation *norm) { return normLength(norm) > 256; });
  if (task.kind != TaskKind::Rows && !task.convs.empty())
    task.vector = std::min(task.vector, isLong ? 2u : 1u);
  if (task.vector == 1 && isLong)
    return Refusal{"a norm over more than 256 elements beside an odd number of columns",
                   task.norms.front()};
  if (uint64_t bytes = sharedBytes(task); bytes > kMaxShared)
    return Refusal{"the values of a row need " + std::to_string(bytes) +
                       " bytes of shared memory, more than " + std::to_string(kMaxShared),
                   task.convs.empty() ? nullptr : task.convs.front()};
  return std::nullopt;
}

Tasks rowwise::divide(plan::KernelOp kernel) {
  Tasks result;
  if ((result.refusal = refuseMembers(kernel)))
    return result;
  SmallVector<Sink> sinks = sinksOf(kernel);
  SmallVector<Cone> cones;
  for (const Sink &sink : sinks) {
    cones.push_back(coneOf(sink));
    if ((result.refusal = cones.back().refusal))
      return result;
  }

  auto isRows = [&](unsigned i) { return cones[i].mixed || cones[i].scattered; };
  // A window is read and shifted by one thread: whatever reads the conv must be in its task.
  auto sharesConv = [&](unsigned i, unsigned j) {
    return llvm::any_of(cones[i].convs,
                        [&](Operation *conv) { return cones[j].convs.contains(conv); });
  };
  llvm::SmallVector<bool> rows;
  for (unsigned i = 0; i < sinks.size(); ++i)
    rows.push_back(isRows(i));
  auto segmentOf = [&](unsigned i) {
    int64_t length = cones[i].length;
    for (unsigned j = 0; !length && j < sinks.size(); ++j)
      if (!rows[j] && sinks[j].rows == sinks[i].rows && sinks[j].width == sinks[i].width)
        length = cones[j].length;
    return length;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i = 0; i < sinks.size(); ++i)
      for (unsigned j = 0; j < sinks.size(); ++j)
        if (!rows[i] && sharesConv(i, j) &&
            (rows[j] || sinks[i].width != sinks[j].width || segmentOf(i) != segmentOf(j)))
          changed = rows[i] = true;
  }

  for (auto [i, sink] : llvm::enumerate(sinks)) {
    Task shape;
    shape.rows = sink.rows;
    if (rows[i]) {
      shape.kind = TaskKind::Rows;
    } else {
      shape.width = sink.width;
      shape.segment = segmentOf(i);
      shape.kind = shape.segment ? TaskKind::Segments : TaskKind::Elements;
    }
    addTo(taskFor(result.tasks, shape), sink, cones[i]);
  }
  for (Task &task : result.tasks)
    if (auto refusal = finish(task))
      result.refusal = refusal;
  return result;
}
