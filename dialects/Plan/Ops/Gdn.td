//===- Gdn.td - the gated delta rule and what surrounds it ----------------===//

#ifndef PLAN_OPS_GDN
#define PLAN_OPS_GDN

include "dialects/Plan/Ops/Node.td"

def Plan_GdnGatesOp : Plan_Node<"gdn_gates", (ins Plan_Edge:$ba, Plan_WeightType:$a_log, Plan_WeightType:$dt_bias),
                                (ins), (outs Plan_Edge:$decay, Plan_Edge:$beta), 1> {
  let summary = "Decay and write strength of each value head";
  let description = [{
    `b_h, a_h` = columns `h` and `Vh + h` of `ba`. `beta_h = sigmoid(b_h)`;
    `decay_h = exp(-exp(min(a_log_h, 20)) * log1p(exp(min(a_h + dt_bias_h, 20))))`.

    Example:
    ```mlir
    %decay, %beta = plan.gdn_gates %ba, %a, %dt precision<act = f32, out = [f32, f32]> steps<compute f32>
        : (!plan.edge<n x lin_v_heads*2, f32>, !plan.weight<lin_v_heads, f32>, !plan.weight<lin_v_heads, f32>)
        -> (!plan.edge<n x lin_v_heads, f32>, !plan.edge<n x lin_v_heads, f32>)
    ```
  }];
}

def Plan_Conv1dUpdateOp : Plan_StateNode<"conv1d_update",
    (ins Plan_Edge:$x, Plan_Edge:$slots_in, Plan_Edge:$slots_out, Plan_WeightType:$weight, Plan_StateType:$window),
    (ins), (outs Plan_Edge:$result), 1, "{4, ::plan::Access::Update}"> {
  let stepWords = "state compute";
  let summary = "Causal convolution over the last inputs of each channel";
  let description = [{
    Channel `c < C` (C = result row length; `x` may be wider): the window of slot `slots_in[r]` shifts left and takes
    `x[r, c]` as its last entry; `result[r, c] = store(silu(sum_j window[j] * w[c, j]))`, `j` ascending. The shifted
    window goes to slot `slots_out[r]`. Slot -1 reads zeros and writes nothing.

    Example:
    ```mlir
    %conv = plan.conv1d_update %qkvz, %in, %out, %w, %s precision<act = bf16, out = [f32]> steps<state f32, compute f32>
        : (tensor<1x1536xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<1024 x 4, bf16>,
           !plan.state<slots, 1024 x 4, f32>) -> tensor<1x1024xf32>
    ```
  }];
}

def Plan_StateSnapshotOp : Plan_StateNode<"state_snapshot", (ins Plan_Edge:$after, Plan_StateType:$window),
                                          (ins UnitAttr:$apart), (outs), 1, "{1, ::plan::Access::Snapshot}"> {
  let stepWords = "state";
  let summary = "Keep the window after every row but the last";
  let description = [{
    For rows `t < n-1` of one sequence the window after row `t` goes to checkpoint slot `t`; nothing at one row, nor
    where the rows are `apart`: each the newest token of a sequence of its own (multi_seq).

    Example:
    ```mlir
    plan.state_snapshot %conv, %s precision<act = f32> steps<state f32>
        : (tensor<1x1024xf32>, !plan.state<slots, 1024 x 4, f32>) -> ()
    ```
  }];
}

def Plan_L2NormOp : Plan_Node<"l2_norm", (ins Plan_Edge:$x), (ins Plan_DimAttr:$heads, Plan_DimAttr:$head_dim,
                              F32Attr:$eps), (outs Plan_Edge:$result), 1> {
  let summary = "Euclidean norm of the leading heads of a row";
  let description = [{
    For each of the first `heads` stretches of `head_dim`: `x / sqrt(sum x^2 + eps)`; what follows passes unchanged.

    Example:
    ```mlir
    %qkv = plan.l2_norm %conv precision<act = f32, out = [f32]> steps<compute f32>
           {heads = #plan.dim<4>, head_dim = #plan.dim<128>, eps = 1.0e-06 : f32}
         : (tensor<1x1024xf32>) -> tensor<1x1024xf32>
    ```
  }];
}

def Plan_GdnRecurrenceOp : Plan_StateNode<"gdn_recurrence",
    (ins Plan_Edge:$qkv, Plan_Edge:$decay, Plan_Edge:$beta, Plan_Edge:$slots_in, Plan_Edge:$slots_out,
         Plan_StateType:$state),
    (ins), (outs Plan_Edge:$result), 3, "{5, ::plan::Access::Update}"> {
  let stepWords = "state compute";
  let summary = "One step of the gated delta rule";
  let description = [{
    State `S` is `[Vh][Kd][Vd]`; `qkv = [q Kh*Kd | k Kh*Kd | v Vh*Vd]`; value head `h` reads key head `h / (Vh/Kh)`.
    `g = min(max(decay_h, 1e-6), 1 - 1e-6)`; `u = (v - g * S^T k) * beta_h` with the old state; `S <- g*S + k u^T`;
    `result_h = store(S^T q / sqrt(Kd))` with the new one. All f32. Reads slot `slots_in[r]`, writes `slots_out[r]`.

    Example:
    ```mlir
    %core = plan.gdn_recurrence %qkv, %decay, %beta, %in, %out, %s precision<act = f32, out = [f32]>
            steps<state f32, compute f32>
        : (tensor<1x1024xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1xi32>, tensor<1xi32>,
           !plan.state<slots, 4 x 128 x 128, f32>) -> tensor<1x512xf32>
    ```
  }];
}

def Plan_GatedRmsNormOp : Plan_Node<"gated_rms_norm",
    (ins Plan_Edge:$core, Plan_Edge:$qkvz, Plan_WeightType:$weight), (ins F32Attr:$eps, F32Attr:$offset),
    (outs Plan_Edge:$result), 2> {
  let summary = "Norm of each value head, then a silu gate";
  let description = [{
    Per head of length `Vd` (the weight's length): `z` = the last columns of `qkvz`, as many as `core` has;
    `r = 1/sqrt(sum core^2 / Vd + eps)`, `result = store(((core * r) * (offset + w)) * silu(z))`, one rounding.

    Example:
    ```mlir
    %gated = plan.gated_rms_norm %core, %qkvz, %w precision<act = f32, out = [bf16]> steps<compute f32>
             {eps = 1.0e-06 : f32, offset = 0.0 : f32}
        : (tensor<1x512xf32>, tensor<1x1536xbf16>, !plan.weight<128, bf16>) -> tensor<1x512xbf16>
    ```
  }];
}

#endif // PLAN_OPS_GDN
