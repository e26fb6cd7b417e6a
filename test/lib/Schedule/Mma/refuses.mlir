// What mma does not take, and why.
// RUN: not plan-opt %s --plan-emit-kernels --split-input-file 2>&1 | FileCheck %s

// An f32 activation stays exact.
// CHECK: note: mma: 'plan.linear': its activation is f32, and an mma on bf16 would round it
plan.kernel @exact rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<1x256xf32>, %w: !plan.weight<128 x 256, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = f32, out = [bf16]>
       steps<act f32, weight fp8_block128x128 -> f32, mma f32 * f32, accumulate f32, scale f32> {role = "down"}
     : (tensor<1x256xf32>, !plan.weight<128 x 256, fp8_block128x128>) -> tensor<1x128xbf16>
  plan.yield %y : tensor<1x128xbf16>
}

// -----

// CHECK: note: mma: 'plan.linear': its weights do not fit the bf16 that the mma multiplies
plan.kernel @weights rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<128 x 256, f32>):
  %y = plan.linear %x, %w precision<weight = f32, act = bf16, out = [bf16]>
       steps<act bf16, weight f32 -> f32, mma bf16 * f32, accumulate f32, scale none> {role = "down"}
     : (tensor<1x256xbf16>, !plan.weight<128 x 256, f32>) -> tensor<1x128xbf16>
  plan.yield %y : tensor<1x128xbf16>
}

// -----

// CHECK: note: mma: the group asks for an mma, but nothing in it multiplies a matrix
plan.kernel @nothing rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %y: tensor<1x256xbf16>):
  %z = plan.residual_add %x, %y precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %z : tensor<1x256xbf16>
}
