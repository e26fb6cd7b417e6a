//===- Node.td - the base of all nodes ------------------------------------===//
//
// Every node prints as
//   %out = plan.OP %operands node<..> precision<..> steps<..> {parameters} : (operand types) -> result types
// Operands come in a fixed order: edges, step inputs, weights, states. A kernel's parameters follow it.
//
//===----------------------------------------------------------------------===//

#ifndef PLAN_OPS_NODE
#define PLAN_OPS_NODE

include "dialects/Plan/PlanTypes.td"
include "dialects/Plan/PlanInterfaces.td"

/// A node: `values` are its operands, `params` its attributes, `numEdges` of the operands come from other nodes.
class Plan_Node<string mnemonic, dag values, dag params, dag outs, int numEdges, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, !listconcat([Plan_NodeInterface], traits)> {
  let arguments = !con(values, (ins OptionalAttr<Plan_NodeAttr>:$node, Plan_PrecisionAttr:$precision,
                                    Plan_StepsAttr:$steps), params);
  let results = outs;
  let assemblyFormat = [{
    operands (`node` `` $node^)? `precision` `` $precision `steps` `` $steps attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
  /// The steps of the op, in order.
  string stepWords = "compute";
  code nodeDeclarations = "unsigned getNumEdges() { return " # numEdges # "; }\n" #
      "::llvm::StringRef getStepWords() { return \"" # stepWords # "\"; }\n";
  let extraClassDeclaration = nodeDeclarations;
}

/// A node that touches states: `accesses` is a C++ initialiser list of {operand number, Access}.
class Plan_StateNode<string mnemonic, dag values, dag params, dag outs, int numEdges, string accesses,
                     list<Trait> traits = []>
    : Plan_Node<mnemonic, values, params, outs, numEdges, traits> {
  code stateDeclarations = nodeDeclarations #
      "::llvm::SmallVector<std::pair<unsigned, ::plan::Access>> getAccesses() { return {" # accesses # "}; }\n";
  let extraClassDeclaration = stateDeclarations;
}

#endif // PLAN_OPS_NODE
