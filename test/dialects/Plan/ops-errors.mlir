// RUN: plan-opt %s --split-input-file --verify-diagnostics

// What every node checks: results against `out`, edge names against results.

plan.kernel @out_format rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %o: tensor<1x256xbf16>):
  // expected-error @below {{result 0 is stored as f32, but 'out' says bf16}}
  %y = plan.residual_add %x, %o precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xf32>
}

// -----

plan.kernel @out_count rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %o: tensor<1x256xbf16>):
  // expected-error @below {{writes 1 results, but 'out' lists 2}}
  %y = plan.residual_add %x, %o precision<act = bf16, out = [bf16, bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}

// -----

plan.kernel @edge_count rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %o: tensor<1x256xbf16>):
  // expected-error @below {{node "a" (group 0): has 1 results, but names 2 edges}}
  %y = plan.residual_add %x, %o node<id = "a", order = 0, group = 0, edges = ["a.y", "a.z"]>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}

// -----

plan.kernel @columns rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %o: tensor<1x128xbf16>):
  // expected-error @below {{the second input has 128 columns, expected 256 (the columns of the first)}}
  %y = plan.residual_add %x, %o precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x128xbf16>) -> tensor<1x256xbf16>
}

// -----

plan.kernel @integers rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xi32>, %o: tensor<1x256xbf16>):
  // expected-error @below {{the first input is i32, expected bf16 or f32}}
  %y = plan.residual_add %x, %o precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xi32>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}

// -----

plan.kernel @norm_weight rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<128, bf16>):
  // expected-error @below {{the weight has 128 as its first dim, expected 256 (the columns of its input)}}
  %y = plan.rms_norm %x, %w precision<act = bf16, out = [bf16]> steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32}
     : (tensor<1x256xbf16>, !plan.weight<128, bf16>) -> tensor<1x256xbf16>
}

// -----

plan.kernel @head_length rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<96, bf16>):
  // expected-error @below {{the row length is 256, expected a multiple of 96 (the length of a head)}}
  %y = plan.qk_norm %x, %w precision<act = bf16, out = [bf16]> steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32}
     : (tensor<1x256xbf16>, !plan.weight<96, bf16>) -> tensor<1x256xbf16>
}

// -----

plan.kernel @matrix rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<64 x 128, bf16>):
  // expected-error @below {{the matrix has 128 columns, expected 256 (the columns of its input)}}
  %y = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none>
     : (tensor<1x256xbf16>, !plan.weight<64 x 128, bf16>) -> tensor<1x64xbf16>
}

// -----

plan.kernel @matrix_format rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<128 x 256, fp8_block128x128>):
  // expected-error @below {{'weight' is bf16, expected fp8/block128x128}}
  %y = plan.router %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none>
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, fp8_block128x128>) -> tensor<1x128xbf16>
}

// -----

plan.kernel @scale_blocks rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<64 x 256, fp8_block128x128>):
  // expected-error @below {{the matrix's row count is 64, expected a multiple of 128 (the scale block)}}
  %y = plan.router %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32>
     : (tensor<1x256xbf16>, !plan.weight<64 x 256, fp8_block128x128>) -> tensor<1x64xbf16>
}

// -----

plan.kernel @expert_rows rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<2x128xf32>, %id: tensor<1x4xi32>, %w: !plan.weight<8 x 256 x 128, fp8_block128x128>):
  // expected-error @below {{the result has 2 as its first dim, expected 4 (one row per chosen expert)}}
  %y = plan.expert_down %x, %id, %w precision<weight = fp8_block128x128, act = f32, out = [bf16]>
       steps<act f32, weight fp8_block128x128 -> f32, mma f32 * f32, accumulate f32, scale f32>
     : (tensor<2x128xf32>, tensor<1x4xi32>, !plan.weight<8 x 256 x 128, fp8_block128x128>) -> tensor<2x256xbf16>
}

// -----

plan.kernel @top_k rows 1 compute "memory" numerics "reference" {
^bb0(%l: tensor<1x4xbf16>):
  // expected-error @below {{chooses 8 of 4 experts}}
  %w, %id = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score f32>
          : (tensor<1x4xbf16>) -> (tensor<1x8xf32>, tensor<1x8xi32>)
}

// -----

plan.kernel @window rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %i: tensor<1xi32>, %o: tensor<1xi32>, %w: !plan.weight<256 x 4, bf16>, %s: !plan.state<slots, 256 x 3, f32>):
  // expected-error @below {{the window has 3 columns, expected 4 (the taps)}}
  %y = plan.conv1d_update %x, %i, %o, %w, %s precision<act = bf16, out = [f32]> steps<state f32, compute f32>
     : (tensor<1x256xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<256 x 4, bf16>, !plan.state<slots, 256 x 3, f32>) -> tensor<1x256xf32>
}

// -----

plan.kernel @paged_window rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xf32>, %s: !plan.state<paged, 256 x 4, f32>):
  // expected-error @below {{the window is paged, expected slots}}
  plan.state_snapshot %x, %s precision<act = f32> steps<state f32> : (tensor<1x256xf32>, !plan.state<paged, 256 x 4, f32>) -> ()
}

// -----

plan.kernel @value_heads rows 1 compute "cuda_core" numerics "reference" {
^bb0(%qkv: tensor<1x960xf32>, %d: tensor<1x3xf32>, %i: tensor<1xi32>, %s: !plan.state<slots, 3 x 64 x 64, f32>):
  // expected-error @below {{the number of value heads is 3, expected a multiple of 6 (the number of key heads)}}
  %y = plan.gdn_recurrence %qkv, %d, %d, %i, %i, %s precision<act = f32, out = [f32]> steps<state f32, compute f32>
     : (tensor<1x960xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1xi32>, tensor<1xi32>, !plan.state<slots, 3 x 64 x 64, f32>) -> tensor<1x192xf32>
}

// -----

plan.kernel @rotary rows 1 compute "memory" numerics "reference" {
^bb0(%q: tensor<1x128xbf16>, %p: tensor<3x1xi32>):
  // expected-error @below {{rotates 15 dims, expected an even number up to the head's}}
  %a, %b = plan.rope %q, %q, %p precision<act = bf16, out = [bf16, bf16]> steps<compute f32>
      {head_dim = #plan.dim<64>, rotary_dim = 15 : i64, theta = 1.0e+07 : f64, sections = array<i64>}
    : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<3x1xi32>) -> (tensor<1x128xbf16>, tensor<1x128xbf16>)
}

// -----

plan.kernel @caches rows 1 compute "memory" numerics "reference" {
^bb0(%k: tensor<1x128xbf16>, %m: tensor<1xi64>, %kc: !plan.state<paged, 2 x 64, bf16>, %vc: !plan.state<paged, 4 x 64, bf16>):
  // expected-error @below {{the value cache has 4 as its first dim, expected 2 (the heads of the key cache)}}
  plan.kv_write %k, %k, %m, %kc, %vc precision<act = bf16> steps<cache bf16>
    : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1xi64>, !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 4 x 64, bf16>) -> ()
}

// -----

// Symbols: the name must exist, and its type is the reference's.

plan.weight @w : !plan.weight<4 x 4, bf16> parts []
plan.graph @g mode "decode" rows 1 {
  // expected-error @below {{names no plan.weight 'v'}}
  %v = plan.weight_ref @v : !plan.weight<4 x 4, bf16>
}

// -----

plan.weight @w : !plan.weight<4 x 4, bf16> parts []
plan.graph @g mode "decode" rows 1 {
  // expected-error @below {{has type '!plan.weight<4 x 8, bf16>', but @w is declared as '!plan.weight<4 x 4, bf16>'}}
  %w = plan.weight_ref @w : !plan.weight<4 x 8, bf16>
}

// -----

plan.graph @g mode "decode" rows 1 {
  // expected-error @below {{'weather' is no step input}}
  %w = plan.step_input "weather" : tensor<1xi32>
}

// -----

plan.graph @g mode "decode" rows 1 {
  // expected-error @below {{'slot_mapping' is i64}}
  %w = plan.step_input "slot_mapping" : tensor<1xi32>
}

// -----

// A kernel holds nodes and nothing else.

// expected-error @below {{holds 'plan.step_input', which is no node}}
plan.kernel @k rows 1 compute "memory" numerics "reference" {
  %i = plan.step_input "token_ids" : tensor<1xi32>
}
