//===- Structure.td - graph, groups, kernels, launches, symbols -----------===//

#ifndef PLAN_OPS_STRUCTURE
#define PLAN_OPS_STRUCTURE

include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Plan/Ops/Node.td"

def Plan_WeightOp : Op<Plan_Dialect, "weight", [Symbol]> {
  let summary = "A weight operand and the checkpoint tensors that fill it";
  let description = [{
    `host` weights stay on the host (the embedding table).

    Example:
    ```mlir
    plan.weight @"l0.moe_ffn.router" : !plan.weight<experts x hidden, bf16>
      parts [#plan.part<"model.language_model.layers.0.mlp.gate.weight", [experts x hidden], ["BF16"]>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Plan_WeightType>:$type,
                       TypedArrayAttrBase<Plan_PartAttr, "parts">:$parts, UnitAttr:$host);
  let assemblyFormat = "(`host` $host^)? $sym_name `:` $type `parts` $parts attr-dict";
}

def Plan_StateOp : Op<Plan_Dialect, "state", [Symbol]> {
  let summary = "A state that outlives a step";
  let description = [{
    Example:
    ```mlir
    plan.state @"l3.attn.k" : !plan.state<paged, kv_heads x head_dim, bf16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Plan_StateType>:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def Plan_GraphOp : Op<Plan_Dialect, "graph", [Symbol, SingleBlock, NoTerminator, NoRegionArguments,
                                              DeclareOpInterfaceMethods<RegionKindInterface>]> {
  let summary = "One arm of the plan: the nodes of one step";
  let description = [{
    A graph region: the plan's node order need not follow the data. `rows` is `n`. `groups` lists what the plan says
    of each group, in order; `--plan-form-groups` consumes it.

    Example:
    ```mlir
    plan.graph @decode_n1 mode "decode" rows 1 {
      %ids = plan.step_input "token_ids" : tensor<1xi32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$mode, I64Attr:$rows,
                       OptionalAttr<TypedArrayAttrBase<Plan_GroupInfoAttr, "groups">>:$groups);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `mode` $mode `rows` $rows (`groups` $groups^)? attr-dict-with-keyword $body";
}

def Plan_StepInputOp : Op<Plan_Dialect, "step_input"> {
  let summary = "A value the runtime gives anew each step";
  let description = [{
    Names: `token_ids` i32 [n], `positions` i32 [3, n], `slot_mapping` i64 [n], `block_tables` i32 [n, max_blocks],
    `seq_lens` i32 [n], `slots_in`, `slots_out` i32 [n].

    Example:
    ```mlir
    %positions = plan.step_input "positions" : !plan.edge<3 x n, i32>
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Plan_Edge:$value);
  let assemblyFormat = "$name attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Plan_WeightRefOp : Op<Plan_Dialect, "weight_ref", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A weight as an operand";
  let description = [{
    Example:
    ```mlir
    %w = plan.weight_ref @"l0.moe_ffn.router" : !plan.weight<256 x 2048, bf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs Plan_WeightType:$value);
  let assemblyFormat = "$weight attr-dict `:` qualified(type($value))";
}

def Plan_StateRefOp : Op<Plan_Dialect, "state_ref", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A state as an operand";
  let description = [{
    Example:
    ```mlir
    %k = plan.state_ref @"l3.attn.k" : !plan.state<paged, 2 x 64, bf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs Plan_StateType:$value);
  let assemblyFormat = "$state attr-dict `:` qualified(type($value))";
}

def Plan_GroupOp : Op<Plan_Dialect, "group", [IsolatedFromAbove, SingleBlock,
                                              SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "One declared group: the nodes of one kernel";
  let description = [{
    The region's arguments are the operands, in order: stored edges, step inputs, weights, states. It yields what is
    stored, in member order; fused edges stay inside.

    Example:
    ```mlir
    %a:2 = plan.group #plan.group_info<id = 13, where = device, compute = "memory", numerics = "reference">
        (%x, %f, %w) : (tensor<1x256xbf16>, tensor<1x256xbf16>, !plan.weight<256, bf16>)
                    -> (tensor<1x256xbf16>, tensor<1x256xbf16>) {
    ^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>, %2: !plan.weight<256, bf16>):
      %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
         : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
      %n = plan.rms_norm %y, %2 precision<act = bf16, out = [bf16]> steps<compute f32>
           {eps = 1.0e-06 : f32, offset = 1.0 : f32}
         : (tensor<1x256xbf16>, !plan.weight<256, bf16>) -> tensor<1x256xbf16>
      plan.yield %y, %n : tensor<1x256xbf16>, tensor<1x256xbf16>
    }
    ```
  }];
  let arguments = (ins Plan_GroupInfoAttr:$info, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<Plan_Edge>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    qualified($info) `(` $inputs `)` `:` functional-type($inputs, $outputs) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Plan_YieldOp : Op<Plan_Dialect, "yield", [Pure, Terminator,
                                              ParentOneOf<["GroupOp", "KernelOp"]>]> {
  let summary = "What a group or kernel stores";
  let arguments = (ins Variadic<Plan_Edge>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ }]>];
}

def Plan_KernelOp : Op<Plan_Dialect, "kernel", [Symbol, IsolatedFromAbove, SingleBlock,
                                                SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A group's content without its identity; equal groups share one";
  let description = [{
    Nodes in it carry no `node` attribute. Arguments: as those of the groups it stands for.

    Example:
    ```mlir
    plan.kernel @residual_add__0 rows 1 compute "memory" numerics "reference" {
    ^bb0(%0: tensor<1x256xbf16>, %1: tensor<1x256xbf16>):
      %y = plan.residual_add %0, %1 precision<act = bf16, out = [bf16]> steps<compute f32>
         : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
      plan.yield %y : tensor<1x256xbf16>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$rows, StrAttr:$compute, StrAttr:$numerics);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `rows` $rows `compute` $compute `numerics` $numerics attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Plan_LaunchOp : Op<Plan_Dialect, "launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One start of a kernel for one group";
  let description = [{
    `nodes` are the group's members, in order. Without a kernel the group has nothing to do at this row count, and
    `note` says why.

    Example:
    ```mlir
    %y = plan.launch @residual_add__0 #plan.group_info<id = 58, where = device, compute = "memory",
        numerics = "reference"> nodes [] (%x, %f) : (tensor<1x256xbf16>, tensor<1x256xbf16>) -> tensor<1x256xbf16>
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$kernel, Plan_GroupInfoAttr:$info,
                       TypedArrayAttrBase<Plan_NodeAttr, "nodes">:$nodes, OptionalAttr<StrAttr>:$note,
                       Variadic<AnyType>:$inputs);
  let results = (outs Variadic<Plan_Edge>:$outputs);
  let assemblyFormat = [{
    ($kernel^)? (`note` $note^)? qualified($info) `nodes` $nodes `(` $inputs `)` `:`
    functional-type($inputs, $outputs) attr-dict
  }];
}

#endif // PLAN_OPS_STRUCTURE
