// CHECK: error: no schedule takes this kernel
// CHECK: note: select: 'plan.top_k': chooses among 2048 experts, more than the 1024 that a warp holds in registers
plan.kernel @many rows 1 compute "memory" numerics "reference" {
^bb0(%l: tensor<1x2048xbf16>):
  %w, %i = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score f32>
         : (tensor<1x2048xbf16>) -> (tensor<1x8xf32>, tensor<1x8xi32>)
  plan.yield %w, %i : tensor<1x8xf32>, tensor<1x8xi32>
}

// -----

// CHECK: error: no schedule takes this kernel
// CHECK: note: select: 'plan.argmax': a second selection in one kernel
plan.kernel @two rows 1 compute "memory" numerics "reference" {
^bb0(%l: tensor<1x64xbf16>):
  %t = plan.argmax %l precision<act = bf16, out = [i32]> steps<compare bf16> : (tensor<1x64xbf16>) -> tensor<1xi32>
  %u = plan.argmax %l precision<act = bf16, out = [i32]> steps<compare bf16> : (tensor<1x64xbf16>) -> tensor<1xi32>
  plan.yield %t, %u : tensor<1xi32>, tensor<1xi32>
}
