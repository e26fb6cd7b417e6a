//===- Frame.cpp - the values of a region while it is evaluated ------------===//

#include "lib/Reference/Frame.h"
#include "lib/Reference/Formats/Scalar.h"

#include <algorithm>
#include <thread>

using namespace mlir;

namespace planc::reference {

unsigned elementBytes(Element element) {
  switch (element) {
  case Element::BF16:
    return 2;
  case Element::F32:
  case Element::I32:
    return 4;
  case Element::I64:
    return 8;
  }
  return 0;
}

std::string_view elementName(Element element) {
  static constexpr std::string_view names[] = {"bf16", "f32", "i32", "i64"};
  return names[unsigned(element)];
}

int64_t Tensor::columns() const {
  int64_t count = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    count *= shape[i];
  return count;
}

static int64_t elements(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

static std::optional<Element> elementOf(plan::Format format) {
  switch (format) {
  case plan::Format::BF16:
    return Element::BF16;
  case plan::Format::F32:
    return Element::F32;
  case plan::Format::I32:
    return Element::I32;
  case plan::Format::I64:
    return Element::I64;
  default:
    return std::nullopt;
  }
}

/// Shape and element of an edge, nothing stored yet.
static Result<Tensor> emptyTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return inputError("a value's dims are not bound");
  std::optional<plan::Format> format = plan::formatOf(tensor.getElementType());
  std::optional<Element> element = format ? elementOf(*format) : std::nullopt;
  if (!element)
    return inputError("a value has elements of no stored format");
  Tensor result;
  result.element = *element;
  result.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  return result;
}

Result<Tensor> decode(Type type, const Argument &argument) {
  Result<Tensor> made = emptyTensor(type);
  if (!made.ok())
    return made;
  Tensor &tensor = *made;
  int64_t count = elements(tensor.shape);
  uint64_t needed = uint64_t(count) * elementBytes(tensor.element);
  if (!argument.data || argument.bytes < needed)
    return inputError("{} bytes given, {} needed", argument.data ? argument.bytes : 0, needed);
  tensor.stored.resize(count);
  auto convert = [&](auto *from, auto &&widen) {
    for (int64_t i = 0; i < count; ++i)
      tensor.stored[i] = widen(from[i]);
  };
  auto plain = [](auto value) { return double(value); };
  switch (tensor.element) {
  case Element::BF16:
    convert(static_cast<const uint16_t *>(argument.data), bf16ToFloat);
    break;
  case Element::F32:
    convert(static_cast<const float *>(argument.data), plain);
    break;
  case Element::I32:
    convert(static_cast<const int32_t *>(argument.data), plain);
    break;
  case Element::I64:
    convert(static_cast<const int64_t *>(argument.data), plain);
    break;
  }
  return made;
}

Frame::Frame(const Options &options) : options(options) {}

Status Frame::judge(Block &body, std::span<const numerics::Node> arithmetic) {
  judging = true;
  auto next = arithmetic.begin();
  for (Operation &op : body.without_terminator()) {
    llvm::StringRef word = op.getName().stripDialect();
    if (next == arithmetic.end() || next->op != word)
      return nodeError(&op, "the kernel's arithmetic has {} here",
                       next == arithmetic.end() ? "nothing" : next->op);
    if (std::string problem = numerics::problemOf(*next); !problem.empty())
      return nodeError(&op, "{}", problem);
    nodes[&op] = &*next++;
  }
  if (next != arithmetic.end())
    return inputError("the kernel's arithmetic has {} nodes, the region {}", arithmetic.size(),
                      next - arithmetic.begin());
  return {};
}

const numerics::Part &Frame::part(Operation *op, std::string_view name) const {
  static const numerics::Part exact;
  auto node = nodes.find(op);
  return node == nodes.end() ? exact : *numerics::findPart(*node->second, name);
}

Status Frame::bind(Value value, const Argument &argument, unsigned index) {
  Slot slot{argument, index};
  if (auto type = dyn_cast<plan::WeightType>(value.getType())) {
    const WeightFormat *format = lookupWeightFormat(type.getFormat());
    if (!format)
      return inputError("argument {}: weights in {} cannot be read", index,
                        plan::planSpelling(type.getFormat()).str());
    llvm::SmallVector<int64_t> shape = type.getShape();
    uint64_t needed = format->rowBytes(elements(shape));
    if (!argument.data || argument.bytes < needed)
      return inputError("argument {}: a weight of {} bytes given, {} needed", index,
                        argument.data ? argument.bytes : 0, needed);
    if (format->hasScales && !argument.scales)
      return inputError("argument {}: the weight's scales are missing", index);
  } else if (isa<plan::StateType>(value.getType())) {
    if (!argument.data)
      return inputError("argument {}: the state's pool is missing", index);
  } else {
    Result<Tensor> tensor = decode(value.getType(), argument);
    if (!tensor.ok())
      return inputError("argument {}: {}", index, tensor.error().message);
    slot.tensor = &inputs.emplace_back(std::move(*tensor));
  }
  slots[value] = slot;
  return {};
}

Read Frame::read(Value value) const {
  Slot slot = slots.lookup(value);
  return {slot.tensor->stored.data(), slot.storedError ? slot.storedError->data() : nullptr,
          slot.tensor->rows(), slot.tensor->columns()};
}

Read Frame::readHeld(Value value) const {
  Slot slot = slots.lookup(value);
  if (slot.tensor->exact.empty())
    return read(value);
  return {slot.tensor->exact.data(),
          !judging || slot.tensor->slack.empty() ? nullptr : slot.tensor->slack.data(),
          slot.tensor->rows(), slot.tensor->columns()};
}

Read Frame::input(plan::PlanNode node) const {
  Value value = node->getOperand(0);
  return plan::readsHeld(node, 0) ? readHeld(value) : read(value);
}

Weight Frame::weight(Value value) const {
  Slot slot = slots.lookup(value);
  auto type = cast<plan::WeightType>(value.getType());
  Weight weight;
  weight.format = lookupWeightFormat(type.getFormat());
  weight.data = static_cast<const std::byte *>(slot.argument.data);
  weight.scales = slot.argument.scales;
  weight.shape = type.getShape();
  weight.columns = weight.shape.back();
  return weight;
}

Pool Frame::pool(Value value) const {
  Slot slot = slots.lookup(value);
  auto type = cast<plan::StateType>(value.getType());
  Pool pool;
  pool.data = static_cast<std::byte *>(slot.argument.data);
  pool.element = elementOf(type.getFormat()).value();
  pool.shape = type.getShape();
  pool.entry = elements(pool.shape);
  pool.entries = slot.argument.bytes / (pool.entry * elementBytes(pool.element));
  pool.argument = slot.index;
  return pool;
}

Tensor &Frame::define(Value result, bool sums) {
  Operation *op = result.getDefiningOp();
  unsigned index = cast<OpResult>(result).getResultNumber();
  plan::NodeAttr id = cast<plan::PlanNode>(op).getNodeAttr();
  NodeResult &made = results.emplace_back();
  made.node = id ? id.getId().str() : op->getName().getStringRef().str();
  made.edge = id && id.getEdges() ? id.getEdge(index).str() : std::string();
  made.index = index;
  if (Result<Tensor> tensor = emptyTensor(result.getType()); tensor.ok())
    made.value = std::move(*tensor);
  int64_t count = elements(made.value.shape);
  made.value.exact.resize(count);
  if (sums) {
    made.value.magnitude.resize(count);
    made.value.slack.resize(count);
  }
  Slot slot;
  slot.tensor = &made.value;
  slot.result = &made;
  slots[result] = slot;
  return made.value;
}

static double roundTo(Element element, double value) {
  switch (element) {
  case Element::BF16:
    return bf(value);
  case Element::F32:
    return f32(value);
  default:
    return value;
  }
}

Status Frame::store(Operation *op, llvm::function_ref<const Argument *(Value)> observed) {
  for (Value result : op->getResults()) {
    Slot &slot = slots[result];
    Tensor &tensor = *slot.tensor;
    int64_t count = tensor.exact.size();
    tensor.stored.resize(count);
    parallelFor(options, count, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        tensor.stored[i] = roundTo(tensor.element, tensor.exact[i]);
    });
    if (const Argument *own = observed ? observed(result) : nullptr) {
      Result<Tensor> values = decode(result.getType(), *own);
      if (!values.ok())
        return nodeError(op, "observed result {}: {}", cast<OpResult>(result).getResultNumber(),
                         values.error().message);
      tensor.stored = std::move(values->stored);
    } else if (judging && !tensor.slack.empty() &&
               llvm::any_of(tensor.slack, [](double slack) { return slack > 0; })) {
      // What a device has stored lies between the roundings of the ends of its interval.
      slot.storedError = &errors.emplace_back(count);
      for (int64_t i = 0; i < count; ++i) {
        double low = roundTo(tensor.element, tensor.exact[i] - tensor.slack[i]);
        double high = roundTo(tensor.element, tensor.exact[i] + tensor.slack[i]);
        (*slot.storedError)[i] = std::max(high - tensor.stored[i], tensor.stored[i] - low);
      }
    }
  }
  return {};
}

Status Frame::checkEntry(Operation *op, const Pool &pool, int64_t index, const char *what) const {
  if (index >= 0 && index < pool.entries)
    return {};
  return nodeError(op, "{} {}, but the pool has {}", what, index, pool.entries);
}

void Frame::writeState(Operation *op, const Pool &pool, int64_t index, Tensor value) {
  value.element = pool.element;
  value.stored.resize(value.exact.size());
  for (size_t i = 0; i < value.exact.size(); ++i)
    value.stored[i] = roundTo(pool.element, value.exact[i]);
  if (pool.element == Element::F32) {
    auto *out = reinterpret_cast<float *>(pool.data) + index * pool.entry;
    llvm::transform(value.stored, out, [](double v) { return float(v); });
  } else {
    auto *out = reinterpret_cast<uint16_t *>(pool.data) + index * pool.entry;
    llvm::transform(value.stored, out, bf16FromDouble);
  }
  plan::NodeAttr id = cast<plan::PlanNode>(op).getNodeAttr();
  states.push_back({id ? id.getId().str() : op->getName().getStringRef().str(), pool.argument,
                    uint64_t(index * pool.entry), std::move(value)});
}

const NodeResult *Frame::resultOf(Value value) const { return slots.lookup(value).result; }

void parallelFor(const Options &options, int64_t count, int64_t work,
                 llvm::function_ref<void(int64_t, int64_t)> body) {
  constexpr int64_t kWorthAThread = 1 << 18;
  int64_t threads = options.threads ? options.threads : std::thread::hardware_concurrency();
  threads = std::min({threads, count, count * work / kWorthAThread});
  if (threads <= 1)
    return body(0, count);
  std::vector<std::jthread> pool;
  for (int64_t t = 1; t < threads; ++t)
    pool.emplace_back([=] { body(count * t / threads, count * (t + 1) / threads); });
  body(0, count / threads);
}

} // namespace planc::reference
