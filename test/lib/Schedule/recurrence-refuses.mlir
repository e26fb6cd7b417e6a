// RUN: plan-opt %s --plan-emit-kernels --split-input-file --verify-diagnostics=only-expected

// The convolution's window serves several value heads.
// expected-error @below {{no schedule takes this kernel}}
plan.kernel @convolution rows 1 compute "cuda_core" numerics "reference" {
^bb0(%x: tensor<1x320xbf16>, %decay: tensor<1x4xf32>, %beta: tensor<1x4xf32>, %in: tensor<1xi32>, %out: tensor<1xi32>,
     %w: !plan.weight<256 x 4, bf16>, %c: !plan.state<slots, 256 x 4, f32>, %s: !plan.state<slots, 4 x 32 x 32, f32>):
  // expected-note @below {{recurrence: 'plan.conv1d_update': several value heads read the window of one key channel, so no part of the kernel may update it}}
  %conv = plan.conv1d_update %x, %in, %out, %w, %c precision<act = bf16, out = [f32]> steps<state f32, compute f32>
      : (tensor<1x320xbf16>, tensor<1xi32>, tensor<1xi32>, !plan.weight<256 x 4, bf16>,
         !plan.state<slots, 256 x 4, f32>) -> tensor<1x256xf32>
  %core = plan.gdn_recurrence %conv, %decay, %beta, %in, %out, %s precision<act = f32, out = [f32]>
          steps<state f32, compute f32>
      : (tensor<1x256xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1xi32>, tensor<1xi32>,
         !plan.state<slots, 4 x 32 x 32, f32>) -> tensor<1x128xf32>
  plan.yield %core : tensor<1x128xf32>
}

// -----

// More rows than a lane can hold.
// expected-error @below {{no schedule takes this kernel}}
plan.kernel @long_keys rows 1 compute "cuda_core" numerics "reference" {
^bb0(%qkv: tensor<1x1152xf32>, %decay: tensor<1x4xf32>, %beta: tensor<1x4xf32>, %in: tensor<1xi32>,
     %out: tensor<1xi32>, %s: !plan.state<slots, 4 x 512 x 32, f32>):
  // expected-note @below {{recurrence: 'plan.gdn_recurrence': its key heads are 512 long; a state of at most 256 rows fits the registers}}
  %core = plan.gdn_recurrence %qkv, %decay, %beta, %in, %out, %s precision<act = f32, out = [f32]>
          steps<state f32, compute f32>
      : (tensor<1x1152xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1xi32>, tensor<1xi32>,
         !plan.state<slots, 4 x 512 x 32, f32>) -> tensor<1x128xf32>
  plan.yield %core : tensor<1x128xf32>
}

// -----

// Norms over two value heads at once.
// expected-error @below {{no schedule takes this kernel}}
plan.kernel @wide_norm rows 1 compute "cuda_core" numerics "reference" {
^bb0(%qkv: tensor<1x256xf32>, %decay: tensor<1x4xf32>, %beta: tensor<1x4xf32>, %z: tensor<1x384xbf16>,
     %in: tensor<1xi32>, %out: tensor<1xi32>, %w: !plan.weight<64, bf16>, %s: !plan.state<slots, 4 x 32 x 32, f32>):
  %core = plan.gdn_recurrence %qkv, %decay, %beta, %in, %out, %s precision<act = f32, out = [f32]>
          steps<state f32, compute f32>
      : (tensor<1x256xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1xi32>, tensor<1xi32>,
         !plan.state<slots, 4 x 32 x 32, f32>) -> tensor<1x128xf32>
  // expected-note @below {{recurrence: 'plan.gated_rms_norm': its stretches are not the value heads of the recurrence}}
  %n = plan.gated_rms_norm %core, %z, %w precision<act = f32, out = [bf16]> steps<compute f32>
       {eps = 1.0e-06 : f32, offset = 0.0 : f32}
      : (tensor<1x128xf32>, tensor<1x384xbf16>, !plan.weight<64, bf16>) -> tensor<1x128xbf16>
  plan.yield %n : tensor<1x128xbf16>
}
