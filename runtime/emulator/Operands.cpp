//===- Operands.cpp - what select functions read of a statement -----------===//
//
// The modifier and operand half of the Decoder: registers to virtual ones, immediates and special
// registers to constants, names to addresses.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/Frame.h"

#include <algorithm>
#include <bit>

using namespace planemu;

constexpr std::uint32_t MaxSpaceBytes =
    512u << 10; // of a thread's local memory (CUDA's limit), a CTA's shared

// --- Modifiers --------------------------------------------------------------

bool Decoder::take(std::string_view modifier) {
  for (std::size_t n = 0; n < statement->modifiers.size(); ++n)
    if (!modifierTaken[n] && statement->modifiers[n] == modifier) {
      modifierTaken[n] = true;
      return true;
    }
  return false;
}

Type Decoder::takeTypeIfAny() {
  for (std::size_t n = 0; n < statement->modifiers.size(); ++n)
    if (Type type = typeNamed(statement->modifiers[n]); !modifierTaken[n] && type != Type::None) {
      modifierTaken[n] = true;
      return type;
    }
  return Type::None;
}

Type Decoder::takeType() {
  Type type = takeTypeIfAny();
  if (type == Type::None)
    fail("no supported type");
  return type;
}

std::vector<std::string_view> Decoder::takeAll() {
  std::vector<std::string_view> left;
  for (std::size_t n = 0; n < statement->modifiers.size(); ++n)
    if (!modifierTaken[n]) {
      modifierTaken[n] = true;
      left.push_back(statement->modifiers[n]);
    }
  return left;
}

void Decoder::noteContractible(Type type) {
  Kernel::Contractible &count = kernel->contractible;
  ++(type == Type::F64                            ? count.f64
     : type == Type::F16 || type == Type::F16x2   ? count.f16
     : type == Type::BF16 || type == Type::BF16x2 ? count.bf16
                                                  : count.f32);
}

// --- Types ------------------------------------------------------------------

namespace {
enum class Sort : std::uint8_t { Bits, Integer, Half, HalfPair, Float, Double };
} // namespace

static Sort sortOf(Type type) {
  if (isInteger(type) || type == Type::U16x2 || type == Type::S16x2)
    return Sort::Integer;
  switch (type) {
  case Type::F16:
  case Type::BF16:
    return Sort::Half;
  case Type::F16x2:
  case Type::BF16x2:
    return Sort::HalfPair;
  case Type::F32:
    return Sort::Float;
  case Type::F64:
    return Sort::Double;
  default:
    return Sort::Bits;
  }
}

/// PTX ISA, "Operand Type Checking": signed and unsigned integers go together, types of bits with
/// all, but integers and floating-point numbers do not. ptxas lets pairs of halves be integers, and
/// looks at no elements of vectors; which numbers the parts of a matrix are is the instruction's
/// business.
static bool clash(const Statement &statement, const Operand &op, Type declared, Type type) {
  Sort one = sortOf(declared), other = sortOf(type);
  if (one == other || one == Sort::Bits || other == Sort::Bits || statement.opcode == "mma" ||
      statement.opcode == "wmma" || (one == Sort::HalfPair && other == Sort::Integer))
    return false;
  return std::none_of(statement.operands.begin(), statement.operands.end(),
                      [&](const Operand &whole) {
                        return whole.kind == Operand::Vector && &op >= whole.parts.data() &&
                               &op < whole.parts.data() + whole.parts.size();
                      });
}

/// The type of what the statement computes.
static Type resultType(const Statement &statement) {
  if (statement.opcode == "popc" || statement.opcode == "clz")
    return Type::U32;
  for (std::string_view modifier : statement.modifiers)
    if (Type type = typeNamed(modifier); type != Type::None)
      return type;
  return Type::None;
}

/// Registers of 64 bits. %gridid can be read as 32 too.
static bool isWideSpecial(std::string_view name) {
  return name == "%gridid" || name == "%current_graph_exec" || name.ends_with("_64");
}

// --- Operands ---------------------------------------------------------------

unsigned Decoder::operandCount() const { return static_cast<unsigned>(statement->operands.size()); }

const Operand &Decoder::operand(unsigned n) const {
  if (n >= statement->operands.size())
    fail("too few operands");
  return statement->operands[n];
}

unsigned Decoder::elements(unsigned n) const {
  const Operand &op = operand(n);
  return op.kind == Operand::Vector ? static_cast<unsigned>(op.parts.size()) : 1;
}

unsigned Decoder::registerBits(const Operand &op) const {
  return op.kind == Operand::Register ? virtuals[registerId(op)].bits : 0;
}

bool Decoder::isImmediate(unsigned n, std::int64_t &value) const {
  const Operand &op = operand(n);
  if (op.kind != Operand::Immediate)
    return false;
  value = static_cast<std::int64_t>(op.bits);
  return true;
}

std::string Decoder::describe(const Operand &op) const { return "'" + std::string(op.text) + "'"; }

void Decoder::markTaken(const Operand &op) {
  for (std::size_t n = 0; n < statement->operands.size(); ++n) {
    const Operand &candidate = statement->operands[n];
    bool inside = !candidate.parts.empty() && &op >= candidate.parts.data() &&
                  &op < candidate.parts.data() + candidate.parts.size();
    if (&op == &candidate || inside)
      operandTaken[n] = true;
    if (!candidate.also.empty() && &op == candidate.also.data())
      alsoTaken[n] = true;
  }
}

std::uint32_t Decoder::registerId(const Operand &op) const {
  return frame->firstRegister + op.index;
}

void Decoder::append(std::uint32_t id, bool isDef) { references.push_back({id, isDef}); }

std::uint32_t Decoder::newVirtual(unsigned bits) {
  // Registers narrower than 16 bits exist only as homes of loaded bytes.
  virtuals.push_back({static_cast<std::uint16_t>(bits == 8 ? 16 : bits), false, 0});
  return static_cast<std::uint32_t>(virtuals.size() - 1);
}

std::uint32_t Decoder::constant(Constant::Kind kind, std::uint64_t value, unsigned bits) {
  if (bits == 8)
    bits = 16;
  if (kind == Constant::Bits && bits < 64)
    value &= (1ull << bits) - 1;
  auto [found, fresh] = constantIds.try_emplace({value, kind * 256u + bits}, 0);
  if (fresh) {
    found->second = static_cast<std::uint32_t>(virtuals.size());
    virtuals.push_back({static_cast<std::uint16_t>(bits), true,
                        static_cast<std::uint32_t>(kernel->constants.size())});
    kernel->constants.push_back({kind, static_cast<std::uint8_t>(bits / 8), 0, value});
  }
  return found->second;
}

std::uint32_t Decoder::specialRegister(std::string_view name, unsigned bits) {
  struct Row {
    std::string_view name;
    Constant::Kind kind;
  };
  static constexpr Row Rows[] = {
      {"%tid.x", Constant::TidX},
      {"%tid.y", Constant::TidY},
      {"%tid.z", Constant::TidZ},
      {"%ntid.x", Constant::NtidX},
      {"%ntid.y", Constant::NtidY},
      {"%ntid.z", Constant::NtidZ},
      {"%ctaid.x", Constant::CtaidX},
      {"%ctaid.y", Constant::CtaidY},
      {"%ctaid.z", Constant::CtaidZ},
      {"%nctaid.x", Constant::NctaidX},
      {"%nctaid.y", Constant::NctaidY},
      {"%nctaid.z", Constant::NctaidZ},
      {"%laneid", Constant::LaneId},
      {"%warpid", Constant::WarpId},
      {"%nwarpid", Constant::NwarpId},
      {"%lanemask_eq", Constant::LaneMaskEq},
      {"%lanemask_le", Constant::LaneMaskLe},
      {"%lanemask_lt", Constant::LaneMaskLt},
      {"%lanemask_ge", Constant::LaneMaskGe},
      {"%lanemask_gt", Constant::LaneMaskGt},
      {"%dynamic_smem_size", Constant::DynamicShared},
      {"%total_smem_size", Constant::TotalShared},
      {"%aggr_smem_size", Constant::TotalShared},
      // A cluster is one CTA.
      {"%clusterid.x", Constant::CtaidX},
      {"%clusterid.y", Constant::CtaidY},
      {"%clusterid.z", Constant::CtaidZ},
      {"%nclusterid.x", Constant::NctaidX},
      {"%nclusterid.y", Constant::NctaidY},
      {"%nclusterid.z", Constant::NctaidZ},
      // What these two hold is up to the driver; cooperative_groups/details/driver_abi.h of CUDA
      // reads the address of a grid's barrier from them.
      {"%envreg1", Constant::WorkspaceHigh},
      {"%envreg2", Constant::WorkspaceLow},
  };
  for (const Row &row : Rows)
    if (row.name == name)
      return constant(row.kind, 0, bits);
  // Vectors of special registers have a fourth element, which is zero. The clocks are mov's alone
  // (Move.cpp).
  for (std::string_view zero :
       {"%smid", "%gridid", "%tid.w", "%ntid.w", "%ctaid.w", "%nctaid.w", "%clusterid.w",
        "%nclusterid.w", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z",
        "%cluster_ctaid.w", "%cluster_nctaid.w", "%cluster_ctarank"})
    if (zero == name)
      return constant(Constant::Bits, 0, bits);
  // Counters that a profiler would set up, and the graph that a kernel may change: none.
  if (name.starts_with("%pm") || name == "%current_graph_exec")
    return constant(Constant::Bits, 0, bits);
  for (std::string_view one : {"%nsmid", "%cluster_nctaid.x", "%cluster_nctaid.y",
                               "%cluster_nctaid.z", "%cluster_nctarank"})
    if (one == name)
      return constant(Constant::Bits, 1, bits);
  // The other registers for what a driver passes on to kernels.
  for (unsigned n = 0; n < 32; ++n)
    if (name == "%envreg" + std::to_string(n))
      return constant(Constant::Bits, 0, bits);
  // Shared memory that belongs to the toolkit: cooperative_groups keeps the barriers of groups of
  // several warps in it, 288 bytes from offset 1 on.
  constexpr std::uint32_t ReservedBytes = 1024;
  constexpr std::pair<std::string_view, std::uint32_t> Reserved[] = {
      {"%reserved_smem_offset_begin", 0},
      {"%reserved_smem_offset_0", 0},
      {"%reserved_smem_offset_1", ReservedBytes / 2},
      {"%reserved_smem_offset_end", ReservedBytes}};
  for (const auto &[row, offset] : Reserved)
    if (row == name) {
      if (!kernel->toolkitShared) {
        Variable region;
        region.name = name;
        region.align = 16;
        region.bytes = ReservedBytes;
        kernel->toolkitSharedAt = allocate(kernel->staticShared, region);
        kernel->toolkitShared = ReservedBytes;
      }
      return constant(Constant::Bits, kernel->toolkitSharedAt + offset, bits);
    }
  if (name == "%reserved_smem_offset_cap")
    return constant(Constant::Bits, ReservedBytes, bits);
  for (std::string_view clock :
       {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"})
    if (clock == name)
      fail("'" + std::string(name) + "' is read by a mov of its width alone");
  fail("unknown register '" + std::string(name) + "'");
}

std::uint64_t Decoder::immediateBits(const Operand &op, Type type) const {
  bool isFloat = type == Type::F32 || type == Type::F64 || type == Type::F16 ||
                 type == Type::BF16 || isBits(type);
  if (op.kind == Operand::Immediate) {
    if (type == Type::Pred)
      return op.bits != 0;
    if (type == Type::F32 || type == Type::F64)
      fail("integer constant " + describe(op) + " where a floating-point one is needed");
    return op.bits;
  }
  if (!isFloat)
    fail("floating-point constant " + describe(op) + " where an integer is needed");
  if (op.kind == Operand::Float32) {
    if (bitsOf(type) == 64)
      return std::bit_cast<std::uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(op.bits))));
    if (bitsOf(type) != 32)
      failType(type);
    return op.bits;
  }
  if (bitsOf(type) == 32)
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(op.bits)));
  if (bitsOf(type) != 64)
    failType(type);
  return op.bits;
}

void Decoder::requireType(const Operand &op, Type type) const {
  Type declared = frame->function->registers[op.index];
  if (clash(*statement, op, declared, type))
    fail("register " + describe(op) + " is a ." + nameOf(declared) + ", the instruction reads a ." +
         nameOf(type));
}

void Decoder::def(unsigned n, unsigned bits) { def(operand(n), bits); }

void Decoder::def(const Operand &op, unsigned bits) {
  markTaken(op);
  if (op.kind == Operand::Sink)
    return append(newVirtual(bits), true);
  if (op.kind != Operand::Register)
    fail(describe(op) + " cannot be written");
  if (registerBits(op) != bits)
    fail("register " + describe(op) + " has " + std::to_string(registerBits(op)) +
         " bits, the instruction writes " + std::to_string(bits));
  Type declared = frame->function->registers[op.index], result = resultType(*statement);
  if (clash(*statement, op, declared, result))
    fail("register " + describe(op) + " is a ." + nameOf(declared) +
         ", the instruction writes a ." + nameOf(result));
  append(registerId(op), true);
}

void Decoder::defAlso(unsigned n, unsigned bits) {
  const Operand &op = operand(n);
  if (op.also.empty())
    append(newVirtual(bits), true);
  else
    def(op.also[0], bits);
}

unsigned Decoder::defWide(const Operand &op, Type type) {
  unsigned bits = op.kind == Operand::Register ? registerBits(op) : std::max(16u, bitsOf(type));
  if (bits < bitsOf(type) || bits == 1)
    fail("register " + describe(op) + " has " + std::to_string(bits) + " bits, '." + nameOf(type) +
         "' needs more");
  def(op, bits);
  return bits;
}

void Decoder::use(unsigned n, Type type) { use(operand(n), type); }

void Decoder::use(const Operand &op, Type type) {
  markTaken(op);
  unsigned bits = bitsOf(type);
  if (op.negated && type != Type::Pred)
    fail("'!' before " + describe(op));
  switch (op.kind) {
  case Operand::Register:
    if (registerBits(op) != bits)
      fail("register " + describe(op) + " has " + std::to_string(registerBits(op)) +
           " bits, the instruction reads " + std::to_string(bits));
    requireType(op, type);
    return append(registerId(op), false);
  case Operand::Immediate:
  case Operand::Float32:
  case Operand::Float64:
    if (type == Type::Pred)
      return op.bits ? useTrue() : useCarry(false);
    return append(constant(Constant::Bits, immediateBits(op, type), bits), false);
  case Operand::Special:
    if (type == Type::Pred)
      fail(describe(op) + " is not a predicate");
    // The clocks are more particular, and say so themselves.
    if (op.text.starts_with("%clock") || op.text.starts_with("%globaltimer"))
      return append(specialRegister(op.text, bits), false);
    if ((statement->opcode != "mov" && statement->opcode != "cvt") || sortOf(type) > Sort::Integer)
      fail(describe(op) + " is read by mov and cvt alone, as an integer");
    if (bits == 64 && !isWideSpecial(op.text))
      fail(describe(op) + " has 32 bits");
    return append(specialRegister(op.text, bits), false);
  default:
    fail(describe(op) + " cannot be read here");
  }
}

unsigned Decoder::useWide(const Operand &op, Type type) {
  if (op.kind != Operand::Register) {
    use(op, type);
    return std::max(16u, bitsOf(type));
  }
  unsigned bits = registerBits(op);
  if (bits < bitsOf(type) || bits == 1)
    fail("register " + describe(op) + " has " + std::to_string(bits) + " bits, '." + nameOf(type) +
         "' needs more");
  requireType(op, type);
  markTaken(op);
  append(registerId(op), false);
  return bits;
}

std::uint32_t Decoder::halfOf(const Operand &op, unsigned half) const {
  if (registerBits(op) != 128)
    fail(describe(op) + " is not a register of 128 bits");
  return half ? upperHalves.at(registerId(op)) : registerId(op);
}

void Decoder::defHalf(const Operand &op, unsigned half) {
  markTaken(op);
  append(op.kind == Operand::Sink ? newVirtual(64) : halfOf(op, half), true);
}

void Decoder::useHalf(const Operand &op, unsigned half) {
  markTaken(op);
  if (op.kind == Operand::Immediate)
    return useConstant(half ? 0 - (op.bits >> 63) : op.bits, 64);
  append(halfOf(op, half), false);
}

void Decoder::useConstant(std::uint64_t value, unsigned bits) {
  append(constant(Constant::Bits, value, bits), false);
}

void Decoder::useTrue() { append(0, false); }

void Decoder::useCarry(bool real) {
  std::uint32_t &id = real ? carry : never;
  if (!id)
    id = newVirtual(1); // nobody writes `never`: it is zero from the start
  append(id, false);
}

void Decoder::defCarry(bool real) {
  if (real && !carry)
    carry = newVirtual(1);
  append(real ? carry : newVirtual(1), true);
}

std::uint32_t Decoder::allocate(std::uint32_t &top, const Variable &variable) {
  std::uint64_t begin = (std::uint64_t(top) + variable.align - 1) / variable.align * variable.align;
  if (begin + variable.bytes > MaxSpaceBytes)
    fail("variable '" + variable.name + "' does not fit");
  top = static_cast<std::uint32_t>(begin + variable.bytes);
  return static_cast<std::uint32_t>(begin);
}

std::uint32_t Decoder::sharedConstant(const Variable &variable, std::int64_t offset,
                                      unsigned bits) {
  if (variable.external) {
    kernel->dynamicAlign = std::max(kernel->dynamicAlign, variable.align);
    if (sharedOffsets.try_emplace(&variable, 0).second)
      kernel->sharedNames.push_back({variable.name, 0, Kernel::Endless});
    return constant(Constant::DynamicBase, static_cast<std::uint64_t>(offset), bits);
  }
  auto [found, fresh] = sharedOffsets.try_emplace(&variable, 0);
  if (fresh) {
    found->second = allocate(kernel->staticShared, variable);
    kernel->sharedNames.push_back(
        {variable.name, found->second, static_cast<std::uint32_t>(variable.bytes)});
  }
  return constant(Constant::Bits, static_cast<std::uint64_t>(found->second + offset), bits);
}

std::uint32_t Decoder::addressConstant(const Operand &op, std::int64_t offset, unsigned bits,
                                       Space &space) {
  offset += op.offset;
  auto bitsConstant = [&](std::uint64_t address) {
    return constant(Constant::Bits, address + static_cast<std::uint64_t>(offset), bits);
  };
  switch (op.kind) {
  case Operand::Local: {
    const Variable &variable = frame->function->variables[op.index];
    // A .param variable of a body passes arguments; it lives in the thread's own memory.
    space = variable.space == Space::Param ? Space::Local : variable.space;
    if (space == Space::Shared)
      return sharedConstant(variable, offset, bits);
    if (space == Space::Local)
      return localAddress(frame->variables[op.index] + static_cast<std::uint64_t>(offset), bits);
    fail("variable '" + variable.name + "' is of a space that only modules declare");
  }
  case Operand::Parameter:
    if (frame->function->entry) {
      space = Space::Param;
      return constant(Constant::ParamAddress,
                      frame->parameters[op.index] + static_cast<std::uint64_t>(offset), bits);
    }
    space = Space::Local;
    return localAddress(frame->parameters[op.index] + static_cast<std::uint64_t>(offset), bits);
  case Operand::Result:
    space = Space::Local;
    return localAddress(frame->results[op.index] + static_cast<std::uint64_t>(offset), bits);
  case Operand::Symbol:
    if (const Variable *variable = module.findVariable(op.text)) {
      space = variable->space;
      if (space == Space::Shared)
        return sharedConstant(*variable, offset, bits);
      auto found = layout.globals.find(variable->name);
      if (found == layout.globals.end())
        fail("variable '" + variable->name + "' is declared, but not defined");
      return bitsConstant(found->second);
    }
    if (const Function *function = module.findFunction(op.text)) {
      if (function->external)
        fail("function " + describe(op) + " is declared, but not defined");
      space = Space::Generic;
      return bitsConstant(functionAddress(module, *function));
    }
    fail("unknown name " + describe(op));
  case Operand::Immediate:
    return bitsConstant(op.bits);
  default:
    fail(describe(op) + " is not an address");
  }
}

Decoder::Address Decoder::useAddress(unsigned n, Space space) {
  const Operand &op = operand(n);
  if (op.kind != Operand::Address)
    fail(describe(op) + " is not an address in brackets");
  if (op.parts.size() != 1)
    fail("an address with coordinates");
  markTaken(op);
  const Operand &base = op.parts[0];
  // Kernel parameters lie in a region of global memory; those of a function and of calls in the
  // thread's own.
  bool anySpace = space == Space::Generic || space == Space::Param;
  if (space == Space::Param)
    space = frame->function->entry ? Space::Global : Space::Local;
  if (space == Space::Const)
    space = Space::Global;
  if (base.kind == Operand::Register) {
    unsigned bits = registerBits(base);
    if (bits != 32 && bits != 64)
      fail("address register " + describe(base) + " has neither 32 nor 64 bits");
    requireType(base, Type::U64);
    append(registerId(base), false);
    return {space, bits, op.offset};
  }
  Space named = space;
  bool immediate = base.kind == Operand::Immediate;
  // The offset stays apart, so that accesses to one variable have one base.
  std::uint32_t id = addressConstant(base, immediate ? op.offset : 0, 64, named);
  if (named == Space::Param || named == Space::Const)
    named = Space::Global;
  if (!anySpace && !immediate && named != space)
    fail(describe(base) + " is not in the space of the instruction");
  append(id, false);
  if (immediate)
    return {space, 64, 0};
  return {named, 64, op.offset};
}

bool Decoder::isKernelParameter(unsigned n) const {
  const Operand &op = operand(n);
  return op.kind == Operand::Address && op.parts[0].kind == Operand::Parameter &&
         frame->function->entry;
}

void Decoder::useKernelParameter(unsigned n, unsigned byteOffset, Type type,
                                 unsigned registerBits) {
  const Operand &op = operand(n);
  markTaken(op);
  std::int64_t offset = op.offset + byteOffset;
  const Kernel::Parameter &parameter = kernel->parameters[op.parts[0].index];
  unsigned bytes = bitsOf(type) / 8;
  if (offset < 0 || offset + bytes > parameter.bytes)
    fail("reads beyond parameter " + describe(op.parts[0]));
  std::uint64_t where = static_cast<std::uint64_t>(parameter.offset + offset) << 8;
  append(constant(Constant::Param, where | bytes | (isSigned(type) ? 0x80 : 0), registerBits),
         false);
}

void Decoder::useValue(const Operand &op, Type type) {
  bool named = op.kind == Operand::Local || op.kind == Operand::Parameter ||
               op.kind == Operand::Result || op.kind == Operand::Symbol;
  if (!named)
    return use(op, type);
  markTaken(op);
  Space space;
  append(addressConstant(op, 0, bitsOf(type), space), false);
}
