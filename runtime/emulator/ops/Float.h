//===- Float.h - floating-point helpers and the float halves of shared mnemonics ===//
//
// Results are those of IEEE 754 with the GPU's conventions on top: a NaN result is always
// 0x7fffffff (PTX ISA, "Floating Point Instructions"), .ftz flushes subnormal inputs and results to
// zero with their sign, .sat clamps to [0, 1] and turns NaN into +0. The host's own flags are never
// touched.
//===----------------------------------------------------------------------===//

#ifndef PLANEMU_OPS_FLOAT_H
#define PLANEMU_OPS_FLOAT_H

#include "runtime/emulator/ops/Lanes.h"

namespace planemu::PLANEMU_ISA {

/// How a result is rounded: to nearest even, or towards -inf, zero, +inf.
enum class Round : u8 { Nearest, Down, Zero, Up };

/// What the modifiers say; ftz and saturation exist for f32 (and f16) only.
struct Modifiers {
  Round round = Round::Nearest;
  bool explicitRound = false, ftz = false, sat = false;
};
Modifiers takeModifiers(Decoder &d, bool saturate = false);

/// Directed.cpp: emits the function for a rounding other than to nearest. Destination and sources
/// are appended.
enum class Operation : u8 { Add, Sub, Mul, Fma, Div, Rcp, Sqrt };
void emitDirected(Decoder &d, Operation operation, Type type, const Modifiers &m);

// add, sub, mul, fma, div, abs, neg, min and max ask these once they see that the type is no
// integer.
void selectFloatSum(Decoder &d, Type type, bool subtract, bool saturate);
void selectFloatMul(Decoder &d);
void selectFloatFma(Decoder &d);
void selectFloatDiv(Decoder &d, Type type);
void selectFloatSign(Decoder &d, Type type, bool negate);
void selectFloatOrder(Decoder &d, Type type, bool max);

/// Consumes `.xorsign.abs`.
bool takeXorSign(Decoder &d);

// The 16-bit types among them: Half.cpp.
bool isHalf(Type type);
void selectHalfSum(Decoder &d, Type type, bool subtract, const Modifiers &m);
void selectHalfMul(Decoder &d, Type type, const Modifiers &m);
void selectHalfFma(Decoder &d, Type type, const Modifiers &m);
void selectHalfSign(Decoder &d, Type type, bool negate);
void selectHalfOrder(Decoder &d, Type type, bool max);

inline Vf32 canonical(Vf32 value) {
  return choose(value == value, value, bits<Vf32>(splat<u32>(0x7fffffff)));
}
inline Vf64 canonical(Vf64 value) {
  return choose(value == value, value, bits<Vf64>(splat<u64>(0x7ff8000000000000)));
}

/// True if a lane of `a` or `b` is NaN.
inline bool anyNan(Vf32 a, Vf32 b) {
#if defined(__AVX__)
  __m256 unordered = _mm256_cmp_ps(bits<__m256>(a), bits<__m256>(b), _CMP_UNORD_Q);
  return !_mm256_testz_ps(unordered, unordered);
#else
  return compress((a != a) | (b != b)) != 0;
#endif
}

template <auto F, class... S, std::size_t... N>
[[gnu::always_inline]] inline void canonicalOf(Warp &w, const Inst &i, std::index_sequence<N...>) {
  char *const d = w.file + i.s[0];
  const char *const s[] = {w.file + i.s[1 + N]...};
  Vf32 values[Chunks];
  for (int c = 0; c < Chunks; ++c)
    values[c] = F(load<S>(s[N], c)...);
  if (anyNan(values[0], values[1]) || anyNan(values[2], values[3])) [[unlikely]]
    for (Vf32 &value : values)
      value = canonical(value);
  for (int c = 0; c < Chunks; ++c)
    store<f32>(d, c, values[c]);
}
/// In a group. NaNs are rare: what reads the result need not wait until each lane has been asked.
template <auto F, class... S> void canonicalTogether(const Group &group, const Inst &i) {
  const Inst own = i;
  for (Warp *w : group)
    canonicalOf<F, S...>(*w, own, std::index_sequence_for<S...>());
}
template <auto F, class... S> inline Vf32 canonicalLane(V<S>... s) { return canonical(F(s...)); }

/// Destination 0, an f32, = canonical(F(sources 1, 2, ...)).
template <auto F, class... S>
inline constexpr Exec canonicalLanes =
    onLanes<LanesCode<canonicalLane<F, S...>, f32, S...>, f32, S...>(
#if defined(__AVX2__)
        Exec(runLanes<canonicalLane<F, S...>, f32, S...>, canonicalTogether<F, S...>)
#else
        Exec(runLanes<canonicalLane<F, S...>, f32, S...>)
#endif
    );

inline Vf32 flush(Vf32 value) {
  Vu32 raw = bits<Vu32>(value);
  return bits<Vf32>(choose((raw & 0x7f800000) == 0, raw & 0x80000000, raw));
}

inline Vf32 saturated(Vf32 value) {
  Vf32 zero = {}, one = zero + 1.0f;
  value = choose((value > zero), value, zero); // also NaN and -0
  return choose((value < one), value, one);
}

inline Vf32 fma(Vf32 a, Vf32 b, Vf32 c) {
#if defined(__FMA__)
  return bits<Vf32>(_mm256_fmadd_ps(bits<__m256>(a), bits<__m256>(b), bits<__m256>(c)));
#else
  Vf32 result;
  for (int lane = 0; lane < Chunk; ++lane)
    result[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  return result;
#endif
}

inline Vf64 fma(Vf64 a, Vf64 b, Vf64 c) {
  Vf64 result;
#if defined(__FMA__)
  struct Halves {
    __m256d low, high;
  } x = bits<Halves>(a), y = bits<Halves>(b), z = bits<Halves>(c), r;
  r.low = _mm256_fmadd_pd(x.low, y.low, z.low);
  r.high = _mm256_fmadd_pd(x.high, y.high, z.high);
  result = bits<Vf64>(r);
#else
  for (int lane = 0; lane < Chunk; ++lane)
    result[lane] = __builtin_fma(a[lane], b[lane], c[lane]);
#endif
  return result;
}

inline Vf32 squareRoot(Vf32 a) {
#if defined(__AVX__)
  return bits<Vf32>(_mm256_sqrt_ps(bits<__m256>(a)));
#else
  Vf32 result;
  for (int lane = 0; lane < Chunk; ++lane)
    result[lane] = __builtin_sqrtf(a[lane]);
  return result;
#endif
}

inline Vf64 squareRoot(Vf64 a) {
  Vf64 result;
#if defined(__AVX__)
  struct Halves {
    __m256d low, high;
  } x = bits<Halves>(a), r;
  r.low = _mm256_sqrt_pd(x.low);
  r.high = _mm256_sqrt_pd(x.high);
  result = bits<Vf64>(r);
#else
  for (int lane = 0; lane < Chunk; ++lane)
    result[lane] = __builtin_sqrt(a[lane]);
#endif
  return result;
}

/// Rounding of a result that is known as a double plus the sign of what is missing: an
/// f32 from value + rest, where |rest| is less than half an ulp of value.
inline f32 roundTo(Round mode, f64 value, f64 rest) {
  f32 nearest = static_cast<f32>(value);
  if (mode == Round::Nearest || !(value - value == 0)) // also inf and NaN
    return nearest;
  int sign = nearest > value   ? 1
             : nearest < value ? -1
             : rest < 0        ? 1
             : rest > 0        ? -1
                               : 0; // of nearest - exact
  bool down = mode == Round::Down || (mode == Round::Zero && value > 0);
  bool up = mode == Round::Up || (mode == Round::Zero && value < 0);
  if ((sign > 0 && down) || (sign < 0 && up)) {
    s32 raw = bits<s32>(nearest);
    // One step towards -inf or +inf on the sign-magnitude line.
    if (raw == 0 || raw == s32(0x80000000))
      raw = down ? s32(0x80000001) : 1;
    else
      raw += (raw < 0) == down ? 1 : -1;
    return bits<f32>(raw);
  }
  return nearest;
}

/// high + low as a double that is cut and whose last bit says whether anything was: rounded once
/// more, to a format of 51 bits or fewer in any direction, it gives what the exact sum would.
/// Needs |low| below high's last bit.
inline Vf64 roundToOdd(Vf64 high, Vf64 low) {
  Vs64 raw = bits<Vs64>(high);
  Vs64 cut = (low != 0.0) & (high - high == 0.0);
  Vs64 towardsZero = (low < 0.0) ^ (high < 0.0); // -1 where true
  return bits<Vf64>(choose(cut, (raw + towardsZero) | 1, raw));
}
/// The same step from a double to f32. Magnitudes below f32's all become the least one there.
inline Vf32 narrowToOdd(Vf64 value) {
  Vf32 nearest = to<f32>(value);
  Vf64 back = to<f64>(nearest);
  auto magnitude = [](Vf64 a) { return bits<Vs64>(a) & 0x7fffffffffffffff; };
  Vs32 cut = to<s32>((back != value) & (value - value == 0.0));
  Vs32 above = to<s32>(magnitude(back) > magnitude(value));
  Vs32 raw = bits<Vs32>(nearest);
  return bits<Vf32>(choose(cut, (raw + above) | 1, raw));
}

} // namespace planemu::PLANEMU_ISA

#endif // PLANEMU_OPS_FLOAT_H
