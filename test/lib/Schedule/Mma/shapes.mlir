// Shapes at the edges of what mma lays out, against the reference.
// RUN: planc-kernel-test %s | FileCheck %s
// RUN: planc-kernel-test %s --target=sm_80 | FileCheck %s
// CHECK-COUNT-6: mma, ok

// Columns that no tile divides, in a matrix of three stages a row.
plan.kernel @ragged rows 3 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<3x192xbf16>, %w: !plan.weight<40 x 192, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<3x192xbf16>, !plan.weight<40 x 192, bf16>) -> tensor<3x40xbf16>
  plan.yield %y : tensor<3x40xbf16>
}

// One column.
plan.kernel @smallest rows 9 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<9x64xbf16>, %w: !plan.weight<1 x 64, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [f32]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<9x64xbf16>, !plan.weight<1 x 64, bf16>) -> tensor<9x1xf32>
  plan.yield %y : tensor<9x1xf32>
}

// 17 stages in a row: one warp has them all.
plan.kernel @prime rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<1x2176xbf16>, %w: !plan.weight<384 x 2176, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32> {role = "x"}
     : (tensor<1x2176xbf16>, !plan.weight<384 x 2176, fp8_block128x128>) -> tensor<1x384xbf16>
  plan.yield %y : tensor<1x384xbf16>
}

// More rows than a stream of weights serves, and more stages than a ring has.
plan.kernel @many_rows rows 40 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<40x8192xbf16>, %w: !plan.weight<256 x 8192, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32> {role = "x"}
     : (tensor<40x8192xbf16>, !plan.weight<256 x 8192, fp8_block128x128>) -> tensor<40x256xbf16>
  plan.yield %y : tensor<40x256xbf16>
}

// bf16 weights take twice the stages.
plan.kernel @bf16_weights rows 12 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<12x2048xbf16>, %w: !plan.weight<512 x 2048, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<12x2048xbf16>, !plan.weight<512 x 2048, bf16>) -> tensor<12x512xbf16>
  plan.yield %y : tensor<12x512xbf16>
}

// All codes of e4m3, in sums that are not rounded.
plan.kernel @codes rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%x: tensor<1x256xbf16>, %w: !plan.weight<256 x 256, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [f32]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32> {role = "x"}
     : (tensor<1x256xbf16>, !plan.weight<256 x 256, fp8_block128x128>) -> tensor<1x256xf32>
  plan.yield %y : tensor<1x256xf32>
}
