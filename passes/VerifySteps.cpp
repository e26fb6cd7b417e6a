//===- VerifySteps.cpp - check every node's steps against its edges -------===//
//
// In     plan.graph; dims may still be symbolic. Groups and kernels are checked as well.
// Out    the same IR, or failure; every violation is reported, not the first.
// After  later passes and schedules rely on S1..S6 and do not check them again.
//
//   S1  an edge is read in its stored format; wider only as the first input, inside the writer's
//   group S2  the steps are those of the op, each once and in order S3  `mma a*b` multiplies
//   exactly what the `act` and `weight` steps before it yield, `act` is what the
//       node reads and `weight` what it has stored
//   S4  a weight with block scales has `scale f32`, one without has `scale none`
//   S5  sums and functions are formed in f32
//   S6  what is only moved, gathered, compared or kept (`state`, `cache`) stays in its format
//
// A pass, not op verifiers: S1 looks at the writer, which a verifier may not assume to be valid.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Reads.h"

#include "dialects/Plan/Contract.h"
#include "dialects/Plan/PlanOps.h"

using namespace mlir;
using plan::Format;
using plan::PlanNode;
using plan::StepAttr;
using plan::StepKind;

namespace planc {
#define GEN_PASS_DEF_VERIFYSTEPS
#include "passes/Passes.h.inc"
} // namespace planc

bool planc::sameGroup(PlanNode first, PlanNode second) {
  if (first->getParentRegion() != second->getParentRegion())
    return false;
  if (!isa<plan::GraphOp>(first->getParentOp()))
    return true;
  plan::NodeAttr a = first.getNodeAttr(), b = second.getNodeAttr();
  return a && b && a.getGroup() == b.getGroup();
}

static bool isBitIdentical(PlanNode node) {
  plan::NodeAttr id = node.getNodeAttr();
  return id && id.getNumerics() &&
         plan::contractOf(id.getNumerics().getValue()) == plan::Contract::BitIdentical;
}

LogicalResult planc::checkRead(PlanNode reader, OpOperand &read) {
  unsigned number = read.getOperandNumber();
  // `act` speaks of the first input; the others are read as they are stored.
  if (number != 0)
    return success();
  Format stored = plan::storedFormat(read.get()), wanted = reader.getPrecisionAttr().getAct();
  auto writer = read.get().getDefiningOp<PlanNode>();
  bool wider = wanted == Format::F32 && stored == Format::BF16;
  bool inside = writer && sameGroup(writer, reader);
  // Where kernels are run to prove their contracts, the run shows which element breaks this one.
  bool claimed = isBitIdentical(reader) &&
                 !reader->getParentOfType<ModuleOp>()->hasAttr(plan::kContractsRunAttrName);
  if (wanted == stored || (wider && inside && !claimed))
    return success();
  plan::NodeAttr id = writer ? writer.getNodeAttr() : plan::NodeAttr();
  StringRef edge = id ? id.getEdge(cast<OpResult>(read.get()).getResultNumber()) : "";
  InFlightDiagnostic diag = plan::emitNodeError(reader);
  diag << "reads '" << plan::planSpelling(wanted) << "', but ";
  if (edge.empty())
    diag << "the edge";
  else
    diag << "edge '" << edge << "'";
  diag << " is stored as '" << plan::planSpelling(stored) << "'";
  if (wider && inside)
    diag << "; 'bit_identical' asks for what the unfused nodes read";
  else if (wider)
    diag << "; the wider value exists only inside the writer's group";
  if (writer)
    diag.attachNote(writer->getLoc()) << "stored here by " << plan::describe(writer);
  return diag;
}

namespace {
class StepChecker {
public:
  explicit StepChecker(PlanNode node)
      : node(node), precision(node.getPrecisionAttr()), steps(node.getStepsAttr()) {}

  LogicalResult check() {
    for (OpOperand &operand : node->getOpOperands().take_front(node.getNumEdges()))
      ok &= succeeded(planc::checkRead(node, operand));
    if (checkWords()) {
      checkProduct();
      for (StepAttr step : steps.getSteps())
        checkFormat(step);
    }
    return success(ok);
  }

private:
  InFlightDiagnostic error() {
    ok = false;
    return plan::emitNodeError(node);
  }

  static std::string spell(StepAttr step) {
    std::string text =
        ("'" + plan::stringifyStepKind(step.getKind()) + " " + plan::planSpelling(step.getFirst()))
            .str();
    if (step.getSecond() != Format::None)
      text += (step.getKind() == StepKind::Mma ? "*" : "->") +
              plan::planSpelling(step.getSecond()).str();
    return text + "'";
  }

  /// S2
  bool checkWords() {
    SmallVector<StringRef> wanted, found;
    node.getStepWords().split(wanted, ' ');
    for (StepAttr step : steps.getSteps())
      found.push_back(plan::stringifyStepKind(step.getKind()));
    if (wanted == found)
      return true;
    unsigned before = 0;
    for (StringRef word : wanted)
      if (!llvm::is_contained(found, word) && ++before)
        error() << "lacks the step '" << word << "' of '" << node.getPlanWord() << "'";
    for (auto [i, word] : llvm::enumerate(found)) {
      bool again = llvm::is_contained(ArrayRef(found).take_front(i), word);
      if ((again || !llvm::is_contained(wanted, word)) && ++before)
        error() << "has step " << spell(steps.getSteps()[i])
                << (again ? " for the second time" : ", which is none of '")
                << (again ? "" : node.getPlanWord() + "'");
    }
    if (!before) {
      InFlightDiagnostic diag = error();
      diag << "has its steps in another order than ";
      llvm::interleave(
          wanted, [&](StringRef word) { diag << "'" << word << "'"; }, [&] { diag << ", "; });
    }
    return false;
  }

  /// S3, S4
  void checkProduct() {
    StepAttr act = steps.find(StepKind::Act), weight = steps.find(StepKind::Weight),
             mma = steps.find(StepKind::Mma), scale = steps.find(StepKind::Scale);
    if (!act || !weight || !mma || !scale)
      return;
    if (act.getFirst() != precision.getAct())
      error() << "step " << spell(act) << " contradicts the precision, which reads '"
              << plan::planSpelling(precision.getAct()) << "'";
    if (weight.getFirst() != precision.getWeight())
      error() << "step " << spell(weight) << " contradicts the precision, whose weight is '"
              << plan::planSpelling(precision.getWeight()) << "'";
    Format operands[2] = {mma.getFirst(), mma.getSecond()};
    if (operands[0] != act.getFirst())
      error() << "step " << spell(mma) << " multiplies '" << plan::planSpelling(operands[0])
              << "', but step " << spell(act) << " yields '" << plan::planSpelling(act.getFirst())
              << "'";
    if (operands[1] != weight.getSecond())
      error() << "step " << spell(mma) << " multiplies by '" << plan::planSpelling(operands[1])
              << "', but step " << spell(weight) << " yields '"
              << plan::planSpelling(weight.getSecond()) << "'";
    if (weight.getSecond() != Format::BF16 && weight.getSecond() != Format::F32)
      error() << "step " << spell(weight) << " yields '" << plan::planSpelling(weight.getSecond())
              << "', expected 'bf16' or 'f32'";
    Format wanted = weight.getFirst() == Format::FP8Block128x128 ? Format::F32 : Format::None;
    if (scale.getFirst() != wanted)
      error() << "step " << spell(scale) << " does not fit step " << spell(weight)
              << ", whose weight has " << (wanted == Format::None ? "no scales" : "f32 scales")
              << ": expected 'scale " << plan::planSpelling(wanted) << "'";
  }

  void expect(StepAttr step, Format wanted, const Twine &why) {
    if (step.getFirst() != wanted)
      error() << "step " << spell(step) << ", expected '" << plan::planSpelling(wanted)
              << "': " << why.str();
  }

  /// S5, S6
  void checkFormat(StepAttr step) {
    ArrayRef<Format> out = precision.getOut();
    switch (step.getKind()) {
    case StepKind::Accumulate:
    case StepKind::Compute:
    case StepKind::Scores:
    case StepKind::Softmax:
    case StepKind::Score:
    case StepKind::Scatter:
    case StepKind::Combine:
      return expect(step, Format::F32, "sums and functions are formed in f32");
    case StepKind::Move:
      expect(step, precision.getAct(), "what is moved keeps the format it is read in");
      for (Format stored : out)
        expect(step, stored, "what is moved is stored as it is");
      return;
    case StepKind::Gather:
      return expect(step, node.getNumEdges() ? precision.getAct() : out.front(),
                    "rows are gathered in the format they are read in");
    case StepKind::Compare:
      return expect(step, precision.getAct(), "values are compared in the format they are read in");
    case StepKind::State:
    case StepKind::Cache:
      for (auto [operand, access] : node.getAccesses()) {
        auto kept = cast<plan::StateType>(node->getOperand(operand).getType()).getFormat();
        if (step.getFirst() != kept)
          return expect(step, kept, "it is kept in that format");
      }
      return;
    case StepKind::Act:
    case StepKind::Weight:
    case StepKind::Mma:
    case StepKind::Scale:
      return; // S3, S4
    }
  }

  PlanNode node;
  plan::PrecisionAttr precision;
  plan::StepsAttr steps;
  bool ok = true;
};

class VerifySteps : public planc::impl::VerifyStepsBase<VerifySteps> {
  void runOnOperation() override {
    bool ok = true;
    getOperation().walk([&](PlanNode node) { ok &= succeeded(StepChecker(node).check()); });
    if (!ok)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
