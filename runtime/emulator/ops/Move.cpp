//===- Move.cpp - mov, conversions of addresses, selection, comparison ----===//
//
// PTX ISA, "Data Movement: mov, cvta, isspacep", "Comparison and Selection Instructions".
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

Exec copyOf(Decoder &d, unsigned bits) {
  switch (bits) {
  case 16:
    return copy<u16>;
  case 32:
    return copy<u32>;
  case 64:
    return copy<u64>;
  default:
    d.fail("no registers of " + std::to_string(bits) + " bits");
  }
}

/// mov.bW d, {parts}: parts of a lane lie one after the other, the first lowest. Parts of 8 bits
/// have registers of 16, of which the upper half says nothing.
template <class Whole, class Part, int Width = 8 * sizeof(Part)>
static void pack(Warp &w, const Inst &i) {
  constexpr int Count = 8 * sizeof(Whole) / Width;
  u32 mask = executing(w, i);
  char *const file = w.file;
  const u32 d = i.s[0];
  u32 parts[Count];
  std::copy(i.s + 1, i.s + 1 + Count, parts);
  for (int c = 0; c < Chunks; ++c) {
    V<Whole> value = {};
    for (int n = 0; n < Count; ++n)
      value |= to<Whole>(load<Part>(file + parts[n], c) & static_cast<Part>((1ull << Width) - 1))
               << (Width * n);
    merge<Whole>(file + d, c, mask >> (c * Chunk), value);
  }
}

/// mov.bW {parts}, a.
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
      V<Part> part = to<Part>(value >> (Width * n)) & static_cast<Part>((1ull << Width) - 1);
      if (mask == ~0u) [[likely]]
        store<Part>(file + parts[n], c, part);
      else
        merge<Part>(file + parts[n], c, mask >> (c * Chunk), part);
    }
  }
}

static Exec vectorMove(Decoder &d, unsigned whole, unsigned parts, bool packs) {
  if (whole == 32 && parts == 2)
    return packs ? pack<u32, u16> : unpack<u32, u16>;
  if (whole == 64 && parts == 2)
    return packs ? pack<u64, u32> : unpack<u64, u32>;
  if (whole == 64 && parts == 4)
    return packs ? pack<u64, u16> : unpack<u64, u16>;
  if (whole == 16 && parts == 2)
    return packs ? pack<u16, u16, 8> : unpack<u16, u16, 8>;
  if (whole == 32 && parts == 4)
    return packs ? pack<u32, u16, 8> : unpack<u32, u16, 8>;
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

void selectMov(Decoder &d) {
  Type type = d.takeType();
  if (isHalf(type))
    d.failType(type);
  unsigned bits = bitsOf(type);
  const Operand &to = d.operand(0), &from = d.operand(1);
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
    d.emit(
        [](Warp &w, const Inst &i) {
          writeMask(w, i.s[0], readMask(w, i.s[1]) ^ static_cast<u32>(i.imm), executing(w, i));
        },
        flip);
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
    d.def(0, bits);
    d.useValue(from, type);
    d.emit(copyOf(d, bits));
  }
}

/// Shared and local memory are windows of the generic space; the other spaces coincide with it.
void selectCvta(Decoder &d) {
  bool toSpace = d.take(".to");
  bool shared = d.take(".shared") || d.take(".shared::cta"), local = d.take(".local");
  if (!shared && !local && !d.take(".global") && !d.take(".const") && !d.take(".param"))
    d.fail("no supported space");
  Type type = d.takeType();
  if (type != Type::U64)
    d.failType(type);
  d.def(0, 64);
  d.useValue(d.operand(1), type);
  u64 base = shared ? SharedWindow : local ? LocalWindow : 0;
  d.emit(
      [](Warp &w, const Inst &i) {
        u32 mask = executing(w, i);
        for (int c = 0; c < Chunks; ++c)
          merge<u64>(w.file + i.s[0], c, mask >> (c * Chunk),
                     load<u64>(w.file + i.s[1], c) + static_cast<u64>(i.imm));
      },
      static_cast<s64>(toSpace ? 0 - base : base));
}

void selectIsspacep(Decoder &d) {
  bool shared = d.take(".shared") || d.take(".shared::cta"), local = d.take(".local");
  if (!shared && !local && !d.take(".global"))
    d.fail("no supported space");
  d.def(0, 1);
  d.use(1, Type::U64);
  d.emit(
      [](Warp &w, const Inst &i) {
        u32 result = 0;
        for (int c = 0; c < Chunks; ++c) {
          Vu64 window = load<u64>(w.file + i.s[1], c) & WindowMask;
          result |= compress(window == static_cast<u64>(i.imm)) << (c * Chunk);
        }
        writeMask(w, i.s[0], result, executing(w, i));
      },
      static_cast<s64>(shared  ? SharedWindow
                       : local ? LocalWindow
                               : 0));
}

// --- Selection --------------------------------------------------------------

template <class T> static void select(Warp &w, const Inst &i) {
  u32 mask = executing(w, i), take = readMask(w, i.s[3]) ^ static_cast<u32>(i.imm);
  char *const d = w.file + i.s[0];
  const char *const a = w.file + i.s[1], *const b = w.file + i.s[2];
  for (int c = 0; c < Chunks; ++c) {
    V<T> value = choose(expand<T>(take >> (c * Chunk)), load<T>(a, c), load<T>(b, c));
    if (mask == ~0u) [[likely]]
      store<T>(d, c, value);
    else
      merge<T>(d, c, mask >> (c * Chunk), value);
  }
}

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
    d.emit(select<u16>, flip);
    break;
  case 32:
    d.emit(select<u32>, flip);
    break;
  case 64:
    d.emit(select<u64>, flip);
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

// --- Comparison -------------------------------------------------------------

namespace {

enum class Relation { Eq, Ne, Lt, Le, Gt, Ge, Num, Nan, Count };

struct Spelling {
  const char *text;
  Relation relation;
  bool unordered; // also true if a source is NaN
  bool forIntegers, forBits;
};

// lo, ls, hi, hs are the unsigned lt, le, gt, ge.
constexpr Spelling Spellings[] = {
    {".eq", Relation::Eq, false, true, true},     {".ne", Relation::Ne, false, true, true},
    {".lt", Relation::Lt, false, true, false},    {".le", Relation::Le, false, true, false},
    {".gt", Relation::Gt, false, true, false},    {".ge", Relation::Ge, false, true, false},
    {".lo", Relation::Lt, false, true, false},    {".ls", Relation::Le, false, true, false},
    {".hi", Relation::Gt, false, true, false},    {".hs", Relation::Ge, false, true, false},
    {".equ", Relation::Eq, true, false, false},   {".neu", Relation::Ne, true, false, false},
    {".ltu", Relation::Lt, true, false, false},   {".leu", Relation::Le, true, false, false},
    {".gtu", Relation::Gt, true, false, false},   {".geu", Relation::Ge, true, false, false},
    {".num", Relation::Num, false, false, false}, {".nan", Relation::Nan, true, false, false},
};

enum Combine : s64 { And = 1, Or = 2, Xor = 3 };

/// How a compared value is read from its register.
struct Plain {
  template <class T> static T read(T value) { return value; }
};
struct Flushed {
  static Vf32 read(Vf32 value) { return flush(value); }
};
struct Bfloat {
  static Vf32 read(Vu16 value) { return fromBf16(value); }
};
struct Half {
  static Vf32 read(Vu16 value) { return fromF16(value); }
};
struct FlushedHalf {
  static Vf32 read(Vu16 value) {
    return fromF16(choose(((value & 0x7c00) == 0), value & 0x8000, value));
  }
};
/// One half of a pair.
template <class Format, int Shift> struct HalfOf {
  static Vf32 read(Vu32 pair) { return Format::read(to<u16>(pair >> Shift)); }
};

} // namespace

/// f32 .ne is ordered: false on NaN, unlike the host's !=.
template <Relation R, bool Unordered, class T> static auto compare(T a, T b) {
  using E = std::remove_cvref_t<decltype(a[0])>;
  constexpr bool Float = std::is_floating_point_v<E>;
  if constexpr (R == Relation::Num)
    return (a == a) & (b == b);
  else if constexpr (R == Relation::Nan)
    return (a != a) | (b != b);
  else {
    auto result = [&] {
      if constexpr (R == Relation::Eq)
        return a == b;
      else if constexpr (R == Relation::Ne)
        return a != b;
      else if constexpr (R == Relation::Lt)
        return a < b;
      else if constexpr (R == Relation::Le)
        return a <= b;
      else if constexpr (R == Relation::Gt)
        return a > b;
      else
        return a >= b;
    }();
    if constexpr (Float && Unordered)
      return result | (a != a) | (b != b);
    else if constexpr (Float && R == Relation::Ne)
      return result & (a == a) & (b == b);
    else
      return result;
  }
}

template <Relation R, bool Unordered, class T, class Read>
static u32 compared(Warp &w, u32 a, u32 b) {
  u32 result = 0;
  for (int c = 0; c < Chunks; ++c)
    result |= compress(compare<R, Unordered>(Read::read(load<T>(w.file + a, c)),
                                             Read::read(load<T>(w.file + b, c))))
              << (c * Chunk);
  return result;
}

/// p = a R b.
template <Relation R, bool Unordered, class T, class Read>
static void setPredicate(Warp &w, const Inst &i) {
  writeMask(w, i.s[0], compared<R, Unordered, T, Read>(w, i.s[1], i.s[2]), executing(w, i));
}

static u32 combine(s64 how, u32 compared, u32 with) {
  switch (how & 3) {
  case And:
    return compared & with;
  case Or:
    return compared | with;
  case Xor:
    return compared ^ with;
  default:
    return compared;
  }
}

/// p|q = (a R b) op c, !(a R b) op c. imm: the operation, bit 2: c is negated.
template <Relation R, bool Unordered, class T, class Read>
static void setPredicates(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  u32 result = compared<R, Unordered, T, Read>(w, i.s[2], i.s[3]);
  u32 with = readMask(w, i.s[4]) ^ (i.imm & 4 ? ~0u : 0);
  writeMask(w, i.s[0], combine(i.imm, result, with), mask);
  writeMask(w, i.s[1], combine(i.imm, ~result, with), mask);
}

/// setp on pairs: p from the low halves, q from the high ones.
template <Relation R, bool Unordered, class Format> static void setPairs(Warp &w, const Inst &i) {
  u32 mask = executing(w, i);
  u32 low = compared<R, Unordered, u32, HalfOf<Format, 0>>(w, i.s[2], i.s[3]);
  u32 high = compared<R, Unordered, u32, HalfOf<Format, 16>>(w, i.s[2], i.s[3]);
  u32 with = readMask(w, i.s[4]) ^ (i.imm & 4 ? ~0u : 0);
  writeMask(w, i.s[0], combine(i.imm, low, with), mask);
  writeMask(w, i.s[1], combine(i.imm, high, with), mask);
}

/// D in all lanes of `lanes`, else zero.
template <class D> static void writeChosen(Warp &w, u32 slot, u32 lanes, u32 mask, D yes) {
  for (int c = 0; c < Chunks; ++c)
    merge<D>(w.file + slot, c, mask >> (c * Chunk),
             choose(expand<D>(lanes >> (c * Chunk)), splat<D>(yes), V<D>{}));
}

/// set.R.D.T: a register that is all ones or 1.0 where the comparison holds; the value of `yes` is
/// in the upper half of imm.
template <Relation R, bool Unordered, class T, class Read>
static void setRegister(Warp &w, const Inst &i) {
  u32 result = compared<R, Unordered, T, Read>(w, i.s[1], i.s[2]);
  result = combine(i.imm, result, readMask(w, i.s[3]) ^ (i.imm & 4 ? ~0u : 0));
  if (i.imm & 8)
    writeChosen<u16>(w, i.s[0], result, executing(w, i), static_cast<u16>(i.imm >> 32));
  else
    writeChosen<u32>(w, i.s[0], result, executing(w, i), static_cast<u32>(i.imm >> 32));
}

/// set on pairs: each half on its own.
template <Relation R, bool Unordered, class Format>
static void setRegisterPairs(Warp &w, const Inst &i) {
  u32 with = readMask(w, i.s[3]) ^ (i.imm & 4 ? ~0u : 0);
  u32 low = combine(i.imm, compared<R, Unordered, u32, HalfOf<Format, 0>>(w, i.s[1], i.s[2]), with);
  u32 high =
      combine(i.imm, compared<R, Unordered, u32, HalfOf<Format, 16>>(w, i.s[1], i.s[2]), with);
  u32 mask = executing(w, i);
  Vu32 yes = splat<u32>(static_cast<u32>(i.imm >> 32));
  for (int c = 0; c < Chunks; ++c) {
    int by = c * Chunk;
    merge<u32>(w.file + i.s[0], c, mask >> by,
               (bits<Vu32>(expand<u32>(low >> by)) & yes) |
                   (bits<Vu32>(expand<u32>(high >> by)) & (yes << 16)));
  }
}

namespace {
struct Comparison {
  Exec predicate = nullptr, predicates = nullptr, reg = nullptr; // predicate: null for pairs
};
} // namespace

template <class T, class Read, bool Unordered> static Comparison comparison(Relation relation) {
#define PLANEMU_RELATION(R)                                                                        \
  case Relation::R:                                                                                \
    return {setPredicate<Relation::R, Unordered, T, Read>,                                         \
            setPredicates<Relation::R, Unordered, T, Read>,                                        \
            setRegister<Relation::R, Unordered, T, Read>};
  switch (relation) {
    PLANEMU_RELATION(Eq)
    PLANEMU_RELATION(Ne)
    PLANEMU_RELATION(Lt)
    PLANEMU_RELATION(Le)
    PLANEMU_RELATION(Gt)
    PLANEMU_RELATION(Ge)
    PLANEMU_RELATION(Num)
    PLANEMU_RELATION(Nan)
  case Relation::Count:
    break;
  }
#undef PLANEMU_RELATION
  return {};
}

template <class T, class Read> static Comparison integerComparison(Relation relation) {
  return relation < Relation::Num ? comparison<T, Read, false>(relation) : Comparison();
}
template <class T, class Read>
static Comparison floatComparison(Relation relation, bool unordered) {
  return unordered ? comparison<T, Read, true>(relation) : comparison<T, Read, false>(relation);
}

template <class Format, bool Unordered> static Comparison pairComparison(Relation relation) {
#define PLANEMU_RELATION(R)                                                                        \
  case Relation::R:                                                                                \
    return {nullptr, setPairs<Relation::R, Unordered, Format>,                                     \
            setRegisterPairs<Relation::R, Unordered, Format>};
  switch (relation) {
    PLANEMU_RELATION(Eq)
    PLANEMU_RELATION(Ne)
    PLANEMU_RELATION(Lt)
    PLANEMU_RELATION(Le)
    PLANEMU_RELATION(Gt)
    PLANEMU_RELATION(Ge)
    PLANEMU_RELATION(Num)
    PLANEMU_RELATION(Nan)
  case Relation::Count:
    break;
  }
#undef PLANEMU_RELATION
  return {};
}

static Comparison halfComparison(Type type, const Spelling &s, bool ftz) {
  Relation r = s.relation;
  auto pairs = [&]<class Format>() {
    return s.unordered ? pairComparison<Format, true>(r) : pairComparison<Format, false>(r);
  };
  switch (type) {
  case Type::F16:
    return ftz ? floatComparison<u16, FlushedHalf>(r, s.unordered)
               : floatComparison<u16, Half>(r, s.unordered);
  case Type::BF16:
    return floatComparison<u16, Bfloat>(r, s.unordered);
  case Type::F16x2:
    return ftz ? pairs.template operator()<FlushedHalf>() : pairs.template operator()<Half>();
  default:
    return pairs.template operator()<Bfloat>();
  }
}

/// The destination of set: what stands for true, in the upper half of `how`, and bit 3 if it has 16
/// bits.
static Type takeResult(Decoder &d, s64 &how) {
  Type result = d.takeType();
  u64 yes = result == Type::F32                              ? 0x3f800000
            : result == Type::F16 || result == Type::F16x2   ? 0x3c00
            : result == Type::BF16 || result == Type::BF16x2 ? 0x3f80
            : result == Type::U16 || result == Type::S16     ? 0xffff
                                                             : 0xffffffff;
  how |= static_cast<s64>(yes << 32 | (bitsOf(result) == 16 ? 8 : 0));
  return result;
}

/// set's types that go together: 32-bit results and f16 with all, the rest with halves.
static bool setHas(Type result, Type source) {
  if (source == Type::F16x2 || source == Type::BF16x2)
    return result == source;
  switch (result) {
  case Type::U32:
  case Type::S32:
  case Type::F32:
  case Type::F16:
    return true;
  case Type::U16:
  case Type::S16:
    return source == Type::F16 || source == Type::BF16;
  case Type::BF16:
    return source == Type::BF16;
  default:
    return false;
  }
}

static Comparison takeComparison(Decoder &d, Type &type, s64 &how, bool isSet) {
  const Spelling *spelling = nullptr;
  for (const Spelling &candidate : Spellings)
    if (d.take(candidate.text)) {
      spelling = &candidate;
      break;
    }
  if (!spelling)
    d.fail("no comparison");
  how = d.take(".and") ? s64(And) : d.take(".or") ? s64(Or) : d.take(".xor") ? s64(Xor) : 0;
  bool ftz = d.take(".ftz");
  Type result = isSet ? takeResult(d, how) : Type::None;
  type = d.takeType();
  if (isSet && !setHas(result, type))
    d.failType(result);
  Relation r = spelling->relation;
  std::string_view text = spelling->text;
  if ((text == ".lo" || text == ".ls" || text == ".hi" || text == ".hs") && !isUnsigned(type))
    d.fail("'" + std::string(text) + "' compares unsigned integers");
  Comparison chosen;
  if (type == Type::F32)
    chosen = ftz ? floatComparison<f32, Flushed>(r, spelling->unordered)
                 : floatComparison<f32, Plain>(r, spelling->unordered);
  else if (ftz && type != Type::F16 && type != Type::F16x2)
    d.fail("'.ftz' is not supported on this type");
  else if (type == Type::F64)
    chosen = floatComparison<f64, Plain>(r, spelling->unordered);
  else if (isHalf(type))
    chosen = halfComparison(type, *spelling, ftz);
  else if (spelling->forIntegers && !(isBits(type) && !spelling->forBits)) {
    switch (type) {
    case Type::S16:
      chosen = integerComparison<s16, Plain>(r);
      break;
    case Type::S32:
      chosen = integerComparison<s32, Plain>(r);
      break;
    case Type::S64:
      chosen = integerComparison<s64, Plain>(r);
      break;
    case Type::U16:
    case Type::B16:
      chosen = integerComparison<u16, Plain>(r);
      break;
    case Type::U32:
    case Type::B32:
      chosen = integerComparison<u32, Plain>(r);
      break;
    case Type::U64:
    case Type::B64:
      chosen = integerComparison<u64, Plain>(r);
      break;
    default:
      break;
    }
  }
  if (!chosen.reg)
    d.failType(type);
  return chosen;
}

static void useCombined(Decoder &d, s64 &how) {
  if (how & 3) {
    d.use(3, Type::Pred);
    how |= d.operand(3).negated ? 4 : 0;
  } else {
    d.useTrue();
  }
}

void selectSetp(Decoder &d) {
  Type type;
  s64 how;
  Comparison chosen = takeComparison(d, type, how, false);
  d.def(0, 1);
  if ((type == Type::F16 || type == Type::BF16) && !d.operand(0).also.empty())
    d.fail("a second destination is not supported on this type");
  bool simple = chosen.predicate && how == 0 && d.operand(0).also.empty();
  if (!simple)
    d.defAlso(0, 1);
  d.use(1, type);
  d.use(2, type);
  if (simple) {
    d.emit(chosen.predicate);
    return;
  }
  useCombined(d, how);
  d.emit(chosen.predicates, how);
}

void selectSet(Decoder &d) {
  Type type;
  s64 how;
  Comparison chosen = takeComparison(d, type, how, true);
  d.def(0, how & 8 ? 16 : 32);
  d.use(1, type);
  d.use(2, type);
  useCombined(d, how);
  d.emit(chosen.reg, how);
}

} // namespace planemu::PLANEMU_ISA
