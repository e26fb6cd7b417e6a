// RUN: plan-opt %s --plan-emit-kernels --split-input-file --verify-diagnostics=only-expected

// The unit that the group asks for is not one that attends.
// expected-error @below {{no schedule takes this kernel}}
// expected-note @below {{attention: it attends on CUDA cores, but the group asks for tensor_core:mma.sync.m16n8k16.bf16}}
plan.kernel @unit rows 1 compute "tensor_core:mma.sync.m16n8k16.bf16" numerics "reference" {
^bb0(%q: tensor<1x256xbf16>, %k: tensor<1x128xbf16>, %bt: tensor<1x64xi32>, %len: tensor<1xi32>,
     %kc: !plan.state<paged, 2 x 64, bf16>, %vc: !plan.state<paged, 2 x 64, bf16>):
  %a = plan.paged_attention %q, %k, %k, %bt, %len, %kc, %vc precision<act = bf16, out = [bf16]>
       steps<cache bf16, scores f32, softmax f32, accumulate f32>
      : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x64xi32>, tensor<1xi32>,
         !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 2 x 64, bf16>) -> tensor<1x256xbf16>
  plan.yield %a : tensor<1x256xbf16>
}

// -----

// 48 dims are not whole 16-byte pieces for a power of two of lanes.
// expected-error @below {{no schedule takes this kernel}}
plan.kernel @head_dim rows 1 compute "cuda_core" numerics "reference" {
^bb0(%q: tensor<1x192xbf16>, %k: tensor<1x96xbf16>, %bt: tensor<1x64xi32>, %len: tensor<1xi32>,
     %kc: !plan.state<paged, 2 x 48, bf16>, %vc: !plan.state<paged, 2 x 48, bf16>):
  // expected-note @below {{attention: 'plan.paged_attention': its heads are 48 long, expected a multiple of 32 up to 512}}
  %a = plan.paged_attention %q, %k, %k, %bt, %len, %kc, %vc precision<act = bf16, out = [bf16]>
       steps<cache bf16, scores f32, softmax f32, accumulate f32>
      : (tensor<1x192xbf16>, tensor<1x96xbf16>, tensor<1x96xbf16>, tensor<1x64xi32>, tensor<1xi32>,
         !plan.state<paged, 2 x 48, bf16>, !plan.state<paged, 2 x 48, bf16>) -> tensor<1x192xbf16>
  plan.yield %a : tensor<1x192xbf16>
}

// -----

// A member that pairs columns which different CTAs finish.
// expected-error @below {{no schedule takes this kernel}}
plan.kernel @foreign rows 1 compute "cuda_core" numerics "reference" {
^bb0(%q: tensor<1x256xbf16>, %k: tensor<1x128xbf16>, %bt: tensor<1x64xi32>, %len: tensor<1xi32>,
     %kc: !plan.state<paged, 2 x 64, bf16>, %vc: !plan.state<paged, 2 x 64, bf16>):
  %a = plan.paged_attention %q, %k, %k, %bt, %len, %kc, %vc precision<act = bf16, out = [bf16]>
       steps<cache bf16, scores f32, softmax f32, accumulate f32>
      : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x64xi32>, tensor<1xi32>,
         !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 2 x 64, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{attention: 'plan.silu_mul': it takes other columns of the attention's result than it gives}}
  %g = plan.silu_mul %a precision<act = bf16, out = [f32]> steps<compute f32>
      : (tensor<1x256xbf16>) -> tensor<1x128xf32>
  plan.yield %g : tensor<1x128xf32>
}

// -----

// The positions of a write that comes later must not be seen.
// expected-error @below {{no schedule takes this kernel}}
plan.kernel @late_write rows 1 compute "cuda_core" numerics "reference" {
^bb0(%q: tensor<1x256xbf16>, %k: tensor<1x128xbf16>, %bt: tensor<1x64xi32>, %len: tensor<1xi32>, %slots: tensor<1xi64>,
     %kc: !plan.state<paged, 2 x 64, bf16>, %vc: !plan.state<paged, 2 x 64, bf16>):
  %a = plan.paged_attention %q, %k, %k, %bt, %len, %kc, %vc precision<act = bf16, out = [bf16]>
       steps<cache bf16, scores f32, softmax f32, accumulate f32>
      : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x64xi32>, tensor<1xi32>,
         !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 2 x 64, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{attention: 'plan.kv_write': it comes after the attention that reads its caches}}
  plan.kv_write %k, %k, %slots, %kc, %vc precision<act = bf16> steps<cache bf16>
      : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1xi64>, !plan.state<paged, 2 x 64, bf16>,
         !plan.state<paged, 2 x 64, bf16>) -> ()
  plan.yield %a : tensor<1x256xbf16>
}
