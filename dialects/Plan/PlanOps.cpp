//===- PlanOps.cpp - structure ops, and what all nodes share --------------===//

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace plan;

#include "dialects/Plan/PlanInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

std::string plan::describe(Operation *op) {
  auto node = dyn_cast<PlanNode>(op);
  NodeAttr id = node ? node.getNodeAttr() : NodeAttr();
  if (!id)
    return ("'" + op->getName().getStringRef() + "'").str();
  std::string text = ("node \"" + id.getId() + "\" (group " + Twine(id.getGroup())).str();
  if (id.getLayer() >= 0)
    text += ", layer " + std::to_string(id.getLayer());
  return text + ")";
}

InFlightDiagnostic plan::emitNodeError(Operation *op) {
  return mlir::emitError(op->getLoc()) << describe(op) << ": ";
}

bool plan::readsHeld(PlanNode reader, unsigned operand) {
  // `act` speaks of the first input alone; all others are read as stored.
  return operand == 0 && reader.getNumEdges() > 0 &&
         reader.getPrecisionAttr().getAct() == Format::F32 &&
         storedFormat(reader->getOperand(0)) == Format::BF16;
}

RegionKind GraphOp::getRegionKind(unsigned) { return RegionKind::Graph; }

LogicalResult StepInputOp::verify() {
  static constexpr std::pair<StringLiteral, Format> known[] = {
      {"token_ids", Format::I32},    {"positions", Format::I32}, {"slot_mapping", Format::I64},
      {"block_tables", Format::I32}, {"seq_lens", Format::I32},  {"slots_in", Format::I32},
      {"slots_out", Format::I32}};
  for (auto [name, format] : known)
    if (getName() == name)
      return storedFormat(getValue()) == format
                 ? success()
                 : emitOpError() << "'" << name << "' is " << stringifyFormat(format);
  return emitOpError() << "'" << getName() << "' is no step input";
}

/// Checks that `ref` names a symbol of kind `Op` whose type is `type`.
template <typename Op>
static LogicalResult verifyRef(Operation *user, FlatSymbolRefAttr ref, Type type,
                               SymbolTableCollection &symbols) {
  auto target = symbols.lookupNearestSymbolFrom<Op>(user, ref);
  if (!target)
    return user->emitOpError() << "names no " << Op::getOperationName() << " '" << ref.getValue()
                               << "'";
  if (target.getType() != type)
    return user->emitOpError() << "has type " << type << ", but " << ref << " is declared as "
                               << target.getType();
  return success();
}

LogicalResult WeightRefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRef<WeightOp>(*this, getWeightAttr(), getType(), symbols);
}

LogicalResult StateRefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRef<StateOp>(*this, getStateAttr(), getType(), symbols);
}

/// The region takes what is passed and yields what comes out.
static LogicalResult verifySignature(Operation *op, Block &body, TypeRange inputs,
                                     TypeRange outputs) {
  if (body.getArgumentTypes() != inputs)
    return op->emitOpError() << "has operands that differ from its region's arguments";
  if (TypeRange(body.getTerminator()->getOperandTypes()) != outputs)
    return op->emitOpError() << "has results that differ from what its region yields";
  return success();
}

static LogicalResult verifyMembers(Operation *op, Block &body) {
  for (Operation &member : body.without_terminator())
    if (!isa<PlanNode>(member))
      return op->emitOpError() << "holds '" << member.getName() << "', which is no node";
  return success();
}

LogicalResult GroupOp::verify() {
  if (failed(verifyMembers(*this, getBody().front())))
    return failure();
  return verifySignature(*this, getBody().front(), getInputs().getTypes(), getOutputs().getTypes());
}

LogicalResult KernelOp::verify() { return verifyMembers(*this, getBody().front()); }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getKernelAttr())
    return success();
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "names no plan.kernel '" << *getKernel() << "'";
  return verifySignature(*this, kernel.getBody().front(), getInputs().getTypes(),
                         getOutputs().getTypes());
}
