// RUN: plan-opt %s --plan-verify-memory --verify-diagnostics --split-input-file

// Nothing was assigned.
// expected-error @below {{workspace of 'none': no memory is assigned}}
plan.graph @none mode "decode" rows 1 {
}

// -----

// A buffer too few.
plan.graph @few mode "decode" rows 1 attributes {
    plan.buffers = [#plan.buffer<edge = "h", bytes = 512, offset = 0, unshared = 0, first = 0, last = 0>,
      #plan.buffer<edge = "a", bytes = 512, offset = 512, unshared = 512, first = 0, last = 0>,
      #plan.buffer<edge = "b", bytes = 512, offset = 0, unshared = 1024, first = 0, last = 0>,
      #plan.buffer<edge = "c", bytes = 512, offset = 1024, unshared = 1536, first = 0, last = 0>], plan.workspace = 1536 : i64, plan.workspace_unshared = 2560 : i64} {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
         precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  %a = plan.launch @add #plan.group_info<id = 1, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "a", order = 1, group = 1, edges = ["a"], fused = [false]>] (%h, %h)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %b = plan.launch @add #plan.group_info<id = 2, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "b", order = 2, group = 2, edges = ["b"], fused = [false]>] (%a, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %c = plan.launch @add #plan.group_info<id = 3, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "c", order = 3, group = 3, edges = ["c"], fused = [false]>] (%b, %b)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{workspace of 'few': result 4 has no buffer}}
  %d = plan.launch @add #plan.group_info<id = 4, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "d", order = 4, group = 4, edges = ["d"], fused = [false]>] (%c, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.kernel @add rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// b takes the bytes of a, which it reads itself and d reads later.
plan.graph @input mode "decode" rows 1 attributes {
    plan.buffers = [#plan.buffer<edge = "h", bytes = 512, offset = 0, unshared = 0, first = 0, last = 0>,
      #plan.buffer<edge = "a", bytes = 512, offset = 512, unshared = 512, first = 0, last = 0>,
      #plan.buffer<edge = "b", bytes = 512, offset = 512, unshared = 1024, first = 0, last = 0>,
      #plan.buffer<edge = "c", bytes = 512, offset = 1024, unshared = 1536, first = 0, last = 0>,
      #plan.buffer<edge = "d", bytes = 512, offset = 0, unshared = 2048, first = 0, last = 0>], plan.workspace = 1536 : i64, plan.workspace_unshared = 2560 : i64} {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
         precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  // expected-note @below {{stored here}}
  %a = plan.launch @add #plan.group_info<id = 1, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "a", order = 1, group = 1, edges = ["a"], fused = [false]>] (%h, %h)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{edge 'b' overwrites edge 'a', which the same launch reads}}
  %b = plan.launch @add #plan.group_info<id = 2, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "b", order = 2, group = 2, edges = ["b"], fused = [false]>] (%a, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %c = plan.launch @add #plan.group_info<id = 3, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "c", order = 3, group = 3, edges = ["c"], fused = [false]>] (%b, %b)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %d = plan.launch @add #plan.group_info<id = 4, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "d", order = 4, group = 4, edges = ["d"], fused = [false]>] (%c, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.kernel @add rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// c takes the bytes of a by a part of them, and d reads a later.
plan.graph @later mode "decode" rows 1 attributes {
    plan.buffers = [#plan.buffer<edge = "h", bytes = 512, offset = 0, unshared = 0, first = 0, last = 0>,
      #plan.buffer<edge = "a", bytes = 512, offset = 512, unshared = 512, first = 0, last = 0>,
      #plan.buffer<edge = "b", bytes = 512, offset = 0, unshared = 1024, first = 0, last = 0>,
      #plan.buffer<edge = "c", bytes = 512, offset = 768, unshared = 1536, first = 0, last = 0>,
      #plan.buffer<edge = "d", bytes = 512, offset = 0, unshared = 2048, first = 0, last = 0>], plan.workspace = 1536 : i64, plan.workspace_unshared = 2560 : i64} {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
         precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  // expected-note @below {{stored here}}
  %a = plan.launch @add #plan.group_info<id = 1, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "a", order = 1, group = 1, edges = ["a"], fused = [false]>] (%h, %h)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %b = plan.launch @add #plan.group_info<id = 2, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "b", order = 2, group = 2, edges = ["b"], fused = [false]>] (%a, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{edge 'c' overwrites edge 'a', which is read later}}
  %c = plan.launch @add #plan.group_info<id = 3, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "c", order = 3, group = 3, edges = ["c"], fused = [false]>] (%b, %b)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %d = plan.launch @add #plan.group_info<id = 4, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "d", order = 4, group = 4, edges = ["d"], fused = [false]>] (%c, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.kernel @add rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// Outside, unaligned, of another size.
plan.graph @places mode "decode" rows 1 attributes {
    plan.buffers = [#plan.buffer<edge = "h", bytes = 512, offset = 0, unshared = 0, first = 0, last = 0>,
      #plan.buffer<edge = "a", bytes = 512, offset = 512, unshared = 512, first = 0, last = 0>,
      #plan.buffer<edge = "b", bytes = 256, offset = 100, unshared = 1024, first = 0, last = 0>,
      #plan.buffer<edge = "c", bytes = 512, offset = 1280, unshared = 1536, first = 0, last = 0>,
      #plan.buffer<edge = "d", bytes = 512, offset = 0, unshared = 2048, first = 0, last = 0>], plan.workspace = 1536 : i64, plan.workspace_unshared = 2560 : i64} {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
         precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  %a = plan.launch @add #plan.group_info<id = 1, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "a", order = 1, group = 1, edges = ["a"], fused = [false]>] (%h, %h)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{edge 'b' has 512 bytes, its buffer 256}}
  // expected-error @below {{edge 'b' at byte 100 is not aligned to 256}}
  %b = plan.launch @add #plan.group_info<id = 2, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "b", order = 2, group = 2, edges = ["b"], fused = [false]>] (%a, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{edge 'c' at byte 1280 with 512 bytes does not lie inside the 1536}}
  %c = plan.launch @add #plan.group_info<id = 3, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "c", order = 3, group = 3, edges = ["c"], fused = [false]>] (%b, %b)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %d = plan.launch @add #plan.group_info<id = 4, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "d", order = 4, group = 4, edges = ["d"], fused = [false]>] (%c, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.kernel @add rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// Two edges share bytes where none may.
plan.graph @unshared mode "decode" rows 1 attributes {
    plan.buffers = [#plan.buffer<edge = "h", bytes = 512, offset = 0, unshared = 0, first = 0, last = 0>,
      #plan.buffer<edge = "a", bytes = 512, offset = 512, unshared = 512, first = 0, last = 0>,
      #plan.buffer<edge = "b", bytes = 512, offset = 0, unshared = 1024, first = 0, last = 0>,
      #plan.buffer<edge = "c", bytes = 512, offset = 1024, unshared = 1280, first = 0, last = 0>,
      #plan.buffer<edge = "d", bytes = 512, offset = 0, unshared = 2048, first = 0, last = 0>], plan.workspace = 1536 : i64, plan.workspace_unshared = 2560 : i64} {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.group #plan.group_info<id = 0, where = host> (%ids, %t)
      : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16> {
  ^bb0(%0: tensor<1xi32>, %1: !plan.weight<512 x 256, bf16>):
    %e = plan.embed %0, %1 node<id = "e", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
         precision<out = [bf16]> steps<gather bf16>
       : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
    plan.yield %e : tensor<1x256xbf16>
  }
  %a = plan.launch @add #plan.group_info<id = 1, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "a", order = 1, group = 1, edges = ["a"], fused = [false]>] (%h, %h)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %b = plan.launch @add #plan.group_info<id = 2, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "b", order = 2, group = 2, edges = ["b"], fused = [false]>] (%a, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{edges 'c' and 'b' overlap in the unshared layout}}
  %c = plan.launch @add #plan.group_info<id = 3, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "c", order = 3, group = 3, edges = ["c"], fused = [false]>] (%b, %b)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %d = plan.launch @add #plan.group_info<id = 4, compute = "memory", numerics = "reference">
       nodes [#plan.node<id = "d", order = 4, group = 4, edges = ["d"], fused = [false]>] (%c, %a)
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.kernel @add rows 1 compute "memory" numerics "reference" {
^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
  %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  plan.yield %y : tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
