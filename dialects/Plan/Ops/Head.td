//===- Head.td - tokens in, tokens out ------------------------------------===//

#ifndef PLAN_OPS_HEAD
#define PLAN_OPS_HEAD

include "dialects/Plan/Ops/Node.td"

def Plan_EmbedOp : Plan_Node<"embed", (ins Plan_Edge:$ids, Plan_WeightType:$table), (ins), (outs Plan_Edge:$result), 0> {
  let stepWords = "gather";
  let summary = "Fetch the rows of the token ids";
  let description = [{
    `result[r] = table[ids[r]]`, copied bit by bit.

    Example:
    ```mlir
    %h = plan.embed %ids, %table precision<out = [bf16]> steps<gather bf16>
       : (!plan.edge<n, i32>, !plan.weight<vocab x hidden, bf16>) -> !plan.edge<n x hidden, bf16>
    ```
  }];
}

def Plan_ArgmaxOp : Plan_Node<"argmax", (ins Plan_Edge:$logits), (ins), (outs Plan_Edge:$token), 1> {
  let stepWords = "compare";
  let summary = "The token with the largest logit";
  let description = [{
    The lowest index of the maximum; NaN orders below every number, and all NaN gives 0.

    Example:
    ```mlir
    %t = plan.argmax %l precision<act = bf16, out = [i32]> steps<compare bf16>
       : (!plan.edge<n x vocab, bf16>) -> !plan.edge<n, i32>
    ```
  }];
}

#endif // PLAN_OPS_HEAD
