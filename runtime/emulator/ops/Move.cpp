//===- Move.cpp - mov, conversions of addresses, selection ----------------===//
//
// PTX ISA, "Data Movement: mov, cvta, isspacep", "Comparison and Selection: selp, slct".
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/LoadStore.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

template <class T> static void copy(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (mask == ~0u) [[likely]] {
    std::memcpy(w.file + i.s[0], w.file + i.s[1], 32 * sizeof(T));
    return;
  }
  for (int c = 0; c < Chunks; ++c)
    merge<T>(w.file + i.s[0], c, mask >> (c * Chunk), load<T>(w.file + i.s[1], c));
}

template <class T> static V<T> same(V<T> value) { return value; }
template <class T>
static constexpr Exec copying =
    onLanes<LanesCode<same<T>, T, T>, T, T>(grouped<copy<T>>).with(Effect::Copy);

Exec copyOf(Decoder &d, unsigned bits) {
  switch (bits) {
  case 16:
    return copying<u16>;
  case 32:
    return copying<u32>;
  case 64:
    return copying<u64>;
  default:
    d.fail("no registers of " + std::to_string(bits) + " bits");
  }
}

/// mov.bW d, {parts}: parts of a lane lie one after the other, the first lowest. Parts of 8 bits
/// have registers of 16, of which the upper half says nothing.
template <int Width, class Whole, class... Part> static V<Whole> packed(V<Part>... parts) {
  V<Whole> value = {};
  int by = 0;
  ((value |= to<Whole>(parts & static_cast<Part>((1ull << Width) - 1)) << by, by += Width), ...);
  return value;
}
template <class Whole, class Part, int Width = 8 * sizeof(Part)> static Exec packing() {
  if constexpr (8 * sizeof(Whole) == 2 * Width)
    return lanes<packed<Width, Whole, Part, Part>, Whole, Part, Part>;
  else
    return lanes<packed<Width, Whole, Part, Part, Part, Part>, Whole, Part, Part, Part, Part>;
}

/// mov.bW {parts}, a: part `n`.
template <class Whole, class Part, int Width> static V<Part> partOf(V<Whole> value, int n) {
  return to<Part>(value >> (Width * n)) & static_cast<Part>((1ull << Width) - 1);
}

template <class Whole, class Part, int Width = 8 * sizeof(Part)>
static void unpack(Warp &w, const Inst &i) {
  constexpr int Count = 8 * sizeof(Whole) / Width;
  u32 mask = executing(w, i);
  char *const file = w.file;
  u32 parts[Count];
  std::copy(i.s, i.s + Count, parts);
  const u32 a = i.s[Count];
  for (int c = 0; c < Chunks; ++c) {
    V<Whole> value = load<Whole>(file + a, c);
    for (int n = 0; n < Count; ++n) {
      V<Part> part = partOf<Whole, Part, Width>(value, n);
      if (mask == ~0u) [[likely]]
        store<Part>(file + parts[n], c, part);
      else
        merge<Part>(file + parts[n], c, mask >> (c * Chunk), part);
    }
  }
}

namespace {
template <class Whole, class Part, int Width> struct Unpack {
  static void run(s64, char *low, char *high, const char *a) {
    V<Whole> value = load<Whole>(a, 0);
    store<Part>(low, 0, partOf<Whole, Part, Width>(value, 0));
    store<Part>(high, 0, partOf<Whole, Part, Width>(value, 1));
  }
};
} // namespace

template <class Whole, class Part, int Width = 8 * sizeof(Part)> static Exec unpacking() {
  constexpr Exec exec = grouped<unpack<Whole, Part, Width>>;
  if constexpr (8 * sizeof(Whole) == 2 * Width)
    return onLanes<Unpack<Whole, Part, Width>, Part, Part, Whole>(exec);
  else
    return exec;
}

static Exec vectorMove(Decoder &d, unsigned whole, unsigned parts, bool packs) {
  if (whole == 32 && parts == 2)
    return packs ? packing<u32, u16>() : unpacking<u32, u16>().with(Effect::Split);
  if (whole == 64 && parts == 2)
    return packs ? packing<u64, u32>() : unpacking<u64, u32>();
  if (whole == 64 && parts == 4)
    return packs ? packing<u64, u16>() : unpacking<u64, u16>();
  if (whole == 16 && parts == 2)
    return packs ? packing<u16, u16, 8>() : unpacking<u16, u16, 8>();
  if (whole == 32 && parts == 4)
    return packs ? packing<u32, u16, 8>() : unpacking<u32, u16, 8>();
  d.fail("cannot split " + std::to_string(whole) + " bits into " + std::to_string(parts));
}

/// The clocks count what the warp has executed: deterministic, and a kernel that waits for a time to
/// pass ends. One tick a read on top, for instructions are counted by blocks. imm: shift.
template <class T> static void readClock(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  if (!mask)
    return;
  V<T> now = splat<T>(static_cast<T>((w.executed + ++w.clockReads) >> i.imm));
  for (int c = 0; c < Chunks; ++c)
    merge<T>(w.file + i.s[0], c, mask >> (c * Chunk), now);
}

/// True if the source is a clock, and the instruction is emitted.
static bool selectClock(Decoder &d, unsigned bits) {
  static constexpr struct {
    std::string_view name;
    unsigned bits, shift;
  } Clocks[] = {{"%clock", 32, 0},       {"%clock_hi", 32, 32},      {"%clock64", 64, 0},
                {"%globaltimer", 64, 0}, {"%globaltimer_lo", 32, 0}, {"%globaltimer_hi", 32, 32}};
  if (d.operand(1).kind != Operand::Special)
    return false;
  for (const auto &clock : Clocks) {
    if (clock.name != d.operand(1).text || clock.bits != bits)
      continue;
    d.def(0, bits);
    d.operandUsed(1);
    d.emit(bits == 32 ? readClock<u32> : readClock<u64>, clock.shift);
    return true;
  }
  return false;
}

/// mov.v4.u32 {a, b, c, d}, %tid and the like: element by element.
static bool selectSpecialVector(Decoder &d) {
  if (!d.take(".v4"))
    return false;
  if (Type type = d.takeType(); bitsOf(type) != 32)
    d.failType(type);
  if (d.operand(1).kind != Operand::Special || d.elements(0) != 4)
    d.fail("'.v4' moves a special register of four elements to as many");
  d.operandUsed(1);
  for (unsigned n = 0; n < 4; ++n) {
    d.def(d.operand(0).parts[n], 32);
    d.useSpecial(std::string(d.operand(1).text) + "." + "xyzw"[n], 32);
    d.emit(copying<u32>);
  }
  return true;
}

/// mov.b128: half by half. Vectors have two parts of 64 bits or four of 32.
static void selectWideMov(Decoder &d) {
  const Operand &to = d.operand(0), &from = d.operand(1);
  const Operand *vector = to.kind == Operand::Vector     ? &to
                          : from.kind == Operand::Vector ? &from
                                                         : nullptr;
  std::size_t parts = vector ? vector->parts.size() : 2;
  if (parts != 2 && parts != 4)
    d.fail("cannot split 128 bits into " + std::to_string(parts));
  for (unsigned half = 0; half < 2; ++half) {
    if (!vector || parts == 2) {
      if (to.kind == Operand::Vector)
        d.def(to.parts[half], 64);
      else
        d.defHalf(to, half);
      if (from.kind == Operand::Vector)
        d.use(from.parts[half], Type::B64);
      else
        d.useHalf(from, half);
      d.emit(copyOf(d, 64));
    } else if (vector == &to) {
      d.def(to.parts[2 * half], 32);
      d.def(to.parts[2 * half + 1], 32);
      d.useHalf(from, half);
      d.emit(unpacking<u64, u32>());
    } else {
      d.defHalf(to, half);
      d.use(from.parts[2 * half], Type::B32);
      d.use(from.parts[2 * half + 1], Type::B32);
      d.emit(packing<u64, u32>());
    }
  }
}

/// A vector of one element is that element.
static const Operand &alone(const Operand &op) {
  return op.kind == Operand::Vector && op.parts.size() == 1 ? op.parts[0] : op;
}

void selectMov(Decoder &d) {
  if (selectSpecialVector(d))
    return;
  Type type = d.takeType();
  if (type == Type::B128)
    return selectWideMov(d);
  if (isHalf(type))
    d.failType(type);
  unsigned bits = bitsOf(type);
  const Operand &to = alone(d.operand(0)), &from = alone(d.operand(1));
  if (selectClock(d, bits))
    return;
  if (type == Type::Pred) {
    d.def(0, 1);
    std::int64_t value;
    if (d.isImmediate(1, value)) {
      d.useConstant(value != 0 ? ~0u : 0, 32);
      d.operandUsed(1);
    } else {
      d.use(1, type);
    }
    s64 flip = from.negated ? -1 : 0;
    d.emit(masks<[](s64 imm, u32 p) { return p ^ static_cast<u32>(imm); }, Pred>, flip);
  } else if ((to.kind == Operand::Vector || from.kind == Operand::Vector) && !isBits(type)) {
    d.failType(type);
  } else if (to.kind == Operand::Vector) {
    unsigned parts = d.elements(0);
    Exec run = vectorMove(d, bits, parts, false);
    for (const Operand &part : to.parts)
      d.def(part, std::max(16u, bits / parts));
    d.use(1, type);
    d.emit(run);
  } else if (from.kind == Operand::Vector) {
    unsigned parts = d.elements(1);
    Exec run = vectorMove(d, bits, parts, true);
    d.def(0, bits);
    for (const Operand &part : from.parts)
      d.use(part, bits / parts <= 16 ? Type::B16 : Type::B32);
    d.emit(run);
  } else {
    d.def(to, bits);
    d.useValue(from, type);
    d.emit(copyOf(d, bits));
  }
}

namespace {
struct AddConstant {
  static void run(s64 imm, char *d, const char *a) {
    store<u64>(d, 0, load<u64>(a, 0) + static_cast<u64>(imm));
  }
};
} // namespace

/// Shared and local memory are windows of the generic space; the other spaces coincide with it.
void selectCvta(Decoder &d) {
  bool toSpace = d.take(".to");
  bool shared = d.take(".shared") || d.take(".shared::cta") || d.take(".shared::cluster");
  bool local = !shared && d.take(".local");
  if (!shared && !local && !d.take(".global") && !d.take(".const") && !d.take(".param") &&
      !d.take(".param::entry"))
    d.fail("no supported space");
  Type type = d.takeType();
  if (type != Type::U64)
    d.failType(type);
  d.def(0, 64);
  d.useValue(d.operand(1), type);
  u64 base = shared ? SharedWindow : local ? LocalWindow : 0;
  if (!base) {
    d.emit(copyOf(d, 64));
    return;
  }
  d.emit(chunks<AddConstant, u64, u64>, static_cast<s64>(toSpace ? 0 - base : base));
}

/// The space that a generic address points into. Constants lie below 4 GiB, where no other memory is
/// (Memory.h), and the parameters of a kernel in a buffer of the launch.
static Space spaceOf(const Warp &w, u64 address) {
  u64 window = address & WindowMask;
  if (window == SharedWindow)
    return Space::Shared;
  if (window == LocalWindow)
    return Space::Local;
  if (address - reinterpret_cast<u64>(w.launch->parameters) < w.launch->kernel->parameterBytes)
    return Space::Param;
  return address >> 32 ? Space::Global : Space::Const;
}

void selectIsspacep(Decoder &d) {
  Space space = takeSpace(d);
  if (space == Space::Generic)
    d.fail("no supported space");
  d.def(0, 1);
  d.use(1, Type::U64);
  d.emit(
      [](Warp &w, const Inst &i) {
        u32 mask = executing(w, i), result = 0;
        const u64 *addresses = at<u64>(w, i.s[1]);
        for (u32 left = mask; left; left &= left - 1)
          if (spaceOf(w, addresses[__builtin_ctz(left)]) == static_cast<Space>(i.imm))
            result |= left & -left;
        writeMask(w, i.s[0], result, mask);
      },
      static_cast<s64>(space));
}

// --- Selection --------------------------------------------------------------

namespace {
template <class T> struct Select {
  static void run(s64 flip, char *d, const char *a, const char *b, const char *p) {
    u32 take = static_cast<u8>(*p) ^ static_cast<u32>(flip);
    store<T>(d, 0, choose(expand<T>(take), load<T>(a, 0), load<T>(b, 0)));
  }
};
} // namespace

void selectSelp(Decoder &d) {
  Type type = d.takeType();
  if (isHalf(type) || type == Type::Pred)
    d.failType(type);
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, type);
  d.use(3, Type::Pred);
  s64 flip = d.operand(3).negated ? -1 : 0;
  switch (bitsOf(type)) {
  case 16:
    d.emit(chunks<Select<u16>, u16, u16, u16, Pred>, flip);
    break;
  case 32:
    d.emit(chunks<Select<u32>, u32, u32, u32, Pred>, flip);
    break;
  case 64:
    d.emit(chunks<Select<u64>, u64, u64, u64, Pred>, flip);
    break;
  default:
    d.failType(type);
  }
}

/// slct.T.s32|f32 d, a, b, c: a where c >= 0.
void selectSlct(Decoder &d) {
  bool ftz = d.take(".ftz");
  Type type = d.takeType(), by = d.takeType();
  if (by != Type::S32 && (by != Type::F32))
    d.failType(by);
  (void)ftz; // -subnormal is less than zero, flushed it is -0 and not: see below
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, type);
  d.use(3, by);
  auto emit = [&]<class T>(T) {
    if (by == Type::S32)
      d.emit(each<[](T a, T b, s32 c) { return c >= 0 ? a : b; }, T, T, T, s32>);
    else if (ftz)
      d.emit(each<[](T a, T b, u32 c) { return !(c & 0x7f800000) || bits<f32>(c) >= 0 ? a : b; }, T,
                  T, T, u32>);
    else
      d.emit(each<[](T a, T b, f32 c) { return c >= 0 ? a : b; }, T, T, T, f32>);
  };
  switch (bitsOf(type)) {
  case 16:
    return emit(u16{});
  case 32:
    return emit(u32{});
  case 64:
    return emit(u64{});
  default:
    d.failType(type);
  }
}

} // namespace planemu::PLANEMU_ISA
