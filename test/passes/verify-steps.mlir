// RUN: plan-opt %s --plan-verify-steps | FileCheck %s

// A norm may take the sum before it is rounded: it is in the group of the add.
// CHECK-LABEL: plan.graph @held
plan.graph @held mode "decode" rows 1 {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %w = plan.weight_ref @w : !plan.weight<256, bf16>
  %h = plan.embed %ids, %t node<id = "e", order = 0, group = 0, where = host> precision<out = [bf16]> steps<gather bf16>
     : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %y = plan.residual_add %h, %h node<id = "a", order = 1, group = 1> precision<act = bf16, out = [bf16]>
       steps<compute f32> : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // CHECK: plan.rms_norm
  // CHECK-SAME: act = f32
  %xn = plan.rms_norm %y, %w node<id = "n", order = 2, group = 1> precision<act = f32, out = [bf16]>
        steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32}
      : (tensor<1x256xbf16>, !plan.weight<256, bf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
plan.weight @w : !plan.weight<256, bf16> parts []

// The same inside a kernel, where the region says who is in the group.
// CHECK-LABEL: plan.kernel @held_in_kernel
plan.kernel @held_in_kernel rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<256, bf16>):
  %y = plan.residual_add %x, %x precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %xn = plan.rms_norm %y, %w precision<act = f32, out = [bf16]> steps<compute f32>
        {eps = 1.0e-06 : f32, offset = 1.0 : f32}
      : (tensor<1x256xbf16>, !plan.weight<256, bf16>) -> tensor<1x256xbf16>
  plan.yield %xn : tensor<1x256xbf16>
}
