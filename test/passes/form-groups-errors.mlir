// RUN: plan-opt %s --plan-form-groups --verify-diagnostics --split-input-file

// G1: the id is not the position.
// expected-error @below {{group 7: the id is 7, expected 1, its position}}
plan.graph @position mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 7, where = device, compute = "memory", numerics = "reference", nodes = [1]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %y = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G2: in no group, in two, twice in one, an empty group, a node that there is not, a node that names another.
// expected-error @below {{group 1: lists node 'a' (1) twice}}
// expected-error @below {{group 2: has no nodes}}
// expected-error @below {{group 3: lists node 'a' (1), which is in group 1 as well}}
// expected-error @below {{group 3: lists node 9, which there is not}}
plan.graph @members mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1, 1]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = []>,
    #plan.group_info<id = 3, where = device, compute = "memory", numerics = "reference", nodes = [1, 2, 9]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "b" (group 1): names group 1, but group 3 lists it}}
  %y = plan.residual_add %h, %h node<id = "b", order = 2, group = 1, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "c" (group 3): no group lists it}}
  %z = plan.residual_add %h, %h node<id = "c", order = 3, group = 3, edges = ["z"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// Two nodes of one order.
plan.graph @orders mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "b" (group 1): order 1 is taken by 'a'}}
  %y = plan.residual_add %h, %h node<id = "b", order = 1, group = 1, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G3: host and device in one group; a `where` that is not the members'.
// expected-error @below {{group 0: mixes host and device: node 'embed' runs on the host, node 'a' on the device}}
// expected-error @below {{group 1: 'where' is 'host', but node 'b' runs on the device}}
plan.graph @places mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0, 1]>,
    #plan.group_info<id = 1, where = host, numerics = "reference", nodes = [2]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 0, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %y = plan.residual_add %h, %h node<id = "b", order = 2, group = 1, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G4: a fused edge leaves its group.
plan.graph @fused mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [2]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{made here by node "a" (group 1)}}
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [true], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "b" (group 2): reads edge 'x' from group 1, but the edge is fused and never stored}}
  %y = plan.residual_add %x, %h node<id = "b", order = 2, group = 2, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G5: a read wider than stored, across groups.
plan.graph @wide mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [2]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %w = plan.weight_ref @w : !plan.weight<256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{stored here by node "a" (group 1)}}
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "n" (group 2): reads 'f32', but edge 'x' is stored as 'bf16'; the wider value exists only inside the writer's group}}
  %xn = plan.rms_norm %x, %w node<id = "n", order = 2, group = 2, edges = ["xn"], fused = [false]>
        precision<act = f32, out = [bf16]> steps<compute f32> {eps = 1.0e-06 : f32, offset = 1.0 : f32}
      : (tensor<1x256xbf16>, !plan.weight<256, bf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
plan.weight @w : !plan.weight<256, bf16> parts []

// -----

// G6: a member comes before another whose value it reads.
plan.graph @member_order mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1, 2]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "a" (group 1): comes before member 'b', whose edge 'y' it reads}}
  %x = plan.residual_add %y, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-note @below {{written here by node "b" (group 1)}}
  %y = plan.residual_add %h, %h node<id = "b", order = 2, group = 1, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G7: the way from one member to another leads through a node outside.
// expected-error @below {{group 1: is not convex: member 'c' needs member 'a' through node 'b' (group 2) outside}}
plan.graph @not_convex mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1, 3]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [2]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-note @below {{node "b" (group 2) is on the path}}
  %y = plan.residual_add %x, %h node<id = "b", order = 2, group = 2, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %z = plan.residual_add %y, %h node<id = "c", order = 3, group = 1, edges = ["z"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G8: two groups need each other, though no path leads back into either.
// expected-error @below {{group 1: groups need each other in a ring: 1, 2}}
plan.graph @ring mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1, 4]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [2, 3]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-note @below {{group 2 needs edge 'x' of group 1}}
  %y = plan.residual_add %x, %h node<id = "b", order = 2, group = 2, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %z = plan.residual_add %h, %h node<id = "c", order = 3, group = 2, edges = ["z"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-note @below {{group 1 needs edge 'z' of group 2}}
  %v = plan.residual_add %z, %h node<id = "d", order = 4, group = 1, edges = ["v"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G9: a group comes before one it reads from.
plan.graph @early mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [2]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [1]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{written here by node "a" (group 2)}}
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 2, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "b" (group 1): its group comes before group 2, whose edge 'x' it reads}}
  %y = plan.residual_add %x, %h node<id = "b", order = 2, group = 1, edges = ["y"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G10: the caches are read by a group before the one that writes them.
plan.graph @cache_early mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [3]>,
    #plan.group_info<id = 3, where = device, compute = "memory", numerics = "reference", nodes = [2]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %sm = plan.step_input "slot_mapping" : tensor<1xi64>
  %bt = plan.step_input "block_tables" : tensor<1x4xi32>
  %len = plan.step_input "seq_lens" : tensor<1xi32>
  %kc = plan.state_ref @k : !plan.state<paged, 2 x 64, bf16>
  %vc = plan.state_ref @v : !plan.state<paged, 2 x 64, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %k = plan.silu_mul %h node<id = "k", order = 1, group = 1, edges = ["k"], fused = [false]>
       precision<act = bf16, out = [bf16]> steps<compute f32> : (tensor<1x256xbf16>) -> tensor<1x128xbf16>
  // expected-note @below {{written here by node "write" (group 3)}}
  plan.kv_write %k, %k, %sm, %kc, %vc node<id = "write", order = 2, group = 3> precision<act = bf16> steps<cache bf16>
      : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1xi64>, !plan.state<paged, 2 x 64, bf16>,
         !plan.state<paged, 2 x 64, bf16>) -> ()
  // expected-error @below {{node "attend" (group 2): takes state 'k' before node 'write' of group 3 writes it}}
  // expected-error @below {{node "attend" (group 2): takes state 'v' before node 'write' of group 3 writes it}}
  %a = plan.paged_attention %h, %k, %k, %bt, %len, %kc, %vc
       node<id = "attend", order = 3, group = 2, edges = ["a"], fused = [false]>
       precision<act = bf16, out = [bf16]> steps<cache bf16, scores f32, softmax f32, accumulate f32>
     : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x4xi32>, tensor<1xi32>,
        !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 2 x 64, bf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
plan.state @k : !plan.state<paged, 2 x 64, bf16>
plan.state @v : !plan.state<paged, 2 x 64, bf16>

// -----

// G10, inside a group.
plan.graph @cache_early_inside mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1]>,
    #plan.group_info<id = 2, where = device, compute = "memory", numerics = "reference", nodes = [2, 3]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %sm = plan.step_input "slot_mapping" : tensor<1xi64>
  %bt = plan.step_input "block_tables" : tensor<1x4xi32>
  %len = plan.step_input "seq_lens" : tensor<1xi32>
  %kc = plan.state_ref @k : !plan.state<paged, 2 x 64, bf16>
  %vc = plan.state_ref @v : !plan.state<paged, 2 x 64, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %k = plan.silu_mul %h node<id = "k", order = 1, group = 1, edges = ["k"], fused = [false]>
       precision<act = bf16, out = [bf16]> steps<compute f32> : (tensor<1x256xbf16>) -> tensor<1x128xbf16>
  // expected-error @below {{node "attend" (group 2): takes state 'k' before node 'write' of the same group writes it}}
  // expected-error @below {{node "attend" (group 2): takes state 'v' before node 'write' of the same group writes it}}
  %a = plan.paged_attention %h, %k, %k, %bt, %len, %kc, %vc
       node<id = "attend", order = 2, group = 2, edges = ["a"], fused = [false]>
       precision<act = bf16, out = [bf16]> steps<cache bf16, scores f32, softmax f32, accumulate f32>
     : (tensor<1x256xbf16>, tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1x4xi32>, tensor<1xi32>,
        !plan.state<paged, 2 x 64, bf16>, !plan.state<paged, 2 x 64, bf16>) -> tensor<1x256xbf16>
  // expected-note @below {{written here by node "write" (group 2)}}
  plan.kv_write %k, %k, %sm, %kc, %vc node<id = "write", order = 3, group = 2> precision<act = bf16> steps<cache bf16>
      : (tensor<1x128xbf16>, tensor<1x128xbf16>, tensor<1xi64>, !plan.state<paged, 2 x 64, bf16>,
         !plan.state<paged, 2 x 64, bf16>) -> ()
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
plan.state @k : !plan.state<paged, 2 x 64, bf16>
plan.state @v : !plan.state<paged, 2 x 64, bf16>

// -----

// G11: no member multiplies what the unit takes.
// expected-error @below {{group 1: declares unit 'tensor_core:mma.sync.m16n8k16.bf16', but no member has a step 'mma bf16*bf16'}}
plan.graph @unit mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "tensor_core:mma.sync.m16n8k16.bf16", numerics = "reference", nodes = [1]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device>
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []

// -----

// G12: a member asks for what its group does not declare.
plan.graph @unmet mode "decode" rows 1 groups [
    #plan.group_info<id = 0, where = host, numerics = "reference", nodes = [0]>,
    #plan.group_info<id = 1, where = device, compute = "memory", numerics = "reference", nodes = [1]>] {
  %ids = plan.step_input "token_ids" : tensor<1xi32>
  %t = plan.weight_ref @t : !plan.weight<512 x 256, bf16>
  %h = plan.embed %ids, %t node<id = "embed", order = 0, group = 0, edges = ["h"], fused = [false], where = host>
       precision<out = [bf16]> steps<gather bf16> : (tensor<1xi32>, !plan.weight<512 x 256, bf16>) -> tensor<1x256xbf16>
  // expected-error @below {{node "a" (group 1): asks for unit 'tensor_core:mma.sync.m16n8k16.bf16', but its group declares 'memory'}}
  %x = plan.residual_add %h, %h node<id = "a", order = 1, group = 1, edges = ["x"], fused = [false], where = device,
                               compute = "tensor_core:mma.sync.m16n8k16.bf16">
       precision<act = bf16, out = [bf16]> steps<compute f32>
     : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
}
plan.weight @t : !plan.weight<512 x 256, bf16> parts []
