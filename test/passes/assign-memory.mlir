// RUN: plan-opt %s --plan-assign-memory --plan-verify-memory | FileCheck %s

// h dies when a is made, b when c is made; a lives until d. No launch writes what it reads, so three places are needed,
// and each place is a multiple of 256 bytes. d, which nobody reads, leaves the program.
// CHECK-LABEL: plan.graph @chain
// CHECK-SAME: #plan.buffer<edge = "h", bytes = 512, offset = 0, unshared = 0, first = 0, last = 1, written = host>
// CHECK-SAME: #plan.buffer<edge = "a", bytes = 512, offset = 512, unshared = 512, first = 1, last = 4>
// CHECK-SAME: #plan.buffer<edge = "b", bytes = 512, offset = 0, unshared = 1024, first = 2, last = 3>
// CHECK-SAME: #plan.buffer<edge = "c", bytes = 512, offset = 1024, unshared = 1536, first = 3, last = 4>
// CHECK-SAME: #plan.buffer<edge = "d", bytes = 512, offset = 0, unshared = 2048, first = 4, last = 4>
// CHECK-SAME: plan.workspace = 1536 : i64, plan.workspace_unshared = 2560 : i64
plan.graph @chain mode "decode" rows 1 {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
         precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  %a = plan.launch @add #plan.group_info<id = 1, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "a", order = 1, group = 1, edges = ["a"], fused = [false]>] (%h, %h)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %b = plan.launch @add #plan.group_info<id = 2, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "b", order = 2, group = 2, edges = ["b"], fused = [false]>] (%a, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %c = plan.launch @add #plan.group_info<id = 3, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "c", order = 3, group = 3, edges = ["c"], fused = [false]>] (%b, %b)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %d = plan.launch @add #plan.group_info<id = 4, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "d", order = 4, group = 4, edges = ["d"], fused = [false]>] (%c, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.kernel @add rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
