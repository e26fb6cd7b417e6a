//===- BindDims.cpp - replace symbolic dims by the model's integers -------===//
//
// In     plan.graph with `!plan.edge` types; the module's `plan.dims` has the names.
// Out    edges as builtin tensors; every dim of a weight, a state or an attribute is an integer.
// After  every dim is from 1 to 2^31-1, an edge has less than 2^31 elements, a weight less than
// 2^40;
//        the shapes of every node fit each other.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/Plan/PlanOps.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace planc {
#define GEN_PASS_DEF_BINDDIMS
#include "passes/Passes.h.inc"
} // namespace planc

static constexpr int64_t kMaxDim = INT32_MAX;
static constexpr int64_t kMaxEdgeElements = INT32_MAX;
static constexpr int64_t kMaxWeightElements = int64_t(1) << 40;

namespace {
/// Binds what one symbol of the module holds.
class Binder {
public:
  explicit Binder(DictionaryAttr dims) : dims(dims) {
    replacer.addReplacement([this](plan::DimAttr dim) { return Attribute(bind(dim)); });
  }

  /// Everything in `root` and below; failure after errors.
  LogicalResult run(Operation *root) {
    root->walk([&](Operation *inner) {
      op = inner;
      // The attributes hold all dims that are not in types of values.
      op->setAttrs(cast<DictionaryAttr>(replacer.replace(op->getAttrDictionary())));
      if (auto weight = dyn_cast<plan::WeightOp>(op); weight && ok)
        checkSize(weight.getType().getShape(), kMaxWeightElements, "a weight");
      for (Value result : op->getResults())
        result.setType(bindType(result.getType()));
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          argument.setType(bindType(argument.getType()));
    });
    // One node after the other, so that all that do not fit are reported.
    if (ok)
      root->walk(
          [&](plan::PlanNode node) { ok &= succeeded(node->getName().verifyInvariants(node)); });
    return success(ok);
  }

private:
  template <typename... Args> void error(Args &&...args) {
    ok = false;
    if (isa<plan::WeightRefOp, plan::StateRefOp>(op))
      return; // its symbol says the same
    InFlightDiagnostic diag =
        isa<plan::PlanNode>(op) ? plan::emitNodeError(op) : mlir::emitError(op->getLoc());
    if (!isa<plan::PlanNode>(op) && SymbolTable::getSymbolName(op))
      diag << "'" << SymbolTable::getSymbolName(op).getValue() << "': ";
    (diag << ... << std::forward<Args>(args));
  }

  plan::DimAttr bind(plan::DimAttr dim) {
    for (StringRef name : dim.getNames())
      if (!dims.contains(name)) {
        error("dim '", name, "' is not known");
        return dim;
      }
    std::optional<int64_t> value = dim.evaluate(dims);
    if (value && *value >= 1 && *value <= kMaxDim)
      return plan::DimAttr::get(op->getContext(), *value);
    error("dim '", dim.getExpr(), "' is ", value ? std::to_string(*value) : "beyond 64 bits",
          ", expected 1 to ", kMaxDim);
    return dim;
  }

  Type bindType(Type type) {
    Type bound = replacer.replace(type);
    auto edge = dyn_cast<plan::EdgeType>(bound);
    if (!ok || !edge)
      return bound;
    SmallVector<int64_t> shape;
    for (plan::DimAttr dim : edge.getDims())
      shape.push_back(*dim.getConstant());
    checkSize(shape, kMaxEdgeElements, "an edge");
    Type element = plan::elementType(op->getContext(), edge.getFormat());
    if (element)
      return RankedTensorType::get(shape, element);
    error("an edge cannot be stored as ", plan::planSpelling(edge.getFormat()));
    return bound;
  }

  void checkSize(ArrayRef<int64_t> shape, int64_t limit, StringRef what) {
    int64_t product = 1;
    for (int64_t size : shape)
      if (__builtin_mul_overflow(product, size, &product) || product >= limit) {
        error(what, " has ", limit, " elements or more");
        return;
      }
  }

  DictionaryAttr dims;
  AttrTypeReplacer replacer;
  Operation *op = nullptr;
  bool ok = true;
};

class BindDims : public planc::impl::BindDimsBase<BindDims> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto dims = module->getAttrOfType<DictionaryAttr>(plan::kDimsAttrName);
    if (!dims)
      dims = DictionaryAttr::get(&getContext());
    bool ok = true;
    for (Operation &symbol : *module.getBody()) {
      NamedAttrList known(dims);
      if (auto graph = dyn_cast<plan::GraphOp>(symbol))
        known.set("n", graph.getRowsAttr());
      if (isa<plan::GraphOp, plan::WeightOp, plan::StateOp>(symbol))
        ok &= succeeded(Binder(known.getDictionary(&getContext())).run(&symbol));
    }
    if (!ok)
      signalPassFailure();
  }
};
} // namespace
