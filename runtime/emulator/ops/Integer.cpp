//===- Integer.cpp - integer arithmetic --------------------------===//
//
// PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions".
// Signed types share the unsigned function wherever two's complement makes no difference.
//===----------------------------------------------------------------------===//

#include "runtime/emulator/ops/Float.h"
#include "runtime/emulator/ops/Instructions.h"
#include "runtime/emulator/ops/IntegerTypes.h"

namespace planemu::PLANEMU_ISA {

// --- Carry chains -----------------------------------------------------------
//
// CC.CF is a predicate per warp, kept by the decoder like any other: see selectAdd. A chain
// instruction has the carry in operand 4 and out operand 5. A subtraction is an addition of the
// complement, so it leaves 1 if there was no borrow: ptxas translates it so, and nvcc reads it with
// addc in its 128-bit division. Within subtractions this cannot be told from a borrow flag.

template <class T, bool Subtract, bool In> static void addCarry(Warp &w, const Inst &i) {
  u32 mask = executing(w, i), in = readMask(w, i.s[3]), out = 0;
  T *d = at<T>(w, i.s[0]);
  const T *a = at<T>(w, i.s[1]), *b = at<T>(w, i.s[2]);
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    T x = a[lane], y = b[lane], sum;
    T carry = In && ((in >> lane & 1) != Subtract);
    bool over;
    if constexpr (Subtract) {
      T difference;
      over = __builtin_sub_overflow(x, y, &difference);
      over |= __builtin_sub_overflow(difference, carry, &sum);
    } else {
      T partial;
      over = __builtin_add_overflow(x, y, &partial);
      over |= __builtin_add_overflow(partial, carry, &sum);
    }
    d[lane] = sum;
    out |= u32(over != Subtract) << lane;
  }
  writeMask(w, i.s[4], out, mask);
}

template <bool Subtract> static void selectCarry(Decoder &d, bool in, bool out) {
  Type type = d.takeType();
  if (!isInteger(type) || bitsOf(type) < 32)
    d.failType(type);
  operands(d, type, 2);
  d.useCarry(in);
  d.defCarry(out);
  if (bitsOf(type) == 32)
    d.emit(in ? addCarry<u32, Subtract, true> : addCarry<u32, Subtract, false>);
  else
    d.emit(in ? addCarry<u64, Subtract, true> : addCarry<u64, Subtract, false>);
}

template <class T, bool High> static void madCarry(Warp &w, const Inst &i) {
  using U = Unsigned<T>;
  u32 mask = executing(w, i), in = readMask(w, i.s[4]), out = 0;
  U *d = at<U>(w, i.s[0]);
  const T *a = at<T>(w, i.s[1]), *b = at<T>(w, i.s[2]);
  const U *c = at<U>(w, i.s[3]);
  for (u32 left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    Wide product = static_cast<Wide>(a[lane]) * static_cast<Wide>(b[lane]);
    U part = static_cast<U>(High ? product >> (8 * sizeof(T)) : product);
    U partial, sum;
    bool over = __builtin_add_overflow(part, c[lane], &partial);
    over |= __builtin_add_overflow(partial, U(in >> lane & 1), &sum);
    d[lane] = sum;
    out |= u32(over) << lane;
  }
  writeMask(w, i.s[5], out, mask);
}

static void selectMadCarry(Decoder &d, bool in, bool out) {
  bool high = d.take(".hi");
  if (!high && !d.take(".lo"))
    d.fail("neither .lo nor .hi");
  Type type = d.takeType();
  operands(d, type, 3);
  d.useCarry(in);
  d.defCarry(out);
  byType(d, type, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      d.failType(type);
    else
      d.emit(high ? madCarry<T, true> : madCarry<T, false>);
  });
}

void selectAddc(Decoder &d) { selectCarry<false>(d, true, d.take(".cc")); }
void selectSubc(Decoder &d) { selectCarry<true>(d, true, d.take(".cc")); }
void selectMadc(Decoder &d) { selectMadCarry(d, true, d.take(".cc")); }

// --- Pairs of 16-bit integers -----------------------------------------------

template <class T, auto F> static void emitPairs(Decoder &d, Type type) {
  operands(d, type, 2);
  d.emit(lanes<[](Vu32 a, Vu32 b) {
    auto half = [&](int by) {
      return to<u32>(bits<Vu16>(F(bits<V<T>>(to<u16>(a >> by)), bits<V<T>>(to<u16>(b >> by)))));
    };
    return half(0) | half(16) << 16;
  },
               u32, u32, u32>);
}

static bool isPair(Type type) { return type == Type::U16x2 || type == Type::S16x2; }

// --- Add, subtract, multiply ------------------------------------------------

/// add and sub: the types of Float.cpp are asked first.
template <bool Subtract> static void selectSum(Decoder &d) {
  if (d.take(".cc"))
    return selectCarry<Subtract>(d, false, true);
  bool saturate = d.take(".sat");
  Type type = d.takeType();
  if (isPair(type) && !Subtract && !saturate)
    return emitPairs<u16, [](auto a, auto b) { return a + b; }>(d, type);
  if (!isInteger(type))
    return selectFloatSum(d, type, Subtract, saturate);
  operands(d, type, 2);
  if (saturate) {
    if (type != Type::S32)
      d.failType(type);
    d.emit(lanes<[](auto a, auto b) {
      Vs64 sum = Subtract ? to<s64>(a) - to<s64>(b) : to<s64>(a) + to<s64>(b);
      sum = choose(sum > 0x7fffffffll, splat<s64>(0x7fffffffll), sum);
      sum = choose(sum < -0x80000000ll, splat<s64>(-0x80000000ll), sum);
      return to<s32>(sum);
    },
                 s32, s32, s32>);
    return;
  }
  byWidth(d, type, [&]<class T>(T) {
    d.emit(lanes<[](auto a, auto b) { return Subtract ? a - b : a + b; }, T, T, T>);
  });
}

void selectAdd(Decoder &d) { selectSum<false>(d); }
void selectSub(Decoder &d) { selectSum<true>(d); }

template <class T> struct Wider;
template <> struct Wider<u16> {
  using type = u32;
};
template <> struct Wider<s16> {
  using type = s32;
};
template <> struct Wider<u32> {
  using type = u64;
};
template <> struct Wider<s32> {
  using type = s64;
};

template <class T> static T highProduct(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<__int128>(a) * b >> (8 * sizeof(T)));
  else
    return static_cast<T>(static_cast<unsigned __int128>(a) * b >> (8 * sizeof(T)));
}

/// Sign- or zero-extended product of halves of the result.
template <class T, class A> static auto wideProduct(A a, A b) {
  using W = typename Wider<T>::type;
  using U = Unsigned<W>;
  return bits<V<U>>(to<W>(bits<V<T>>(a))) * bits<V<U>>(to<W>(bits<V<T>>(b)));
}

void selectMul(Decoder &d) {
  bool wide = d.take(".wide"), low = d.take(".lo"), high = d.take(".hi");
  if (!wide && !low && !high)
    return selectFloatMul(d);
  if (wide + low + high > 1)
    d.fail("several of .wide, .lo and .hi");
  Type type = d.takeType();
  if (!wide)
    operands(d, type, 2);
  byType(d, type, [&]<class T>(T) {
    using U = Unsigned<T>;
    if (wide) {
      if constexpr (sizeof(T) == 8) {
        d.failType(type);
      } else {
        d.def(0, 16 * sizeof(T));
        d.use(1, type);
        d.use(2, type);
        d.emit(lanes<[](auto a, auto b) { return wideProduct<T>(a, b); },
                     Unsigned<typename Wider<T>::type>, U, U>);
      }
    } else if (low) {
      d.emit(lanes<[](auto a, auto b) { return a * b; }, U, U, U>);
    } else {
      d.emit(each<highProduct<T>, T, T, T>);
    }
  });
}

static s32 clamped(s64 value) {
  return static_cast<s32>(value > 0x7fffffffll    ? 0x7fffffffll
                          : value < -0x80000000ll ? -0x80000000ll
                                                  : value);
}

void selectMad(Decoder &d) {
  if (d.take(".cc"))
    return selectMadCarry(d, false, true);
  bool wide = d.take(".wide"), low = d.take(".lo"), high = d.take(".hi");
  if (!wide && !low && !high)
    return selectFloatFma(d);
  if (wide + low + high > 1)
    d.fail("several of .wide, .lo and .hi");
  bool saturate = d.take(".sat");
  Type type = d.takeType();
  if (saturate && (!high || type != Type::S32))
    d.failType(type);
  if (!wide)
    operands(d, type, 3);
  byType(d, type, [&]<class T>(T) {
    using U = Unsigned<T>;
    if (wide) {
      if constexpr (sizeof(T) == 8) {
        d.failType(type);
      } else {
        using W = Unsigned<typename Wider<T>::type>;
        d.def(0, 16 * sizeof(T));
        d.use(1, type);
        d.use(2, type);
        d.use(3, sizeof(T) == 4 ? Type::B64 : Type::B32);
        d.emit(lanes<[](auto a, auto b, auto c) { return wideProduct<T>(a, b) + c; }, W, U, U, W>);
      }
    } else if (low) {
      d.emit(lanes<[](auto a, auto b, auto c) { return a * b + c; }, U, U, U, U>);
    } else if (saturate) {
      d.emit(each<[](s32 a, s32 b, s32 c) { return clamped(s64(highProduct(a, b)) + c); }, s32, s32,
                  s32, s32>);
    } else {
      d.emit(each<[](T a, T b, T c) { return static_cast<T>(U(highProduct(a, b)) + U(c)); }, T, T,
                  T, T>);
    }
  });
}

/// The 48-bit product of the low 24 bits, sign-extended for s32.
template <class T> static s64 product24(u32 a, u32 b) {
  s64 x = std::is_signed_v<T> ? s32(a << 8) >> 8 : s64(a & 0xffffff);
  s64 y = std::is_signed_v<T> ? s32(b << 8) >> 8 : s64(b & 0xffffff);
  return x * y;
}
template <class T, bool High> static u32 mad24(u32 a, u32 b, u32 c) {
  return u32(product24<T>(a, b) >> (High ? 16 : 0)) + c;
}
static s32 mad24Saturated(u32 a, u32 b, s32 c) { return clamped((product24<s32>(a, b) >> 16) + c); }

template <bool Add> static void select24(Decoder &d) {
  bool high = d.take(".hi"), saturate = Add && high && d.take(".sat");
  if (!high && !d.take(".lo"))
    d.fail("neither .lo nor .hi");
  Type type = d.takeType();
  if ((type != Type::U32 || saturate) && type != Type::S32)
    d.failType(type);
  operands(d, type, Add ? 3 : 2);
  if (saturate) {
    d.emit(each<mad24Saturated, s32, u32, u32, s32>);
    return;
  }
  if (!Add)
    d.useConstant(0, 32);
  if (type == Type::S32)
    d.emit(high ? each<mad24<s32, true>, u32, u32, u32, u32>
                : each<mad24<s32, false>, u32, u32, u32, u32>);
  else
    d.emit(high ? each<mad24<u32, true>, u32, u32, u32, u32>
                : each<mad24<u32, false>, u32, u32, u32, u32>);
}
void selectMul24(Decoder &d) { select24<false>(d); }
void selectMad24(Decoder &d) { select24<true>(d); }

// --- Division: PTX leaves x / 0 open; all ones and x are what GPUs give -----

template <class T> static T quotient(T a, T b) {
  if (b == 0)
    return static_cast<T>(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return static_cast<T>(0 - static_cast<Unsigned<T>>(a));
  return static_cast<T>(a / b);
}
template <class T> static T remainderOf(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return 0;
  return static_cast<T>(a % b);
}

void selectDiv(Decoder &d) {
  Type type = d.takeType();
  if (!isInteger(type))
    return selectFloatDiv(d, type);
  operands(d, type, 2);
  byType(d, type, [&]<class T>(T) { d.emit(each<quotient<T>, T, T, T>); });
}

void selectRem(Decoder &d) {
  Type type = d.takeType();
  operands(d, type, 2);
  byType(d, type, [&]<class T>(T) { d.emit(each<remainderOf<T>, T, T, T>); });
}

// --- Sign, order, difference ------------------------------------------------

void selectAbs(Decoder &d) {
  Type type = d.takeType();
  if (!isInteger(type))
    return selectFloatSign(d, type, false);
  if (!isSigned(type))
    d.failType(type);
  operands(d, type, 1);
  byType(d, type, [&]<class T>(T) {
    using U = Unsigned<T>;
    d.emit(lanes<[](auto a) { return choose(bits<V<Signed<T>>>(a) < 0, V<U>{} - a, a); }, U, U>);
  });
}

void selectNeg(Decoder &d) {
  Type type = d.takeType();
  if (!isInteger(type))
    return selectFloatSign(d, type, true);
  if (!isSigned(type))
    d.failType(type);
  operands(d, type, 1);
  byWidth(d, type, [&]<class T>(T) { d.emit(lanes<[](auto a) { return V<T>{} - a; }, T, T>); });
}

template <bool Max> static void selectOrder(Decoder &d) {
  bool relu = d.take(".relu");
  Type type = d.takeType();
  if (isPair(type)) {
    auto emit = [&]<class T, bool Relu>() {
      emitPairs<T, [](auto a, auto b) {
        auto value = choose(a > b, Max ? a : b, Max ? b : a);
        return Relu ? choose(value > 0, value, V<T>{}) : value;
      }>(d, type);
    };
    if (type == Type::S16x2)
      return relu ? emit.template operator()<s16, true>() : emit.template operator()<s16, false>();
    if (!relu)
      return emit.template operator()<u16, false>();
    d.failType(type);
  }
  if (!isInteger(type)) {
    if (relu)
      d.fail("'.relu' is not supported on this type");
    return selectFloatOrder(d, type, Max);
  }
  if (relu && type != Type::S32)
    d.failType(type);
  operands(d, type, 2);
  byType(d, type, [&]<class T>(T) {
    if (relu)
      d.emit(each<[](s32 a, s32 b) {
        s32 value = (a > b) == Max ? a : b;
        return value < 0 ? 0 : value;
      },
                  s32, s32, s32>);
    else
      d.emit(
          lanes<[](auto a, auto b) { return choose((a > b), Max ? a : b, Max ? b : a); }, T, T, T>);
  });
}
void selectMin(Decoder &d) { selectOrder<false>(d); }
void selectMax(Decoder &d) { selectOrder<true>(d); }

void selectSad(Decoder &d) {
  Type type = d.takeType();
  operands(d, type, 3);
  byType(d, type, [&]<class T>(T) {
    using U = Unsigned<T>;
    d.emit(
        each<[](T a, T b, U c) { return static_cast<U>(c + (a < b ? U(b) - U(a) : U(a) - U(b))); },
             U, T, T, U>);
  });
}

/// dp2a: two products of a's halves and two bytes of b, the lower or the upper ones, added to c.
void selectDp2a(Decoder &d) {
  bool high = d.take(".hi");
  if (!high && !d.take(".lo"))
    d.fail("neither .lo nor .hi");
  Type a = d.takeType(), b = d.takeType();
  bool signedA = a == Type::S32, signedB = b == Type::S32;
  if ((!signedA && a != Type::U32) || (!signedB && b != Type::U32))
    d.failType(signedA ? b : a);
  operands(d, Type::B32, 3);
  auto emit = [&]<class A, class B>(A, B) {
    d.emit(each<[](u32 x, u32 y, u32 z, u32 from) {
      for (int n = 0; n < 2; ++n)
        z += static_cast<u32>(s32(A(x >> (16 * n))) * s32(B(y >> (from + 8u * n))));
      return z;
    },
                u32, u32, u32, u32, u32>);
  };
  d.useConstant(high ? 16 : 0, 32);
  if (signedA)
    signedB ? emit(s16{}, s8{}) : emit(s16{}, u8{});
  else
    signedB ? emit(u16{}, s8{}) : emit(u16{}, u8{});
}

/// dp4a: four byte products added to c.
void selectDp4a(Decoder &d) {
  Type a = d.takeType(), b = d.takeType();
  bool signedA = a == Type::S32, signedB = b == Type::S32;
  if ((!signedA && a != Type::U32) || (!signedB && b != Type::U32))
    d.failType(signedA ? b : a);
  operands(d, Type::B32, 3);
  auto emit = [&]<class A, class B>(A, B) {
    d.emit(each<[](u32 x, u32 y, u32 z) {
      for (int n = 0; n < 4; ++n)
        z += static_cast<u32>(s32(A(x >> (8 * n))) * s32(B(y >> (8 * n))));
      return z;
    },
                u32, u32, u32, u32>);
  };
  if (signedA)
    signedB ? emit(s8{}, s8{}) : emit(s8{}, u8{});
  else
    signedB ? emit(u8{}, s8{}) : emit(u8{}, u8{});
}

} // namespace planemu::PLANEMU_ISA
