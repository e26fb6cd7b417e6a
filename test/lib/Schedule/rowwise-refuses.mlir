// RUN: not plan-opt %s --split-input-file --plan-emit-kernels --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %s

// A unit that the schedule does not use.
// CHECK: error: no schedule takes this kernel
// CHECK: note: rowwise: declared for tensor cores, which this schedule does not use
// CHECK: note: the group would compile as another unit: [residual_add]
plan.kernel @unit rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<1x64xbf16>, %u: tensor<1x64xbf16>):
  %y = plan.residual_add %x, %u precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x64xbf16>, tensor<1x64xbf16>) -> tensor<1x64xbf16>
  plan.yield %y : tensor<1x64xbf16>
}

// -----

// CHECK: error: no schedule takes this kernel
// CHECK: note: rowwise: 'plan.rms_norm': a norm over 72 elements, expected a multiple of 32 up to 16384
plan.kernel @length rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x72xbf16>, %w: !plan.weight<72, bf16>):
  %y = plan.rms_norm %x, %w precision<act = bf16, out = [bf16]> steps<compute f32>
       {eps = 1.0e-06 : f32, offset = 1.0 : f32}
     : (tensor<1x72xbf16>, !plan.weight<72, bf16>) -> tensor<1x72xbf16>
  plan.yield %y : tensor<1x72xbf16>
}

// -----

// CHECK: error: no schedule takes this kernel
// CHECK: note: rowwise: 'plan.conv1d_update': a window of other than 4 taps
// CHECK: note: no grouping would compile: 'conv1d_update' is not taken alone
plan.kernel @taps rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x64xbf16>, %in: tensor<1xi32>, %out: tensor<1xi32>, %w: !plan.weight<64 x 3, bf16>,
     %s: !plan.state<slots, 64 x 3, f32>):
  %y = plan.conv1d_update %x, %in, %out, %w, %s precision<act = bf16, out = [f32]> steps<state f32, compute f32>
     : (tensor<1x64xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<64 x 3, bf16>,
        !plan.state<slots, 64 x 3, f32>) -> tensor<1x64xf32>
  plan.yield %y : tensor<1x64xf32>
}

// -----

// The expert rows of a token would have to be normed before they are added.
// CHECK: error: no schedule takes this kernel
// CHECK: note: rowwise: 'plan.rms_norm': its rows are read as other rows by a later member
// CHECK: note: the nearest grouping that would compile: [rms_norm] [blend]
plan.kernel @rows rows 1 compute "memory" numerics "reference" {
^bb0(%e: tensor<2x64xbf16>, %t: tensor<1x2xf32>, %s: tensor<1x64xbf16>, %g: tensor<1x1xf32>,
     %w: !plan.weight<64, bf16>):
  %n = plan.rms_norm %e, %w precision<act = bf16, out = [bf16]> steps<compute f32>
       {eps = 1.0e-06 : f32, offset = 1.0 : f32}
     : (tensor<2x64xbf16>, !plan.weight<64, bf16>) -> tensor<2x64xbf16>
  %f = plan.blend %n, %t, %s, %g precision<act = bf16, out = [bf16]> steps<scatter f32, combine f32>
     : (tensor<2x64xbf16>, tensor<1x2xf32>, tensor<1x64xbf16>, tensor<1x1xf32>) -> tensor<1x64xbf16>
  plan.yield %f : tensor<1x64xbf16>
}

// -----

// 12000 channels that a later member reads out of place do not fit.
// CHECK: error: no schedule takes this kernel
// CHECK: note: rowwise: 'plan.conv1d_update': the values of a row need 48000 bytes of shared memory, more than 40960
plan.kernel @shared rows 1 compute "memory" numerics "reference" {
^bb0(%x: tensor<1x12000xbf16>, %in: tensor<1xi32>, %out: tensor<1xi32>, %w: !plan.weight<12000 x 4, bf16>,
     %s: !plan.state<slots, 12000 x 4, f32>):
  %c = plan.conv1d_update %x, %in, %out, %w, %s precision<act = bf16, out = [f32]> steps<state f32, compute f32>
     : (tensor<1x12000xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<12000 x 4, bf16>,
        !plan.state<slots, 12000 x 4, f32>) -> tensor<1x12000xf32>
  %y = plan.silu_mul %c precision<act = f32, out = [f32]> steps<compute f32>
     : (tensor<1x12000xf32>) -> tensor<1x6000xf32>
  plan.yield %y : tensor<1x6000xf32>
}
