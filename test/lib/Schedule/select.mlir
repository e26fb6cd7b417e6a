// RUN: plan-opt %s --split-input-file --plan-emit-kernels | FileCheck %s
// RUN: not plan-opt %S/Inputs/select-refuses.mlir --split-input-file --plan-emit-kernels --mlir-print-op-on-diagnostic=false 2>&1 | FileCheck %S/Inputs/select-refuses.mlir

// One warp per row, eight bf16 logits a lane, no barrier and no shared memory.
// CHECK: plan.launch = "select: grid 3 1 1 block 32 1 1 dynamic shared 0 scratch 0 counters 0"
// CHECK-NOT: gpu.barrier
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK: scf.for
plan.kernel @routing rows 3 compute "memory" numerics "reference" {
^bb0(%l: tensor<3x256xbf16>):
  %w, %i = plan.top_k %l precision<act = bf16, out = [f32, i32]> steps<score f32>
         : (tensor<3x256xbf16>) -> (tensor<3x8xf32>, tensor<3x8xi32>)
  plan.yield %w, %i : tensor<3x8xf32>, tensor<3x8xi32>
}

// -----

// A vocabulary goes over many CTAs; each row has a counter and a key per part.
// CHECK: plan.launch = "select: grid 31 2 1 block 256 1 1 dynamic shared 0 scratch 496 counters 2"
// CHECK: llvm.atomicrmw
plan.kernel @greedy rows 2 compute "memory" numerics "reference" {
^bb0(%l: tensor<2x248320xbf16>):
  %t = plan.argmax %l precision<act = bf16, out = [i32]> steps<compare bf16> : (tensor<2x248320xbf16>) -> tensor<2xi32>
  plan.yield %t : tensor<2xi32>
}
