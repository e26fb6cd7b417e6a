//===- PlanDialect.td - the plan dialect and the base of its ops ----------===//

#ifndef PLAN_DIALECT
#define PLAN_DIALECT

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::plan";
  let summary = "An LLM execution plan: nodes with their precision and steps, in declared groups";
  let description = [{
    One op per op kind of the plan. An op states which formats it reads and writes (`precision`) and the precision
    of every value inside it (`steps`); the compiler obeys both. Values on edges are `!plan.edge` with symbolic dims
    until `--plan-bind-dims` makes them builtin tensors. Weights, states and the values that change from step to
    step are SSA operands as well, so that a group's operands are all that it touches.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttrs();
    void registerTypes();
  }];
}

#endif // PLAN_DIALECT
