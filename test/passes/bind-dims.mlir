// RUN: plan-opt %s --plan-bind-dims --split-input-file | FileCheck %s

// Edges become tensors, weights, states and attributes get integers; `n` is the graph's row count.
module attributes {plan.dims = {hidden = 256 : i64, lin_k_heads = 2 : i64, lin_k_dim = 32 : i64, max_blocks = 8 : i64}} {
  // CHECK: plan.weight @w : !plan.weight<256, bf16> parts [#plan.part<"norm.weight", [256], ["BF16"]>]
  plan.weight @w : !plan.weight<hidden, bf16> parts [#plan.part<"norm.weight", [hidden], ["BF16"]>]
  // CHECK: plan.state @s : !plan.state<slots, 128 x 4, f32>
  plan.state @s : !plan.state<slots, lin_k_heads*lin_k_dim*2 x 4, f32>
  // CHECK-LABEL: plan.graph @rows_of_the_graph
  plan.graph @rows_of_the_graph mode "multi_seq" rows 3 {
    // CHECK: plan.step_input "block_tables" : tensor<3x8xi32>
    %b = plan.step_input "block_tables" : !plan.edge<n x max_blocks, i32>
    %ids = plan.step_input "token_ids" : !plan.edge<n, i32>
    // CHECK: plan.weight_ref @w : !plan.weight<256, bf16>
    %w = plan.weight_ref @w : !plan.weight<hidden, bf16>
    %t = plan.weight_ref @table : !plan.weight<512 x hidden, bf16>
    // CHECK: plan.embed
    // CHECK-SAME: -> tensor<3x256xbf16>
    %h = plan.embed %ids, %t node<id = "e", order = 0, group = 0> precision<out = [bf16]> steps<gather bf16>
       : (!plan.edge<n, i32>, !plan.weight<512 x hidden, bf16>) -> !plan.edge<n x hidden, bf16>
    // CHECK: plan.l2_norm
    // CHECK-SAME: head_dim = #plan.dim<32>
    // CHECK-SAME: heads = #plan.dim<4>
    %l = plan.l2_norm %h node<id = "l", order = 1, group = 0> precision<act = bf16, out = [f32]> steps<compute f32>
         {heads = #plan.dim<lin_k_heads*2>, head_dim = #plan.dim<lin_k_dim>, eps = 1.0e-06 : f32}
       : (!plan.edge<n x hidden, bf16>) -> !plan.edge<n x hidden, f32>
  }
  plan.weight @table : !plan.weight<512 x hidden, bf16> parts []
}

// -----

// What is bound already stays as it is.
// CHECK-LABEL: plan.graph @bound
plan.graph @bound mode "decode" rows 1 {
  // CHECK: plan.step_input "token_ids" : tensor<1xi32>
  %ids = plan.step_input "token_ids" : tensor<1xi32>
}
