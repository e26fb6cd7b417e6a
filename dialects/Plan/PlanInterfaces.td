//===- PlanInterfaces.td - what passes may ask of every node --------------===//

#ifndef PLAN_INTERFACES
#define PLAN_INTERFACES

include "mlir/IR/OpBase.td"

def Plan_NodeInterface : OpInterface<"PlanNode"> {
  let cppNamespace = "::plan";
  let description = [{ A node of the plan. Passes, schedules and the reference ask this interface, never a list of ops. }];
  let methods = [
    InterfaceMethod<"Identity in the plan; null inside a kernel.", "::plan::NodeAttr", "getNodeAttr", (ins), "",
                    [{ return $_op->template getAttrOfType<::plan::NodeAttr>("node"); }]>,
    InterfaceMethod<"Formats read and written.", "::plan::PrecisionAttr", "getPrecisionAttr", (ins), "",
                    [{ return $_op->template getAttrOfType<::plan::PrecisionAttr>("precision"); }]>,
    InterfaceMethod<"Precision of the values inside.", "::plan::StepsAttr", "getStepsAttr", (ins), "",
                    [{ return $_op->template getAttrOfType<::plan::StepsAttr>("steps"); }]>,
    InterfaceMethod<"The plan's word for this op, e.g. `linear:qkvz`.", "std::string", "getPlanWord", (ins), "",
                    [{ return $_op->getName().stripDialect().str(); }]>,
    InterfaceMethod<"Words of the steps that the node must have, in order, separated by blanks.", "::llvm::StringRef",
                    "getStepWords">,
    InterfaceMethod<"How many leading operands are edges from other nodes.", "unsigned", "getNumEdges">,
    InterfaceMethod<[{State accesses: operand number and what is done to it.}],
                    "::llvm::SmallVector<std::pair<unsigned, ::plan::Access>>", "getAccesses", (ins), "",
                    [{ return {}; }]>,
    InterfaceMethod<[{Operands that only order this node after others: their values are not read.}],
                    "bool", "isOrderOnly", (ins "unsigned":$operand), "", [{ return false; }]>
  ];
}

def Plan_ContractionInterface : OpInterface<"PlanContraction"> {
  let cppNamespace = "::plan";
  let description = [{
    `y[r, j] = store(sum_k x[r, k] * w[e, j, k] * scale)`, with `e` fixed or fetched from expert ids. With ids, row
    `r * T + s` of the result uses expert `ids[r, s]`; its activation row is `r` when the activation has one row per
    token, else `r * T + s`.
  }];
  let methods = [
    InterfaceMethod<"Activation [rows, K].", "::mlir::Value", "getActivation", (ins), "",
                    [{ return $_op->getOperand(0); }]>,
    InterfaceMethod<"Weight operand, `!plan.weight`.", "::mlir::Value", "getMatrix", (ins), "",
                    [{ return $_op->getOperand($_op->getNumOperands() - 1); }]>,
    InterfaceMethod<"Expert ids [n, T], or null.", "::mlir::Value", "getExpertIds", (ins), "",
                    [{ return $_op->getNumOperands() == 3 ? $_op->getOperand(1) : ::mlir::Value(); }]>
  ];
}

#endif // PLAN_INTERFACES
