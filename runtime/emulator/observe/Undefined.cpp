//===- Undefined.cpp - registers that hold bytes nobody wrote -------------===//

#include "runtime/emulator/observe/Undefined.h"

#include <cstring>

using namespace planemu;

static std::uint64_t lowBits(unsigned count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }

/// Of a register; a constant, which is never undefined, has those of what it goes into.
static unsigned widthOf(const Kernel &kernel, std::uint32_t offset, unsigned ofConstants) {
  return offset >= kernel.halvesFrom     ? 16
         : offset >= kernel.wordsFrom    ? 32
         : offset >= kernel.doublesFrom  ? 64
         : offset < kernel.constantsFrom ? 1
                                         : ofConstants;
}

static std::uint64_t read(const Warp &warp, std::uint32_t offset, unsigned width, unsigned lane) {
  std::uint64_t value = 0;
  if (width == 1) {
    std::memcpy(&value, warp.file + offset, 4);
    return value >> lane & 1;
  }
  std::memcpy(&value, warp.file + offset + lane * width / 8, width / 8);
  return value;
}

/// `bits` of a value, shifted as it is. What comes in on the left may be copies of the sign.
static std::uint64_t shifted(std::uint64_t bits, unsigned width, std::uint64_t by, bool left) {
  bool sign = !left && bits >> (width - 1) & 1;
  if (by >= width)
    return sign ? lowBits(width) : 0;
  std::uint64_t moved = left ? bits << by : bits >> by;
  if (sign)
    moved |= ~lowBits(width - static_cast<unsigned>(by));
  return moved & lowBits(width);
}

void Undefined::set(std::uint32_t offset, unsigned lane, std::uint64_t bits, const Origin &origin) {
  Value &value = values[offset];
  value.lanes |= 1u << lane;
  value.bits[lane] = bits;
  value.origins[lane] = origin;
}

void Undefined::forget(std::uint32_t offset, std::uint32_t lanes) {
  if (auto found = values.find(offset); found != values.end())
    if (!(found->second.lanes &= ~lanes))
      values.erase(found);
}

std::uint64_t Undefined::bitsOf(std::uint32_t offset, unsigned lane, const Origin *&origin) const {
  auto found = values.find(offset);
  if (found == values.end() || !(found->second.lanes >> lane & 1))
    return 0;
  origin = &found->second.origins[lane];
  return found->second.bits[lane];
}

/// A value of the thread's own variables.
static bool isLocal(const Warp &warp, const Origin &origin) {
  return origin.host - reinterpret_cast<std::uint64_t>(warp.local) < 32ull * warp.localBytes;
}

/// Registers in, registers out, lane by lane.
static bool isArithmetic(InstClass cls) {
  switch (cls) {
  case InstClass::Part:
  case InstClass::Integer:
  case InstClass::Float:
  case InstClass::Half:
  case InstClass::Double:
  case InstClass::Convert:
  case InstClass::Special:
  case InstClass::Predicate:
    return true;
  default:
    return false;
  }
}

std::uint32_t Undefined::localLanes(const Warp &warp, std::uint32_t offset) const {
  std::uint32_t lanes = 0;
  if (auto found = values.find(offset); found != values.end())
    for (std::uint32_t left = found->second.lanes; left; left &= left - 1) {
      unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
      lanes |= std::uint32_t(isLocal(warp, found->second.origins[lane])) << lane;
    }
  return lanes;
}

void Undefined::use(std::uint32_t offset, std::uint32_t lanes, const Report &report) {
  auto found = values.find(offset);
  if (found == values.end())
    return;
  for (std::uint32_t left = found->second.lanes & lanes; left; left &= left - 1)
    report(found->second.origins[__builtin_ctz(left)]);
  forget(offset, lanes); // it was reported: what is made of it is not news
}

/// The undefined bits of the destination that is operand `result`.
std::uint64_t Undefined::flow(const Warp &warp, const Inst &inst, const InstFlow &how,
                              unsigned result, unsigned lane, const Origin *&origin) const {
  const std::uint32_t *operands = operandsOf(inst);
  const Kernel &kernel = *warp.launch->kernel;
  const unsigned width = widthOf(kernel, operands[result], 64);
  unsigned sources[32], count = 0, results = 0, before = 0;
  for (unsigned n = 0; n < how.operands; ++n)
    if (!(how.written >> n & 1))
      sources[count++] = operands[n];
    else if (++results; n < result)
      ++before;
  auto bits = [&](unsigned n) { return bitsOf(sources[n], lane, origin); };
  auto any = [&] {
    std::uint64_t all = 0;
    for (unsigned n = 0; n < count; ++n)
      all |= bits(n);
    return all;
  };

  switch (how.flow) {
  case Flow::Copy:
    if (count == 1 && results > 1) // unpacks
      return bits(0) >> before * width & lowBits(width);
    if (count > 1) { // packs
      std::uint64_t all = 0;
      for (unsigned n = 0; n < count; ++n)
        all |= (bits(n) & lowBits(width / count)) << n * width / count;
      return all;
    }
    if (count == 1) {
      // A conversion may extend with the sign.
      unsigned from = widthOf(kernel, sources[0], width);
      std::uint64_t all = bits(0);
      return (from < width && all >> (from - 1) & 1 ? all | ~lowBits(from) : all) & lowBits(width);
    }
    return 0;
  case Flow::And:
  case Flow::Or:
    if (count == 2) {
      std::uint64_t a = bits(0), b = bits(1);
      std::uint64_t flip = how.flow == Flow::And ? 0 : ~0ull;
      std::uint64_t valueA = read(warp, sources[0], width, lane) ^ flip;
      std::uint64_t valueB = read(warp, sources[1], width, lane) ^ flip;
      return ((a & (valueB | b)) | (b & (valueA | a))) & lowBits(width);
    }
    return any();
  case Flow::Bits:
    return any() & lowBits(width);
  case Flow::Left:
  case Flow::Right:
    // By a constant, which is in imm, or by the second source.
    if (count == 1 || (count == 2 && !bits(1))) {
      std::uint64_t by =
          count == 1 ? static_cast<std::uint64_t>(inst.imm) : read(warp, sources[1], 32, lane);
      return shifted(bits(0), width, by, how.flow == Flow::Left);
    }
    break;
  case Flow::Select:
    if (count == 3 && !bits(2))
      return bits((read(warp, sources[2], 1, lane) != 0) != (inst.imm != 0) ? 0 : 1);
    break;
  case Flow::Mix:
  case Flow::Use: // of what is left, see follow()
    break;
  case Flow::Load:
  case Flow::Store:
    return 0;
  }
  return any() ? lowBits(width) : 0;
}

void Undefined::follow(const Warp &warp, const Inst &inst, const Report &report) {
  const Kernel &kernel = *warp.launch->kernel;
  const InstFlow &how = kernel.flows[static_cast<std::size_t>(&inst - kernel.insts.data())];
  use(inst.guard, warp.active, report);
  std::uint32_t predicate;
  std::memcpy(&predicate, warp.file + inst.guard, 4);
  const std::uint32_t lanes = warp.active & (predicate ^ inst.guardXor);
  if (!lanes || !any())
    return;
  const std::uint32_t *operands = operandsOf(inst);
  if (how.flow == Flow::Use) {
    bool arithmetic =
        isArithmetic(kernel.classes[static_cast<std::size_t>(&inst - kernel.insts.data())]);
    for (unsigned n = 0; n < how.operands; ++n)
      if (!(how.written >> n & 1))
        use(operands[n], arithmetic ? lanes & ~localLanes(warp, operands[n]) : lanes, report);
  }
  if (how.flow == Flow::Load || how.flow == Flow::Store)
    use(operands[how.flow == Flow::Load ? how.operands - 1 : 0], lanes, report);

  // Destinations last: they may be sources too.
  struct Made {
    std::uint32_t offset;
    unsigned lane;
    std::uint64_t bits;
    Origin origin;
  };
  std::vector<Made> made;
  for (unsigned n = 0; n < how.operands; ++n)
    if (how.written >> n & 1)
      for (std::uint32_t left = lanes; left && any(); left &= left - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
        const Origin *origin = nullptr;
        if (std::uint64_t bits = flow(warp, inst, how, n, lane, origin); bits && origin)
          made.push_back({operands[n], lane, bits, *origin});
      }
  for (unsigned n = 0; n < how.operands; ++n)
    if (how.written >> n & 1)
      forget(operands[n], lanes);
  for (const Made &value : made)
    set(value.offset, value.lane, value.bits, value.origin);
}
