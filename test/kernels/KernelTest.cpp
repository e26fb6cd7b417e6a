//===- KernelTest.cpp - one kernel against the reference -------------------===//
//
// usage: planc-kernel-test FILE.mlir [options]        (- reads standard input)
//
// Schedules and compiles every plan.kernel of the file, runs it on the emulator (or a GPU) with
// seeded data and compares what it stored with lib/Reference, within the limits of the numerical
// semantics. Outputs start as NaN and scratch as rubbish, so that what a kernel forgets shows.
// With --chain the kernel's nodes also run one by one, each as a kernel of its own, and all outputs
// must have the same bytes.
//
// Exit codes: 0 all good, 1 a mismatch or a kernel that does not compile, 3 no device.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Inputs.h"
#include "lib/Codegen/Codegen.h"
#include "lib/Reference/Compare.h"
#include "lib/Schedule/Schedule.h"
#include "lib/Target/Target.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"

#include <deque>
#include <map>

using namespace mlir;
using namespace kerneltest;
namespace cl = llvm::cl;
using planc::reference::Argument;

static cl::opt<std::string> inputFile(cl::Positional, cl::init("-"), cl::desc("FILE.mlir"));
static cl::list<std::string> targetNames("target", cl::CommaSeparated, cl::desc("default: gb10"));
static cl::opt<uint64_t> seed("seed", cl::init(1));
static cl::opt<InputClass> inputClass(
    "input-class", cl::init(InputClass::Gaussian), cl::desc("what the edges hold"),
    cl::values(clEnumValN(InputClass::Gaussian, "gaussian", "N(0, 1)"),
               clEnumValN(InputClass::Outliers, "outliers", "one in 64 is 50 times as large"),
               clEnumValN(InputClass::Zeros, "zeros", "zeros"),
               clEnumValN(InputClass::Equal, "equal", "all the same number"),
               clEnumValN(InputClass::Specials, "specials", "NaN, 0, -0 and -1, for selections")));
static cl::opt<int64_t> kvBlock("kv-block", cl::init(16));
static cl::opt<std::string> deviceName("device", cl::init("emulator"),
                                       cl::desc("emulator, cuda or a library"));
static cl::opt<bool> chain("chain", cl::desc("compare bytes with the nodes run one by one"));
static cl::opt<bool> printPtx("print-ptx");
static cl::opt<bool> figures("figures", cl::desc("print what the kernel needs of the machine"));
static cl::opt<unsigned> repeat("repeat", cl::init(1), cl::desc("launches; all must agree"));

namespace {
/// A kernel ready to start.
struct Compiled {
  planc::LaunchShape shape;
  std::string schedule;
  cudaabi::CUfunction function = nullptr;
};

class Tester {
public:
  Tester(const planc::Target &target, planc::Codegen &codegen, Device &device)
      : target(target), codegen(codegen), device(device) {}

  /// False after a failure was printed.
  bool test(plan::KernelOp kernel);

private:
  std::optional<Compiled> compile(plan::KernelOp kernel);
  bool launch(const Compiled &compiled, plan::KernelOp kernel,
              ArrayRef<cudaabi::CUdeviceptr> parameters);
  bool compareChain(plan::KernelOp kernel, ArrayRef<Input> inputs,
                    ArrayRef<std::vector<std::byte>> outputs,
                    const std::map<unsigned, std::vector<std::byte>> &states);
  bool fail(plan::KernelOp kernel, const llvm::Twine &why) {
    llvm::outs() << target.name << " " << kernel.getSymName() << ": FAILED: " << why << '\n';
    return false;
  }

  const planc::Target &target;
  planc::Codegen &codegen;
  Device &device;
};
} // namespace

static void printFigures(const Compiled &compiled, const planc::KernelImage &image) {
  const planc::LaunchShape &shape = compiled.shape;
  llvm::outs() << "  grid " << shape.grid[0] << "x" << shape.grid[1] << "x" << shape.grid[2]
               << ", block " << shape.block[0] << "x" << shape.block[1] << "x" << shape.block[2]
               << ", shared " << shape.dynamicSharedBytes << ", scratch " << shape.scratchBytes
               << ", counters " << shape.counters << ", ptx " << image.ptx.size() << " bytes\n";
  if (image.figures)
    llvm::outs() << "  registers " << image.figures->registers << ", spills "
                 << image.figures->spillStoreBytes + image.figures->spillLoadBytes << ", code "
                 << image.figures->codeBytes << " bytes\n";
}

std::optional<Compiled> Tester::compile(plan::KernelOp kernel) {
  FailureOr<planc::EmittedKernel> emitted =
      planc::emitKernel(kernel, planc::ScheduleContext{target, kvBlock});
  if (failed(emitted)) {
    fail(kernel, "not emitted");
    return std::nullopt;
  }
  planc::KernelJob job{kernel.getSymName().str(), &target, "", [&] {
                         return planc::KernelSource{planc::printForCodegen(*emitted->module),
                                                    emitted->entry, ""};
                       }};
  planc::KernelResult result = codegen.compile({job}).front();
  if (!result.image) {
    fail(kernel, result.error);
    return std::nullopt;
  }
  if (printPtx)
    llvm::outs() << result.image->ptx;
  Compiled compiled{emitted->shape, emitted->schedule.str()};
  if (figures)
    printFigures(compiled, *result.image);
  std::string error;
  compiled.function = device.load(result.image->ptx, emitted->entry, error);
  if (!compiled.function) {
    fail(kernel, error);
    return std::nullopt;
  }
  return compiled;
}

static std::span<const std::byte> bytesOf(const std::vector<float> &values) {
  return std::as_bytes(std::span(values));
}

/// The operands' buffers, in the order of the ABI.
static std::vector<Device::Buffer> upload(Device &device, ArrayRef<Input> inputs) {
  std::vector<Device::Buffer> buffers;
  for (const Input &input : inputs) {
    buffers.emplace_back(device, std::span(input.data));
    if (!input.scales.empty())
      buffers.emplace_back(device, bytesOf(input.scales));
  }
  return buffers;
}

static uint64_t tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * tensor.getElementType().getIntOrFloatBitWidth() / 8;
}

/// Runs a kernel with scratch and counters of its own; counters must be zero again afterwards.
bool Tester::launch(const Compiled &compiled, plan::KernelOp kernel,
                    ArrayRef<cudaabi::CUdeviceptr> parameters) {
  const planc::LaunchShape &shape = compiled.shape;
  llvm::SmallVector<cudaabi::CUdeviceptr> all(parameters);
  std::optional<Device::Buffer> scratch, counters;
  if (shape.scratchBytes)
    all.push_back(scratch.emplace(device, shape.scratchBytes, 0xA5).address());
  if (shape.counters)
    all.push_back(counters.emplace(device, shape.counters * 4, 0).address());
  for (unsigned i = 0; i < repeat; ++i) {
    std::string error = device.launch(compiled.function, shape.grid, shape.block,
                                      shape.dynamicSharedBytes, {all.data(), all.size()});
    if (!error.empty())
      return fail(kernel, error);
    if (counters)
      for (std::byte left : counters->download())
        if (left != std::byte(0))
          return fail(kernel, "leaves a counter that is not zero");
  }
  return true;
}

bool Tester::test(plan::KernelOp kernel) {
  std::optional<Compiled> compiled = compile(kernel);
  if (!compiled)
    return false;
  Block &body = kernel.getBody().front();
  std::vector<Input> inputs = makeInputs(kernel, seed, inputClass, kvBlock);
  std::vector<Device::Buffer> buffers = upload(device, inputs);
  llvm::SmallVector<cudaabi::CUdeviceptr> parameters;
  for (const Device::Buffer &buffer : buffers)
    parameters.push_back(buffer.address());
  std::vector<Device::Buffer> results;
  for (Type type : body.getTerminator()->getOperandTypes())
    parameters.push_back(results.emplace_back(device, tensorBytes(type), 0xFF).address());
  if (!launch(*compiled, kernel, parameters))
    return false;

  // What the device left.
  std::vector<std::vector<std::byte>> outputs;
  for (const Device::Buffer &result : results)
    outputs.push_back(result.download());
  std::map<unsigned, std::vector<std::byte>> states;
  std::vector<Argument> arguments, statesAfter(inputs.size()), observed;
  size_t buffer = 0;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (isa<plan::StateType>(body.getArgument(i).getType())) {
      std::vector<std::byte> &after = states[i] = buffers[buffer].download();
      statesAfter[i] = {after.data(), after.size()};
    }
    buffer += input.scales.empty() ? 1 : 2;
  }
  std::vector<Input> before = inputs; // the reference updates states in place
  for (Input &input : before)
    arguments.push_back({input.data.data(), input.data.size(),
                         input.scales.empty() ? nullptr : input.scales.data()});
  for (std::vector<std::byte> &output : outputs)
    observed.push_back({output.data(), output.size()});

  planc::reference::Options options;
  options.kvBlock = kvBlock;
  planc::Result<planc::reference::Report> report =
      planc::reference::compare(kernel, {arguments, observed, statesAfter}, options);
  if (!report.ok())
    return fail(kernel, report.error().message);
  bool good = report->passed();
  llvm::outs() << target.name << " " << kernel.getSymName() << ": " << compiled->schedule << ", "
               << (good ? "ok" : "FAILED") << '\n';
  for (const planc::reference::EdgeReport &edge : report->edges)
    llvm::outs() << "  " << planc::reference::describe(edge) << '\n';
  if (good && chain)
    good = compareChain(kernel, inputs, outputs, states);
  return good;
}

/// One node of a kernel as a kernel of its own; `operands` are the values it takes, in its
/// arguments' order. Alone it reads stored values only, so `act` falls back to the stored format.
static OwningOpRef<ModuleOp> isolate(plan::KernelOp kernel, Operation *node,
                                     llvm::SmallVectorImpl<Value> &operands) {
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

bool Tester::compareChain(plan::KernelOp kernel, ArrayRef<Input> inputs,
                          ArrayRef<std::vector<std::byte>> outputs,
                          const std::map<unsigned, std::vector<std::byte>> &states) {
  Block &body = kernel.getBody().front();
  std::vector<Device::Buffer> buffers = upload(device, inputs);
  llvm::DenseMap<Value, llvm::SmallVector<cudaabi::CUdeviceptr, 2>> addresses;
  llvm::DenseMap<Value, const Device::Buffer *> bufferOf;
  size_t next = 0;
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs)) {
    bufferOf[argument] = &buffers[next];
    addresses[argument].push_back(buffers[next++].address());
    if (!input.scales.empty())
      addresses[argument].push_back(buffers[next++].address());
  }
  std::deque<Device::Buffer> results;
  for (Operation &node : body.without_terminator()) {
    if (isa<plan::StateSnapshotOp>(node) && kernel.getRows() == 1)
      continue; // nothing to do at one row
    llvm::SmallVector<Value> operands;
    OwningOpRef<ModuleOp> module = isolate(kernel, &node, operands);
    auto single = *module->getOps<plan::KernelOp>().begin();
    std::optional<Compiled> compiled = compile(single);
    if (!compiled)
      return false;
    llvm::SmallVector<cudaabi::CUdeviceptr> parameters;
    for (Value operand : operands)
      parameters.append(addresses[operand]);
    for (Value result : node.getResults()) {
      Device::Buffer &made = results.emplace_back(device, tensorBytes(result.getType()), 0xFF);
      bufferOf[result] = &made;
      addresses[result] = {made.address()};
      parameters.push_back(made.address());
    }
    if (!launch(*compiled, single, parameters))
      return false;
  }
  bool good = true;
  auto compareBytes = [&](ArrayRef<std::byte> fused, Value value, const llvm::Twine &what) {
    std::vector<std::byte> unfused = bufferOf[value]->download();
    auto [a, b] = std::mismatch(fused.begin(), fused.end(), unfused.begin());
    if (a == fused.end())
      return;
    good = fail(kernel, what + " differs from the unfused chain's, first at byte " +
                            llvm::Twine(a - fused.begin()));
  };
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    compareBytes(outputs[i], value, "output " + llvm::Twine(i));
  for (const auto &[i, after] : states)
    compareBytes(after, body.getArgument(i), "state " + llvm::Twine(i));
  if (good)
    llvm::outs() << "  chain: same bytes\n";
  return good;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  DialectRegistry registry;
  registry.insert<plan::PlanDialect>();
  planc::registerScheduleDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return 1;

  planc::CodegenOptions options;
  options.stage = figures ? planc::CodegenStage::Cubin : planc::CodegenStage::Ptx;
  options.threads = 1;
  auto codegen = planc::Codegen::create(options);
  if (!codegen) {
    llvm::errs() << "error: " << toString(codegen.takeError()) << '\n';
    return 3;
  }
  if (targetNames.empty())
    targetNames.push_back("gb10");
  bool good = true;
  for (const std::string &name : targetNames) {
    const planc::Target *target = planc::lookupTarget(name);
    if (!target) {
      llvm::errs() << "unknown target \"" << name << "\"; known are " << planc::targetNames()
                   << '\n';
      return 2;
    }
    Device device(deviceName, target->arch());
    Tester tester(*target, **codegen, device);
    for (auto kernel : module->getOps<plan::KernelOp>())
      good &= tester.test(kernel);
  }
  return good ? 0 : 1;
}
