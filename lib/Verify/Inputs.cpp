//===- Inputs.cpp - data for a kernel that says nothing about itself -------===//

#include "lib/Verify/Inputs.h"

#include "lib/Verify/Degree.h"
#include "lib/Verify/Relations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

using namespace mlir;

namespace planc::verify {

namespace {
/// Makes the inputs of one kernel.
class Generator {
public:
  Generator(uint64_t seed, InputClass inputClass, int64_t kvBlock, int64_t degree)
      : random(seed), seed(seed), inputClass(inputClass), kvBlock(kvBlock), degree(degree) {}

  Input make(BlockArgument argument);

private:
  Input edge(BlockArgument argument, RankedTensorType type);
  Input weight(BlockArgument argument, plan::WeightType type);
  Input state(BlockArgument argument, plan::StateType type);

  std::vector<float> values(int64_t count, int64_t rows);
  std::vector<int64_t> shuffled(int64_t count);
  int64_t length(int64_t row, int64_t rows, int64_t context);
  float normal() { return gaussian(random); }
  float uniform(float low, float high) {
    return low + (high - low) * float(random() >> 11) * 0x1p-53f;
  }

  std::mt19937_64 random;
  std::normal_distribution<float> gaussian;
  uint64_t seed;
  InputClass inputClass;
  int64_t kvBlock, degree;
};
} // namespace

/// Nearest, ties to even; the values made here are finite, or a NaN that survives it.
static uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
static float roundBf16(float value) { return std::bit_cast<float>(uint32_t(toBf16(value)) << 16); }

template <class To, class From> static Input pack(const std::vector<From> &values) {
  Input input;
  input.data.resize(values.size() * sizeof(To));
  auto *out = reinterpret_cast<To *>(input.data.data());
  for (size_t i = 0; i < values.size(); ++i)
    out[i] = To(values[i]);
  return input;
}

static Input packFloats(const std::vector<float> &values, bool bf16) {
  if (!bf16)
    return pack<float>(values);
  std::vector<uint16_t> codes(values.size());
  std::transform(values.begin(), values.end(), codes.begin(), toBf16);
  return pack<uint16_t>(codes);
}

/// Large arrays repeat a prefix, of an odd length so that no two rows are the same.
template <class T, class Make> static std::vector<T> repeated(int64_t count, Make make) {
  constexpr int64_t kPeriod = (1 << 19) + 21;
  std::vector<T> values(count);
  for (int64_t i = 0; i < std::min(count, kPeriod); ++i)
    values[i] = make();
  for (int64_t i = kPeriod; i < count; i += kPeriod)
    std::memcpy(&values[i], values.data(), std::min(kPeriod, count - i) * sizeof(T));
  return values;
}

std::vector<float> Generator::values(int64_t count, int64_t rows) {
  float equal = roundBf16(uniform(0.5f, 2));
  auto pick = [&](std::initializer_list<float> kinds) {
    return kinds.begin()[random() % kinds.size()];
  };
  std::vector<float> data = repeated<float>(count, [&]() -> float {
    switch (inputClass) {
    case InputClass::Outliers:
      return random() % 64 ? normal() : 50 * normal();
    case InputClass::NearOverflow:
      return std::ldexp(uniform(1, 2) * pick({1, -1}), int(108 / degree - 1));
    case InputClass::Denormals:
      // Mostly where bf16 has no full precision left, and now and then where it has.
      return std::ldexp(normal(), random() % 8 ? -128 - int(random() % 5) : -100);
    case InputClass::Equal:
    case InputClass::EqualLogits:
      return equal;
    case InputClass::SignedZeros:
      return pick({0.0f, -0.0f, 1.0f, -1.0f});
    case InputClass::NanLogits:
      return pick({std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f, -1.0f});
    case InputClass::Clamps: // gates are at one of their ends
      return pick({40.0f, -40.0f, 0.0f}) + normal();
    default:
      return normal();
    }
  });
  if (inputClass == InputClass::Zeros)
    for (int64_t r = 0; r < rows; r += 2)
      std::fill_n(data.begin() + r * (count / rows), count / rows, 0.0f);
  return data;
}

std::vector<int64_t> Generator::shuffled(int64_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

/// Positions that a row of an attention's block table can hold.
static int64_t contextOf(plan::PagedAttentionOp op, int64_t kvBlock) {
  return cast<RankedTensorType>(op.getBlockTables().getType()).getDimSize(1) * kvBlock;
}

/// Of one sequence: blocks in descending order, and an end just behind a slice of attention.
static int64_t oneLength(int64_t context) { return std::min<int64_t>(context, 131); }
static int64_t oneSlot(int64_t position, int64_t context, int64_t kvBlock) {
  return context - kvBlock - position / kvBlock * kvBlock + position % kvBlock;
}

static plan::PagedAttentionOp attentionOf(Operation *neighbour) {
  auto found = neighbour->getBlock()->getOps<plan::PagedAttentionOp>();
  return found.empty() ? plan::PagedAttentionOp() : *found.begin();
}

static int64_t product(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

/// Each head of q and k has length 1, as an l2_norm leaves it; else the state would run away.
static void normaliseKeys(std::vector<float> &qkv, int64_t columns, plan::GdnRecurrenceOp op) {
  ArrayRef<plan::DimAttr> dims = cast<plan::StateType>(op.getState().getType()).getDims();
  int64_t heads = *dims[0].getConstant(), keyDim = *dims[1].getConstant();
  int64_t keys = columns - heads * *dims[2].getConstant();
  for (size_t row = 0; row < qkv.size(); row += columns)
    for (int64_t begin = 0; begin < keys; begin += keyDim) {
      float *head = &qkv[row + begin];
      float sum = 1e-6f;
      for (int64_t i = 0; i < keyDim; ++i)
        sum += head[i] * head[i];
      for (int64_t i = 0; i < keyDim; ++i)
        head[i] /= std::sqrt(sum);
    }
}

/// How many positions a row of a step attends to.
int64_t Generator::length(int64_t row, int64_t rows, int64_t context) {
  auto atMost = [&](int64_t length) { return std::min(context, length); };
  auto any = [&] {
    int64_t block = int64_t(random() % (context / kvBlock));
    return block * kvBlock + 1 + int64_t(random() % std::max<int64_t>(kvBlock - 1, 1));
  };
  switch (inputClass) {
  case InputClass::Lengths:
    return atMost(kvBlock * (1 + (row + seed) % 3) + 1 - row % 3);
  case InputClass::FullContext:
    return context;
  case InputClass::NoContext:
    return 0;
  case InputClass::OneSequence:
    return oneLength(context);
  default:
    break;
  }
  // Several rows have lengths of all kinds; one row alone has another in each class. 128 positions end
  // where a slice may.
  if (rows == 1)
    switch (inputClass) {
    case InputClass::Outliers:
      return atMost(kvBlock + 1);
    case InputClass::Denormals:
      return atMost(128);
    case InputClass::Equal:
      return atMost(129);
    case InputClass::Zeros:
      return 1;
    default:
      return any();
    }
  switch (row) {
  case 1:
    return 0;
  case 2:
    return context;
  case 3:
    return atMost(128);
  case 4:
    return atMost(129);
  case 5:
    return 1;
  case 6:
    return atMost(kvBlock + 1);
  default:
    return any();
  }
}

Input Generator::edge(BlockArgument argument, RankedTensorType type) {
  int64_t rows = type.getDimSize(0), count = type.getNumElements(), columns = count / rows;
  OpOperand &use = *argument.use_begin();
  Operation *user = use.getOwner();
  auto is = [&](Value operand) { return operand == argument; };

  if (auto op = dyn_cast<plan::RopeOp>(user); op && is(op.getPositions())) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < count; ++i)
      positions.push_back(i % 3 == 1 ? 262143 - random() % 1000 : random() % 5000);
    return pack<int32_t>(positions);
  }
  if (auto op = dyn_cast<plan::KvWriteOp>(user); op && is(op.getSlotMapping())) {
    std::vector<int64_t> slots = shuffled((2 * rows + 2) * kvBlock);
    slots.resize(rows);
    if (auto attention = attentionOf(op); attention && inputClass == InputClass::OneSequence) {
      int64_t context = contextOf(attention, kvBlock);
      for (int64_t r = 0; r < rows; ++r)
        slots[r] = oneSlot(oneLength(context) - rows + r, context, kvBlock);
      return pack<int64_t>(slots);
    }
    // Any negative number is padding, one too long for 32 bits as well.
    if (rows > 1 || inputClass == InputClass::NegativeSlots)
      slots[rows / 2] = inputClass == InputClass::NegativeSlots ? -(int64_t(1) << 40) : -1;
    return pack<int64_t>(slots);
  }
  if (auto op = dyn_cast<plan::PagedAttentionOp>(user)) {
    if (is(op.getBlockTables())) {
      // Not block 0, which is what nothing at all would give, unless all are needed.
      std::vector<int64_t> blocks = shuffled(std::max(count, 2 * rows + 2));
      if (count < int64_t(blocks.size()))
        std::erase(blocks, 0);
      blocks.resize(count);
      for (int64_t i = 0; i < count && inputClass == InputClass::OneSequence; ++i)
        blocks[i] = columns - 1 - i % columns;
      return pack<int32_t>(blocks);
    }
    if (is(op.getSeqLens())) {
      std::vector<int64_t> lengths;
      for (int64_t r = 0; r < rows; ++r)
        lengths.push_back(length(r, rows, contextOf(op, kvBlock)));
      return pack<int32_t>(lengths);
    }
  }
  if (isa<plan::Conv1dUpdateOp, plan::GdnRecurrenceOp>(user) && type.getRank() == 1) {
    // Reads slot 2r, writes it or slot 2r + 1; one row is padding, one starts a sequence.
    bool writes = user->getOperand(use.getOperandNumber() - 1).getType() == type;
    std::vector<int64_t> slots;
    for (int64_t r = 0; r < rows; ++r)
      slots.push_back(2 * r + (writes && (r + seed) % 2));
    if (rows > 1)
      slots[rows - 1] = -1;
    if ((rows > 2 || inputClass == InputClass::NegativeSlots) && !writes)
      slots[0] = -1;
    if (inputClass == InputClass::Padding)
      std::fill(slots.begin(), slots.end(), -1);
    return pack<int32_t>(slots);
  }
  if (auto op = dyn_cast<plan::PlanContraction>(user); op && op.getExpertIds() == argument) {
    int64_t experts = *plan::knownDim(op.getMatrix().getType(), 0);
    std::vector<int64_t> ids;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int64_t> order = shuffled(experts);
      ids.insert(ids.end(), order.begin(), order.begin() + columns);
    }
    return pack<int32_t>(ids);
  }

  std::vector<float> data = values(count, rows);
  if (isa<plan::TopKOp>(user)) // multiples of 1/4: many are equal
    for (float &logit : data)
      logit = std::round(logit * 8) / 4;
  if (auto op = dyn_cast<plan::GdnRecurrenceOp>(user)) {
    if (is(op.getQkv()))
      normaliseKeys(data, columns, op);
    else // decay and beta
      for (float &factor : data)
        factor = inputClass == InputClass::Clamps ? float(random() % 2)
                 : random() % 8 == 0              ? 1
                                                  : uniform(0.1f, 1);
  }
  return packFloats(data, type.getElementType().isBF16());
}

Input Generator::weight(BlockArgument argument, plan::WeightType type) {
  llvm::SmallVector<int64_t> shape = type.getShape();
  int64_t count = product(shape);
  if (type.getFormat() == plan::Format::FP8Block128x128) {
    // Sign, and a magnitude of mostly middle exponents, sometimes of any: all codes occur but 0x7F,
    // which would be NaN.
    Input input = pack<uint8_t>(repeated<uint8_t>(count, [&]() -> uint8_t {
      int64_t magnitude = random() % 8 ? int64_t(std::fabs(normal()) * 20) + 44 : random() % 0x7F;
      return uint8_t(std::min<int64_t>(magnitude, 0x7E) | (random() & 0x80));
    }));
    float spread = 1 / (4 * std::sqrt(float(shape.back())));
    for (int64_t i = 0; i < count / (128 * 128); ++i)
      input.scales.push_back(roundBf16(spread * uniform(0.5f, 2)));
    return input;
  }
  Operation *user = *argument.user_begin();
  auto gates = dyn_cast<plan::GdnGatesOp>(user);
  float spread = shape.size() == 1 ? 0.2f : 1 / std::sqrt(float(shape.back()));
  bool rate = gates && gates.getALog() == argument;
  // Where rates are clamped it shows if their gates are all but shut: of most heads, so that no sum
  // before the gates can open them all.
  int64_t head = 0;
  auto make = [&] {
    if (gates && inputClass == InputClass::Clamps && head++ % 4 != 3)
      return rate ? uniform(70, 80) : uniform(-50, -40);
    return rate ? uniform(0, 2.8f) : spread * normal();
  };
  return packFloats(repeated<float>(count, make), type.getFormat() == plan::Format::BF16);
}

Input Generator::state(BlockArgument argument, plan::StateType type) {
  int64_t rows = cast<plan::KernelOp>(argument.getOwner()->getParentOp()).getRows();
  int64_t entries = 2 * rows + 2;
  if (type.getKind() == plan::StateKind::Paged) {
    entries *= kvBlock;
    for (Operation *user : argument.getUsers())
      if (auto op = dyn_cast<plan::PagedAttentionOp>(user))
        entries = std::max(entries,
                           cast<RankedTensorType>(op.getBlockTables().getType()).getNumElements() *
                               kvBlock);
  }
  int64_t entry = product(type.getShape());
  std::vector<float> data =
      repeated<float>(entries * entry, [&] { return roundBf16(0.5f * normal()); });
  // Where every other row is zero, so is the state that it finds.
  if (inputClass == InputClass::Zeros && type.getKind() == plan::StateKind::Slots)
    for (int64_t slot = 0; slot < entries; slot += 4)
      std::fill_n(data.begin() + slot * entry, entry, 0.0f);
  return packFloats(data, type.getFormat() == plan::Format::BF16);
}

Input Generator::make(BlockArgument argument) {
  Type type = argument.getType();
  if (auto weightType = dyn_cast<plan::WeightType>(type))
    return weight(argument, weightType);
  if (auto stateType = dyn_cast<plan::StateType>(type))
    return state(argument, stateType);
  return edge(argument, cast<RankedTensorType>(type));
}

const char *inputClassName(InputClass inputClass) {
  switch (inputClass) {
#define PLANC_INPUT_CLASS(Name, text, description)                                                 \
  case InputClass::Name:                                                                           \
    return text;
#include "lib/Verify/InputClasses.def"
  }
  return "";
}

std::optional<InputClass> lookupInputClass(StringRef name) {
#define PLANC_INPUT_CLASS(Name, text, description)                                                 \
  if (name == text)                                                                                \
    return InputClass::Name;
#include "lib/Verify/InputClasses.def"
  return std::nullopt;
}

/// True if the rows of an attention can be positions of one sequence: several, or one that is stored
/// before it is read.
static bool canBeOneSequence(plan::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  plan::PagedAttentionOp attention = attentionOf(&body.front());
  bool sees = kernel.getRows() > 1 || !body.getOps<plan::KvWriteOp>().empty();
  // A block has one position at least.
  return attention && sees &&
         oneLength(contextOf(attention, /*kvBlock=*/1)) >= int64_t(kernel.getRows());
}

SmallVector<InputClass> inputClasses(plan::KernelOp kernel) {
  auto has = [&]<class... Ops>(std::in_place_type_t<Ops>...) {
    return llvm::any_of(kernel.getBody().front(), [](Operation &op) { return isa<Ops...>(op); });
  };
  SmallVector<InputClass> classes = {
      InputClass::Gaussian, InputClass::Outliers, InputClass::NearOverflow, InputClass::Denormals,
      InputClass::Equal,    InputClass::Zeros,    InputClass::SignedZeros};
  if (has(std::in_place_type<plan::TopKOp>))
    classes.append({InputClass::EqualLogits, InputClass::NanLogits});
  if (has(std::in_place_type<plan::PagedAttentionOp>))
    classes.append({InputClass::Lengths, InputClass::FullContext, InputClass::NoContext});
  if (canBeOneSequence(kernel))
    classes.push_back(InputClass::OneSequence);
  if (has(std::in_place_type<plan::KvWriteOp>, std::in_place_type<plan::Conv1dUpdateOp>,
          std::in_place_type<plan::GdnRecurrenceOp>))
    classes.push_back(InputClass::NegativeSlots);
  if (has(std::in_place_type<plan::Conv1dUpdateOp>, std::in_place_type<plan::GdnRecurrenceOp>))
    classes.push_back(InputClass::Padding);
  if (has(std::in_place_type<plan::GdnRecurrenceOp>, std::in_place_type<plan::GdnGatesOp>))
    classes.push_back(InputClass::Clamps);
  return classes;
}

std::vector<Input> makeInputs(plan::KernelOp kernel, uint64_t seed, InputClass inputClass,
                              int64_t kvBlock) {
  Generator generator(seed, inputClass, kvBlock, degreeOf(kernel));
  std::vector<Input> inputs;
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    inputs.push_back(generator.make(argument));
  relateInputs(kernel, inputClass, kvBlock, inputs);
  return inputs;
}

} // namespace planc::verify
