//===- PlanTypes.td - edges, weights and states ---------------------------===//

#ifndef PLAN_TYPES
#define PLAN_TYPES

include "mlir/IR/AttrTypeBase.td"
include "dialects/Plan/PlanAttrs.td"

class Plan_Type<string name, string typeMnemonic> : TypeDef<Plan_Dialect, name> {
  let mnemonic = typeMnemonic;
  let hasCustomAssemblyFormat = 1;
}

def Plan_EdgeType : Plan_Type<"Edge", "edge"> {
  let summary = "A value between nodes, its dims still symbolic";
  let description = [{
    Rows first, row-major; the format is the stored one. Example: `!plan.edge<n*top_k x moe_inter*2, bf16>`.
    `--plan-bind-dims` turns it into a builtin tensor, e.g. `tensor<8x1024xbf16>`.
  }];
  let parameters = (ins ArrayRefParameter<"::plan::DimAttr">:$dims, EnumParameter<Plan_Format>:$format);
}

def Plan_WeightType : Plan_Type<"Weight", "weight"> {
  let summary = "A bound weight operand";
  let description = [{
    `[out, in]` row-major, experts outermost. Formats with block scales bring them along.
    Example: `!plan.weight<experts x hidden x moe_inter, fp8_block128x128>`.
  }];
  let parameters = (ins ArrayRefParameter<"::plan::DimAttr">:$dims, EnumParameter<Plan_Format>:$format);
  let extraClassDeclaration = [{
    /// Dims as integers; valid once bound.
    ::llvm::SmallVector<int64_t> getShape() const;
  }];
}

def Plan_StateType : Plan_Type<"State", "state"> {
  let summary = "A pool of states or a paged cache";
  let description = [{
    `slots`: one block of `dims` per slot, e.g. `!plan.state<slots, lin_v_heads x lin_k_dim x lin_v_dim, f32>`.
    `paged`: one block of `dims` per token position, in blocks of the cache's block size, e.g.
    `!plan.state<paged, kv_heads x head_dim, bf16>`.
  }];
  let parameters = (ins EnumParameter<Plan_StateKind>:$kind, ArrayRefParameter<"::plan::DimAttr">:$dims,
                        EnumParameter<Plan_Format>:$format);
  let extraClassDeclaration = [{
    ::llvm::SmallVector<int64_t> getShape() const;
  }];
}

/// An edge, symbolic or bound.
def Plan_Edge : AnyTypeOf<[Plan_EdgeType, AnyRankedTensor], "edge or ranked tensor">;

#endif // PLAN_TYPES
