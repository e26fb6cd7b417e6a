// RUN: plan-opt %s --plan-verify-steps --verify-diagnostics --split-input-file

// S1: post_norm, in another group, takes the sum before it is stored.
plan.graph @other_group_reads_wide mode "decode" rows 1 {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %w = plan.weight_ref @w : !plan.weight<256, bf16>
  %h = plan.embed %ids, %t node<id = "e", order = 0, group = 0> precision<out = [bf16]> steps<gather bf16>
     : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{stored here by node "l0.gdn.add" (group 8, layer 0)}}
  %y = plan.residual_add %h, %h
       node<id = "l0.gdn.add", order = 1, group = 8, layer = 0, edges = ["l0.gdn.y"], fused = [false]>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "l0.moe_ffn.post_norm" (group 9, layer 0): reads 'f32', but edge 'l0.gdn.y' is stored as 'bf16'; the wider value exists only inside the writer's group}}
  %xn = plan.rms_norm %y, %w node<id = "l0.moe_ffn.post_norm", order = 2, group = 9, layer = 0>
        precision<act = f32, out = [bf16]> steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32}
      : (tensor<1x256xbf16>, !plan.weight<256, bf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
plan.weight @w : !plan.weight<256, bf16> parts []

// -----

// S1 across the border of a kernel: an argument has no wider value. And a narrower read has no meaning at all.
plan.kernel @reads_argument_wide rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<256, bf16>, %a: tensor<1x256xf32>):
  // expected-error @below {{'plan.rms_norm': reads 'f32', but the edge is stored as 'bf16'}}
  %xn = plan.rms_norm %x, %w precision<act = f32, out = [bf16]> steps<compute f32>
        {eps = 1.0e-06 : f32, offset = 1.0 : f32}
      : (tensor<1x256xbf16>, !plan.weight<256, bf16>) -> tensor<1x256xbf16>
  // expected-error @below {{'plan.silu_mul': reads 'bf16', but the edge is stored as 'f32'}}
  %m = plan.silu_mul %a precision<act = bf16, out = [f32]> steps<compute f32>
     : (tensor<1x256xf32>) -> tensor<1x128xf32>
  plan.yield %xn, %m : tensor<1x256xbf16>, tensor<1x128xf32>
}

// -----

// S2: steps that are missing, of another op, twice, in another order.
plan.kernel @words rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<128 x 256, bf16>):
  // expected-error @below {{'plan.router': lacks the step 'accumulate' of 'router'}}
  %a = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, scale none>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, bf16>) -> tensor<1x128xbf16>
  // expected-error @below {{has step 'softmax f32', which is none of 'residual_add'}}
  %b = plan.residual_add %x, %x precision<act = bf16, out = [bf16]> steps<compute f32, softmax f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{has step 'compute f32' for the second time}}
  %c = plan.residual_add %x, %x precision<act = bf16, out = [bf16]> steps<compute f32, compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{has its steps in another order than 'act', 'weight', 'mma', 'accumulate', 'scale'}}
  %d = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, accumulate f32, mma bf16 * bf16, scale none>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, bf16>) -> tensor<1x128xbf16>
  plan.yield %a, %b, %c, %d
      : tensor<1x128xbf16>, tensor<1x256xbf16>, tensor<1x256xbf16>, tensor<1x128xbf16>
}

// -----

// S3, S4, S5: what is multiplied, scaled and summed.
plan.kernel @product rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<128 x 256, bf16>, %q: !plan.weight<128 x 256, fp8_block128x128>):
  // expected-error @below {{step 'mma f32*bf16' multiplies 'f32', but step 'act bf16' yields 'bf16'}}
  %a = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma f32 * bf16, accumulate f32, scale none>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, bf16>) -> tensor<1x128xbf16>
  // expected-error @below {{step 'act f32' contradicts the precision, which reads 'bf16'}}
  %b = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act f32, weight bf16 -> f32, mma f32 * f32, accumulate f32, scale none>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, bf16>) -> tensor<1x128xbf16>
  // expected-error @below {{step 'weight fp8/block128x128->bf16' contradicts the precision, whose weight is 'bf16'}}
  // expected-error @below {{step 'scale none' does not fit step 'weight fp8/block128x128->bf16', whose weight has f32 scales: expected 'scale f32'}}
  %c = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale none>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, bf16>) -> tensor<1x128xbf16>
  // expected-error @below {{step 'mma bf16*f32' multiplies by 'f32', but step 'weight fp8/block128x128->bf16' yields 'bf16'}}
  // expected-error @below {{step 'accumulate bf16', expected 'f32': sums and functions are formed in f32}}
  %d = plan.router %x, %q precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * f32, accumulate bf16, scale f32>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, fp8_block128x128>) -> tensor<1x128xbf16>
  // expected-error @below {{step 'weight fp8/block128x128->e4m3' yields 'e4m3', expected 'bf16' or 'f32'}}
  %e = plan.router %x, %q precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> e4m3, mma bf16 * e4m3, accumulate f32, scale f32>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, fp8_block128x128>) -> tensor<1x128xbf16>
  plan.yield %a, %b, %c, %d, %e : tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>,
                                  tensor<1x128xbf16>
}

// -----

// S6: what is moved or kept stays in its format.
plan.kernel @kept rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %k: tensor<1x128xbf16>, %slots: tensor<1xi64>, %c: !plan.state<paged, 2 x 64, bf16>):
  // expected-error @below {{step 'move bf16', expected 'f32': what is moved is stored as it is}}
  %q, %g = plan.split %x precision<act = bf16, out = [f32, bf16]> steps<move bf16> {head_dim = #plan.dim<64>}
         : (tensor<1x256xbf16>) -> (tensor<1x128xf32>, tensor<1x128xbf16>)
  // expected-error @below {{step 'cache f32', expected 'bf16': it is kept in that format}}
  plan.kv_write %k, %k, %slots, %c, %c precision<act = bf16> steps<cache f32>
      : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1xi64>, !plan.state<paged, 2 x 64, bf16>,
         !plan.state<paged, 2 x 64, bf16>) -> ()
  plan.yield %q, %g : tensor<1x128xf32>, tensor<1x128xbf16>
}
