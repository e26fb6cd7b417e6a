// RUN: plan-opt %s --plan-bind-dims --verify-diagnostics --split-input-file

// A name that the model does not have.
module attributes {plan.dims = {hidden = 256 : i64}} {
  // expected-error @below {{'w': dim 'hiden' is not known}}
  plan.weight @w : !plan.weight<hiden, bf16> parts []
}

// -----

// A name without any dims, in a node's result.
plan.graph @no_dims mode "decode" rows 1 {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<8 x 4, bf16>
  // expected-error @below {{node "e" (group 0): dim 'hidden' is not known}}
  %h = plan.embed %ids, %t node<id = "e", order = 0, group = 0> precision<out = [bf16]> steps<gather bf16>
     : (tensor<1xi32>, !plan.weight<8 x 4, bf16>) -> !plan.edge<n x hidden, bf16>
}
plan.weight @t : !plan.weight<8 x 4, bf16> parts []

// -----

// Zero, beyond 31 bits, beyond 64 bits.
module attributes {plan.dims = {none = 0 : i64, big = 2000000000 : i64}} {
  // expected-error @below {{'zero': dim 'none*4' is 0, expected 1 to 2147483647}}
  plan.weight @zero : !plan.weight<none*4, bf16> parts []
  // expected-error @below {{'large': dim 'big*2' is 4000000000, expected 1 to 2147483647}}
  plan.weight @large : !plan.weight<big*2, bf16> parts []
  // expected-error @below {{'overflow': dim 'big*big*big' is beyond 64 bits, expected 1 to 2147483647}}
  plan.weight @overflow : !plan.weight<big*big*big, bf16> parts []
  // expected-error @below {{'heavy': a weight has 1099511627776 elements or more}}
  plan.weight @heavy : !plan.weight<big x big, bf16> parts []
}

// -----

// Every node whose shapes do not fit is told, not the first alone.
module attributes {plan.dims = {hidden = 256 : i64, vocab = 512 : i64}} {
  plan.weight @w : !plan.weight<vocab, bf16> parts []
  plan.weight @t : !plan.weight<vocab x hidden, bf16> parts []
  plan.graph @misfits mode "decode" rows 1 {
    %ids = plan.step_input "token_ids" : !plan.edge<n, i32>
    %w = plan.weight_ref @w : !plan.weight<vocab, bf16>
    %t = plan.weight_ref @t : !plan.weight<vocab x hidden, bf16>
    %h = plan.embed %ids, %t node<id = "e", order = 0, group = 0> precision<out = [bf16]> steps<gather bf16>
       : (!plan.edge<n, i32>, !plan.weight<vocab x hidden, bf16>) -> !plan.edge<n x hidden, bf16>
    // expected-error @below {{node "n" (group 1): the weight has 512 as its first dim, expected 256}}
    %xn = plan.rms_norm %h, %w node<id = "n", order = 1, group = 1> precision<act = bf16, out = [bf16]>
          steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32}
        : (!plan.edge<n x hidden, bf16>, !plan.weight<vocab, bf16>) -> !plan.edge<n x hidden, bf16>
    // expected-error @below {{node "a" (group 2): the result has 512 columns, expected 256}}
    %y = plan.residual_add %h, %xn node<id = "a", order = 2, group = 2> precision<act = bf16, out = [bf16]>
         steps<compute f32>
       : (!plan.edge<n x hidden, bf16>, !plan.edge<n x hidden, bf16>) -> !plan.edge<n x vocab, bf16>
  }
}
