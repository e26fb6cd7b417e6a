//===- Bits.cpp - logic, shifts, bit fields, byte permutation -------------===//
//
// PTX ISA, "Logic and Shift Instructions" and the bit instructions of "Integer Arithmetic
// Instructions".
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/IntegerTypes.h"
#include "runtime/emulator/ops/LoadStore.h"

#include <algorithm>

namespace planemu::PLANEMU_ISA {

template <auto F> static void selectLogic(Decoder &d) {
  Type type = d.takeType();
  if (type == Type::Pred) {
    d.def(0, 1);
    d.use(1, type);
    d.use(2, type);
    if (d.operand(1).negated || d.operand(2).negated)
      d.fail("'!' before an operand");
    d.emit(masks<[](s64, u32 a, u32 b) { return F(a, b); }, Pred, Pred>);
    return;
  }
  if (!isBits(type))
    d.failType(type);
  operands(d, type, 2);
  byWidth(d, type, [&]<class T>(T) { d.emit(lanes<F, T, T, T>); });
}
void selectAnd(Decoder &d) {
  selectLogic<[](auto a, auto b) { return a & b; }>(d);
}
void selectOr(Decoder &d) {
  selectLogic<[](auto a, auto b) { return a | b; }>(d);
}
void selectXor(Decoder &d) {
  selectLogic<[](auto a, auto b) { return a ^ b; }>(d);
}

void selectNot(Decoder &d) {
  Type type = d.takeType();
  d.def(0, bitsOf(type));
  d.use(1, type);
  if (type == Type::Pred) {
    if (d.operand(1).negated)
      d.fail("'!' before an operand");
    d.emit(masks<[](s64, u32 p) { return ~p; }, Pred>);
    return;
  }
  if (!isBits(type))
    d.failType(type);
  byWidth(d, type, [&]<class T>(T) { d.emit(lanes<[](auto a) { return ~a; }, T, T>); });
}

void selectCnot(Decoder &d) {
  Type type = d.takeType();
  if (!isBits(type))
    d.failType(type);
  operands(d, type, 1);
  byWidth(d, type, [&]<class T>(T) { d.emit(each<[](T a) { return T(a == 0); }, T, T>); });
}

/// Shift amounts beyond the width count as the width.
template <class T, bool Left> static V<T> shift(V<T> a, Vu32 amount) {
  constexpr u32 Width = 8 * sizeof(T);
  using U = Unsigned<T>;
  if constexpr (sizeof(T) == 2) {
    using W = std::conditional_t<std::is_signed_v<T>, s32, u32>;
    return to<T>(shift<W, Left>(to<W>(a), amount));
  } else if constexpr (std::is_signed_v<T>) {
    Vu32 most = splat<u32>(Width - 1);
    return a >> to<T>(choose(amount > most, most, amount));
  } else {
    V<U> by = to<U>(amount & (Width - 1));
    V<Signed<T>> inRange = to<Signed<T>>(bits<Vs32>(amount < Width));
    return choose(inRange, Left ? a << by : a >> by, V<U>{});
  }
}

/// The same by a constant below the width, in imm: addresses are made of these.
namespace {
template <class T, bool Left> struct ShiftByConstant {
  static void run(s64 imm, char *d, const char *a) {
    const int by = static_cast<int>(imm);
    V<T> value = load<T>(a, 0);
    if constexpr (sizeof(T) == 2) {
      using W = std::conditional_t<std::is_signed_v<T>, s32, u32>;
      value = to<T>(Left ? to<W>(value) << by : to<W>(value) >> by);
    } else {
      value = Left ? value << by : value >> by;
    }
    store<T>(d, 0, value);
  }
};
} // namespace

template <bool Left, class T> static void emitShift(Decoder &d, T) {
  d.def(0, 8 * sizeof(T));
  d.use(1, sizeof(T) == 2 ? Type::B16 : sizeof(T) == 4 ? Type::B32 : Type::B64);
  std::int64_t by;
  if (d.isImmediate(2, by) && by >= 0 && by < s64(8 * sizeof(T))) {
    d.operandUsed(2);
    d.emit(chunks<ShiftByConstant<T, Left>, T, T>, by);
    return;
  }
  d.use(2, Type::U32);
  d.emit(lanes<[](auto a, auto b) { return shift<T, Left>(a, b); }, T, T, u32>);
}

void selectShl(Decoder &d) {
  Type type = d.takeType();
  if (!isBits(type))
    d.failType(type);
  byWidth(d, type, [&]<class T>(T) { emitShift<true>(d, T{}); });
}

void selectShr(Decoder &d) {
  Type type = d.takeType();
  auto right = [&]<class T>(T) { emitShift<false>(d, T{}); };
  if (isBits(type))
    byWidth(d, type, right);
  else
    byType(d, type, right);
}

/// shf.l/.r .clamp/.wrap: 32 bits out of the 64 of b:a.
void selectShf(Decoder &d) {
  bool left = d.take(".l");
  if (!left && !d.take(".r"))
    d.fail("neither .l nor .r");
  bool wrap = d.take(".wrap");
  if (!wrap && !d.take(".clamp"))
    d.fail("neither .wrap nor .clamp");
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  operands(d, Type::B32, 3);
  auto emit = [&]<bool Left, bool Wrap>() {
    d.emit(lanes<[](auto a, auto b, auto c) {
      Vu32 by = Wrap ? c & 31 : choose(c > splat<u32>(32), splat<u32>(32), c);
      Vu64 both = to<u64>(b) << 32 | to<u64>(a);
      return Left ? to<u32>(both << to<u64>(by) >> 32) : to<u32>(both >> to<u64>(by));
    },
                 u32, u32, u32, u32>);
  };
  if (left)
    wrap ? emit.template operator()<true, true>() : emit.template operator()<true, false>();
  else
    wrap ? emit.template operator()<false, true>() : emit.template operator()<false, false>();
}

template <auto F32, auto F64> static void selectCount(Decoder &d) {
  Type type = d.takeType();
  if (!isBits(type))
    d.failType(type);
  d.def(0, 32);
  d.use(1, type);
  if (bitsOf(type) == 32)
    d.emit(each<F32, u32, u32>);
  else if (bitsOf(type) == 64)
    d.emit(each<F64, u32, u64>);
  else
    d.failType(type);
}
void selectPopc(Decoder &d) {
  selectCount<[](u32 a) { return u32(__builtin_popcount(a)); },
              [](u64 a) { return u32(__builtin_popcountll(a)); }>(d);
}
void selectClz(Decoder &d) {
  selectCount<[](u32 a) { return a ? u32(__builtin_clz(a)) : 32u; },
              [](u64 a) { return a ? u32(__builtin_clzll(a)) : 64u; }>(d);
}

template <class T> static T reversed(T a) {
  T result = 0;
  for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
    result = static_cast<T>(result << 1 | (a >> bit & 1));
  return result;
}
void selectBrev(Decoder &d) {
  Type type = d.takeType();
  if (!isBits(type) || bitsOf(type) < 32)
    d.failType(type);
  operands(d, type, 1);
  if (bitsOf(type) == 32)
    d.emit(each<reversed<u32>, u32, u32>);
  else
    d.emit(each<reversed<u64>, u64, u64>);
}

/// Position of the most significant bit that is not a sign bit; all ones if there is none.
template <class T> static u32 findBit(T a) {
  using U = Unsigned<T>;
  U value = std::is_signed_v<T> && a < T(0) ? ~U(a) : U(a);
  return value ? u32(63 - __builtin_clzll(value)) : ~0u;
}
template <class T> static u32 findShift(T a) {
  u32 position = findBit(a);
  return position == ~0u ? position : u32(8 * sizeof(T) - 1) - position;
}

void selectBfind(Decoder &d) {
  bool amount = d.take(".shiftamt");
  Type type = d.takeType();
  d.def(0, 32);
  d.use(1, type);
  byType(d, type, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      d.failType(type);
    else
      d.emit(amount ? each<findShift<T>, u32, T> : each<findBit<T>, u32, T>);
  });
}

/// PTX ISA, bfe: position and length are their low 8 bits; beyond the value lie copies of the sign,
/// which is the bit at the field's end or the value's.
template <class T> static T extractField(T a, u32 b, u32 c) {
  using U = Unsigned<T>;
  constexpr u32 Width = 8 * sizeof(T);
  u32 position = b & 0xff, length = c & 0xff;
  if (length == 0)
    return T(0);
  u32 last = std::min(position + length, Width) - 1;
  if (position >= Width)
    last = Width - 1;
  bool sign = std::is_signed_v<T> && (U(a) >> last & 1);
  u32 valid = position < Width ? std::min(length, Width - position) : 0; // bits that come from a
  U value = position < Width ? U(a) >> position : 0;
  U keep = valid >= Width ? ~U(0) : (U(1) << valid) - 1;
  return T((value & keep) | (sign ? ~keep : U(0)));
}

template <class T> static T insertField(T a, T b, u32 c, u32 e) {
  constexpr u32 Width = 8 * sizeof(T);
  u32 position = c & 0xff, length = e & 0xff;
  if (position >= Width || length == 0)
    return b;
  T mask = length >= Width ? T(~T(0)) : T((T(1) << length) - 1);
  return T((b & ~(mask << position)) | ((a & mask) << position));
}

void selectBfe(Decoder &d) {
  Type type = d.takeType();
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, Type::U32);
  d.use(3, Type::U32);
  byType(d, type, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      d.failType(type);
    else
      d.emit(each<extractField<T>, T, T, u32, u32>);
  });
}

void selectBfi(Decoder &d) {
  Type type = d.takeType();
  if (!isBits(type) || bitsOf(type) < 32)
    d.failType(type);
  d.def(0, bitsOf(type));
  d.use(1, type);
  d.use(2, type);
  d.use(3, Type::U32);
  d.use(4, Type::U32);
  byWidth(d, type, [&]<class T>(T) { d.emit(each<insertField<T>, T, T, T, u32, u32>); });
}

/// PTX ISA, prmt: a nibble of c chooses a byte of b:a, its high bit replicates the byte's sign.
static u32 permute(u32 a, u32 b, u32 c) {
  u64 both = u64(b) << 32 | a;
  u32 result = 0;
  for (int n = 0; n < 4; ++n) {
    u32 select = c >> (4 * n) & 15;
    u32 byte = both >> (8 * (select & 7)) & 0xff;
    if (select & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * n);
  }
  return result;
}

#if defined(__AVX2__)
/// The same in eight lanes: the nibbles of c spread to bytes are the shuffle's indices.
static Vu32 permuteLanes(Vu32 a, Vu32 b, Vu32 c) {
  Vu32 spread = (c & 0xf) | (c & 0xf0) << 4 | (c & 0xf00) << 8 | (c & 0xf000) << 12;
  __m256i select = bits<__m256i>(spread);
  __m256i base = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808,
                                   0x0c0c0c0c);
  __m256i index = _mm256_or_si256(_mm256_and_si256(select, _mm256_set1_epi8(3)), base);
  __m256i fromA = _mm256_shuffle_epi8(bits<__m256i>(a), index);
  __m256i fromB = _mm256_shuffle_epi8(bits<__m256i>(b), index);
  // A blend looks at the top bit of each byte: bit 2 chooses the source, bit 3 the byte's sign.
  __m256i byte = _mm256_blendv_epi8(fromA, fromB, _mm256_slli_epi16(select, 5));
  __m256i sign = _mm256_cmpgt_epi8(_mm256_setzero_si256(), byte);
  return bits<Vu32>(_mm256_blendv_epi8(byte, sign, _mm256_slli_epi16(select, 4)));
}

namespace {
/// The same byte shuffle in every lane, one from each source: in the halves of imm.
struct PermuteByConstant {
  static void run(s64 imm, char *d, const char *a, const char *b, const char *) {
    __m256i base = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                     0x08080808, 0x0c0c0c0c);
    auto shuffled = [&](const char *source, u32 by) {
      __m256i index = _mm256_add_epi8(_mm256_set1_epi32(static_cast<int>(by)), base);
      return _mm256_shuffle_epi8(bits<__m256i>(load<u32>(source, 0)), index);
    };
    store<u32>(d, 0,
               bits<Vu32>(_mm256_or_si256(shuffled(a, static_cast<u32>(imm)),
                                          shuffled(b, static_cast<u32>(imm >> 32)))));
  }
};
} // namespace
#endif

/// The modes f4e, b4e, rc8, ecl, ecr, rc16 take only c's low two bits; as selectors they are these.
template <int Mode> static u32 permuteMode(u32 a, u32 b, u32 c) {
  constexpr u16 Selectors[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
      {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
      {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
      {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
      {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
      {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
  };
  return permute(a, b, Selectors[Mode][c & 3]);
}

void selectPrmt(Decoder &d) {
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  operands(d, Type::B32, 3);
  Exec mode = d.take(".f4e")    ? each<permuteMode<0>, u32, u32, u32, u32>
              : d.take(".b4e")  ? each<permuteMode<1>, u32, u32, u32, u32>
              : d.take(".rc8")  ? each<permuteMode<2>, u32, u32, u32, u32>
              : d.take(".ecl")  ? each<permuteMode<3>, u32, u32, u32, u32>
              : d.take(".ecr")  ? each<permuteMode<4>, u32, u32, u32, u32>
              : d.take(".rc16") ? each<permuteMode<5>, u32, u32, u32, u32>
                                : nullptr;
#if defined(__AVX2__)
  std::int64_t selector;
  if (!mode && d.isImmediate(3, selector) && !(selector & 0x8888)) {
    u64 fromA = 0, fromB = 0;
    for (int n = 0; n < 4; ++n) {
      u64 select = static_cast<u64>(selector) >> (4 * n) & 7;
      fromA |= (select < 4 ? select : 0x80) << (8 * n);
      fromB |= (select < 4 ? 0x80 : select - 4) << (8 * n);
    }
    d.emit(chunks<PermuteByConstant, u32, u32, u32, u32>, static_cast<s64>(fromB << 32 | fromA));
    return;
  }
#endif
#if defined(__AVX2__)
  d.emit(mode ? mode : lanes<permuteLanes, u32, u32, u32, u32>);
#else
  d.emit(mode ? mode : each<permute, u32, u32, u32, u32>);
#endif
}

/// lop3.b32: imm is the truth table, bit (a << 2 | b << 1 | c). For each (a, b) the result is 0, 1,
/// c or ~c, which is (c & keep) ^ flip; b and a then choose among the four.
namespace {
struct LookUp {
  static void run(s64 table, char *d, const char *a, const char *b, const char *c) {
    Vu32 x = load<u32>(a, 0), y = load<u32>(b, 0), z = load<u32>(c, 0);
    auto byC = [&](int row) {
      u32 zero = table >> (2 * row) & 1, one = table >> (2 * row + 1) & 1;
      return (z & splat<u32>(zero == one ? 0 : ~0u)) ^ splat<u32>(zero ? ~0u : 0);
    };
    Vu32 low = (byC(1) & y) | (byC(0) & ~y), high = (byC(3) & y) | (byC(2) & ~y);
    store<u32>(d, 0, (high & x) | (low & ~x));
  }
};
} // namespace
static constexpr Exec lookUp = chunks<LookUp, u32, u32, u32, u32>;

/// lop3.and|or.b32 d|p, a, b, c, table, q: p = (d != 0) op q.
static void emitNonzero(Decoder &d, std::uint32_t value, bool both) {
  d.defAlso(0, 1);
  d.useTemporary(value);
  d.use(5, Type::Pred);
  s64 flip = d.operand(5).negated ? -1 : 0;
  auto run = [&]<bool And>() {
    d.emit(
        [](Warp &w, const Inst &i) {
          u32 nonzero = 0, with = readMask(w, i.s[2]) ^ static_cast<u32>(i.imm);
          for (int c = 0; c < Chunks; ++c)
            nonzero |= compress(load<u32>(w.file + i.s[1], c) != 0) << (c * Chunk);
          writeMask(w, i.s[0], And ? nonzero & with : nonzero | with, executing(w, i));
        },
        flip);
  };
  both ? run.template operator()<true>() : run.template operator()<false>();
}

void selectLop3(Decoder &d) {
  bool both = d.take(".and"), either = d.take(".or");
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  std::int64_t table;
  if (!d.isImmediate(4, table) || table < 0 || table > 255)
    d.fail("the truth table is not a constant from 0 to 255");
  d.operandUsed(4);
  if (!both && !either) {
    operands(d, Type::B32, 3);
    d.emit(lookUp, table);
    return;
  }
  // The result goes through a register of its own: the destination may be a sink.
  std::uint32_t value = d.temporary(32);
  d.defTemporary(value);
  for (unsigned n = 1; n <= 3; ++n)
    d.use(n, Type::B32);
  d.emit(lookUp, table);
  d.def(0, 32);
  d.useTemporary(value);
  d.emit(copyOf(d, 32));
  emitNonzero(d, value, both);
}

// --- fns, bmsk, szext -------------------------------------------------------

/// The n-th set bit of a mask from `base` on, upwards or (n < 0) downwards; n = 0 asks for bit
/// `base` itself. All ones if there is none.
static u32 findNth(u32 mask, u32 base, s32 n) {
  if (base > 31)
    return ~0u;
  if (n == 0)
    return mask >> base & 1 ? base : ~0u;
  u32 left = n < 0 ? 0u - static_cast<u32>(n) : static_cast<u32>(n);
  for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += n < 0 ? -1 : 1)
    if ((mask >> at & 1) && --left == 0)
      return static_cast<u32>(at);
  return ~0u;
}

void selectFns(Decoder &d) {
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  operands(d, Type::B32, 3);
  d.emit(each<findNth, u32, u32, u32, s32>);
}

/// `width` ones from bit `from` on.
template <bool Clamp> static u32 bitMask(u32 from, u32 width) {
  if (Clamp && from > 31)
    return 0;
  u32 ones = ~0u << (from & 31), end = (from & 31) + (width & 31);
  if (end > 31 || (Clamp && width > 31))
    return ones;
  return (width & 31) == 0 ? 0 : ones & ~(~0u << end);
}

/// The low `width` bits of a, zero- or sign-extended.
template <class T, bool Clamp> static T extend(T a, u32 width) {
  if (Clamp && width > 31)
    return a;
  width &= 31;
  if (width == 0)
    return 0;
  return static_cast<T>(static_cast<u32>(a) << (32 - width)) >> (32 - width);
}

static bool takeClamp(Decoder &d) {
  bool clamp = d.take(".clamp");
  if (!clamp && !d.take(".wrap"))
    d.fail("neither .clamp nor .wrap");
  return clamp;
}

void selectBmsk(Decoder &d) {
  bool clamp = takeClamp(d);
  if (Type type = d.takeType(); type != Type::B32)
    d.failType(type);
  operands(d, Type::B32, 2);
  d.emit(clamp ? each<bitMask<true>, u32, u32, u32> : each<bitMask<false>, u32, u32, u32>);
}

void selectSzext(Decoder &d) {
  bool clamp = takeClamp(d);
  Type type = d.takeType();
  if (type != Type::U32 && type != Type::S32)
    d.failType(type);
  operands(d, type, 2);
  if (type == Type::S32)
    d.emit(clamp ? each<extend<s32, true>, s32, s32, u32>
                 : each<extend<s32, false>, s32, s32, u32>);
  else
    d.emit(clamp ? each<extend<u32, true>, u32, u32, u32>
                 : each<extend<u32, false>, u32, u32, u32>);
}

} // namespace planemu::PLANEMU_ISA
