//===- Norm.td - norms, residual adds and gates over rows -----------------===//

#ifndef PLAN_OPS_NORM
#define PLAN_OPS_NORM

include "dialects/Plan/Ops/Node.td"

class Plan_NormNode<string mnemonic> : Plan_Node<mnemonic,
    (ins Plan_Edge:$x, Plan_WeightType:$weight), (ins F32Attr:$eps, F32Attr:$offset), (outs Plan_Edge:$result), 1>;

def Plan_RmsNormOp : Plan_NormNode<"rms_norm"> {
  let summary = "Root mean square norm of a row";
  let description = [{
    `r = 1/sqrt(sum_i x_i^2 / N + eps)`, `result_i = store((x_i * r) * (offset + w_i))`, `N` = row length, f32 inside.

    With `act = f32` on a bf16 edge, inside the group of its producer, the squares are of the value held before
    rounding, while `x_i` in the product is the stored one.

    Example:
    ```mlir
    %xn = plan.rms_norm %x, %w precision<act = bf16, out = [bf16]> steps<compute f32>
          {eps = 1.0e-06 : f32, offset = 1.0 : f32}
        : (!plan.edge<n x hidden, bf16>, !plan.weight<hidden, bf16>) -> !plan.edge<n x hidden, bf16>
    ```
  }];
}

def Plan_FinalNormOp : Plan_NormNode<"final_norm"> {
  let summary = "The norm before the head";
  let description = [{
    The formula of `plan.rms_norm`.

    Example:
    ```mlir
    %xn = plan.final_norm %x, %w precision<act = bf16, out = [bf16]> steps<compute f32>
          {eps = 1.0e-06 : f32, offset = 1.0 : f32}
        : (!plan.edge<n x hidden, bf16>, !plan.weight<hidden, bf16>) -> !plan.edge<n x hidden, bf16>
    ```
  }];
}

def Plan_QkNormOp : Plan_NormNode<"qk_norm"> {
  let summary = "Root mean square norm of each head of a row";
  let description = [{
    The formula of `plan.rms_norm` on stretches of `N` = weight length; the weight is shared by the heads.

    Example:
    ```mlir
    %qn = plan.qk_norm %q, %w precision<act = bf16, out = [bf16]> steps<compute f32>
          {eps = 1.0e-06 : f32, offset = 1.0 : f32}
        : (!plan.edge<n x q_heads*head_dim, bf16>, !plan.weight<head_dim, bf16>)
        -> !plan.edge<n x q_heads*head_dim, bf16>
    ```
  }];
}

def Plan_ResidualAddOp : Plan_Node<"residual_add", (ins Plan_Edge:$x, Plan_Edge:$update), (ins),
                                   (outs Plan_Edge:$result), 2> {
  let summary = "Add a block's output to the residual stream";
  let description = [{
    `result[r, c] = store(x[r, c] + update[r, c])`, f32 add, one rounding. A reader in the same group may take the sum
    before `store` (its `act` is then f32); a reader in another group gets the stored value.

    Example:
    ```mlir
    %y = plan.residual_add %x, %o precision<act = bf16, out = [bf16]> steps<compute f32>
       : (!plan.edge<n x hidden, bf16>, !plan.edge<n x hidden, bf16>) -> !plan.edge<n x hidden, bf16>
    ```
  }];
}

def Plan_SiluMulOp : Plan_Node<"silu_mul", (ins Plan_Edge:$x), (ins), (outs Plan_Edge:$result), 1> {
  let summary = "Gated activation of a [gate | up] row";
  let description = [{
    `result[r, i] = store(silu(x[r, i]) * x[r, N + i])`, `N` = result row length, `silu(g) = g / (1 + exp(-g))`.

    Example:
    ```mlir
    %a = plan.silu_mul %gu precision<act = bf16, out = [f32]> steps<compute f32>
       : (!plan.edge<n*top_k x moe_inter*2, bf16>) -> !plan.edge<n*top_k x moe_inter, f32>
    ```
  }];
}

def Plan_SigmoidGateMulOp : Plan_Node<"sigmoid_gate_mul", (ins Plan_Edge:$x, Plan_Edge:$gate), (ins),
                                      (outs Plan_Edge:$result), 2> {
  let summary = "Scale by a sigmoid gate";
  let description = [{
    `result[r, c] = store(x[r, c] * sigmoid(gate[r, c]))`, f32 inside.

    Example:
    ```mlir
    %ag = plan.sigmoid_gate_mul %a, %gate precision<act = bf16, out = [bf16]> steps<compute f32>
        : (!plan.edge<n x q_heads*head_dim, bf16>, !plan.edge<n x q_heads*head_dim, bf16>)
        -> !plan.edge<n x q_heads*head_dim, bf16>
    ```
  }];
}

#endif // PLAN_OPS_NORM
