//===- VerifyMemory.cpp - prove that live edges share no bytes ------------===//
//
// In     plan.graph with `plan.buffers`.
// Out    the same, or failure.
// After  M1  each result of a launch or group has one buffer of its size, aligned, in both layouts
// inside
//        M2  walking the ops in order, no op writes bytes that hold a value somebody still reads,
//        nor
//            bytes that it reads itself
//        M3  in the unshared layout no two buffers overlap
//
// Walks the ops with a map of who owns which bytes, instead of comparing intervals in time: what is
// proven does not rest on the notion of lifetime that the layout was made with.
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"
#include "passes/Passes.h"

#include "dialects/Plan/PlanOps.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

using namespace mlir;

namespace planc {
#define GEN_PASS_DEF_VERIFYMEMORY
#include "passes/Passes.h.inc"
} // namespace planc

namespace {
class Verifier {
public:
  explicit Verifier(plan::GraphOp graph) : graph(graph) {}

  LogicalResult run() {
    if (!readTable())
      return failure();
    checkUnshared();
    walk();
    return success(ok);
  }

private:
  using Owners = std::map<int64_t, std::pair<int64_t, Value>>; // begin -> end, value

  InFlightDiagnostic error(Operation *op) {
    ok = false;
    return mlir::emitError(op->getLoc()) << "workspace of '" << graph.getSymName() << "': ";
  }

  StringRef name(Value value) { return buffers.lookup(value).getEdge(); }

  /// M1
  bool readTable() {
    auto table = graph->getAttrOfType<ArrayAttr>(planc::kBuffersAttrName);
    auto bytes = graph->getAttrOfType<IntegerAttr>(planc::kWorkspaceAttrName);
    auto unshared = graph->getAttrOfType<IntegerAttr>(planc::kUnsharedAttrName);
    if (!table || !bytes || !unshared) {
      error(graph) << "no memory is assigned";
      return false;
    }
    size_t next = 0;
    for (Operation &op : graph.getBody().front()) {
      if (!isa<plan::LaunchOp, plan::GroupOp>(op))
        continue;
      for (Value result : op.getResults()) {
        auto buffer =
            next < table.size() ? dyn_cast<plan::BufferAttr>(table[next]) : plan::BufferAttr();
        ++next;
        if (!buffer) {
          error(&op) << "result " << next - 1 << " has no buffer";
          return false;
        }
        buffers[result] = buffer;
        checkPlace(&op, result, buffer, bytes.getInt(), unshared.getInt());
      }
    }
    if (next != table.size())
      error(graph) << table.size() << " buffers for " << next << " stored edges";
    return ok;
  }

  void checkPlace(Operation *op, Value result, plan::BufferAttr buffer, int64_t bytes,
                  int64_t unshared) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.hasStaticShape()) {
      error(op) << "edge '" << buffer.getEdge() << "' has no size";
      return;
    }
    int64_t size = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    if (buffer.getBytes() != size)
      error(op) << "edge '" << buffer.getEdge() << "' has " << size << " bytes, its buffer "
                << buffer.getBytes();
    for (auto [offset, limit] :
         {std::pair(buffer.getOffset(), bytes), std::pair(buffer.getUnshared(), unshared)}) {
      if (offset < 0 || offset > limit - size)
        error(op) << "edge '" << buffer.getEdge() << "' at byte " << offset << " with " << size
                  << " bytes does not lie inside the " << limit;
      if (offset % planc::kBufferAlignment)
        error(op) << "edge '" << buffer.getEdge() << "' at byte " << offset << " is not aligned to "
                  << planc::kBufferAlignment;
    }
  }

  /// A value whose bytes meet [begin, end), or null.
  static Value overlapping(const Owners &owners, int64_t begin, int64_t end) {
    auto after = owners.lower_bound(end);
    if (after == owners.begin())
      return {};
    auto before = std::prev(after);
    return before->second.first > begin ? before->second.second : Value();
  }

  /// M3
  void checkUnshared() {
    Owners owners;
    for (Operation &op : graph.getBody().front())
      for (Value result : op.getResults())
        if (plan::BufferAttr buffer = buffers.lookup(result)) {
          int64_t begin = buffer.getUnshared(), end = begin + buffer.getBytes();
          if (Value other = overlapping(owners, begin, end))
            error(&op) << "edges '" << buffer.getEdge() << "' and '" << name(other)
                       << "' overlap in the unshared layout";
          owners[begin] = {end, result};
        }
  }

  /// M2
  void walk() {
    llvm::DenseMap<Value, size_t> readsLeft;
    for (auto &[value, buffer] : buffers)
      readsLeft[value] = std::distance(value.use_begin(), value.use_end());
    Owners owners; // values that somebody still reads, or that leave the program
    for (Operation &op : graph.getBody().front()) {
      if (!isa<plan::LaunchOp, plan::GroupOp>(op))
        continue;
      // Inputs still own their bytes while the outputs are written.
      for (Value result : op.getResults()) {
        plan::BufferAttr buffer = buffers.lookup(result);
        int64_t begin = buffer.getOffset(), end = begin + buffer.getBytes();
        while (Value other = overlapping(owners, begin, end)) {
          bool input = llvm::is_contained(op.getOperands(), other);
          InFlightDiagnostic diag = error(&op);
          diag << "edge '" << buffer.getEdge() << "' overwrites edge '" << name(other)
               << "', which " << (input ? "the same launch reads" : "is read later");
          if (other.getDefiningOp())
            diag.attachNote(other.getLoc()) << "stored here";
          owners.erase(buffers.lookup(other).getOffset());
        }
        owners[begin] = {end, result};
      }
      for (Value operand : op.getOperands())
        if (auto left = readsLeft.find(operand); left != readsLeft.end() && --left->second == 0) {
          auto owner = owners.find(buffers.lookup(operand).getOffset());
          if (owner != owners.end() && owner->second.second == operand)
            owners.erase(owner);
        }
    }
  }

  plan::GraphOp graph;
  llvm::DenseMap<Value, plan::BufferAttr> buffers;
  bool ok = true;
};

class VerifyMemory : public planc::impl::VerifyMemoryBase<VerifyMemory> {
  void runOnOperation() override {
    bool ok = true;
    for (auto graph : getOperation().getOps<plan::GraphOp>())
      ok &= succeeded(Verifier(graph).run());
    if (!ok)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
