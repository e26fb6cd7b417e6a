//===- Ops.cpp - what the importer knows of each op word ------------------===//

#include "lib/Import/Ops.h"

#include "llvm/ADT/StringMap.h"

using namespace planc;
using llvm::StringRef;
using plan::Access;
using plan::Format;
using plan::StateKind;

// The attributes of the ops, from the config's parameters and the word itself.

static void none(mlir::OperationState &, mlir::Builder &, const OpContext &) {}

static void norm(mlir::OperationState &state, mlir::Builder &builder, const ModelConfig &config,
                 float offset) {
  state.addAttribute("eps", builder.getF32FloatAttr(float(config.rmsNormEps)));
  state.addAttribute("offset", builder.getF32FloatAttr(offset));
}

static void normPlusOne(mlir::OperationState &state, mlir::Builder &builder,
                        const OpContext &context) {
  norm(state, builder, context.config, 1);
}

static void normPlain(mlir::OperationState &state, mlir::Builder &builder,
                      const OpContext &context) {
  norm(state, builder, context.config, 0);
}

static plan::DimAttr dim(mlir::Builder &builder, StringRef expr) {
  return plan::DimAttr::get(builder.getContext(), expr);
}

static void l2Norm(mlir::OperationState &state, mlir::Builder &builder, const OpContext &) {
  // Heads of q and k; the constant is the op's own and not rms_norm_eps.
  state.addAttribute("heads", dim(builder, "lin_k_heads*2"));
  state.addAttribute("head_dim", dim(builder, "lin_k_dim"));
  state.addAttribute("eps", builder.getF32FloatAttr(1e-6f));
}

static void headDim(mlir::OperationState &state, mlir::Builder &builder, const OpContext &) {
  state.addAttribute("head_dim", dim(builder, "head_dim"));
}

static void rope(mlir::OperationState &state, mlir::Builder &builder, const OpContext &context) {
  headDim(state, builder, context);
  state.addAttribute("rotary_dim", builder.getI64IntegerAttr(context.config.rotaryDim));
  state.addAttribute("theta", builder.getF64FloatAttr(context.config.ropeTheta));
  state.addAttribute("sections", builder.getDenseI64ArrayAttr(context.config.mropeSection));
}

static void role(mlir::OperationState &state, mlir::Builder &builder, const OpContext &context) {
  state.addAttribute("role", builder.getStringAttr(context.word.split(':').second));
}

static void snapshot(mlir::OperationState &state, mlir::Builder &builder,
                     const OpContext &context) {
  if (context.mode == "multi_seq")
    state.addAttribute("apart", builder.getUnitAttr());
}

llvm::ArrayRef<OpSpec> planc::opSpecs() {
  static const std::vector<OpSpec> specs = {
#define OP(...) OpSpec{__VA_ARGS__},
#include "lib/Import/Ops.def"
  };
  return specs;
}

const OpSpec *planc::findOp(StringRef word) {
  static const llvm::StringMap<const OpSpec *> byWord = [] {
    llvm::StringMap<const OpSpec *> map;
    for (const OpSpec &spec : opSpecs())
      map[spec.word] = &spec;
    return map;
  }();
  return byWord.lookup(word);
}

bool OpSpec::hasMatrix() const {
  return llvm::any_of(weights, [](const WeightSpec &w) { return w.kind == WeightKind::Matrix; });
}

llvm::SmallVector<StringRef> planc::splitList(StringRef list, char separator) {
  llvm::SmallVector<StringRef> parts;
  list.split(parts, separator, -1, /*KeepEmpty=*/false);
  return parts;
}

const StepInputSpec &planc::findStepInput(StringRef name) {
  static const StepInputSpec specs[] = {
      {"token_ids", {"n"}, Format::I32},    {"positions", {"3", "n"}, Format::I32},
      {"slot_mapping", {"n"}, Format::I64}, {"block_tables", {"n", "max_blocks"}, Format::I32},
      {"seq_lens", {"n"}, Format::I32},     {"slots_in", {"n"}, Format::I32},
      {"slots_out", {"n"}, Format::I32},
  };
  for (const StepInputSpec &spec : specs)
    if (spec.name == name)
      return spec;
  llvm_unreachable("Ops.def names a step input that there is not");
}
