//===- PlanAttrs.td - attributes of the plan dialect ----------------------===//

#ifndef PLAN_ATTRS
#define PLAN_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "dialects/Plan/PlanDialect.td"
include "dialects/Plan/Formats.td"

class Plan_Attr<string name, string attrMnemonic> : AttrDef<Plan_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Plan_DimAttr : Plan_Attr<"Dim", "dim"> {
  let summary = "A dimension: sums of products of dim names and integers";
  let description = [{
    Written as in the plan, e.g. `#plan.dim<lin_k_heads*lin_k_dim*2+128>`. `--plan-bind-dims` replaces it by an
    integer: `#plan.dim<2048>`.
  }];
  let parameters = (ins StringRefParameter<"normalised expression">:$expr);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static DimAttr get(::mlir::MLIRContext *context, int64_t value);
    /// Whether the text is a sum of products of names and integers.
    static bool isValid(::llvm::StringRef expr);
    /// The value, once every name in it is bound; nothing when a name is missing or the value leaves int64.
    std::optional<int64_t> evaluate(::mlir::DictionaryAttr dims) const;
    /// The value of an expression without names.
    std::optional<int64_t> getConstant() const;
    /// Names in the expression, in order of appearance.
    ::llvm::SmallVector<::llvm::StringRef> getNames() const;
  }];
}

def Plan_PrecisionAttr : Plan_Attr<"Precision", "precision"> {
  let summary = "Formats that a node reads and writes";
  let description = [{
    `weight`: stored format of the matrix (`none`: no matrix). `act`: format in which the first input is read
    (`none`: no numeric input); it may be wider than the edge's stored format inside the producer's group, the *held*
    value. `out`: formats written, in the order of the results (empty: only a state is written).

    Example: `#plan.precision<weight = fp8_block128x128, act = bf16, out = [bf16]>`
  }];
  let parameters = (ins EnumParameter<Plan_Format>:$weight, EnumParameter<Plan_Format>:$act,
                        OptionalArrayRefParameter<"::plan::Format">:$out);
  let hasCustomAssemblyFormat = 1;
}

def Plan_StepAttr : Plan_Attr<"Step", "step"> {
  let summary = "The precision of one value inside a node";
  let description = [{
    `act F`, `accumulate F`, `scale F`, `compute F`, ...: one format. `weight S -> P`: stored format and the precision
    of its unscaled values as multiplied. `mma A * B`: operand precisions.
  }];
  let parameters = (ins EnumParameter<Plan_StepKind>:$kind, EnumParameter<Plan_Format>:$first,
                        EnumParameter<Plan_Format>:$second);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Plan_StepsAttr : Plan_Attr<"Steps", "steps"> {
  let summary = "The precision of every value inside a node, in order";
  let description = [{
    Example: `#plan.steps<act bf16, weight fp8_block128x128 -> bf16, mma bf16 * bf16, accumulate f32, scale f32>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"::plan::StepAttr">:$steps);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The first step of this kind, or null.
    StepAttr find(StepKind kind) const;
  }];
}

def Plan_NodeAttr : Plan_Attr<"Node", "node"> {
  let summary = "Who a node is in its plan";
  let description = [{
    Identity and labels; nothing in it decides how the node is computed, and kernels do not carry it. `edges` are the
    ids of the results, `fused` says which of them are never stored (same order). `layer` is -1 outside the layers.

    Example: `#plan.node<id = "l0.gdn.add", order = 11, group = 8, layer = 0, block = "l0.gdn", edges = ["l0.gdn.y"],
    fused = [false]>`
  }];
  let parameters = (ins
    StringRefParameter<"node id">:$id, "int64_t":$order, "int64_t":$group,
    DefaultValuedParameter<"int64_t", "-1">:$layer,
    OptionalParameter<"::mlir::StringAttr">:$block,
    OptionalParameter<"::mlir::ArrayAttr">:$edges,
    OptionalParameter<"::mlir::ArrayAttr", "BoolAttrs">:$fused,
    DefaultValuedParameter<"Where", "Where::Device">:$where,
    OptionalParameter<"::mlir::StringAttr", "declared unit, e.g. cuda_core">:$compute,
    OptionalParameter<"::mlir::StringAttr">:$numerics,
    OptionalParameter<"::mlir::DictionaryAttr", "free text of the plan">:$labels);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    bool isFused(unsigned result) const;
    ::llvm::StringRef getEdge(unsigned result) const;
  }];
}

def Plan_GroupInfoAttr : Plan_Attr<"GroupInfo", "group_info"> {
  let summary = "What a plan declares of a group";
  let description = [{
    `compute` is a demand on the schedule (`tensor_core:mma.sync.m16n8k16.bf16`, `cuda_core`, `memory`; null on the
    host), `numerics` a contract (`reference`, `bit_identical(test)`). `labels` is free text.

    Example: `#plan.group_info<id = 8, where = device, compute = "memory", numerics = "reference">`
  }];
  let parameters = (ins
    "int64_t":$id, DefaultValuedParameter<"Where", "Where::Device">:$where,
    OptionalParameter<"::mlir::StringAttr">:$compute, OptionalParameter<"::mlir::StringAttr">:$numerics,
    OptionalParameter<"::mlir::ArrayAttr", "node orders">:$nodes,
    OptionalParameter<"::mlir::DictionaryAttr", "free text of the plan">:$labels);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Plan_PartAttr : Plan_Attr<"Part", "part"> {
  let summary = "Checkpoint tensors that fill a stretch of a weight's rows";
  let description = [{
    `tensor` is a name; `{e}` in it stands for the index along the operand's outermost dim (one tensor per expert).
    Parts of one weight and role follow each other along the rows. `accepts` lists the dtypes a file may hold them
    in, `convert` what the values become when bound (`none`: the bytes as they are). With `scales` the part fills the
    block scales instead of the data.

    Example: `#plan.part<tensor = "model.layers.0.mlp.gate.weight", shape = [experts, hidden], accepts = ["BF16"]>`
  }];
  let parameters = (ins
    "::mlir::StringAttr":$tensor, ArrayRefParameter<"::plan::DimAttr">:$shape, "::mlir::ArrayAttr":$accepts,
    DefaultValuedParameter<"bool", "false">:$scales,
    DefaultValuedParameter<"Format", "Format::None">:$convert);
  let hasCustomAssemblyFormat = 1;
}

def Plan_BufferAttr : Plan_Attr<"Buffer", "buffer"> {
  let summary = "Where a stored edge lies in the workspace";
  let description = [{
    Byte offsets from the start of the workspace: `offset` where edges that never live together share bytes,
    `unshared` where every edge has its own. The value lives from group `first`, which stores it, through group
    `last`. `written` and `read` say who does it: the device or the host.

    Example: `#plan.buffer<edge = "l0.gdn.y", bytes = 4096, offset = 0, unshared = 28672, first = 8, last = 14>`
  }];
  let parameters = (ins
    StringRefParameter<"edge id">:$edge, "int64_t":$bytes, "int64_t":$offset, "int64_t":$unshared,
    "int64_t":$first, "int64_t":$last,
    DefaultValuedParameter<"Where", "Where::Device">:$written,
    DefaultValuedParameter<"Where", "Where::Device">:$read);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // PLAN_ATTRS
