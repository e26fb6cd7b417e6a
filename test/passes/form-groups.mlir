// RUN: plan-opt %s --plan-form-groups | FileCheck %s

// Node order, group order and the order of ops need not agree: groups come in the order of the list, members in the
// order of nodes. What is stored is yielded, what is fused stays inside; arguments are edges, step inputs, weights, states.
// CHECK-LABEL: plan.graph @three_groups mode "decode" rows 1 {
plan.graph @three_groups mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, nodes = [0]>,
    #plan.group_info<id = 1, compute = "cuda_core", numerics = "reference", nodes = [3, 2, 1]>,
    #plan.group_info<id = 2, compute = "cuda_core", numerics = "reference", nodes = [4]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %in = plan.step_input "slots_in" : tensor<1xi32>
  %out = plan.step_input "slots_out" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 1024, bf16>
  %w = plan.weight_ref @w : !plan.weight<512 x 4, bf16>
  %s = plan.state_ref @s : !plan.state<slots, 512 x 4, f32>
  %l = plan.l2_norm %c node<id = "l2", order = 3, group = 1, edges = ["qkv"], fused = [false]>
       precision<act = f32, out = [f32]> steps<compute f32>
       {heads = #plan.dim<2>, head_dim = #plan.dim<128>, eps = 1.0e-06 : f32} : (tensor<1x512xf32>) -> tensor<1x512xf32>
  %m = plan.silu_mul %l node<id = "act", order = 4, group = 2, edges = ["act"], fused = [false]>
       precision<act = f32, out = [f32]> steps<compute f32> : (tensor<1x512xf32>) -> tensor<1x256xf32>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 1024, bf16>) -> tensor<1x1024xbf16>
  plan.state_snapshot %c, %s node<id = "ckpt", order = 2, group = 1> precision<act = f32> steps<state f32>
      : (tensor<1x512xf32>, !plan.state<slots, 512 x 4, f32>) -> ()
  %c = plan.conv1d_update %h, %in, %out, %w, %s
       node<id = "conv", order = 1, group = 1, edges = ["conv"], fused = [true]>
       precision<act = bf16, out = [f32]> steps<state f32, compute f32>
     : (tensor<1x1024xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<512 x 4, bf16>, !plan.state<slots, 512 x 4, f32>)
     -> tensor<1x512xf32>
}
// CHECK-DAG: %[[IDS:.*]] = plan.step_input "token_ids"
// CHECK-DAG: %[[IN:.*]] = plan.step_input "slots_in"
// CHECK-DAG: %[[OUT:.*]] = plan.step_input "slots_out"
// CHECK-DAG: %[[T:.*]] = plan.weight_ref @t
// CHECK-DAG: %[[W:.*]] = plan.weight_ref @w
// CHECK-DAG: %[[S:.*]] = plan.state_ref @s
// CHECK: %[[H:.*]] = plan.group #plan.group_info<id = 0, where = host
// CHECK-SAME: (%[[IDS]], %[[T]])
// CHECK: %[[A:.*]] = plan.embed
// CHECK: plan.yield %[[A]]
// CHECK: %[[QKV:.*]] = plan.group #plan.group_info<id = 1
// CHECK-SAME: (%[[H]], %[[IN]], %[[OUT]], %[[W]], %[[S]])
// CHECK: ^bb0(%[[X:.*]]: tensor<1x1024xbf16>, %[[B1:.*]]: tensor<1xi32>, %[[B2:.*]]: tensor<1xi32>, %[[B3:.*]]: !plan.weight<512 x 4, bf16>, %[[B4:.*]]: !plan.state
// CHECK-NEXT: %[[C:.*]] = plan.conv1d_update %[[X]], %[[B1]], %[[B2]], %[[B3]], %[[B4]]
// CHECK-NEXT: plan.state_snapshot %[[C]], %[[B4]]
// CHECK-NEXT: %[[L:.*]] = plan.l2_norm %[[C]]
// CHECK-NEXT: plan.yield %[[L]] : tensor<1x512xf32>
// CHECK: plan.group #plan.group_info<id = 2
// CHECK-SAME: (%[[QKV]]) : (tensor<1x512xf32>) -> tensor<1x256xf32>
plan.weight @t : !plan.weight<512 x 1024, bf16> parts []
plan.weight @w : !plan.weight<512 x 4, bf16> parts []
plan.state @s : !plan.state<slots, 512 x 4, f32>
