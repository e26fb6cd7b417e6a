//===- Moe.td - routing, experts and their combination --------------------===//

#ifndef PLAN_OPS_MOE
#define PLAN_OPS_MOE

include "dialects/Plan/Ops/Node.td"

def Plan_TopKOp : Plan_Node<"top_k", (ins Plan_Edge:$logits), (ins), (outs Plan_Edge:$weights, Plan_Edge:$ids), 1> {
  let stepWords = "score";
  let summary = "Choose experts and their weights";
  let description = [{
    Experts by (logit descending, id ascending), the first `T` taken, slot = rank; NaN orders below every number.
    `p_e = exp(l_e - max l) / sum_E exp(l - max l)`, `weights_s = p_{ids_s} / sum_s p_{ids_s}` in the `score` format.
    Ids lie in `[0, E)` whatever the logits are.

    Example:
    ```mlir
    %w, %id = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score f32>
            : (!plan.edge<n x experts, bf16>) -> (!plan.edge<n x top_k, f32>, !plan.edge<n x top_k, i32>)
    ```
  }];
}

class Plan_ExpertNode<string mnemonic> : Plan_Node<mnemonic,
    (ins Plan_Edge:$x, Plan_Edge:$ids, Plan_WeightType:$weight), (ins), (outs Plan_Edge:$result), 2,
    [Plan_ContractionInterface]>;

def Plan_ExpertGateUpOp : Plan_ExpertNode<"expert_gate_up"> {
  let stepWords = "gather act weight mma accumulate scale";
  let summary = "Gate and up projection of the chosen experts";
  let description = [{
    Row `r*T + s` of the result is the projection (formula of `plan.linear`) of `x[r]` by the matrix of expert
    `ids[r, s]`; its row is `[gate | up]`.

    Example:
    ```mlir
    %gu = plan.expert_gate_up %x, %ids, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
          steps<gather bf16, act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32>
        : (!plan.edge<n x hidden, bf16>, !plan.edge<n x top_k, i32>,
           !plan.weight<experts x moe_inter*2 x hidden, fp8_block128x128>) -> !plan.edge<n*top_k x moe_inter*2, bf16>
    ```
  }];
}

def Plan_ExpertDownOp : Plan_ExpertNode<"expert_down"> {
  let stepWords = "act weight mma accumulate scale";
  let summary = "Down projection of the chosen experts";
  let description = [{
    Row `r*T + s` of the result is the projection of row `r*T + s` of `x` by the matrix of expert `ids[r, s]`. Routing
    weights are not applied here.

    Example:
    ```mlir
    %d = plan.expert_down %a, %ids, %w precision<weight = fp8_block128x128, act = f32, out = [bf16]>
         steps<act f32, weight fp8_block128x128 -> f32, mma f32 * f32, accumulate f32, scale f32>
       : (!plan.edge<n*top_k x moe_inter, f32>, !plan.edge<n x top_k, i32>,
          !plan.weight<experts x hidden x moe_inter, fp8_block128x128>) -> !plan.edge<n*top_k x hidden, bf16>
    ```
  }];
}

def Plan_BlendOp : Plan_Node<"blend", (ins Plan_Edge:$experts, Plan_Edge:$weights, Plan_Edge:$shared, Plan_Edge:$gate),
                             (ins), (outs Plan_Edge:$result), 4> {
  let stepWords = "scatter combine";
  let summary = "Weighted sum of the expert rows and the gated shared expert";
  let description = [{
    `result[r, j] = store(sum_{s=0}^{T-1} weights[r, s] * experts[r*T + s, j] + sigmoid(gate[r]) * shared[r, j])`,
    f32, slots ascending, shared last.

    Example:
    ```mlir
    %f = plan.blend %d, %w, %sd, %sg precision<act = bf16, out = [bf16]> steps<scatter f32, combine f32>
       : (!plan.edge<n*top_k x hidden, bf16>, !plan.edge<n x top_k, f32>, !plan.edge<n x hidden, bf16>,
          !plan.edge<n x 1, f32>) -> !plan.edge<n x hidden, bf16>
    ```
  }];
}

#endif // PLAN_OPS_MOE
