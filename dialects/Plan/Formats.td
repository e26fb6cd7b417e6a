//===- Formats.td - storage formats and the words of precision and steps --===//
//
// One row a format: the keyword in the IR. The plan's own spelling (`fp8/block128x128`) is derived in Formats.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef PLAN_FORMATS
#define PLAN_FORMATS

include "mlir/IR/EnumAttr.td"

def Plan_Format : I32EnumAttr<"Format", "how a value is stored or held", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"BF16", 1, "bf16">,
  I32EnumAttrCase<"F32", 2, "f32">,
  I32EnumAttrCase<"I32", 3, "i32">,
  I32EnumAttrCase<"I64", 4, "i64">,
  // Unscaled e4m3 codes, as an operand of a multiplication.
  I32EnumAttrCase<"E4M3", 5, "e4m3">,
  // e4m3 codes with one f32 scale per 128 x 128 block of the matrix.
  I32EnumAttrCase<"FP8Block128x128", 6, "fp8_block128x128">
]> {
  let cppNamespace = "::plan";
  let genSpecializedAttr = 0;
}

// The words a step may begin with (kbp-graph/v1). A word's operands are checked by `#plan.step`.
def Plan_StepKind : I32EnumAttr<"StepKind", "what a step says the precision of", [
  I32EnumAttrCase<"Gather", 0, "gather">,
  I32EnumAttrCase<"Act", 1, "act">,
  I32EnumAttrCase<"Weight", 2, "weight">,
  I32EnumAttrCase<"Mma", 3, "mma">,
  I32EnumAttrCase<"Accumulate", 4, "accumulate">,
  I32EnumAttrCase<"Scale", 5, "scale">,
  I32EnumAttrCase<"Compute", 6, "compute">,
  I32EnumAttrCase<"Move", 7, "move">,
  I32EnumAttrCase<"State", 8, "state">,
  I32EnumAttrCase<"Cache", 9, "cache">,
  I32EnumAttrCase<"Scores", 10, "scores">,
  I32EnumAttrCase<"Softmax", 11, "softmax">,
  I32EnumAttrCase<"Score", 12, "score">,
  I32EnumAttrCase<"Scatter", 13, "scatter">,
  I32EnumAttrCase<"Combine", 14, "combine">,
  I32EnumAttrCase<"Compare", 15, "compare">
]> {
  let cppNamespace = "::plan";
  let genSpecializedAttr = 0;
}

def Plan_Where : I32EnumAttr<"Where", "which processor runs a node", [
  I32EnumAttrCase<"Device", 0, "device">,
  I32EnumAttrCase<"Host", 1, "host">
]> {
  let cppNamespace = "::plan";
  let genSpecializedAttr = 0;
}

def Plan_StateKind : I32EnumAttr<"StateKind", "how a state is addressed", [
  I32EnumAttrCase<"Slots", 0, "slots">,
  I32EnumAttrCase<"Paged", 1, "paged">
]> {
  let cppNamespace = "::plan";
  let genSpecializedAttr = 0;
}

def Plan_Access : I32EnumAttr<"Access", "what a node does to a state", [
  I32EnumAttrCase<"Read", 0, "read">,
  I32EnumAttrCase<"Write", 1, "write">,
  I32EnumAttrCase<"Update", 2, "update">,
  I32EnumAttrCase<"Snapshot", 3, "snapshot">
]> {
  let cppNamespace = "::plan";
  let genSpecializedAttr = 0;
}

#endif // PLAN_FORMATS
