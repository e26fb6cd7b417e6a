//===- Compare.cpp - setp, set --------------------------------------------===//
//
// PTX ISA, "Comparison and Selection Instructions: set, setp", on integers, floats, halves and pairs.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Formats.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/Lanes.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

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

/// Of eight lanes.
template <Relation R, bool Unordered, class T, class Read>
static u32 comparedChunk(const char *a, const char *b, int chunk = 0) {
  return compress(
      compare<R, Unordered>(Read::read(load<T>(a, chunk)), Read::read(load<T>(b, chunk))));
}
template <Relation R, bool Unordered, class T, class Read>
static u32 compared(Warp &w, u32 a, u32 b) {
  u32 result = 0;
  for (int c = 0; c < Chunks; ++c)
    result |= comparedChunk<R, Unordered, T, Read>(w.file + a, w.file + b, c) << (c * Chunk);
  return result;
}

/// p = a R b.
template <Relation R, bool Unordered, class T, class Read>
static void setPredicate(Warp &w, const Inst &i) {
  writeMask(w, i.s[0], compared<R, Unordered, T, Read>(w, i.s[1], i.s[2]), executing(w, i));
}
namespace {
template <Relation R, bool Unordered, class T, class Read> struct SetPredicate {
  static void run(s64, char *p, const char *a, const char *b) {
    *p = static_cast<char>(comparedChunk<R, Unordered, T, Read>(a, b));
  }
};
} // namespace

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
namespace {
template <Relation R, bool Unordered, class T, class Read> struct SetPredicates {
  static void run(s64 how, char *p, char *q, const char *a, const char *b, const char *c) {
    u32 result = comparedChunk<R, Unordered, T, Read>(a, b);
    u32 with = static_cast<u8>(*c) ^ (how & 4 ? 0xff : 0);
    *p = static_cast<char>(combine(how, result, with));
    *q = static_cast<char>(combine(how, ~result, with));
  }
};
} // namespace

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

/// What `make` gives for the relation, which it takes as a template argument.
template <class Make> static Comparison forRelation(Relation relation, Make make) {
  switch (relation) {
#define PLANEMU_RELATION(R)                                                                        \
  case Relation::R:                                                                                \
    return make.template operator()<Relation::R>();
    PLANEMU_RELATION(Eq)
    PLANEMU_RELATION(Ne)
    PLANEMU_RELATION(Lt)
    PLANEMU_RELATION(Le)
    PLANEMU_RELATION(Gt)
    PLANEMU_RELATION(Ge)
    PLANEMU_RELATION(Num)
    PLANEMU_RELATION(Nan)
#undef PLANEMU_RELATION
  case Relation::Count:
    break;
  }
  return {};
}

template <class T, class Read, bool Unordered> static Comparison comparison(Relation relation) {
  return forRelation(relation, []<Relation R>() -> Comparison {
    return {onLanes<SetPredicate<R, Unordered, T, Read>, Pred, T, T>(
                grouped<setPredicate<R, Unordered, T, Read>>),
            onLanes<SetPredicates<R, Unordered, T, Read>, Pred, Pred, T, T, Pred>(
                setPredicates<R, Unordered, T, Read>),
            setRegister<R, Unordered, T, Read>};
  });
}

template <class T, class Read> static Comparison integerComparison(Relation relation) {
  return relation < Relation::Num ? comparison<T, Read, false>(relation) : Comparison();
}
template <class T, class Read>
static Comparison floatComparison(Relation relation, bool unordered) {
  return unordered ? comparison<T, Read, true>(relation) : comparison<T, Read, false>(relation);
}

template <class Format, bool Unordered> static Comparison pairComparison(Relation relation) {
  return forRelation(relation, []<Relation R>() -> Comparison {
    return {nullptr, setPairs<R, Unordered, Format>, setRegisterPairs<R, Unordered, Format>};
  });
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
    return result == source || result == Type::U32 || result == Type::S32;
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
  if (isSet && isInteger(result) && (type == Type::F16x2 || type == Type::BF16x2))
    how &= 0xffffffffffff; // true is all ones in each half
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
