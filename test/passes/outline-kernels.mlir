// RUN: plan-opt %s --plan-outline-kernels --split-input-file | FileCheck %s

// Two groups of equal content share a kernel, whoever their nodes are; another contract or unit makes another kernel.
// A kernel's name tells content and sizes.
// CHECK: plan.kernel @residual_add_h256_n1__[[A:[0-9a-f]{6}]] rows 1 compute "memory" numerics "reference" {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<1x256xbf16>, %{{.*}}: tensor<1x256xbf16>):
// CHECK-NOT: node<
// CHECK: plan.yield
// CHECK: plan.kernel @residual_add_h256_n1__[[B:[0-9a-f]{6}]] rows 1 compute "memory" numerics "bit_identical(t)"
// CHECK-NOT: plan.kernel
// CHECK-LABEL: plan.graph @shared
plan.graph @shared mode "decode" rows 1 {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  // The host's groups have no kernel.
  // CHECK: %[[H:.*]] = plan.group #plan.group_info<id = 0, where = host
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, where = host> precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  // CHECK: %[[X:.*]] = plan.launch @residual_add_h256_n1__[[A]] #plan.group_info<id = 1
  // CHECK-SAME: nodes [#plan.node<id = "first", order = 1, group = 1>](%[[H]], %[[H]])
  %x = plan.group #plan.group_info<id = 1, compute = "memory", numerics = "reference"> (%h, %h)
      : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
    %y = plan.residual_add %0, %1 node<id = "first", order = 1, group = 1> precision<act = bf16, out = [bf16]>
         steps<compute f32> : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
    plan.yield %y : tensor<1x256xbf16>
  }
  // CHECK: plan.launch @residual_add_h256_n1__[[A]] #plan.group_info<id = 2
  // CHECK-SAME: (%[[X]], %[[H]])
  %z = plan.group #plan.group_info<id = 2, compute = "memory", numerics = "reference"> (%x, %h)
      : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
    %y = plan.residual_add %0, %1 node<id = "second", order = 2, group = 2> precision<act = bf16, out = [bf16]>
         steps<compute f32> : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
    plan.yield %y : tensor<1x256xbf16>
  }
  // CHECK: plan.launch @residual_add_h256_n1__[[B]] #plan.group_info<id = 3
  %v = plan.group #plan.group_info<id = 3, compute = "memory", numerics = "bit_identical(t)"> (%x, %h)
      : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
    %y = plan.residual_add %0, %1 node<id = "third", order = 3, group = 3> precision<act = bf16, out = [bf16]>
         steps<compute f32> : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
    plan.yield %y : tensor<1x256xbf16>
  }
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// A projection's role computes nothing: o and gdn_out of equal size are one kernel.
// CHECK: plan.kernel @linear_i128_o256_n1__{{[0-9a-f]+}} rows
// CHECK: {role = ""}
// CHECK-NOT: plan.kernel
// CHECK-LABEL: plan.graph @roles
// CHECK-COUNT-2: plan.launch @linear_i128_o256_n1__{{[0-9a-f]+}} #
plan.graph @roles mode "decode" rows 1 {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 128, bf16>
  %w = plan.weight_ref @w : !plan.weight<256 x 128, bf16>
  %x = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 128, bf16>) -> tensor<1x128xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 128, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, where = host> precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 128, bf16>) -> tensor<1x128xbf16>
    plan.yield %e : tensor<1x128xbf16>
  }
  %a = plan.group #plan.group_info<id = 1, compute = "cuda_core", numerics = "reference"> (%x, %w)
      : (tensor<1x128xbf16>, !plan.weight<256 x 128, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1x128xbf16>, %1: !plan.weight<256 x 128, bf16>):
    %o = plan.linear %0, %1 node<id = "o", order = 1, group = 1> precision<weight = bf16, act = bf16, out = [bf16]>
         steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "o"}
       : (tensor<1x128xbf16>, !plan.weight<256 x 128, bf16>) -> tensor<1x256xbf16>
    plan.yield %o : tensor<1x256xbf16>
  }
  %b = plan.group #plan.group_info<id = 2, compute = "cuda_core", numerics = "reference"> (%x, %w)
      : (tensor<1x128xbf16>, !plan.weight<256 x 128, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1x128xbf16>, %1: !plan.weight<256 x 128, bf16>):
    %o = plan.linear %0, %1 node<id = "out", order = 2, group = 2> precision<weight = bf16, act = bf16, out = [bf16]>
         steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "gdn_out"}
       : (tensor<1x128xbf16>, !plan.weight<256 x 128, bf16>) -> tensor<1x256xbf16>
    plan.yield %o : tensor<1x256xbf16>
  }
}
plan.weight @t : !plan.weight<512 x 128, bf16> parts []
plan.weight @w : !plan.weight<256 x 128, bf16> parts []

// -----

// A snapshot keeps what all rows but the last left: at one row its group starts nothing, at two it does.
// CHECK-LABEL: plan.graph @one_row
// CHECK: plan.launch note "nothing to do at 1 row" #plan.group_info<id = 0
// CHECK-SAME: nodes [#plan.node<id = "ckpt", order = 0, group = 0>]()
plan.graph @one_row mode "decode" rows 1 {
  %s = plan.state_ref @s : !plan.state<slots, 512 x 4, f32>
  %c = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<8 x 512, f32>
  %h = plan.group #plan.group_info<id = 1, where = host> (%c, %t)
      : (tensor<1xi32>, !plan.weight<8 x 512, f32>) -> tensor<1x512xf32> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<8 x 512, f32>):
    %e = plan.embed %0, %1 node<id = "e", order = 1, group = 1, where = host> precision<out = [f32]> steps<gather f32>
       : (tensor<1xi32>, !plan.weight<8 x 512, f32>) -> tensor<1x512xf32>
    plan.yield %e : tensor<1x512xf32>
  }
  plan.group #plan.group_info<id = 0, compute = "memory", numerics = "reference"> (%h, %s)
      : (tensor<1x512xf32>, !plan.state<slots, 512 x 4, f32>) -> () {
  ^bb0(%0: tensor<1x512xf32>, %1: !plan.state<slots, 512 x 4, f32>):
    plan.state_snapshot %0, %1 node<id = "ckpt", order = 0, group = 0> precision<act = f32> steps<state f32>
        : (tensor<1x512xf32>, !plan.state<slots, 512 x 4, f32>) -> ()
    plan.yield
  }
}
// CHECK-LABEL: plan.graph @two_rows
// CHECK: plan.launch @state_snapshot_h512_n2__
plan.graph @two_rows mode "verify" rows 2 {
  %s = plan.state_ref @s : !plan.state<slots, 512 x 4, f32>
  %c = plan.step_input "token_ids" : tensor<2xi32>
  %t = plan.weight_ref @t : !plan.weight<8 x 512, f32>
  %h = plan.group #plan.group_info<id = 1, where = host> (%c, %t)
      : (tensor<2xi32>, !plan.weight<8 x 512, f32>) -> tensor<2x512xf32> {
  ^bb0(%0: tensor<2xi32>, %1: !plan.weight<8 x 512, f32>):
    %e = plan.embed %0, %1 node<id = "e", order = 1, group = 1, where = host> precision<out = [f32]> steps<gather f32>
       : (tensor<2xi32>, !plan.weight<8 x 512, f32>) -> tensor<2x512xf32>
    plan.yield %e : tensor<2x512xf32>
  }
  plan.group #plan.group_info<id = 0, compute = "memory", numerics = "reference"> (%h, %s)
      : (tensor<2x512xf32>, !plan.state<slots, 512 x 4, f32>) -> () {
  ^bb0(%0: tensor<2x512xf32>, %1: !plan.state<slots, 512 x 4, f32>):
    plan.state_snapshot %0, %1 node<id = "ckpt", order = 0, group = 0> precision<act = f32> steps<state f32>
        : (tensor<2x512xf32>, !plan.state<slots, 512 x 4, f32>) -> ()
    plan.yield
  }
}
plan.state @s : !plan.state<slots, 512 x 4, f32>
plan.weight @t : !plan.weight<8 x 512, f32> parts []
