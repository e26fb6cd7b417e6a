//===- KernelRun.cpp - one kernel, compiled, run and judged ----------------===//

#include "lib/Verify/KernelRun.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace mlir;
using cudaabi::CUdeviceptr;

namespace planc::verify {

Result<CompiledKernel> compileKernel(plan::KernelOp kernel, const Target &target, int64_t kvBlock,
                                     Codegen &codegen, Rewrite rewrite) {
  std::string why;
  ScopedDiagnosticHandler handler(kernel.getContext(), [&](Diagnostic &diagnostic) {
    why += (why.empty() ? "" : "\n") + diagnostic.str();
    return success();
  });
  FailureOr<EmittedKernel> emitted = emitKernel(kernel, ScheduleContext{target, kvBlock});
  if (failed(emitted))
    return inputError("no schedule emits it: {}", why);
  if (rewrite)
    rewrite(*emitted);
  KernelJob job{kernel.getSymName().str(), &target, "", [&] {
                  return KernelSource{printForCodegen(*emitted->module), emitted->entry, ""};
                }};
  KernelResult result = codegen.compile({job}).front();
  if (!result.image)
    return inputError("{}{}", result.error, why);
  return CompiledKernel{emitted->shape, emitted->schedule.str(), std::move(emitted->arithmetic),
                        std::move(*result.image)};
}

static uint64_t tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * tensor.getElementType().getIntOrFloatBitWidth() / 8;
}

namespace {
/// The memory of a kernel's arguments: two buffers for a weight with scales.
class Arguments {
public:
  Arguments(Device &device, plan::KernelOp kernel, ArrayRef<Input> inputs) {
    for (auto [argument, input] : llvm::zip_equal(kernel.getBody().getArguments(), inputs)) {
      std::string name = "argument " + std::to_string(argument.getArgNumber());
      first[argument] = buffers.size();
      buffers.emplace_back(device, std::span(input.data), name);
      addresses[argument] = {buffers.back().address()};
      if (input.scales.empty())
        continue;
      buffers.emplace_back(device, std::as_bytes(std::span(input.scales)), name + "'s scales");
      addresses[argument].push_back(buffers.back().address());
    }
  }

  const SmallVector<CUdeviceptr, 2> &of(Value argument) const {
    return addresses.find(argument)->second;
  }
  /// The pools of states, as they are now.
  std::map<unsigned, std::vector<std::byte>> states(plan::KernelOp kernel) const {
    std::map<unsigned, std::vector<std::byte>> pools;
    for (BlockArgument argument : kernel.getBody().getArguments())
      if (isa<plan::StateType>(argument.getType()))
        pools[argument.getArgNumber()] = buffers[first.lookup(argument)].download();
    return pools;
  }

private:
  std::vector<Device::Buffer> buffers;
  llvm::DenseMap<Value, size_t> first;
  llvm::DenseMap<Value, SmallVector<CUdeviceptr, 2>> addresses;
};
} // namespace

/// Starts a kernel; returns what went wrong, empty if nothing.
static std::string start(Device &device, const CompiledKernel &compiled, plan::KernelOp kernel,
                         ArrayRef<CUdeviceptr> parameters, unsigned launches) {
  using Content = Device::Content;
  const LaunchShape &shape = compiled.shape;
  std::string error;
  cudaabi::CUfunction function = device.load(compiled.image.ptx, compiled.image.entry, error);
  if (!function)
    return error;
  SmallVector<CUdeviceptr> all(parameters);
  std::optional<Device::Buffer> scratch, counters;
  if (shape.scratchBytes)
    all.push_back(
        scratch.emplace(device, shape.scratchBytes, Content::Unwritten, "scratch").address());
  if (shape.counters)
    all.push_back(
        counters.emplace(device, shape.counters * 4, Content::Zero, "counters").address());
  for (unsigned i = 0; i < launches; ++i) {
    device.label(kernel.getSymName().str());
    error = device.launch(function, shape.grid, shape.block, shape.dynamicSharedBytes,
                          {all.data(), all.size()});
    if (!error.empty())
      return error;
    if (counters &&
        llvm::any_of(counters->download(), [](std::byte b) { return b != std::byte(0); }))
      return "leaves a counter that is not zero";
  }
  return "";
}

Outcome runKernel(Device &device, const CompiledKernel &compiled, plan::KernelOp kernel,
                  ArrayRef<Input> inputs, unsigned launches) {
  Outcome outcome;
  Arguments arguments(device, kernel, inputs);
  SmallVector<CUdeviceptr> parameters;
  for (BlockArgument argument : kernel.getBody().getArguments())
    parameters.append(arguments.of(argument));
  std::vector<Device::Buffer> results;
  for (auto [i, type] :
       llvm::enumerate(kernel.getBody().front().getTerminator()->getOperandTypes()))
    parameters.push_back(results
                             .emplace_back(device, tensorBytes(type), Device::Content::Ones,
                                           "output " + std::to_string(i))
                             .address());
  outcome.fault = start(device, compiled, kernel, parameters, launches);
  outcome.findings = device.takeFindings();
  if (!outcome.fault.empty())
    return outcome;
  for (const Device::Buffer &result : results)
    outcome.outputs.push_back(result.download());
  outcome.states = arguments.states(kernel);
  outcome.fault = device.failure();
  return outcome;
}

Result<reference::Report> judge(plan::KernelOp kernel, const CompiledKernel &compiled,
                                ArrayRef<Input> inputs, const Outcome &outcome,
                                const reference::Options &options) {
  using reference::Argument;
  // Borrowed for reading only, but for states: the reference updates them in place.
  auto borrow = [](const std::vector<std::byte> &bytes) {
    return Argument{const_cast<std::byte *>(bytes.data()), bytes.size()};
  };
  std::vector<std::vector<std::byte>> pools(inputs.size());
  std::vector<Argument> arguments, outputs, states(inputs.size());
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (isa<plan::StateType>(kernel.getBody().getArgument(i).getType()))
      pools[i] = input.data;
    arguments.push_back(borrow(pools[i].empty() ? input.data : pools[i]));
    if (!input.scales.empty())
      arguments.back().scales = input.scales.data();
  }
  for (const std::vector<std::byte> &output : outcome.outputs)
    outputs.push_back(borrow(output));
  for (const auto &[argument, pool] : outcome.states)
    states[argument] = borrow(pool);
  return reference::compare(kernel, {arguments, outputs, states}, compiled.arithmetic, options);
}

//===----------------------------------------------------------------------===//
// The unfused chain
//===----------------------------------------------------------------------===//

/// One node of a kernel as a kernel of its own; `operands` are the values it takes, in its
/// arguments' order. Alone it reads stored values only, so `act` falls back to the stored format.
static OwningOpRef<ModuleOp> isolate(plan::KernelOp kernel, Operation *node,
                                     SmallVectorImpl<Value> &operands) {
  OpBuilder builder(kernel.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto single = plan::KernelOp::create(builder, node->getLoc(),
                                       node->getName().stripDialect().str() + "__alone",
                                       kernel.getRows(), kernel.getCompute(), kernel.getNumerics());
  Block &body = single.getBody().emplaceBlock();
  IRMapping mapping;
  // Edges before step inputs, weights and states: the operands of a node are in that order.
  for (Value operand : node->getOperands())
    if (!mapping.contains(operand)) {
      operands.push_back(operand);
      mapping.map(operand, body.addArgument(operand.getType(), node->getLoc()));
    }
  builder.setInsertionPointToEnd(&body);
  Operation *copy = builder.clone(*node, mapping);
  if (auto reader = cast<plan::PlanNode>(copy); plan::readsHeld(reader, 0)) {
    plan::PrecisionAttr precision = reader.getPrecisionAttr();
    copy->setAttr("precision", plan::PrecisionAttr::get(kernel.getContext(), precision.getWeight(),
                                                        plan::storedFormat(copy->getOperand(0)),
                                                        precision.getOut()));
  }
  plan::YieldOp::create(builder, node->getLoc(), copy->getResults());
  return module;
}

Result<Outcome> runUnfused(Device &device, plan::KernelOp kernel, ArrayRef<Input> inputs,
                           const Target &target, int64_t kvBlock, Codegen &codegen) {
  Block &body = kernel.getBody().front();
  Arguments arguments(device, kernel, inputs);
  std::map<void *, Device::Buffer> results; // of the nodes so far
  Outcome outcome;
  for (Operation &node : body.without_terminator()) {
    if (auto snapshot = dyn_cast<plan::StateSnapshotOp>(node);
        snapshot && (kernel.getRows() == 1 || snapshot.getApart()))
      continue; // nothing to do
    SmallVector<Value> operands;
    OwningOpRef<ModuleOp> module = isolate(kernel, &node, operands);
    auto single = *module->getOps<plan::KernelOp>().begin();
    Result<CompiledKernel> compiled = compileKernel(single, target, kvBlock, codegen);
    if (!compiled.ok())
      return inputError("{} alone: {}", node.getName().getStringRef().str(),
                        compiled.error().message);
    SmallVector<CUdeviceptr> parameters;
    for (Value operand : operands) {
      if (isa<BlockArgument>(operand))
        parameters.append(arguments.of(operand));
      else
        parameters.push_back(results.at(operand.getAsOpaquePointer()).address());
    }
    for (Value result : node.getResults())
      parameters.push_back(
          results
              .emplace(result.getAsOpaquePointer(),
                       Device::Buffer(device, tensorBytes(result.getType()), Device::Content::Ones,
                                      "a value of the unfused chain"))
              .first->second.address());
    outcome.fault = start(device, *compiled, single, parameters, 1);
    if (!outcome.fault.empty())
      return outcome;
  }
  for (Value value : body.getTerminator()->getOperands())
    outcome.outputs.push_back(results.at(value.getAsOpaquePointer()).download());
  outcome.states = arguments.states(kernel);
  outcome.findings = device.takeFindings();
  outcome.fault = device.failure();
  return outcome;
}

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

/// An element and its bits.
static std::string elementText(Type type, const std::byte *data) {
  if (type.isBF16()) {
    uint16_t code = 0;
    std::memcpy(&code, data, sizeof code);
    return fmt::format("{:.9g} (0x{:04x})", std::bit_cast<float>(uint32_t(code) << 16), code);
  }
  uint64_t bits = 0;
  unsigned bytes = type.getIntOrFloatBitWidth() / 8;
  std::memcpy(&bits, data, bytes);
  if (type.isF32())
    return fmt::format("{:.9g} (0x{:08x})", std::bit_cast<float>(uint32_t(bits)), bits);
  return fmt::format("{}", int64_t(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes));
}

static std::optional<std::string> difference(const std::vector<std::byte> &a,
                                             const std::vector<std::byte> &b, Type element,
                                             int64_t columns, const std::string &what) {
  auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  if (at == a.end())
    return std::nullopt;
  uint64_t bytes = element.getIntOrFloatBitWidth() / 8, index = uint64_t(at - a.begin()) / bytes;
  return fmt::format("{} [{}, {}]: {} and {}", what, int64_t(index) / columns,
                     int64_t(index) % columns, elementText(element, &a[index * bytes]),
                     elementText(element, &b[index * bytes]));
}

std::optional<std::string> firstDifference(plan::KernelOp kernel, const Outcome &a,
                                           const Outcome &b, ArrayRef<std::string> nodes) {
  Block &body = kernel.getBody().front();
  // Which node of the kernel an output is of.
  auto madeBy = [&](Value output) -> std::string {
    for (auto [node, op] : llvm::zip(nodes, body.without_terminator()))
      if (&op == output.getDefiningOp())
        return fmt::format("node \"{}\", ", node);
    return "";
  };
  for (auto [i, output] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto tensor = cast<RankedTensorType>(output.getType());
    if (auto text = difference(a.outputs[i], b.outputs[i], tensor.getElementType(),
                               tensor.getNumElements() / tensor.getDimSize(0),
                               madeBy(output) + "output " + std::to_string(i)))
      return text;
  }
  for (const auto &[argument, pool] : a.states) {
    auto type = cast<plan::StateType>(body.getArgument(argument).getType());
    Builder builder(kernel.getContext());
    Type element = type.getFormat() == plan::Format::BF16 ? Type(builder.getBF16Type())
                                                          : Type(builder.getF32Type());
    int64_t columns = 1;
    for (int64_t extent : type.getShape())
      columns *= extent;
    if (auto text = difference(pool, b.states.at(argument), element, columns,
                               "state " + std::to_string(argument)))
      return text;
  }
  return std::nullopt;
}

} // namespace planc::verify
