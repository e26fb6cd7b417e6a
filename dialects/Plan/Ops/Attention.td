//===- Attention.td - heads, rope, the paged cache and attention ----------===//

#ifndef PLAN_OPS_ATTENTION
#define PLAN_OPS_ATTENTION

include "dialects/Plan/Ops/Node.td"

def Plan_SplitOp : Plan_Node<"split", (ins Plan_Edge:$x), (ins Plan_DimAttr:$head_dim),
                             (outs Plan_Edge:$first, Plan_Edge:$second), 1> {
  let stepWords = "move";
  let summary = "Take apart interleaved heads";
  let description = [{
    Head `h` of `x` is `2*D` long: `first_h = x[h*2D .. +D]`, `second_h = x[h*2D + D .. +D]`. A copy.

    Example:
    ```mlir
    %q, %gate = plan.split %qg precision<act = bf16, out = [bf16, bf16]> steps<move bf16> {head_dim = #plan.dim<64>}
        : (tensor<1x512xbf16>) -> (tensor<1x256xbf16>, tensor<1x256xbf16>)
    ```
  }];
}

def Plan_RopeOp : Plan_Node<"rope", (ins Plan_Edge:$q, Plan_Edge:$k, Plan_Edge:$positions),
    (ins Plan_DimAttr:$head_dim, I64Attr:$rotary_dim, F64Attr:$theta, DenseI64ArrayAttr:$sections),
    (outs Plan_Edge:$q_result, Plan_Edge:$k_result), 2> {
  let summary = "Rotary position embedding of queries and keys";
  let description = [{
    Pair `i < rot/2` of a head is dims `(i, i + rot/2)`; dims from `rot` on are copied.
    `freq_i = f32(theta^(-2i/rot))`, `ang = f32(f32(pos) * freq_i)`, `pos` from stream `i mod 3` of `positions` when
    `sections` is not empty (interleaved), else from stream 0. `c, s = cos(ang), sin(ang)` in f32;
    `y_i = store(x_i*c - x_{i+rot/2}*s)`, `y_{i+rot/2} = store(x_{i+rot/2}*c + x_i*s)`.

    Example:
    ```mlir
    %qr, %kr = plan.rope %qn, %kn, %pos precision<act = bf16, out = [bf16, bf16]> steps<compute f32>
        {head_dim = #plan.dim<64>, rotary_dim = 16 : i64, theta = 1.0e+07 : f64, sections = array<i64: 3, 3, 2>}
        : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<3x1xi32>) -> (tensor<1x256xbf16>, tensor<1x128xbf16>)
    ```
  }];
}

def Plan_KvWriteOp : Plan_StateNode<"kv_write",
    (ins Plan_Edge:$k, Plan_Edge:$v, Plan_Edge:$slot_mapping, Plan_StateType:$k_cache, Plan_StateType:$v_cache),
    (ins), (outs), 2, "{3, ::plan::Access::Write}, {4, ::plan::Access::Write}"> {
  let stepWords = "cache";
  let summary = "Store a token's key and value in the paged cache";
  let description = [{
    Row `r` goes to position `slot_mapping[r]` = block * block size + offset of both caches; negative: not written.

    Example:
    ```mlir
    plan.kv_write %kr, %v, %slots, %kc, %vc precision<act = bf16> steps<cache bf16>
        : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1xi64>, !plan.state<paged, 2 x 64, bf16>,
           !plan.state<paged, 2 x 64, bf16>) -> ()
    ```
  }];
}

def Plan_PagedAttentionOp : Plan_StateNode<"paged_attention",
    (ins Plan_Edge:$q, Plan_Edge:$k, Plan_Edge:$v, Plan_Edge:$block_tables, Plan_Edge:$seq_lens,
         Plan_StateType:$k_cache, Plan_StateType:$v_cache),
    (ins), (outs Plan_Edge:$result), 3, "{5, ::plan::Access::Read}, {6, ::plan::Access::Read}"> {
  let stepWords = "cache scores softmax accumulate";
  let summary = "Attention over the cached keys and values of a sequence";
  let description = [{
    Query head `h` uses kv head `h / (Hq/Hkv)`; for positions `j < seq_lens[r]`, at block `block_tables[r, j/B]`,
    offset `j mod B`: `s_j = (sum_d q_d K_jd) * (1/sqrt(D))`, `p_j = exp(s_j - max s)`,
    `result = store(sum p_j V_j / sum p_j)`, f32. A length of 0 gives zeros. `k` and `v` only order the node after
    their producers.

    Example:
    ```mlir
    %a = plan.paged_attention %qr, %kr, %v, %bt, %len, %kc, %vc precision<act = bf16, out = [bf16]>
         steps<cache bf16, scores f32, softmax f32, accumulate f32>
        : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x64xi32>, tensor<1xi32>,
           !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 2 x 64, bf16>) -> tensor<1x256xbf16>
    ```
  }];
  let extraClassDeclaration = stateDeclarations # [{
    bool isOrderOnly(unsigned operand) { return operand == 1 || operand == 2; }
  }];
}

#endif // PLAN_OPS_ATTENTION
