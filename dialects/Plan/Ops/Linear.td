//===- Linear.td - contractions with one fixed matrix ---------------------===//

#ifndef PLAN_OPS_LINEAR
#define PLAN_OPS_LINEAR

include "dialects/Plan/Ops/Node.td"

class Plan_LinearNode<string mnemonic, dag params = (ins)> : Plan_Node<mnemonic,
    (ins Plan_Edge:$x, Plan_WeightType:$weight), params, (outs Plan_Edge:$result), 1, [Plan_ContractionInterface]>;

def Plan_LinearOp : Plan_LinearNode<"linear", (ins StrAttr:$role)> {
  let stepWords = "act weight mma accumulate scale";
  let summary = "A projection";
  let description = [{
    `result[r, j] = store(sum_b S[j/128, b] * sum_{k in block b} x[r, k] * w[j, k])` for weights with block scales,
    `store(sum_k x[r, k] * w[j, k])` without; sums in the `accumulate` format, one rounding. `role` is the plan's word
    after `linear:` and has no numeric meaning.

    Example:
    ```mlir
    %o = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
         steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32> {role = "o"}
       : (!plan.edge<n x q_heads*head_dim, bf16>, !plan.weight<hidden x q_heads*head_dim, fp8_block128x128>)
       -> !plan.edge<n x hidden, bf16>
    ```
  }];
  let extraClassDeclaration = nodeDeclarations # [{
    std::string getPlanWord() { return "linear:" + getRole().str(); }
  }];
}

def Plan_RouterOp : Plan_LinearNode<"router"> {
  let stepWords = "act weight mma accumulate scale";
  let summary = "Logits of the experts";
  let description = [{
    The formula of `plan.linear`.

    Example:
    ```mlir
    %l = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
         steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none>
       : (!plan.edge<n x hidden, bf16>, !plan.weight<experts x hidden, bf16>) -> !plan.edge<n x experts, bf16>
    ```
  }];
}

def Plan_LmHeadOp : Plan_LinearNode<"lm_head"> {
  let stepWords = "act weight mma accumulate scale";
  let summary = "Logits of the vocabulary";
  let description = [{
    The formula of `plan.linear`.

    Example:
    ```mlir
    %l = plan.lm_head %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
         steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none>
       : (!plan.edge<n x hidden, bf16>, !plan.weight<vocab x hidden, bf16>) -> !plan.edge<n x vocab, bf16>
    ```
  }];
}

#endif // PLAN_OPS_LINEAR
