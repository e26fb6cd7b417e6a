// Shapes at the edges of what gemv lays out, against the reference.
// RUN: planc-kernel-test %s | FileCheck %s
// RUN: planc-kernel-test %s --target=sm_80 | FileCheck %s
// CHECK-COUNT-7: gemv, ok

// 33 pieces of 16 bytes in a row: one lane each takes all of them.
plan.kernel @odd_pieces rows 3 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<3x264xbf16>, %w: !plan.weight<40 x 264, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [bf16]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<3x264xbf16>, !plan.weight<40 x 264, bf16>) -> tensor<3x40xbf16>
  plan.yield %y : tensor<3x40xbf16>
}

// One column, one piece.
plan.kernel @smallest rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x8xbf16>, %w: !plan.weight<1 x 8, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [f32]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<1x8xbf16>, !plan.weight<1 x 8, bf16>) -> tensor<1x1xf32>
  plan.yield %y : tensor<1x1xf32>
}

// A row of 24 pieces goes to 8 lanes; four rows lie side by side in a warp.
plan.kernel @side_by_side rows 5 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<5x384xbf16>, %w: !plan.weight<128 x 384, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32> {role = "x"}
     : (tensor<5x384xbf16>, !plan.weight<128 x 384, fp8_block128x128>) -> tensor<5x128xbf16>
  plan.yield %y : tensor<5x128xbf16>
}

// Columns that no tile divides.
plan.kernel @ragged rows 2 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<2x1000xbf16>, %w: !plan.weight<700 x 1000, bf16>):
  %y = plan.linear %x, %w precision<weight = bf16, act = bf16, out = [f32]>
       steps<act bf16, weight bf16 -> bf16, mma bf16 * bf16, accumulate f32, scale none> {role = "x"}
     : (tensor<2x1000xbf16>, !plan.weight<700 x 1000, bf16>) -> tensor<2x700xf32>
  plan.yield %y : tensor<2x700xf32>
}

// Weights in f32.
plan.kernel @f32_weights rows 2 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<2x36xbf16>, %w: !plan.weight<33 x 36, f32>):
  %y = plan.linear %x, %w precision<weight = f32, act = bf16, out = [f32]>
       steps<act bf16, weight f32 -> f32, mma bf16 * f32, accumulate f32, scale none> {role = "x"}
     : (tensor<2x36xbf16>, !plan.weight<33 x 36, f32>) -> tensor<2x33xf32>
  plan.yield %y : tensor<2x33xf32>
}

// Rows so long that their tile shrinks to what shared memory holds.
plan.kernel @long_rows rows 9 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<9x12288xbf16>, %w: !plan.weight<128 x 12288, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = bf16, out = [bf16]>
       steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32> {role = "x"}
     : (tensor<9x12288xbf16>, !plan.weight<128 x 12288, fp8_block128x128>) -> tensor<9x128xbf16>
  plan.yield %y : tensor<9x128xbf16>
}

// All codes of e4m3, in sums that are not rounded.
plan.kernel @codes rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x256xf32>, %w: !plan.weight<256 x 256, fp8_block128x128>):
  %y = plan.linear %x, %w precision<weight = fp8_block128x128, act = f32, out = [f32]>
       steps<act f32, weight fp8_block128x128 -> f32, mma f32 * f32, accumulate f32, scale f32> {role = "x"}
     : (tensor<1x256xf32>, !plan.weight<256 x 256, fp8_block128x128>) -> tensor<1x256xf32>
  plan.yield %y : tensor<1x256xf32>
}
