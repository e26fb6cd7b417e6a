// What gemv does not take, and why.
// RUN: not plan-opt %s --plan-emit-kernels --split-input-file 2>&1 | FileCheck %s

// The second projection needs whole rows of the first.
// CHECK: note: gemv: 'plan.linear': needs whole rows of 'plan.linear', which other blocks of the grid compute
plan.kernel @chained rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<256 x 256, bf16>, %v: !plan.weight<64 x 256, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "first"}
     : (tensor<1x256xbf16>, !plan.weight<256 x 256, bf16>) -> tensor<1x256xbf16>
  %z = plan.linear %y, %v precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "second"}
     : (tensor<1x256xbf16>, !plan.weight<64 x 256, bf16>) -> tensor<1x64xbf16>
  plan.yield %y, %z : tensor<1x256xbf16>, tensor<1x64xbf16>
}

// -----

// A declared unit is a demand.
// CHECK: note: gemv: it runs on CUDA cores, but the group asks for tensor_core:wgmma
plan.kernel @unit rows 1 compute "tensor_core:wgmma" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<64 x 256, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "first"}
     : (tensor<1x256xbf16>, !plan.weight<64 x 256, bf16>) -> tensor<1x64xbf16>
  plan.yield %y : tensor<1x64xbf16>
}

// -----

// Rows that 16-byte accesses do not cover.
// CHECK: note: gemv: 'plan.linear': rows of 100 values do not consist of 16-byte pieces
plan.kernel @pieces rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x100xbf16>, %w: !plan.weight<64 x 100, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "first"}
     : (tensor<1x100xbf16>, !plan.weight<64 x 100, bf16>) -> tensor<1x64xbf16>
  plan.yield %y : tensor<1x64xbf16>
}

// -----

// CHECK: note: gemv: a row of an activation does not fit in shared memory
// An activation row stays in shared memory.
plan.kernel @long rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x20480xbf16>, %w: !plan.weight<5 x 20480, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<1x20480xbf16>, !plan.weight<5 x 20480, bf16>) -> tensor<1x5xbf16>
  plan.yield %y : tensor<1x5xbf16>
}
